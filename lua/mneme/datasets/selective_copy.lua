-- selective_copy.lua -- tokens scattered among noise, to be repeated in their order: selective copying.
-- Of the first `length` - `copied` tokens, `copied` at random places are 1 .. vocab - 2, the others noise (0).  The
-- rest of the sequence is the sign (vocab - 1), which asks for the tokens one after another.
local ffi = require "ffi"
local errors = require "mneme.base.errors"

local function build(cfg)
  local T, n, sign = cfg.length, cfg.copied, cfg.vocab - 1
  local read = T - n
  if read < n then
    errors.usage(("data set selective_copy: length=%d, expected at least 2 * copied = %d"):format(T, 2 * n))
  end
  local places, chosen = ffi.new("int32_t[?]", read), ffi.new("uint8_t[?]", read)
  local function draw(random, token, answer)
    random:choose(places, read, n)
    ffi.fill(chosen, read)
    for i = 0, n - 1 do chosen[places[i]] = 1 end
    local said = read
    for t = 0, read - 1 do
      if chosen[t] == 1 then
        token[t] = 1 + random:below(sign - 1)
        token[said], answer[said], said = sign, token[t], said + 1
      end
    end
  end
  return { tokens = cfg.vocab, classes = cfg.vocab, length = T, draw = draw }
end

return {
  doc = "selective copying: say the tokens that were strewn among noise",
  source = "Gu & Dao 2023, Mamba",
  config = { length = 4096, copied = 16, vocab = 16 },
  about = {
    length = { "tokens of a sequence, the answers included", whole = true, range = { 2, 1e6 } },
    copied = { "tokens to remember", whole = true, range = { 1, 5e5 } },
    vocab = { "noise, the sign that asks, and what is copied", whole = true, range = { 3, 2 ^ 24 } },
  },
  build = build,
}
