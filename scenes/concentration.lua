-- concentration.lua -- the game of pairs: the cards, and on those that lie on their faces what the memory says that they are; policy, value, what is
-- known and memory.    mneme view concentration, or mneme view runs/NAME
local mn = require "mneme"

local ROW = 13                                   -- cards side by side
local ranks = { [0] = "A", "2", "3", "4", "5", "6", "7", "8", "9", "T", "J", "Q", "K" }

local function layout(now)
  local kinds = 0
  for _, card in ipairs(now.truth.cards or {}) do kinds = math.max(kinds, card) end
  local cards = {
    title = "cards", note = now.run and "frames on closed cards: the memory says what they are, green: rightly" or nil, believed = "cards",
    cells = function(k, frame)
      if frame.truth.open[k] == 0 then return (k - 1) % ROW + 0.5, 1.4 * math.floor((k - 1) / ROW) + 0.7 end
    end,
    mark = function(class) return kinds > 1 and ranks[class] or true end,
  }
  return { "rows", { "6*", "world", cards }, { "3*", "columns", { "1*", "value" }, { "1*", "knowledge", { fact = "cards" } } }, { "2*", "memory" } }
end

return mn.scene {
  env = { "concentration" },
  core = { "gru" },
  layout = layout,
}
