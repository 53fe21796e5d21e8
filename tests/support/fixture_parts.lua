-- fixture_parts.lua -- shared by what compares fixtures (fixtures.lua): parts of a fixture as tensors, and results as
-- name -> { shape, values }.
local errors = require "mneme.base.errors"
local tensor = require "mneme.tensor.tensor"

local parts = {}

---Values behind a pointer, as a result.
function parts.numbers(pointer, shape)
  local n, list = 1, {}
  for _, size in ipairs(shape) do n = n * size end
  for i = 0, n - 1 do list[i + 1] = tonumber(pointer[i]) end
  return { shape = shape, values = list }
end

---A tensor's values, or its gradient, as a result.
function parts.value_of(t) return parts.numbers(t:data(), t:shape()) end
function parts.grad_of(t) return parts.numbers(t:grad_data(), t:shape()) end

---Add the gradients of named leaves to results, each name after a prefix.
function parts.gradients(got, prefix, named)
  for name, t in pairs(named) do got[prefix .. name] = parts.grad_of(t) end
end

---Tensors of a file below a prefix, as leaves.
---@param grad boolean? those of float32 get a gradient
---@return table<string, Tensor>
function parts.below(file, prefix, grad)
  local part = {}
  for name, t in pairs(file) do
    if name:sub(1, #prefix) == prefix then
      local leaf = tensor.new { shape = t:shape(), dtype = t:dtype(), grad = grad and t:dtype() == "f32" }
      part[name:sub(#prefix + 1)] = leaf:copy(t)
    end
  end
  return part
end

---Float32 zeros and ones of a file as the flags that ops take.
function parts.flags(t)
  local done, from = tensor.new { shape = t:shape(), dtype = "u8" }, t:data()
  local p = done:data()
  for i = 0, done:size() - 1 do
    if from[i] ~= 0 and from[i] ~= 1 then errors.fail(("done[%d] is %g, expected 0 or 1"):format(i, from[i])) end
    p[i] = from[i]
  end
  return done
end

---A tensor that the file must have.
function parts.need(file, name)
  if not file[name] then errors.fail("the file has no " .. name) end
  return file[name]
end

return parts
