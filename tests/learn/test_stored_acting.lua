-- test_stored_acting.lua -- runs that were stored before core.sees act as they were trained, within their rollouts.
local t = require "tests.harness"
local files = require "mneme.base.files"
local json = require "mneme.base.json"
local shell = require "tests.support.shell"

local dir = shell.folder()
local SIZES = { n_layers = 1, d_model = 8, d_head = 4, n_heads = 2, d_ffn = 8 }

-- A script whose core is a setting.
files.write(dir .. "/corridor.lua", { [[
local mn = require "mneme"
local cfg = mn.config { core = { "gru" }, num_envs = 3, num_steps = 20, hidden = 8, steps = 600, lr = 1e-2 }
local env = mn.env("tmaze", { corridor = 5, num_envs = cfg.num_envs, seed = cfg.seed, time_limit = 30 })
return mn.a2c(cfg, env, mn.agent { env = env, core = cfg.core, hidden = cfg.hidden }):train()
]] })
local function mneme(words, expected)
  local said, status = shell.mneme(dir, words)
  t.eq(status, expected or 0, said)
  return said
end

-- Take the setting out of a run's config.json, as if there had been none.
local function forget(run)
  local path = ("%s/%s/config.json"):format(dir, run)
  local info = json.decode((files.read(path)), path)
  t.eq(info.core.config.sees, "rollout")
  info.checksum, info.core.config.sees, info.source, info.history = nil, nil, nil, nil             -- such a run kept no code either
  if type(info.config.core) == "table" then info.config.core.sees = nil end
  files.write(path, { json.encode(info, "  ") })
end

local function checkpoint(run, step) return files.read(("%s/%s/checkpoints/step-%d.safetensors"):format(dir, run, step)) end
local function numbers_of(said) return said:match "\n *success.*" or said:match "\n *score .*" or error(said) end

for _, core in ipairs { "gtrxl core.memory=3", "rmt" } do
  local name = core:match "%a+"
  local words = ("corridor.lua core=%s threads=1"):format(core)
  for key, value in pairs(SIZES) do words = words .. (" core.%s=%d"):format(key, value) end

  t.test(name .. ": eval, intervene and resume= act as a stored run was trained", function()
    mneme(("run %s run=%s-new"):format(words, name))
    mneme(("run %s run=%s-known core.sees=rollout"):format(words, name))
    mneme(("run %s run=%s-old core.sees=rollout"):format(words, name))
    t.ok(checkpoint(name .. "-new", 600) ~= checkpoint(name .. "-known", 600), "both act alike")
    forget(name .. "-old")
    local known, old = mneme(("eval %s-known episodes=60"):format(name)), mneme(("eval %s-old episodes=60"):format(name))
    t.ok(known:find ", core.sees=rollout\n" and old:find ", core.sees=rollout\n", old)
    t.eq(numbers_of(old), numbers_of(known))
    t.ok(not mneme(("eval %s-new episodes=4"):format(name)):find "sees")
    local function changed(run) return numbers_of(mneme(("intervene %s-%s erase=all at=2 episodes=4"):format(name, run))) end
    t.eq(changed "old", changed "known")
    for _, run in ipairs { "old", "known" } do mneme(("run corridor.lua resume=%s-%s steps=900"):format(name, run)) end
    t.ok(checkpoint(name .. "-old", 900) == checkpoint(name .. "-known", 900), "other bits after resuming")
  end)
end

os.execute("rm -r '" .. dir .. "'")
