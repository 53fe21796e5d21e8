-- text.lua -- a text in which each token asks for the next: a language model's data set.
-- The first part of the text is for training, the last `valid` and `test` shares are for evaluation.  `unit` is
-- a character, or a word (the `vocab` - 1 most frequent of the first part, and one token for all others).  batch=B
-- reads B parts of the text side by side, and the next batch continues where this one ended.
local bit = require "bit"
local ffi = require "ffi"
local corpus = require "mneme.envs.corpus"
local engine = require "mneme.base.engine"
local errors = require "mneme.base.errors"

-- An array that grows.
local function growing(n)
  local array = { data = ffi.new("int32_t[?]", n), count = 0, room = n }
  return array, function(x)
    if array.count == array.room then
      local wider = ffi.new("int32_t[?]", 2 * array.room)
      ffi.copy(wider, array.data, 4 * array.room)
      array.data, array.room = wider, 2 * array.room
    end
    array.data[array.count], array.count = x, array.count + 1
  end
end

-- Where the parts of a text begin and end: byte offsets, moved on to the beginning of a character.
local function divide(text, cfg)
  local function at(share)
    local byte = math.floor(#text * share)
    while byte < #text and text:byte(byte + 1) >= 0x80 and text:byte(byte + 1) < 0xC0 do byte = byte + 1 end
    return byte
  end
  local valid, test = at(1 - cfg.valid - cfg.test), at(1 - cfg.test)
  return { train = text:sub(1, valid), valid = text:sub(valid + 1, test), test = text:sub(test + 1) }
end

local units = {}

-- A unit gives the streams of a text's parts, how many different tokens there are, and what they stand for as one text.

-- Every character of the whole text is known.
function units.character(parts)
  local streams, kinds, index = {}, {}, {}
  for split, text in pairs(parts) do
    local data, count = corpus.decode(ffi.cast("const uint8_t *", text), #text)
    streams[split] = { data = data, count = count }
    for i = 0, count - 1 do index[data[i]] = true end
  end
  for code in pairs(index) do kinds[#kinds + 1] = code end
  table.sort(kinds)
  for i, code in ipairs(kinds) do index[code] = i - 1 end
  for _, s in pairs(streams) do
    for i = 0, s.count - 1 do s.data[i] = index[s.data[i]] end
    s.characters = s.count
  end
  return streams, #kinds, table.concat(kinds, " ")
end

function units.word(parts, cfg)
  local count, kinds, index, streams = {}, {}, {}, {}
  corpus.words(parts.train, function(word)
    if not count[word] then kinds[#kinds + 1] = word end
    count[word] = (count[word] or 0) + 1
  end)
  table.sort(kinds, function(a, b)
    if count[a] ~= count[b] then return count[a] > count[b] end
    return a < b
  end)
  for i = 1, math.min(#kinds, cfg.vocab - 1) do index[kinds[i]] = i end      -- 0: any other word
  for split, text in pairs(parts) do
    local array, add = growing(4096)
    corpus.words(text, function(word) add(index[word] or 0) end)
    streams[split] = array
  end
  local known = math.min(#kinds, cfg.vocab - 1)
  return streams, known + 1, table.concat(kinds, " ", 1, known)
end

local function build(cfg)
  if cfg.valid + cfg.test >= 1 then
    errors.usage(("data set text: valid=%g and test=%g leave nothing to learn from"):format(cfg.valid, cfg.test))
  end
  local text, instead = corpus.read(cfg.file)
  local streams, tokens, meanings = units[cfg.unit](divide(text, cfg), cfg)
  return { instead = instead, tokens = tokens, classes = tokens, length = cfg.length,
    vocabulary = bit.tohex(engine.C.mn_crc32c(0, meanings, #meanings)),
    stream = function(split) return streams[split].data, streams[split].count end,
    characters = function(split) return streams[split].characters end }
end

return {
  doc = "the next character, word or symbol of a text",
  config = { file = "", unit = "character", length = 128, vocab = 1024, valid = 0.05, test = 0.05 },
  about = {
    file = { "a text in UTF-8; none: English prose of Debian's package fortunes, or Shakespeare's Coriolanus where it is not installed" },
    unit = { "what a token is", choices = { "character", "word" } },
    length = { "tokens of one batch, and of the gradient's way back", whole = true, range = { 1, 1e6 } },
    vocab = { "words or symbols", whole = true, range = { 2, 2 ^ 24 } },
    valid = { "share of the text to validate on", range = { 0.001, 0.9 } },
    test = { "share of the text to test on", range = { 0.001, 0.9 } },
  },
  build = build,
}
