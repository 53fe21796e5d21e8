-- check_sensitivities.lua -- do a core's sensitivities hold?  Gradients of windows, each with what came before, add up to those of backpropagation
-- through all steps.  `mneme check core=FILE.lua` asks it of a core that declares some, the tests of all of them.
local contract_rig = require "mneme.models.contract_rig"
local exact_credit = require "mneme.learn.exact_credit"
local expect = require "mneme.models.expect"
local tensor = require "mneme.tensor.tensor"
local ops = tensor.ops

local T, B = 29, 3

local check_sensitivities = { name = "gradients of windows with what came before add up to the whole (credit=exact)" }

---Random inputs of a core, with ends of episodes, and weights of what it gives.
---@return table { x, done, weights }
function check_sensitivities.data(core)
  return { x = contract_rig.normal({ T, B, core.config.d_in }, 1), weights = contract_rig.normal({ T, B, core.d_out }, 2),
    done = contract_rig.done(T, B, { { 11, 0 }, { 16, 1 }, { 17, 1 }, { 8, 2 } }) }
end

---Gradients of the rows that have sensitivities, of sum(weights * tanh(y)), in windows that end at `ends`.  Of the last layer: a lower one's past
---reaches those above it, too, which is left out.
---@param data table of `data`
---@param ends integer[] the last one that of the data
---@param exact boolean? with what came before each window
---@return number[][] of each tensor, from 0
function check_sensitivities.gradients(core, data, ends, exact)
  local past, state, from, numbers = exact and exact_credit(core, B), core:initial(B), 0, {}
  for _, p in ipairs(core:parameters()) do p:zero_grad() end
  for _, to in ipairs(ends) do
    local x, done, weights = contract_rig.rows(data.x, from, to), contract_rig.rows(data.done, from, to), contract_rig.rows(data.weights, from, to)
    local y, after = core(x, done, past and past:with_past(state) or state)
    ops.sum(y:tanh() * weights):backward()
    if past then
      past:look(x, done, state)
      past:move_on()
    end
    state, from = {}, to
    for name, s in pairs(after) do state[name] = tensor.keep(s:detach()) end
  end
  local last = core.sensitivities[#core.sensitivities]
  for _, group in ipairs(type(last) == "function" and last() or last) do
    for _, kind in ipairs(group.kinds) do
      for _, leaf in pairs { kind.weight or false, kind.bias or false, kind.before or false } do
        if leaf then
          local g, list = leaf:grad(), {}
          for i = 0, g:size() - 1 do list[i] = g:data()[i] end
          numbers[#numbers + 1] = list
        end
      end
    end
  end
  return numbers
end

---The largest difference of two lists, of the largest number of the second.
---@return number
function check_sensitivities.apart(got, want)
  local scale, most = 0, 0
  for i, w in ipairs(want) do
    for k = 0, #w do scale, most = math.max(scale, math.abs(w[k])), math.max(most, math.abs(got[i][k] - w[k])) end
  end
  return most / scale
end

---An error where they do not add up.
---@param core Core
---@param tolerance number of the largest gradient
function check_sensitivities.holds(core, tolerance)
  exact_credit(core, B)                       -- refuses what cannot be carried
  local data = check_sensitivities.data(core)
  local whole = check_sensitivities.gradients(core, data, { T })
  for _, ends in ipairs { { 8, 16, 24, T }, { 1, 2, 9, 22, T } } do
    expect.near(check_sensitivities.apart(check_sensitivities.gradients(core, data, ends, true), whole), 0, tolerance,
      ("windows that end after %s steps, of the largest gradient"):format(table.concat(ends, ", ")))
  end
end

return check_sensitivities
