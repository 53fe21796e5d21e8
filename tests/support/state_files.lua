-- state_files.lua -- converts a core's state to and from its layout in files.  AGaLiTe's files list every cosine channel;
-- the engine stores one of each mirrored pair.  Folding takes the pair's mean (after their signs) and refuses a file whose
-- mirrored channels differ; unfolding writes all channels.
local errors = require "mneme.base.errors"
local tensor = require "mneme.tensor.tensor"

local states = {}

local function is_channelled(core, name) return core.channels and core.states[name]:match "^%[B,M," end

-- Elements of one channel of one environment: the block that follows [B,channel].
local function block(core, name)
  local n = 1
  local shape = core:state_shape(name, 1)
  for i = 3, #shape do n = n * shape[i] end
  return n
end

-- Mean of mirrored channels into `to` (nil: only look); returns how far they are apart.
local function fold_one(core, name, t, to)
  local map, B, n = core.channels.map, t:shape()[1], block(core, name)
  local R, M = core.channels.file, core.channels.stored
  if t:shape()[2] ~= R then
    errors.fail(("state.%s has %d channels, expected %d"):format(name, t:shape()[2], R))
  end
  local from, apart = t:data(), 0
  for b = 0, B - 1 do
    for m = 0, M - 1 do
      for i = 0, n - 1 do
        local sum, count, first = 0, 0, nil
        for r = 0, R - 1 do
          local c = map[r + 1]
          if c.stored == m and c.sign ~= 0 then
            local v = c.sign * from[(b * R + r) * n + i]
            first = first or v
            apart = math.max(apart, math.abs(v - first))
            sum, count = sum + v, count + 1
          end
        end
        if to then to[(b * M + m) * n + i] = sum / count end
      end
    end
  end
  return apart
end

---Do mirrored channels of a file's state differ?  Then only a core that stores all of them can hold it.
function states.mirrors_differ(core, file)
  for name in pairs(core.states) do
    if file[name] and is_channelled(core, name) and fold_one(core, name, file[name]) > 1e-6 then return true end
  end
  return false
end

-- random_sign draws its signs by the index of the environment, state `copy`; files without it count from 0.
local function with_env_indices(core, file)
  if not core.states.copy or file.copy or not file.tick then return file end
  local all = {}
  for name, t in pairs(file) do all[name] = t end
  all.copy = core:initial(file.tick:size()).copy
  return all
end

---A state as read from a file, as the core wants it: new leaves.
---@param file table<string, Tensor>
---@param grad boolean? the leaves want a gradient
---@return table<string, Tensor>
function states.fold(core, file, grad)
  local state = {}
  file = with_env_indices(core, file)
  for name in pairs(core.states) do
    local t = file[name]
    if not t then errors.fail("the file has no state." .. name) end
    local shape = core:state_shape(name, t:shape()[core:batch_axis(name)] or 1)
    local leaf = tensor.new { shape = shape, grad = grad and not core:is_constant(name) }
    if is_channelled(core, name) then
      local apart = fold_one(core, name, t, leaf:data())
      if apart > 1e-6 then
        errors.fail(("state.%s: mirrored channels differ by %g, expected at most 1e-6"):format(name, apart))
      end
    else
      if table.concat(t:shape(), ",") ~= table.concat(shape, ",") then
        errors.fail(("state.%s is [%s], expected [%s]"):format(name, table.concat(t:shape(), ","), table.concat(shape, ",")))
      end
      leaf:copy(t)
    end
    state[name] = leaf
  end
  for name in pairs(file) do
    if not core.states[name] then errors.fail("the file has an unexpected state." .. name) end
  end
  return state
end

---A state as files hold it: name -> { shape, values }.  what = "value" or "gradient"; a gradient is shared
---out among mirrored channels, and a constant (tick, mask) has none.
function states.unfold(core, state, what)
  local out = {}
  for name, t in pairs(state) do
    local gradient = what == "gradient"
    if name ~= "copy" and not (gradient and core:is_constant(name)) then
      local p, shape = gradient and t:grad_data() or t:data(), t:shape()
      local values = {}
      if is_channelled(core, name) then
        local R, M, n, map = core.channels.file, core.channels.stored, block(core, name), core.channels.map
        local twins = {}
        for r = 1, R do if map[r].sign ~= 0 then twins[map[r].stored] = (twins[map[r].stored] or 0) + 1 end end
        for b = 0, shape[1] - 1 do
          for r = 0, R - 1 do
            local c = map[r + 1]
            for i = 0, n - 1 do
              local v = c.sign == 0 and 0 or c.sign * p[(b * M + c.stored) * n + i]
              values[#values + 1] = gradient and c.sign ~= 0 and v / twins[c.stored] or v
            end
          end
        end
        shape[2] = R
      else
        for i = 0, t:size() - 1 do values[i + 1] = p[i] end
      end
      out[name] = { shape = shape, values = values }
    end
  end
  return out
end

return states
