-- test_stored_acting.lua -- runs that were stored before core.sees act as they were trained, within their rollouts, and say so.
local t = require "tests.harness"
local files = require "mneme.base.files"
local json = require "mneme.base.json"
local shell = require "tests.support.shell"

local dir = shell.folder()
local SIZES = { n_layers = 1, d_model = 8, d_head = 4, n_heads = 2, d_ffn = 8 }
local SAYS = "made before there was core%.sees: it acts as it was trained, with core%.sees=rollout"

-- A script whose core is a setting, and one whose core is written in it, which has an environment of its own, too.
files.write(dir .. "/corridor.lua", { [[
local mn = require "mneme"
local cfg = mn.config { core = { "gru" }, num_envs = 3, num_steps = 20, hidden = 8, steps = 600, lr = 1e-2 }
local env = mn.env("tmaze", { corridor = 5, num_envs = cfg.num_envs, seed = cfg.seed, time_limit = 30 })
return mn.a2c(cfg, env, mn.agent { env = env, core = cfg.core, hidden = cfg.hidden }):train()
]] })
files.write(dir .. "/own.lua", { ([[
local mn = require "mneme"
local cfg = mn.config { num_envs = 3, num_steps = 20, hidden = 8, steps = 600, lr = 1e-2 }
local env = mn.env { name = "sign", observation = { 2 }, actions = 2, num_envs = cfg.num_envs, seed = cfg.seed, time_limit = 30,
  reset = function(self, random) self.sign = random(2) return { self.sign, 1 } end,
  step = function(self, action, random) return { random(2), action }, action, false, action end }
local core = { "gtrxl", memory = 3, n_layers = 1, d_model = 8, d_head = 4, n_heads = 2, d_ffn = 8%s }
return mn.a2c(cfg, env, mn.agent { env = env, core = core, hidden = cfg.hidden }):train()
]]):format "SEES" })

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
local function numbers_of(said) return said:match "\nsuccess.*" or said:match "\nscore .*" end

for _, core in ipairs { "gtrxl core.memory=3", "rmt" } do
  local name = core:match "%a+"
  local words = ("corridor.lua core=%s threads=1"):format(core)
  for key, value in pairs(SIZES) do words = words .. (" core.%s=%d"):format(key, value) end

  t.test(name .. ": eval, view, intervene and resume= act as a stored run was trained", function()
    mneme(("run %s run=%s-new"):format(words, name))
    mneme(("run %s run=%s-known core.sees=rollout"):format(words, name))
    mneme(("run %s run=%s-old core.sees=rollout"):format(words, name))
    t.ok(checkpoint(name .. "-new", 600) ~= checkpoint(name .. "-known", 600), "both act alike")
    forget(name .. "-old")
    local known, old = mneme(("eval %s-known episodes=60"):format(name)), mneme(("eval %s-old episodes=60"):format(name))
    t.ok(old:find(SAYS), old)
    t.ok(not known:find(SAYS) and known:find ", core.sees=rollout\n" and old:find ", core.sees=rollout\n")
    t.eq(numbers_of(old), numbers_of(known))
    t.ok(not mneme(("eval %s-new episodes=4"):format(name)):find "sees")
    t.ok(mneme(("view %s-old out=old.png wait=0"):format(name)):find(SAYS))
    t.ok(mneme(("intervene %s-old erase=all at=2 episodes=4"):format(name)):find(SAYS))
    t.ok(mneme(("run corridor.lua resume=%s-old steps=900"):format(name)):find(SAYS))
    t.ok(not mneme(("run corridor.lua resume=%s-known steps=900"):format(name)):find(SAYS))
    t.ok(checkpoint(name .. "-old", 900) == checkpoint(name .. "-known", 900), "other bits after resuming")
  end)
end

t.test("a run whose core and environment are written in its script likewise", function()
  local text = files.read(dir .. "/own.lua")
  files.write(dir .. "/own.lua", { (text:gsub("SEES", ", sees = \"rollout\"")) })
  mneme "run own.lua run=own-known threads=1"
  mneme "run own.lua run=own-old threads=1"
  local known = mneme "eval own-known episodes=30"
  forget "own-old"
  files.write(dir .. "/own.lua", { (text:gsub("SEES", "")) })
  local old = mneme "eval own-old episodes=30 trust=1"
  t.ok(old:find(SAYS), old)
  t.eq(numbers_of(old), numbers_of(known))
  t.ok(mneme("run own.lua resume=own-old steps=900 trust=1"):find(SAYS))
end)

os.execute("rm -r '" .. dir .. "'")
