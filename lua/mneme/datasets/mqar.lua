-- mqar.lua -- k1 v1 k2 v2 ... then the keys again, each to be answered by its value: multi-query associative recall.
-- A sequence begins with `pairs` keys and values, all different.  Each key returns once, at a distance that is
-- short for most and long for some (a power law), among other random tokens.  Keys are 1 .. vocab/2 - 1, values
-- vocab/2 .. vocab - 1; the value is asked where its key returns.
local ffi = require "ffi"
local errors = require "mneme.base.errors"

-- Sums of p(i) ~ (i + 1)^(power - 1), i < places: where the queries of early places are likelier.
local function likelihoods(places, power)
  local sums, total = ffi.new("double[?]", places), 0
  for i = 0, places - 1 do
    total = total + power * (i + 1) ^ (power - 1)
    sums[i] = total
  end
  for i = 0, places - 1 do sums[i] = sums[i] / total end
  return sums
end

-- The first i with u < sums[i].
local function find(sums, places, u)
  local low, high = 0, places - 1
  while low < high do
    local middle = math.floor((low + high) / 2)
    if u < sums[middle] then high = middle else low = middle + 1 end
  end
  return low
end

local function build(cfg)
  local T, n, half = cfg.length, cfg.pairs, math.floor(cfg.vocab / 2)
  if T % 2 == 1 or 4 * n > T then
    errors.usage(("data set mqar: length=%d, expected an even number of at least 4 * pairs = %d"):format(T, 4 * n))
  elseif n > half - 1 then
    errors.usage(("data set mqar: pairs=%d, but vocab=%d makes %d keys"):format(n, cfg.vocab, half - 1))
  end
  local places = T / 2 - n
  local sums, taken = likelihoods(places, cfg.power), ffi.new("uint8_t[?]", places)
  local keys, answers = ffi.new("int32_t[?]", half), ffi.new("int32_t[?]", cfg.vocab - half)
  local function draw(random, token, answer)
    random:choose(keys, half - 1, n)
    random:choose(answers, cfg.vocab - half, n)
    for t = 2 * n, T - 1 do token[t] = random:below(cfg.vocab) end
    ffi.fill(taken, places)
    for i = 0, n - 1 do
      token[2 * i], token[2 * i + 1] = keys[i] + 1, answers[i] + half
      local place
      repeat place = find(sums, places, random:uniform()) until taken[place] == 0
      taken[place] = 1
      local t = 2 * n + 2 * place
      token[t], answer[t] = keys[i] + 1, answers[i] + half
    end
  end
  return { tokens = cfg.vocab, classes = cfg.vocab, length = T, draw = draw }
end

return {
  doc = "multi-query associative recall: keys and values, then keys again",
  source = "Arora et al. 2023, Zoology",
  config = { length = 64, pairs = 4, vocab = 8192, power = 0.01 },
  about = {
    length = { "tokens of a sequence", whole = true, range = { 4, 1e6 } },
    pairs = { "keys to remember, each asked once", whole = true, range = { 1, 2.5e5 } },
    vocab = { "tokens, half of them keys", whole = true, range = { 4, 2 ^ 24 } },
    power = { "of the distances; small: mostly near", range = { 0.001, 10 } },
  },
  build = build,
}
