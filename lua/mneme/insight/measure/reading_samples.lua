-- reading_samples.lua -- what readings learn from: the values of each part of a memory in some environments, in comparable units.
local ffi = require "ffi"
local interventions = require "mneme.insight.episodes.interventions"
local tensor = require "mneme.tensor.tensor"

local ops = tensor.ops
local samples = {}
local NOISE = 1e-6                 -- of a column's size at that step: what varies less is rounding

---What can be read of a part: its state; and of a head what it gives out, where the core shows that (the probe `retrieved`).
---@param part table { parts, layer, head }
---@return table[] sources { size, take = function(b, to): of environment b now, gather = function(mind, to): of a Frame or snapshot }
function samples.sources(p, part)
  local core = p.agent.core
  local list = { { size = interventions.gather(core, part.parts, nil, 0, 1) } }
  list[1].take = function(b, to)
    interventions.gather(core, part.parts, function(name) return p.after[name]:data() end, b, p.num_envs, to)
  end
  list[1].gather = function(mind, to) interventions.gather(core, part.parts, function(name) return mind.memory[name].values end, 0, 1, to) end
  local name = part.head and ("layers.%d.retrieved"):format(part.layer)
  local shape = name and p.probes[name] and p.probes[name]:shape() or {}
  if #shape ~= 4 or shape[3] ~= core.sizes.H then return list end
  local H, V = shape[3], shape[4]
  list[2] = { size = V, gather = function(mind, to) ffi.copy(to, mind.probes[name].values + part.head * V, 4 * V) end,
    take = function(b, to)
      local row = shape[1] == 1 and 0 or p.row
      ffi.copy(to, p.probes[name]:data() + ((row * p.num_envs + b) * H + part.head) * V, 4 * V)
    end }
  return list
end

-- The values of a source in some environments, of which the columns that vary beyond rounding are read: each with mean 0 and deviation 1 over the first
-- `train`, divided by the root of how many they are.  How large the numbers are means nothing: a memory that divides by its own size uses small ones.
---@param envs integer[] environments, those to learn from first
---@param train integer how many these are
---@param stays boolean? x is kept beyond the source's next samples
---@return table { x = [n,m], columns = int[m]: which of the source's `size` columns these are, mean, scale = float[size]: what was taken off and multiplied }
function samples.of(source, envs, train, stays)
  local n, d = #envs, source.size
  if not source.x or source.x:shape()[1] < n then source.x = tensor.new { shape = { n, d } } end
  local to = source.x:data()
  for i, b in ipairs(envs) do source.take(b, to + (i - 1) * d) end
  local mean, scale, columns, live = ffi.new("float[?]", d), ffi.new("float[?]", d), ffi.new("int[?]", d), 0
  local middle, by, squares = ffi.new("double[?]", d), ffi.new("double[?]", d), ffi.new("double[?]", d)
  for i = 0, train - 1 do for j = 0, d - 1 do middle[j] = middle[j] + to[i * d + j] end end    -- row by row, as they lie
  for j = 0, d - 1 do middle[j] = middle[j] / train end
  for i = 0, train - 1 do for j = 0, d - 1 do squares[j] = squares[j] + (to[i * d + j] - middle[j]) ^ 2 end end
  for j = 0, d - 1 do
    local deviation = math.sqrt(squares[j] / train)
    by[j] = deviation > NOISE * (math.abs(middle[j]) + NOISE * NOISE) and 1 / deviation or 0
    if by[j] - by[j] ~= 0 then by[j] = 0 end
    if by[j] ~= 0 then columns[live], live = j, live + 1 end
  end
  local root = 1 / math.sqrt(math.max(1, live))
  for j = 0, d - 1 do mean[j], scale[j], by[j] = middle[j], by[j] * root, by[j] * root end
  local m = math.max(1, live)                      -- where none varies, a column of zeros
  local x = stays and tensor.new { shape = { n, m } } or tensor.view(source.x, 0, { n, m })
  local kept = x:data()
  for i = 0, n - 1 do
    for k = 0, live - 1 do kept[i * m + k] = (to[i * d + columns[k]] - middle[columns[k]]) * by[columns[k]] end
    if live == 0 then kept[i] = 0 end
  end
  return { x = x, columns = columns, size = d, mean = mean, scale = scale }
end

-- The n samples of all parts as one of d values, each part with the same weight.
---@param list table[] of samples.of of each part; what is returned is alike
function samples.together(list, n, d)
  local at, first, m, weight = 0, 0, 0, 1 / math.sqrt(#list)
  for _, of in ipairs(list) do m = m + of.x:shape()[2] end
  local x, columns, mean, scale = tensor.new { shape = { n, m } }, ffi.new("int[?]", m), ffi.new("float[?]", d), ffi.new("float[?]", d)
  local to = x:data()
  for _, of in ipairs(list) do
    local live, from = of.x:shape()[2], of.x:data()
    for j = 0, of.size - 1 do mean[at + j], scale[at + j] = of.mean[j], of.scale[j] * weight end
    for k = 0, live - 1 do
      columns[first + k] = at + of.columns[k]
      for i = 0, n - 1 do to[i * m + first + k] = from[i * live + k] * weight end
    end
    at, first = at + of.size, first + live
  end
  return { x = x, columns = columns, size = d, mean = mean, scale = scale }
end

-- The inner products of n samples, double[n * n].
function samples.products(of, n)
  local products = tensor.no_grad(function() return (ops.linear(of.x, of.x)) end)
  local kept, from = ffi.new("double[?]", n * n), products:data()
  for i = 0, n * n - 1 do kept[i] = from[i] end
  tensor.clear_tape()
  return kept
end

return samples
