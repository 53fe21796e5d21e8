-- induction.lua -- ... S x ... S: which token followed the sign S the first time?  The induction heads data set.
-- A sequence is random tokens 0 .. vocab - 2, with the sign S (vocab - 1) once at a random place and again as the
-- last token; the answer there is the token that followed it.  Evaluate at other lengths to test how far a memory reaches.
local function build(cfg)
  local T, sign = cfg.length, cfg.vocab - 1
  local function draw(random, token, answer)
    for t = 0, T - 2 do token[t] = random:below(sign) end
    local at = random:below(T - 2)                     -- something follows it, and that is not the last token
    token[at], token[T - 1] = sign, sign
    answer[T - 1] = token[at + 1]
  end
  return { tokens = cfg.vocab, classes = cfg.vocab, length = T, draw = draw }
end

return {
  doc = "induction heads: what followed the sign when it was seen first",
  source = "Fu et al. 2022, H3; Gu & Dao 2023, Mamba",
  config = { length = 256, vocab = 16 },
  about = {
    length = { "tokens of a sequence", whole = true, range = { 3, 1e7 } },
    vocab = { "tokens, the sign among them", whole = true, range = { 3, 2 ^ 24 } },
  },
  build = build,
}
