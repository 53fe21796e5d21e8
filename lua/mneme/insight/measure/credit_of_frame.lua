-- credit_of_frame.lua -- what a displayed step depends on (see credit.lua): computed from the episode that a frame belongs to, a piece at a
-- time, so that a window keeps its frames.
local ffi = require "ffi"
local credit = require "mneme.insight.measure.credit"
local engine = require "mneme.base.engine"
local state_arrays = require "mneme.models.state_arrays"
local tables = require "mneme.base.tables"

local C = engine.C
local credit_of_frame = {}
local TOLERANCE = 5e-3             -- of the value: the episode is computed again, and must come out
local AT_ONCE = 1.5e8              -- multiply-adds: more are not done between two frames of a window
local ROWS = 64                    -- explained steps that are kept
local RECENT = 4

local recent = {}                  -- episodes shown last, the newest first: { agent, entries, credit, rows = questions, likewise }

-- ---- the episode of a frame ----

-- The observation of a step as what the agent is given: bytes.
local function bytes_of(agent, observation)
  local space, values = agent.observation_space, observation.values
  local n = state_arrays.size(space.shape)
  local norm = agent.normaliser and agent.normaliser.norm_obs
  local to = ffi.new(space.dtype == "u8" and not norm and "uint8_t[?]" or "float[?]", n)
  for i = 0, n - 1 do to[i] = values[i] end
  if norm then agent.normaliser:observations(to, to, 1) end
  return ffi.string(to, ffi.sizeof(to))
end

-- Adds the steps that an episode has since.
local function grow(job, now)
  local agent, episode, entries = job.agent, job.credit.episode, job.entries
  for i = #entries + 1, #now.history do
    local entry, before = now.history[i], now.history[i - 1]
    local frame = not entry.observation and now.frame_of and now.frame_of(entry.step)
    local observation = entry.observation or frame and frame.observation
    if entry.step ~= i - 1 or not observation then return "not shown: not every step of this episode is known" end
    entries[i], episode.T = entry, i
    episode.x[i], episode.action[i] = bytes_of(agent, observation), entry.did or entry.action
    episode.value[i], episode.resets[i] = entry.value, before and 0 or 1
    local reward = before and entry.reward or 0
    if before and agent.normaliser then reward = agent.normaliser:reward(reward) end
    if agent.previous.action then episode.previous.action[i] = before and (before.did or before.action) or agent.action_space:nothing() end
    if agent.previous.reward then episode.previous.reward[i] = reward end
  end
end

local function open(now)
  local agent, previous = now.agent, {}
  for name, wanted in pairs(agent.previous) do if wanted then previous[name] = {} end end
  local episode = { T = 0, x = {}, action = {}, value = {}, resets = {}, previous = previous }
  return { agent = agent, entries = {}, rows = {}, credit = credit.new(agent, agent.observation_space, episode) }
end

-- What explaining a step costs at least between two frames of a window.
local function cost(job, t)
  if not job.credit.whole then return 0 end
  local about = job.agent.core:describe(t + 1)
  return 2 * ((t + 1) * about.weights + about.sequence.macs)
end

-- ---- the row of a step ----

---What the displayed step depends on, as far as it is known.
---@param now Frame
---@param deadline number? of engine.C.mn_clock(false): what is not done by then is left out; call again to continue
---@return table? row of Credit:ask; nil: there is none
---@return Credit|string credit, or why there is no row
function credit_of_frame.row(now, deadline)
  if not now.agent then return nil, "not shown: gradients are those of an agent that is run again, and there is none here" end
  local job = tables.recent(recent, RECENT, function(known)
    local n = math.min(#known.entries, #now.history)
    return known.agent == now.agent and n > 0 and known.entries[n] == now.history[n]
  end, function() return open(now) end)
  local problem, t = grow(job, now), now.history[#now.history].step
  if problem then return nil, problem end
  if deadline and cost(job, t) > AT_ONCE then
    return nil, ("not shown: gradients do not pass through pieces of this memory, and the whole would stop the window; mneme credit RUN at=%d"):format(t)
  end
  local q = tables.recent(job.rows, ROWS, function(known) return known.at[1] == t end,
    function() return job.credit:ask({ t }, #job.agent.observation_space.shape == 3) end)
  while not job.credit:work(q) and not (deadline and C.mn_clock(false) > deadline) do end
  if q.reached > TOLERANCE * (1 + math.abs(now.value)) then
    return nil, "not shown: the agent does not value these observations like this from an empty memory: its memory was changed, was not empty, or it acts on "
      .. "more than its memory (core.sees=rollout)"
  end
  q.rows[1].done = q.done
  return q.rows[1], job.credit
end

return credit_of_frame
