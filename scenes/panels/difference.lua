-- difference.lua -- how two episodes shown side by side differ at each step: the share of the policy's probability that moved, and the
-- relative distance of the memories.
local mn = require "mneme"
local state_arrays, step_heatmap = mn.inspect.state_arrays, mn.ui.step_heatmap
local panels = mn.scene.panels

-- Half the sum of the differences of two policies: the share of probability that is elsewhere.
local function moved(a, b)
  if not (a and b and #a == #b) then return nil end
  local sum = 0
  for i = 1, #a do sum = sum + math.abs(a[i] - b[i]) end
  return sum / 2
end

-- The distance of two memories as a share of the mean of their norms; nil where they have not the same arrays.
local kept = setmetatable({}, { __mode = "k" })
local function apart(a, b)
  if not (a and b) then return nil end
  if kept[a.memory] and kept[a.memory].of == b.memory then return kept[a.memory].share end
  local far, one, two = 0, 0, 0
  for name, array in pairs(a.memory) do
    local other, n = b.memory[name], state_arrays.size(array.shape)
    if not other or state_arrays.size(other.shape) ~= n then return nil end
    for i = 0, n - 1 do
      local x, y = array.values[i], other.values[i]
      far, one, two = far + (x - y) ^ 2, one + x * x, two + y * y
    end
  end
  local share = one + two > 0 and math.sqrt(far) / (0.5 * (math.sqrt(one) + math.sqrt(two))) or 0
  kept[a.memory] = { of = b.memory, share = share }
  return share
end

---options.other: the frame of the other episode
return function(view, box, now, options)
  local other, theirs = options.other, {}
  for _, entry in ipairs(other.episode_history or other.history) do theirs[entry.step] = entry end
  local function of_policy(entry)
    local second = theirs[entry.step]
    local share = second and moved(entry.policy, second.policy)
    return share and 100 * share
  end
  local function of_memory(entry)
    local share = theirs[entry.step] and apart(now.frame_of and now.frame_of(entry.step), other.frame_of and other.frame_of(entry.step))
    return share and 100 * share
  end
  panels.signals(view, box, now, { title = "difference of the two", y_name = "%", least = 0, x_least = step_heatmap.span(now) - 1,
    lines = { { name = "policy", of = of_policy }, { name = "memory", of = of_memory } }, empty = "nothing to compare" })
end
