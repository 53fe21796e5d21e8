-- menu.lua -- the menu of interventions at a step, each with a key.
local interventions = require "mneme.insight.episodes.interventions"
local action_keys = require "mneme.insight.view.action_keys"

local KEYS = "123456789abcdefgjklmnoprstuvwxyz"          -- without h, i, q, which the window uses
local LASTING = { false, 1, 2, 5, 10, 20, 50, 100 }      -- steps that a gate is clamped; false: to the end of the episode
local LONGER = ("0"):byte()

---@class Menu
---@field title string
---@field entries table[] { key = code, name = of the key, text, option }
local Menu = {}
Menu.__index = Menu

---@param options InterventionOption[] shown up to the number of keys
---@param lasting integer? index of the selected duration, of a previous menu
---@return Menu
local function new(title, options, lasting)
  local self = setmetatable({ title = title, entries = {}, lasting = lasting or 1 }, Menu)
  for i = 1, math.min(#options, #KEYS) do
    self.lasts = self.lasts or interventions.kinds[options[i].specs[1].kind].steps
    self.entries[i] = { key = KEYS:byte(i), name = KEYS:sub(i, i), text = options[i].text, option = options[i] }
  end
  return self
end

---The number of steps a gate is forced or frozen; nil: to the end of the episode.
---@return integer?
function Menu:steps() return LASTING[self.lasting] or nil end

---A key was pressed while the menu is open.
---@return InterventionOption? selected
---@return boolean open the menu stays open
function Menu:key(key)
  if key == LONGER and self.lasts then
    self.lasting = self.lasting % #LASTING + 1
    return nil, true
  end
  for _, entry in ipairs(self.entries) do
    if entry.key == key then return entry.option, false end
  end
  return nil, key ~= action_keys.ESCAPE and key ~= ("i"):byte() and key ~= ("q"):byte()
end

---The contents for the panel.
function Menu:shown()
  local n = self:steps()
  local text = "gates are clamped " .. (n and ("for %d step%s"):format(n, n > 1 and "s" or "") or "to the end of the episode")
  return { title = self.title, entries = self.entries, close = action_keys.ESCAPE,
    lasting = self.lasts and { key = LONGER, name = "0", text = text } or nil }
end

return new
