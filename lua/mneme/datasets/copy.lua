-- copy.lua -- `copied` random symbols, then as many questions: the first question asks for the first symbol, and so on.
-- A token names its place as well as its symbol, so that a core without positions can look up: tokens 0 .. copied * symbols - 1 are symbol
-- `token % symbols` at place `token / symbols`, and copied * symbols + p asks for the symbol at place p.
local function build(cfg)
  local n, symbols = cfg.copied, cfg.symbols
  local function draw(random, token, answer)
    for p = 0, n - 1 do
      local symbol = random:below(symbols)
      token[p] = p * symbols + symbol
      token[n + p], answer[n + p] = n * symbols + p, symbol
    end
  end
  return { tokens = n * (symbols + 1), classes = symbols, length = 2 * n, draw = draw }
end

return {
  doc = "copying: repeat a sequence of random symbols",
  source = "Katharopoulos et al. 2020, section 4.1, who copy 10 symbols in sequences of up to 128",
  config = { copied = 32, symbols = 10 },
  about = {
    copied = { "symbols to repeat; a sequence has twice as many tokens", whole = true, range = { 1, 1e5 } },
    symbols = { "different symbols", whole = true, range = { 2, 1e4 } },
  },
  build = build,
}
