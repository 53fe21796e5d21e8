-- gradient_reach.lua -- how much of a gradient of the last output of a core reaches each earlier input: one backward pass over random inputs.
local constructors = require "mneme.tensor.constructors"
local cores = require "mneme.models.cores"
local gradients = require "mneme.tensor.gradients"
local ops = require("mneme.tensor.tensor").ops
local tables = require "mneme.base.tables"

local reach = {}
local FIRST, LEAST, POINTS = 20, 1e-30, 64     -- steps back and ratio where the line is fitted; points of a series

-- Norm of the gradient of one output's sum over random directions, by step.
local function norms(core, T, B)
  local width = core.config.d_in
  local x = constructors.randn(T, B, width, { grad = true })
  local y = core(x, nil, core:initial(B))
  local last = ops.slice(y, { axis = 0, from = T - 1, to = T })
  local g = gradients.grad(ops.sum { x = ops.mul(last, constructors.randn(1, B, core.d_out)) }, { x })[1]:data()
  local list = {}
  for t = 0, T - 1 do
    local sum = 0
    for i = 0, B * width - 1 do sum = sum + g[t * B * width + i] ^ 2 end
    list[t] = math.sqrt(sum)
  end
  return list
end

---Gradients of a new core's last output with respect to its inputs.
---@param options table { name, key = value } of the core; core.remember, where it is a number, is what the prediction takes
---@param back integer steps from the last output to the first input
---@param batch integer sequences, of which all have random inputs
---@return table result for a study: series measured and predicted, over steps back, relative to the last step; half_life = steps in which a
---  gradient halves (a line through its logarithm; nil where it does not fall), longer = in half-lives of the gates; reaches = the gradient 200 steps back
function reach.measure(options, back, batch)
  local size, remember = norms(cores.new(tables.merged({ d_in = 16 }, options)), back + 1, batch), tonumber(options.remember)
  local function ratio(k) return size[back - k] / size[back] end
  local result = { measured = { x = {}, y = {} }, predicted = remember and { x = {}, y = {} } or nil }
  for k = 0, back, math.ceil(back / POINTS) do
    for name, y in pairs { measured = ratio(k), predicted = remember and 0.5 ^ (k / remember) } do
      if y then table.insert(result[name].x, k) table.insert(result[name].y, y) end
    end
  end
  local n, sx, sy, sxx, sxy = 0, 0, 0, 0, 0
  for k = FIRST, back do
    if ratio(k) > LEAST then
      local y = math.log(ratio(k)) / math.log(2)
      n, sx, sy, sxx, sxy = n + 1, sx + k, sy + y, sxx + k * k, sxy + k * y
    end
  end
  local slope = n > 2 and (n * sxy - sx * sy) / (n * sxx - sx * sx) or 0
  result.half_life = slope < 0 and -1 / slope or nil
  result.longer = result.half_life and remember and result.half_life / remember
  result.reaches = back >= 200 and ratio(200) or nil
  return result
end

return reach
