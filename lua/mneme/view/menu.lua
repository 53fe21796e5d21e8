-- menu.lua -- the operations that a window offers at a step, each with a key of its own.
local interventions = require "mneme.episodes.interventions"
local keyboard = require "mneme.view.keyboard"

local KEYS = "123456789abcdefgjklmnoprstuvwxyz"          -- but those that a window knows for its own: h, i, q
local LASTING = { false, 1, 2, 5, 10, 20, 50, 100 }      -- steps that a gate is held; false: to the episode's end
local LONGER = ("0"):byte()

---@class Menu
---@field title string
---@field entries table[] { key = code, name = of the key, text, operation }
local Menu = {}
Menu.__index = Menu

---@param title string
---@param operations Operation[] as many as there are keys are shown
---@param lasting integer? which of the times is chosen, as another menu's
---@return Menu
local function new(title, operations, lasting)
  local self = setmetatable({ title = title, entries = {}, lasting = lasting or 1 }, Menu)
  for i = 1, math.min(#operations, #KEYS) do
    self.lasts = self.lasts or interventions.kinds[operations[i].specs[1].kind].steps
    self.entries[i] = { key = KEYS:byte(i), name = KEYS:sub(i, i), text = operations[i].text, operation = operations[i] }
  end
  return self
end

---For how many steps a gate is forced or frozen; nil: to the end of the episode.
---@return integer?
function Menu:steps() return LASTING[self.lasting] or nil end

---A key was pressed while the menu is open.
---@return Operation? chosen
---@return boolean open it is still to be shown
function Menu:key(key)
  if key == LONGER and self.lasts then
    self.lasting = self.lasting % #LASTING + 1
    return nil, true
  end
  for _, entry in ipairs(self.entries) do
    if entry.key == key then return entry.operation, false end
  end
  return nil, key ~= keyboard.ESCAPE and key ~= ("i"):byte() and key ~= ("q"):byte()
end

---What the panel shows of it.
function Menu:shown()
  local n = self:steps()
  local text = "gates are held " .. (n and ("for %d step%s"):format(n, n > 1 and "s" or "") or "to the episode's end")
  return { title = self.title, entries = self.entries, close = keyboard.ESCAPE,
    lasting = self.lasts and { key = LONGER, name = "0", text = text } or nil }
end

return new
