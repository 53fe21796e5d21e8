-- endless_stream.lua -- trains a model to repeat a bit of some steps ago in an endless stream of random bits, and records
-- its state and gradients when nothing ever resets.  The state is carried from part to part; gradients reach
-- back one part and are not clipped.  It stops when a value is not finite, and reports the step.
local cores = require "mneme.models.cores"
local nn = require "mneme.tensor.nn"
local optim = require "mneme.tensor.optim"
local plan = require "mneme.tensor.plan"
local tensor = require "mneme.tensor.tensor"
local ops = tensor.ops

local endless = {}
local POINTS = 50                  -- of a curve

-- The next part: bits as +1 and -1 next to a 1, and the answers, the bits of `back` rows before.
local function next_part(x, target, bits, rows, before)
  for i = 0, before - 1 do bits[i] = bits[i + rows] end
  nn.init.uniform(1)(bits + before, 1, rows)
  for i = 0, rows - 1 do
    bits[before + i] = bits[before + i] > 0 and 1 or -1
    x[2 * i], x[2 * i + 1], target[i] = bits[before + i], 1, bits[i]
  end
end

---Follow a core that learns.
---@param core_options table { name, key = value }, of a core with two numbers in
---@param o table back = steps; length = of a part; copies = streams; steps = summed over all streams; lr; seed
---@return table result for a study: finite = share of the steps before a value was not finite; loss, state_norm and
---  gradient_norm as series over steps; last_loss, last_norm, last_gradient, at the last steps that were finite
function endless.follow(core_options, o)
  local T, B = o.length, o.copies
  nn.manual_seed(o.seed)
  local core = cores.new(core_options)
  local head = nn.linear(core.d_out, 1)
  local adam = optim.adam(nn.container({ { "core", core.module }, { "head", head } }):parameters(), { lr = o.lr })
  local x, target = tensor.new { shape = { T, B, 2 }, time = true }, tensor.new { shape = { T, B, 1 } }
  local bits, state = tensor.new { shape = { T + o.back, B } }, core:initial(B)
  local learn = plan(function(input, before)
    adam:zero_grad()
    local y, after = core(input, nil, before)
    local loss, squares = ops.mean { x = ops.square(ops.sub(head(y), target)) }, nil
    loss:backward()
    adam:apply()
    for _, name in ipairs(core:state_names()) do
      local more = ops.sum { x = ops.square(after[name]) }
      squares = squares and ops.add(squares, more) or more
    end
    return loss, squares, after
  end)
  local series, done = { loss = { x = {}, y = {} }, state_norm = { x = {}, y = {} }, gradient_norm = { x = {}, y = {} } }, 0
  local result, every = { loss = series.loss, state_norm = series.state_norm, gradient_norm = series.gradient_norm },
    T * B * math.ceil(o.steps / (POINTS * T * B))
  while done < o.steps do
    next_part(x:data(), target:data(), bits:data(), T * B, o.back * B)
    adam:tick()
    local loss, squares, after = learn(x, state)
    local now = { loss = loss:item(), state_norm = squares and math.sqrt(squares:item()) or 0, gradient_norm = adam:grad_norm() }
    local sum = now.loss + now.state_norm + now.gradient_norm
    if sum - sum ~= 0 then break end
    tensor.keep(after, state)
    if done % every == 0 then
      for name, s in pairs(series) do s.x[#s.x + 1], s.y[#s.y + 1] = done + T * B, now[name] end
    end
    done, result.last_loss, result.last_norm, result.last_gradient = done + T * B, now.loss, now.state_norm, now.gradient_norm
  end
  result.finite = math.min(1, done / o.steps)
  return result
end

return endless
