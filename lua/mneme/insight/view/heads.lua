-- heads.lua -- how panels draw the state of a head: the words for its axes, how a long matrix is folded into a box, and how
-- much of a layer's height each kind of state gets.
local errors = require "mneme.base.errors"
local state_arrays = require "mneme.models.state_arrays"

local heads = {}
local MOST_COLS = 2 ^ 24

-- What the axes are called, by their letter in a core's declaration.
local words = { V = "values", K = "keys", D = "units" }

-- What the kinds of state, gates and probes are, as in the papers.
local words_for = {
  C = "C: the memory as a matrix, values × keys: what was written under each key, decayed by gamma",
  v = "v: the memory's values, which the query reads", k = "k: the memory's keys", s = "s: the normaliser, the decayed sum of the keys",
  z = "z: the normaliser, the decayed sum of the keys", n = "n: the normaliser, the decayed sum of the keys", h = "h: the hidden state",
  c = "c: the cell state", m = "m: the stabiliser of the exponential gates", beta = "beta: the gate that writes, 0: nothing new … 1: all",
  gamma = "gamma: the gate that forgets, 0: keep all … 1: keep nothing", p_gamma = "p_gamma: the gate that forgets keys",
  f = "f: the forget gate", i = "i: the input gate", o = "o: the output gate", r = "r: the reset gate",
}

---A kind of state in words.
---@param kind string
---@return string
function heads.kind(kind) return words_for[kind] or kind .. ": a state or gate of this core, as it names it" end

---The name of one element of a state: "layer 1, head 2, C[3, 7]".
---@param layer integer
---@param head integer? nil: the state has no heads
---@param kind string
---@param rows integer of the head's matrix
---@param cols integer
---@param i integer from 0, row by row
---@return string
function heads.element(layer, head, kind, rows, cols, i)
  local where = rows > 1 and ("%d, %d"):format(math.floor(i / cols), i % cols) or tostring(i)
  return ("layer %d%s, %s[%s]"):format(layer, head and ", head " .. head or "", kind, where)
end

---One head's axes in words: "64 values × 256 keys".
---@param array table { shape, dims? }
---@param n_heads integer? as for count
---@return string
function heads.axes(array, n_heads)
  local parts, axis = {}, state_arrays.head_axis(array, n_heads)
  for i, length in ipairs(array.shape) do
    local word = array.dims and words[array.dims:sub(i, i)]
    if i ~= axis and length > 1 then parts[#parts + 1] = word and length .. " " .. word or tostring(length) end
  end
  return #parts > 0 and table.concat(parts, " × ") or "1"
end

---Break long rows so that a matrix of few rows fills a box of this aspect (width over height).
---@param rows integer
---@param cols integer at most 2^24
---@param aspect number
---@return integer rows, integer cols
function heads.fold(rows, cols, aspect)
  if not (cols <= MOST_COLS) then errors.raise(("fold: %s columns, expected at most %d"):format(tostring(cols), MOST_COLS)) end
  local best_rows, best_cols, best = rows, cols, math.huge
  for parts = 1, cols do
    if cols % parts == 0 and (parts == 1 or rows <= 8) then
      local badness = math.abs(math.log(cols / parts / (rows * parts) / aspect))
      if badness < best then best_rows, best_cols, best = rows * parts, cols / parts, badness end
    end
  end
  return best_rows, best_cols
end

---How high each kind's strip of a layer is: by the root of how much it holds, but never a hair.
---@param kinds string[]
---@param by_kind table<string, table> arrays of one layer
---@return table<string, number> shares of 1
function heads.shares(kinds, by_kind)
  local total, share = 0, {}
  for _, kind in ipairs(kinds) do
    share[kind] = by_kind[kind] and math.sqrt(state_arrays.size(by_kind[kind].shape)) or 0
    total = total + share[kind]
  end
  local sum = 0
  for _, kind in ipairs(kinds) do
    share[kind] = share[kind] > 0 and math.max(share[kind] / total, 0.18) or 0
    sum = sum + share[kind]
  end
  for _, kind in ipairs(kinds) do share[kind] = share[kind] / sum end
  return share
end

return heads
