-- paired_episodes.lua -- every episode twice, without and with an intervention, with the same environments and random numbers.
local engine = require "mneme.base.engine"
local files = require "mneme.base.files"
local trajectory_writer = require "mneme.insight.episodes.trajectory_writer"

local C = engine.C
local paired_episodes = {}

-- Writers of the environments that are recorded; nil: none.
local function begin_recordings(p, folder)
  if not folder then return nil end
  files.make_folder(folder)
  local list = {}
  for b = 0, p.num_envs - 1 do
    list[b] = trajectory_writer.new(p.env, b, { about = { title = p.title, source = p.source, run = p.run } })
    list[b]:begin(p:observations() + b * p.n)
  end
  return list
end

---One whole episode in every environment.
---@param p Stepper
---@param list Interventions
---@param o table { seeds = of each environment, draws = of the sampled actions, act = whether to intervene, most = environments that
---  count, folder = for trajectories or nil, first = number of the first environment's episode, pause = function() or nil, called after each step }
---@return table[] outcomes { score, ret, length, refused = true where an intervention could not be applied } by environment; nil after a signal
function paired_episodes.round(p, list, o)
  p:restart(o.seeds, o.draws)
  list:release()
  local out, left, step, nobody, refused = {}, p.num_envs, 0, {}, {}
  local kept = begin_recordings(p, o.folder)
  while left > 0 do
    local living, counting = {}, {}
    for b = 0, p.num_envs - 1 do
      if not out[b + 1] then
        living[#living + 1] = b
        if b < o.most then counting[#counting + 1] = b end
      end
    end
    local applied, not_applied = list:before(step, o.act and counting or nobody)
    for _, d in ipairs(applied) do
      if kept then kept[d.env]:intervene(d.note, p:observations() + d.env * p.n) end
    end
    for _, env in ipairs(not_applied) do refused[env] = true end
    p:forward()
    local actions, space = p:acting(), p.env.action_space
    p:step()
    for _, b in ipairs(living) do
      if kept then
        kept[b]:add(space:read(actions, b), p.reward[b], p.terminated[b] ~= 0, p.truncated[b] ~= 0, p:observations() + b * p.n)
      end
      if p.done[b] ~= 0 then
        out[b + 1], left = p.env:outcome(b), left - 1
        out[b + 1].refused = refused[b]
        if kept and b < o.most then kept[b]:write(("%s/episode-%d.mnt"):format(o.folder, o.first + b)) end
      end
    end
    step = step + 1
    if o.pause then o.pause() end
    if C.mn_interrupted() ~= 0 then return nil end
  end
  return out
end

---Play episodes without and with the interventions.
---@param p Stepper
---@param list Interventions
---@param o table { episodes, seed, record = folder or nil, done = function(n) or nil, called after n pairs, pause: see round }
---@return table[] pairs { without, with } of outcomes, by episode
function paired_episodes.play(p, list, o)
  local pairs_of = {}
  while #pairs_of < o.episodes do
    local first, seeds = #pairs_of, {}
    for b = 0, p.num_envs - 1 do seeds[b + 1] = (o.seed + first + b) % 2 ^ 53 end
    local function arm(act, name)
      return paired_episodes.round(p, list, { seeds = seeds, draws = o.seed + first, act = act, most = o.episodes - first,
        first = first, folder = o.record and o.record .. "/" .. name, pause = o.pause })
    end
    local without = arm(false, "without")
    local with = without and arm(true, "with")
    if not with then break end
    for b = 1, math.min(p.num_envs, o.episodes - first) do pairs_of[first + b] = { without[b], with[b] } end
    if o.done then o.done(#pairs_of) end
  end
  local scored = false                           -- next to others a missing score counts as 0
  for _, c in ipairs(pairs_of) do scored = scored or c[1].score ~= nil or c[2].score ~= nil end
  for _, c in ipairs(scored and pairs_of or {}) do c[1].score, c[2].score = c[1].score or 0, c[2].score or 0 end
  return pairs_of
end

---The pairs whose episode without the intervention reaches its step, and in which every intervention that was reached could be applied.
---@param pairs_of table[]
---@param at integer
---@return table[] cases
---@return integer longest steps of the longest episode
---@return integer refused pairs that reach the step, in which an intervention could not be applied
function paired_episodes.reaching(pairs_of, at)
  local cases, longest, refused = {}, 0, 0
  for _, c in ipairs(pairs_of) do
    longest = math.max(longest, c[1].length)
    if c[1].length > at and c[2].refused then refused = refused + 1
    elseif c[1].length > at then cases[#cases + 1] = c end
  end
  return cases, longest, refused
end

---How often both, one or none succeeded; nil if there is no score or it is not just 0 or 1.
---@param cases table[] of paired_episodes.play
---@return table? count { both, without, with, neither }
function paired_episodes.count_success(cases)
  local count = { both = 0, without = 0, with = 0, neither = 0 }
  for _, c in ipairs(cases) do
    local a, b = c[1].score, c[2].score
    if not a or not b or a % 1 ~= 0 or b % 1 ~= 0 then return nil end
    local key = a == 1 and (b == 1 and "both" or "without") or b == 1 and "with" or "neither"
    count[key] = count[key] + 1
  end
  return count
end

return paired_episodes
