-- test_run_seeds.lua -- mneme run seeds=: each seed does what it does alone, bit for bit, whatever happens to the others.
local t = require "tests.harness"
local engine = require "mneme.base.engine"
local files = require "mneme.base.files"
local json = require "mneme.base.json"
local shell = require "tests.support.shell"

local dir = shell.folder()
files.write(dir .. "/train.lua", { [[
local mn = require "mneme"
local cfg = mn.config { core = { "gru", d_model = 6 }, learner = "a2c", num_envs = 3, num_steps = 6, hidden = 5, corridor = 3,
  lr = 1e-3, steps = 72, wrong = 0, wild = 0, limit = 1000 }
assert(cfg.seed ~= cfg.wrong, "a seed that the script minds")
if cfg.seed == cfg.wild then cfg.lr, cfg.max_norm = 1e30, 0 end
local env = mn.env("tmaze", { corridor = cfg.corridor, num_envs = cfg.num_envs, seed = cfg.seed, time_limit = cfg.limit })
mn.manual_seed(cfg.seed)
local agent = mn.agent { env = env, core = mn.core(cfg.core), hidden = cfg.hidden }
mn[cfg.learner](cfg, env, agent):train()
]] })
files.write(dir .. "/words.lua", { [[
local mn = require "mneme"
local cfg = mn.config { core = { "gru", d_model = 8, d_in = 8 }, steps = 960, batch = 4, eval_every = 240, eval_batches = 2, lr = 1e-2 }
local dataset = mn.dataset({ "selective_copy" }, { batch = cfg.batch, seed = cfg.seed })
mn.manual_seed(cfg.seed)
local model = mn.sequence_model { dataset = dataset, core = mn.core(cfg.core) }
mn.supervised(cfg, dataset, model):train()
]] })

local function run(words) return shell.mneme(dir, "run " .. words .. " threads=1") end

local function fine(words)
  local said, status = run(words)
  t.eq(status, 0, said)
  return said
end

