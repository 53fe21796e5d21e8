-- action_keys.lua -- the keys of actions when a person plays: by the names of the actions, else digits.  Gamepad buttons are keys, too:
-- the directions are the arrows, the others are named here.
local keyboard = {}

-- scenes/view/view.h
local LEFT, RIGHT, UP, DOWN = 256, 257, 258, 259
keyboard.UP, keyboard.DOWN = UP, DOWN
keyboard.LEFT, keyboard.RIGHT, keyboard.HOME, keyboard.END, keyboard.PAGE_UP, keyboard.PAGE_DOWN = LEFT, RIGHT, 260, 261, 262, 263
local PAD, pads = 264, { "A", "B", "X", "Y", "start", "back", "L", "R" }
keyboard.ENTER, keyboard.ESCAPE, keyboard.BACKSPACE, keyboard.TAB, keyboard.START, keyboard.BACK = 13, 27, 8, 9, PAD + 4, PAD + 5
local buttons = { PAD, PAD + 1, PAD + 2, PAD + 3, PAD + 6, PAD + 7 }      -- for actions: A, B, X, Y, L, R

local names = { [LEFT] = "←", [RIGHT] = "→", [UP] = "↑", [DOWN] = "↓", [32] = "space", [13] = "Enter" }
local words = { left = LEFT, right = RIGHT, up = UP, down = DOWN, space = 32, enter = 13, esc = 27, backspace = 8, tab = 9 }
for i, name in ipairs(pads) do
  names[PAD + i - 1], words["pad_" .. name:lower()] = "pad " .. name, PAD + i - 1
end

-- The keys of an action by the words in its name, as games have them: around S for what is slanted.
local usual = {
  up = { UP, "w" }, forward = { UP, "w" }, north = { UP, "w" }, down = { DOWN, "s" }, back = { DOWN, "s" },
  backward = { DOWN, "s" }, south = { DOWN, "s" }, left = { LEFT, "a" }, west = { LEFT, "a" }, turn_left = { LEFT, "a" },
  right = { RIGHT, "d" }, east = { RIGHT, "d" }, turn_right = { RIGHT, "d" }, up_left = { "q" }, up_right = { "e" },
  down_left = { "z" }, down_right = { "c" }, forward_left = { "q" }, forward_right = { "e" },
  noop = { 32 }, stay = { 32 }, wait = { 32 }, none = { 32 },
  ["do"] = { "x" }, sleep = { "z" }, place_stone = { "c" }, place_table = { "t" }, place_furnace = { "f" }, place_plant = { "p" },
}

-- Of Craftax, as in the original where a key is free.  Only where they are too many for 1 .. 9 and 0.
local many = {
  make_wood_pickaxe = "1", make_stone_pickaxe = "2", make_iron_pickaxe = "3", make_diamond_pickaxe = "4", make_wood_sword = "5",
  make_stone_sword = "6", make_iron_sword = "7", make_diamond_sword = "8", make_iron_armour = "y", make_diamond_armour = "u", rest = "e",
  descend = ".", ascend = ",", shoot_arrow = "i", make_arrow = "o", cast_fireball = "g", cast_iceball = "h", place_torch = "j",
  drink_potion_red = "v", drink_potion_green = "b", drink_potion_blue = "9", drink_potion_pink = "0", drink_potion_cyan = "/",
  drink_potion_yellow = "'", read_book = "m", enchant_sword = "k", enchant_armour = "l", enchant_bow = ";", make_torch = "[",
  level_up_dexterity = "]", level_up_strength = "-", level_up_intelligence = "=",
}


local function code(key) return type(key) == "string" and key:byte() or key end

---The name of a key.
---@param key integer ASCII, MN_KEY_* or MN_PAD_*
function keyboard.name(key) return names[key] or string.char(key) end

---Is it a button of a gamepad?
function keyboard.is_pad(key) return key >= PAD and key < PAD + #pads end

---The key that a name in keys=... means: left, space, w, 3, pad_a ...; nil: none.
---@return integer?
function keyboard.key(word) return words[word:lower()] or (#word == 1 and word:byte() or nil) end

---Divide the keys among actions.  Those without a usual name get 1 .. 9 and 0, or, where that is too few, are
---typed as their numbers, with Enter.
---@return table<integer, integer> action_of key -> action from 0
---@return string[] labels of each action: "↑ w"; where it is typed, its number
---@return boolean typed
function keyboard.divide(actions)
  local action_of, labels, rest = {}, {}, {}
  for i, name in ipairs(actions) do
    local mine, key_of = {}, usual[name:lower()] or #actions > 20 and { many[name:lower()] } or {}
    for _, key in ipairs(key_of) do
      if not action_of[code(key)] then
        action_of[code(key)] = i - 1
        mine[#mine + 1] = keyboard.name(code(key))
      end
    end
    labels[i] = table.concat(mine, " ")
    if #mine == 0 then rest[#rest + 1] = i end
  end
  local typed = #rest > 10
  local digits = true                          -- actions that are called 0, 1, 2 ... keep their names
  for _, i in ipairs(rest) do digits = digits and actions[i]:find "^%d$" ~= nil end
  for k, i in ipairs(rest) do
    local digit = digits and actions[i] or tostring(k % 10)
    labels[i] = typed and tostring(i - 1) or digit
    if not typed then action_of[digit:byte()] = i - 1 end
  end
  return action_of, labels, typed
end

---@class Hand what a person does with keys.  One choice, or one number, is an action at once; of several numbers each key sets one, which stays,
---and space takes all of them together
---@field names string[] what can be pressed
---@field space Space
---@field numbers number[]? what is set, where there are several
local Hand = {}
Hand.__index = Hand

---@return Hand
function keyboard.hand(space)
  local keys, parts, rest = space:by_keys()
  return setmetatable({ names = keys, space = space, parts = parts, numbers = rest }, Hand)
end

---@param i integer which of names, from 0
---@return integer|number[]? action nil: one number of several was set
function Hand:press(i)
  local part = self.parts and self.parts[i + 1]
  if not part then return i end
  return self:set(part.number, part.value)
end

---@param k integer which number, from 1
---@return number[]? action nil: there are others
function Hand:set(k, value)
  self.numbers[k] = value
  return #self.numbers == 1 and self:take() or nil
end

---All of what is set.
---@return number[]? action nil: of one choice or number, which a key takes
function Hand:take() return self.numbers and { unpack(self.numbers) } end

---Is that one of several numbers that space takes together?
function Hand:waits() return self.numbers ~= nil and #self.numbers > 1 end

---Give the actions that no arrow does a gamepad's buttons, in order, while there are some.
---@param n integer how many actions there are
---@param action_of table<integer, integer> of keyboard.divide; the buttons are added
---@return string[] labels of each action: "↑", "pad A"; "" where no button does it
function keyboard.add_pad(n, action_of)
  local labels, used = {}, 0
  for key = LEFT, DOWN do
    if action_of[key] then labels[action_of[key] + 1] = names[key] end
  end
  for i = 1, n do
    if not labels[i] and used < #buttons then
      used = used + 1
      action_of[buttons[used]], labels[i] = i - 1, names[buttons[used]]
    end
    labels[i] = labels[i] or ""
  end
  return labels
end

return keyboard
