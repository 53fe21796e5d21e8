-- op_locations.lua -- where in a script an op was called, for debug=nan and profile=1.  A place is a stack of "file.lua:line",
-- outermost first; the engine stores its number with each call that a plan records (mn_set_place).
local engine = require "mneme.base.engine"
local op_binding = require "mneme.tensor.op_binding"

local places = { stacks = {} }
local numbers = {}                   -- of stacks, as texts

-- What stands around every op, and says nothing: the command line, plans, the wrappers of ops, and of the user's files and functions.
local SILENT = { ["commands/cli.lua"] = true, ["commands/run.lua"] = true, ["runs/script.lua"] = true, ["base/errors.lua"] = true,
  ["tensor/tensor.lua"] = true, ["tensor/op_binding.lua"] = true, ["tensor/plan.lua"] = true, ["learn/trainer.lua"] = true,
  ["tensor/op_locations.lua"] = true }

local function short(source)
  local path = source:match "^@(.*)" or "?"
  return path:match "lua/mneme/(.*)$" or path:match "[^/]*$"
end

-- The stack as it is now, from the outside in.
local function stack()
  local frames = {}
  for level = 3, 60 do
    local info = debug.getinfo(level, "Sl")
    if not info then break end
    local file = short(info.source)
    if info.what ~= "C" and not SILENT[file] and info.currentline > 0 then
      table.insert(frames, 1, file .. ":" .. info.currentline)
    end
  end
  return table.concat(frames, ";")
end

---Note from now on where ops are applied.
function places.note()
  op_binding.noting = function()
    local text = stack()
    if not numbers[text] then
      places.stacks[#places.stacks + 1] = text
      numbers[text] = #places.stacks
    end
    engine.C.mn_set_place(engine.ctx, numbers[text])
  end
end

---A place in words: the innermost line, and that of the script that led there.
---@return string? nil: nothing was noted
function places.text(number)
  local text = places.stacks[number]
  if not text or text == "" then return nil end
  local first, last = text:match "^[^;]*", text:match "[^;]*$"
  return first == last and last or last .. ", from " .. first
end

return places
