-- paired_episodes.lua -- every episode twice, without and with an intervention, with the same environments and random numbers.
local C = require("mneme.base.engine").C
local errors = require "mneme.base.errors"
local episode_arrays = require "mneme.insight.episodes.episode_arrays"
local interventions = require "mneme.insight.episodes.interventions"
local tables = require "mneme.base.tables"

local paired_episodes = {}

-- The interventions of a list in words.
local function texts_of(list)
  return table.concat(tables.map(list.specs, function(spec) return ("%s at step %d"):format(interventions.text(spec), spec.at) end), ", ")
end

---One whole episode in every environment.
---@param o table { seed: see Stepper:play, act = whether to intervene, most = environments that count, folder = for the arrays of each or nil,
---  starts = where the first arm leaves how each environment began,
---  first = number of the first environment's episode, pause = function() or nil, called after each step }
---@return table[] outcomes { score, ret, length, refused = true where an intervention could not be applied, seen = checksum of what was observed
---  up to the first intervention } by environment; nil after a signal
function paired_episodes.round(p, list, o)
  local refused, out, seen, first = {}, {}, {}, math.huge
  local album = o.folder and episode_arrays.album(p, { folder = o.folder, first = o.first, episodes = o.first + math.min(o.most, p.num_envs),
    about = { interventions = o.act and texts_of(list) or nil } })
  local bytes = p.n * (p.env.observation_space.dtype == "u8" and 1 or 4)
  for _, spec in ipairs(list.specs) do first = math.min(first, spec.at) end
  local function before(step, living)
    for b = 0, step == 0 and p.env.truncates and o.starts and p.num_envs - 1 or -1 do         -- of Gymnasium: a copy of the beginning, where it can
      if o.act then p.env:restore(b, o.starts[b], p:observations() + b * p.n) else o.starts[b] = p.env:save(b, true) end
    end
    for _, b in ipairs(step <= first and living or {}) do seen[b] = C.mn_crc32c(seen[b] or 0, p:observations() + b * p.n, bytes) end
    if step == 0 then list:release() end                    -- the episodes have begun
    local counting = {}
    for _, b in ipairs(living) do if o.act and b < o.most then counting[#counting + 1] = b end end
    for _, env in ipairs(list:before(step, counting)) do refused[env] = true end
  end
  local outcomes, stopped = p:play { seed = o.seed, before = before, watch = album and function() album:before() end,
    after = album and function() album:after() end, pause = o.pause,
    stops = function() return C.mn_interrupted() ~= 0 end }
  if stopped then return nil end
  for b, outcome in pairs(outcomes) do
    outcome.refused, outcome.seen = refused[b], seen[b]
    out[b + 1] = outcome
  end
  return out
end

---Play episodes without and with the interventions.
---@param o table { episodes, seed, record = folder or nil, done = function(n) or nil, called after n pairs, pause: see round }
---@return table[] pairs { without, with } of outcomes, by episode
function paired_episodes.play(p, list, o)
  local pairs_of = {}
  while #pairs_of < o.episodes do
    local first, starts = #pairs_of, {}
    local function arm(act, name)
      return paired_episodes.round(p, list, { seed = o.seed + first, act = act, starts = starts, most = o.episodes - first, first = first,
        folder = o.record and o.record .. "/" .. name, pause = o.pause })
    end
    local without = arm(false, "without")
    local with = without and arm(true, "with")
    if not with then break end
    for b = 1, math.min(p.num_envs, o.episodes - first) do
      if without[b].seen ~= with[b].seen then
        errors.raise(("%s: the same seed and actions give other observations: this environment is not reproducible, so its episodes are no pairs"):format(
          p.env.id), { hint = "does it draw from another source than its seed, or read a clock?" })
      end
      pairs_of[first + b] = { without[b], with[b] }
    end
    if o.done then o.done(#pairs_of) end
  end
  local scored = false                           -- next to others a missing score counts as 0
  for _, c in ipairs(pairs_of) do scored = scored or c[1].score ~= nil or c[2].score ~= nil end
  for _, c in ipairs(scored and pairs_of or {}) do c[1].score, c[2].score = c[1].score or 0, c[2].score or 0 end
  return pairs_of
end

---The pairs whose episode without the intervention reaches its step, and in which every intervention that was reached could be applied.
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
