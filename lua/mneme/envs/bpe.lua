-- bpe.lua -- byte pair encoding (Sennrich et al. 2016, over bytes): merges the most frequent pair of neighbours into a
-- new symbol, again and again.  Symbols 0-255 are bytes, so every text can be encoded.  Equally frequent pairs are
-- merged in the order of their symbols, so the same text gives the same symbols.
local corpus = require "mneme.envs.corpus"

local bpe = {}
local WIDE = 2 ^ 24                              -- a pair as one number: left * WIDE + right

---@class BPE
---@field vocab integer how many symbols
---@field text string[] what symbol i stands for, from 0
local BPE = {}
BPE.__index = BPE

-- Different chunks and how often each comes, in the order of their first coming.
local function count_chunks(text)
  local index, list = {}, {}
  corpus.chunks(text, function(chunk)
    local i = index[chunk]
    if not i then
      i = #list + 1
      index[chunk], list[i] = i, { count = 0, chunk:byte(1, -1) }
    end
    list[i].count = list[i].count + 1
  end)
  return list
end

-- How often each pair comes, and in which chunks.
local function note(pairs_of, where, i, chunk, sign)
  for k = 1, #chunk - 1 do
    local pair = chunk[k] * WIDE + chunk[k + 1]
    pairs_of[pair] = (pairs_of[pair] or 0) + sign * chunk.count
    if sign > 0 then
      where[pair] = where[pair] or {}
      where[pair][i] = true
    end
  end
end

-- Replace left, right by symbol.
local function join(chunk, left, right, symbol)
  local n, k = 0, 1
  local length = #chunk
  while k <= length do
    n = n + 1
    if chunk[k] == left and chunk[k + 1] == right then chunk[n], k = symbol, k + 2
    else chunk[n], k = chunk[k], k + 1 end
  end
  for i = n + 1, length do chunk[i] = nil end
end

local function commonest(pairs_of)
  local best, most = nil, 1
  for pair, count in pairs(pairs_of) do
    if count > most or (count == most and best and pair < best) then best, most = pair, count end
  end
  return best
end

---Learn `vocab` symbols from a text; fewer where no pair comes twice.
---@return BPE
function bpe.learn(text, vocab)
  local chunks, pairs_of, where = count_chunks(text), {}, {}
  local self = setmetatable({ vocab = 256, text = {}, rank = {}, known = {} }, BPE)
  for byte = 0, 255 do self.text[byte] = string.char(byte) end
  for i, chunk in ipairs(chunks) do note(pairs_of, where, i, chunk, 1) end
  while self.vocab < vocab do
    local pair = commonest(pairs_of)
    if not pair then break end
    local left, right = math.floor(pair / WIDE), pair % WIDE
    self.rank[pair], self.text[self.vocab] = self.vocab, self.text[left] .. self.text[right]
    for i in pairs(where[pair]) do
      note(pairs_of, where, i, chunks[i], -1)
      join(chunks[i], left, right, self.vocab)
      note(pairs_of, where, i, chunks[i], 1)
    end
    pairs_of[pair], where[pair] = nil, nil
    self.vocab = self.vocab + 1
  end
  return self
end

-- One chunk: the earliest learnt pair is joined first.
local function encode(self, text)
  local chunk = { text:byte(1, -1) }
  while true do
    local first = math.huge
    for k = 1, #chunk - 1 do first = math.min(first, self.rank[chunk[k] * WIDE + chunk[k + 1]] or math.huge) end
    if first == math.huge then return chunk end
    for k = 1, #chunk - 1 do
      if self.rank[chunk[k] * WIDE + chunk[k + 1]] == first then
        join(chunk, chunk[k], chunk[k + 1], first)
        break
      end
    end
  end
end

---The symbols of a text: f(symbol) for each.
function BPE:encode(text, f)
  corpus.chunks(text, function(chunk)
    local symbols = self.known[chunk]
    if not symbols then
      symbols = encode(self, chunk)
      self.known[chunk] = symbols
    end
    for _, symbol in ipairs(symbols) do f(symbol) end
  end)
end

return bpe