-- What a run leaves, without clocks: the last checkpoint, and the log.
local function left_by(name)
  local last = 0
  for _, file in ipairs(files.list(("%s/%s/checkpoints"):format(dir, name))) do
    last = math.max(last, tonumber(file:match "^step%-(%d+)%.safetensors$") or 0)
  end
  local log = {}
  local path = ("%s/%s/metrics.jsonl"):format(dir, name)
  for line in (files.is_file(path) and files.read(path) or ""):gmatch "[^\n]+" do
    local m = json.decode(line)
    m["charts/SPS"], m.time = nil, nil
    log[#log + 1] = json.encode(m)
  end
  local text = last > 0 and files.read(("%s/%s/checkpoints/step-%.0f.safetensors"):format(dir, name, last)) or ""
  return text:gsub('^(.-"run": ?")%x+', "%1", 1):gsub('^(.-"crc32c": ?")%x+', "%1", 1), table.concat(log, "\n"), last
end

local function same(a, b)
  local x, log_x = left_by(a)
  local y, log_y = left_by(b)
  t.ok(x == y, a .. " and " .. b .. " have other checkpoints")
  t.eq(log_x, log_y)
  t.ok(#log_x > 10)
end

local cases = {
  { "A2C", "train.lua" },
  { "PPO", "train.lua learner=ppo num_envs=4" },
  { "supervised", "words.lua" },
  { "A2C on an emulated GPU", "train.lua device=emu" },
}
for i, case in ipairs(cases) do
  t.test("three seeds do what each does alone: " .. case[1], function()
    local emulated = case[2]:find "emu"
    if emulated and not files.is_file(engine.build .. "/libmneme_emu.so") then t.skip "there is no emulated device" end
    fine(("%s seeds=3..5 run=all%d"):format(case[2], i))
    for seed = 3, 5 do
      fine(("%s seed=%d run=one%d-%d"):format(case[2], seed, i, seed))
      same(("all%d-seed%d"):format(i, seed), ("one%d-%d"):format(i, seed))
    end
    t.ok(left_by(("all%d-seed3"):format(i)) ~= left_by(("all%d-seed4"):format(i)), "two seeds are the same")
  end)
end

t.test("what goes wrong with one seed is said, and the others go on", function()
  local said, status = run "train.lua seeds=1,2,3 wrong=2 run=wrong"
  t.eq(status, 1, said)
  t.eq(select(2, said:gsub("seed 2: train.lua:4: a seed that the script minds", "")), 1, said)
  for _, seed in ipairs { 1, 3 } do t.eq(select(3, left_by("wrong-seed" .. seed)), 72) end
  t.ok(not files.is_folder(dir .. "/wrong-seed2"))
  said, status = run "train.lua seeds=1,2,3 wild=1 run=wild"
  t.eq(status, 3, said)
  t.ok(said:find "training diverged at step", said)
  for seed = 2, 3 do same("wild-seed" .. seed, ("one-wild-%d"):format(fine(("train.lua seed=%d run=one-wild-%d"):format(seed, seed)) and seed)) end
end)

t.test("Ctrl-C: every seed keeps a checkpoint and says how to go on, and goes on as if nothing had been", function()
  local said, status = shell.run(dir, ("'%s' run train.lua threads=1 seeds=2 steps=1e9 checkpoint_every=720 run=long & all=$!; i=0; "
    .. "until ls long-seed1/checkpoints/*.safetensors long-seed2/checkpoints/*.safetensors > /dev/null 2>&1 || [ $i = 600 ]; do sleep 0.1; i=$((i + 1)); done; "
    .. "kill -TERM $all; wait $all"):format(shell.program))
  t.eq(status, 143, said)
  for seed = 1, 2 do
    local name = "long-seed" .. seed
    local at = tonumber(said:match(("stopped at step (%%d+); to go on: mneme run train.lua resume=%s"):format(name:gsub("%-", "%%-"))))
    t.ok(at and select(3, left_by(name)) == at, said)
    fine(("resume=%s steps=%d"):format(name, at + 180))
    fine(("train.lua seed=%d steps=%d checkpoint_every=720 run=whole%d"):format(seed, at + 180, seed))
    t.ok(left_by(name) == left_by("whole" .. seed), name .. " is not what it would have been")
  end
end)

t.test("several seeds without a name have folders of their own", function()
  fine "train.lua seeds=2"
  for n = 1, 2 do t.eq(json.decode((files.read(("%s/runs/train-%d/config.json"):format(dir, n)))).seed, n) end
end)

t.test("seeds that mean nothing are refused", function()
  for words, expected in pairs {
    ["train.lua seeds=0"] = "run: seeds=0: there are none",
    ["train.lua seeds=7..3"] = "run: seeds=7..3: there are none",
    ["train.lua seeds=many"] = "run: seeds=many, expected a whole number of at least 1, FIRST..LAST, or seeds with commas between",
    ["train.lua seeds=99999999999"] = "run: seeds=99999999999: more than a million",
    ["train.lua seeds=1,2,1"] = "run: seeds=1,2,1: 1 is there twice",
    ["train.lua seeds=3,,4"] = "run: seeds=3,,4, expected a whole number",
    ["train.lua seeds=2 jobs=0"] = "run: jobs=0, expected a whole number of at least 1",
    ["train.lua seeds=2 seed=1"] = "run: seed= and seeds=, expected one of them",
    ["train.lua seeds=2 view=1"] = "run: view=1 shows one run, expected one seed",
    ["resume=runs/train-1 seeds=2"] = "run: seeds= starts new runs, expected no resume=",
  } do
    local said, status = run(words)
    t.eq(status, 2, said)
    t.ok(said:find(expected, 1, true), said)
  end
end)

shell.run(dir, "cd /; rm -r '" .. dir .. "'")
