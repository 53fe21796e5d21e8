-- char_lm.lua -- the table of docs/tasks.md: memories of equally many parameters read the same text (experiments/
-- char_lm.lua, quick=1), and tell its last twentieth character by character.  Every memory must do better than the
-- network without one, which sees the present character alone.
local t = require "tests.harness"
local engine = require "mneme.engine"
local files = require "mneme.files"

local dir = os.tmpname()
os.remove(dir)
files.make_folder(dir)
local program, script = engine.build .. "/mneme", require("mneme.find").root .. "experiments/char_lm.lua"
local WANTED = 200000

local function run(line)
  local pipe = io.popen(("'%s' %s 2>&1"):format(program, line))
  local said = pipe:read "*a"
  pipe:close()
  return said
end

local function bits_of(core, seed)
  local folder = ("%s/%s-%d"):format(dir, core, seed)
  local said = run(("run '%s' quick=1 core=%s seed=%d run=%s"):format(script, core, seed, folder))
  local parameters = tonumber(said:match "(%d+) parameters")
  t.ok(parameters and math.abs(parameters / WANTED - 1) < 0.05, said)
  local told = run("eval " .. folder)
  local accuracy, perplexity = told:match "accuracy ([%d.]+)", told:match "perplexity ([%d.]+)"
  local bits, half = told:match "bits per character ([%d.]+)%s+%+%- ([%d.]+)"
  t.ok(bits, told)
  print(("  | `%s` | %d | %d | %s | %s | %s ± %s |"):format(core, seed, parameters, accuracy, perplexity, bits, half))
  io.stdout:flush()
  return tonumber(bits)
end

print "  | core | seed | parameters | accuracy | perplexity | bits per character |"
local without
for _, core in ipairs { "feedforward", "linear_transformer", "agalite", "galite", "delta", "gated_deltanet", "rwkv7",
  "gtrxl", "gru", "lstm" } do
  for seed = 1, 2 do
    t.test(("%s, seed %d"):format(core, seed), function()
      local bits = bits_of(core, seed)
      without = without or bits
      t.ok(core == "feedforward" or bits < without - 0.1, core .. " is hardly better than no memory: " .. bits)
    end)
  end
end
os.execute("rm -rf " .. dir)
