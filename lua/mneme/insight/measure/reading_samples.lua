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

-- The values of a source in some environments as [n,d], each column with mean 0 and deviation 1 over the first `train`, divided by the
-- root of how many columns are read; and what was taken off and multiplied.  How large the numbers are means nothing: a memory that divides
-- by its own size uses small ones, so every column that varies beyond rounding is read.
---@param envs integer[] environments, those to learn from first
---@param train integer how many these are
---@param stays boolean? x is kept beyond the source's next samples
function samples.of(source, envs, train, stays)
  local n, d = #envs, source.size
  if stays or not source.x or source.x:shape()[1] < n then source.x = tensor.new { shape = { n, d } } end
  local x = tensor.view(source.x, 0, { n, d })
  local to = x:data()
  for i, b in ipairs(envs) do source.take(b, to + (i - 1) * d) end
  local mean, scale, live = ffi.new("float[?]", d), ffi.new("float[?]", d), 0
  local middle, by, squares = ffi.new("double[?]", d), ffi.new("double[?]", d), ffi.new("double[?]", d)
  for i = 0, train - 1 do for j = 0, d - 1 do middle[j] = middle[j] + to[i * d + j] end end    -- row by row, as they lie
  for j = 0, d - 1 do middle[j] = middle[j] / train end
  for i = 0, train - 1 do for j = 0, d - 1 do squares[j] = squares[j] + (to[i * d + j] - middle[j]) ^ 2 end end
  for j = 0, d - 1 do
    local deviation = math.sqrt(squares[j] / train)
    by[j] = deviation > NOISE * (math.abs(middle[j]) + NOISE * NOISE) and 1 / deviation or 0
    if by[j] - by[j] ~= 0 then by[j] = 0 end
    live = live + (by[j] ~= 0 and 1 or 0)
  end
  local root = 1 / math.sqrt(math.max(1, live))
  for j = 0, d - 1 do
    by[j] = by[j] * root
    mean[j], scale[j] = middle[j], by[j]
  end
  for i = 0, n - 1 do
    for j = 0, d - 1 do to[i * d + j] = by[j] == 0 and 0 or (to[i * d + j] - middle[j]) * by[j] end
  end
  return x, mean, scale
end

-- The n samples of all parts as one of d values, each part with the same weight: x, mean and scale, as of samples.of.
---@param list table[] { x, mean, scale } of each part
function samples.together(list, n, d)
  local at, weight = 0, 1 / math.sqrt(#list)
  local x, mean, scale = tensor.new { shape = { n, d } }, ffi.new("float[?]", d), ffi.new("float[?]", d)
  local to = x:data()
  for _, of in ipairs(list) do
    local k, from = of.x:shape()[2], of.x:data()
    for j = 0, k - 1 do
      mean[at + j], scale[at + j] = of.mean[j], of.scale[j] * weight
      for i = 0, n - 1 do to[i * d + at + j] = from[i * k + j] * weight end
    end
    at = at + k
  end
  return x, mean, scale
end

-- The inner products of samples x [n,d], double[n * n].
function samples.products(x, n)
  local products = tensor.no_grad(function() return (ops.linear(x, x)) end)
  local kept, from = ffi.new("double[?]", n * n), products:data()
  for i = 0, n * n - 1 do kept[i] = from[i] end
  tensor.clear_tape()
  return kept
end

return samples
