-- timeline_export.lua -- saves an episode of a timeline as a trajectory: replays it from its first step to its end, with the agent's
-- internals, the interventions, and the actions taken by hand.
local engine = require "mneme.base.engine"
local episode_recorder = require "mneme.insight.episodes.episode_recorder"
local trajectory_writer = require "mneme.insight.episodes.trajectory_writer"
local trajectory_replay = require "mneme.insight.episodes.trajectory_replay"
local reading = require "mneme.models.reading"

local C = engine.C
local MOST_BYTES, MOST_STEPS = 2 ^ 29, 2 ^ 17        -- of internals; so that the window stays responsive

---Export the episode of a frame.
---@param line Timeline of a Stepper
---@param i integer a frame of the episode
---@return Recording? recording nil: its beginning cannot be restored
---@return boolean whole it reaches the end of the episode: not if the user stops, or where it takes too much room
---@return string? problem why a replay differs: the environment is not deterministic
local function export_episode(line, i)
  local p = line.source
  local like = line:frame(i)
  local first = p.observations and like and line:stand_before(i)
  if not first then return nil, false end
  local space, fields = p.env.action_space, episode_recorder.fields_of(p, like)
  local rec = trajectory_writer.new(p.env, 0, { fields = fields,
    about = { title = p.title, source = p.source, run = p.run, reads = reading(p.agent.core) } })
  rec:begin(p:observations())
  local over = false
  while not over and (rec.steps + 1) * rec.stride < MOST_BYTES and rec.steps < MOST_STEPS and C.mn_interrupted() == 0 do
    local at = first + rec.steps
    for _, note in ipairs(line:intervene(at)) do rec:intervene(note, p:observations()) end
    p:forward()
    local actions, hand = p:acting(), line.actions[at]
    if hand then
      space:put(actions, 0, hand)
      rec:intervene({ kind = "take", what = space:words(hand) }, p:observations())
    end
    rec:internals(episode_recorder.values_of(p:snapshot(0)))
    local action = space:read(actions, 0)
    p:step()
    over = p.done[0] ~= 0
    rec:add(action, p.reward[0], p.terminated[0] ~= 0, p.truncated[0] ~= 0, p:observations())
  end
  if rec.steps == 0 then return nil, false end
  return rec, over, trajectory_replay.new(rec:trajectory(), p.env):verify()
end

return export_episode
