-- learn_char_lm.lua -- the table of docs/datasets.md: memories of equally many parameters read the same text (experiments/
-- learn_char_lm.lua, quick=1), and tell its last twentieth character by character.  `feedforward` has no memory: it
-- sees the present character alone.
local t = require "tests.harness"
local learn_rig = require "tests.support.learn_rig"

local WANTED = 200000

local function bits_of(core)
  local run, said = learn_rig.train("char_lm", "quick=1 core=" .. core, core)
  local parameters = tonumber(said:match "(%d+) parameters")
  t.ok(parameters and math.abs(parameters / WANTED - 1) < 0.05, said)
  local told = learn_rig.mneme("eval " .. run)
  local accuracy, perplexity = told:match "accuracy ([%d.]+)", told:match "perplexity ([%d.]+)"
  local bits, half = told:match "bits per character ([%d.]+)%s+%+%- ([%d.]+)"
  t.ok(bits, told)
  print(("  | `%s` | %d | %s | %s | %s ± %s |"):format(core, parameters, accuracy, perplexity, bits, half))
  io.stdout:flush()
  return tonumber(bits)
end

print "  | core | parameters | accuracy | perplexity | bits per character |"
local bits = {}
for _, core in ipairs { "feedforward", "linear_transformer", "delta", "agalite", "galite", "gtrxl", "gru", "lstm", "rwkv7",
  "gated_deltanet" } do
  t.test(core, function() bits[core] = bits_of(core) end)
end
t.test("memories that forget read better than none, and than plain linear attention", function()
  for _, core in ipairs { "agalite", "galite", "gtrxl", "gru", "lstm", "rwkv7", "gated_deltanet" } do
    t.ok(bits[core] < bits.feedforward - 0.15 and bits[core] < bits.linear_transformer - 0.15, core)
  end
end)
learn_rig.clean()
