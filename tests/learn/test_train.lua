-- test_train.lua -- whole runs in processes of their own: killed, stopped and resumed they end with the bits of
-- an undisturbed run; a NaN stops them with status 3 and leaves the last good checkpoint.
local t = require "tests.harness"
local files = require "mneme.base.files"
local outcome = require("mneme.runs.run_folder").outcome
local core_rig = require "tests.support.core_rig"
local learner_rig = require "tests.support.learner_rig"
local run_folder = require "mneme.runs.run_folder"
local safetensors = require "mneme.tensor.safetensors"
local shell = require "tests.support.shell"
local starts = require("mneme.runs.run_folder").starts

local dir = shell.folder()

-- An experiment to which something happens, in the middle of update number WHEN: its own death, a signal, a
-- number of a parameter that is no number any more.
local FATE = [[
local fate, when = os.getenv "FATE", tonumber(os.getenv "WHEN" or 0)
ffi.cdef "int getpid(void); int kill(int pid, int signal);"
local update, n = learner.update, 0
function learner.update(self, ...)
  n = n + 1
  if n == when and tonumber(fate) then ffi.C.kill(ffi.C.getpid(), tonumber(fate)) end
  if n == when and fate == "reward" then self.rewards:data()[7] = 1 / 0 end
  local fine, parameter = update(self, ...), agent:state_dict()[fate]
  if n == when - 1 and parameter then parameter:data()[3] = 0 / 0 end
  return fine
end
learner:train()
]]
files.write(dir .. "/fate.lua", { [[
local ffi, mn = require "ffi", require "mneme"
local cfg = mn.config {
  corridor = 3, core = { "agalite", d_model = 16, n_layers = 1, n_heads = 2, d_head = 8, d_ffn = 16, eta = 2, r = 2 },
  num_envs = 4, num_steps = 32, hidden = 16, lr = 1e-3, bootstrap_truncated = 1, time_limit = 10, max_norm = 0.5,
  learner = "a2c", previous = "", horizon = 0, context = 0, carry = true, lr_schedule = "constant", warmup = 0,
  weight_decay = 0, minibatches = 2, epochs = 2, stop_score = -1,
}
local env = mn.env("tmaze", { corridor = cfg.corridor, num_envs = cfg.num_envs, seed = cfg.seed, time_limit = cfg.time_limit })
mn.manual_seed(cfg.seed)
local agent = mn.agent { env = env, core = cfg.core, hidden = cfg.hidden, previous = cfg.previous }
local learner = mn.learner(cfg, env, agent)
]], FATE })

-- The same to any learner, in an environment of the script's own.
files.write(dir .. "/own.lua", { [[
local ffi, mn = require "ffi", require "mneme"
local cfg = mn.config { core = { "gru", d_model = 8 }, num_envs = 2, num_steps = 8, hidden = 8, learner = "a2c", minibatches = 1, epochs = 2 }
local env = mn.env { name = "signs", observation = { 3 }, actions = 2, num_envs = cfg.num_envs, seed = cfg.seed, time_limit = 5,
  reset = function(self, random) self.sign = random(2) return { self.sign, random(), 1 } end,
  step = function(self, action, random) return { 0, random(), 0 }, action + 1 == self.sign and 1 or -0.5, random(6) == 1 end }
mn.manual_seed(cfg.seed)
local agent = mn.agent { env = env, core = cfg.core, hidden = cfg.hidden, previous = "action,reward" }
local learner = mn.learner(cfg, env, agent)
]], FATE })

local STEP, EVERY = 128, 7                             -- steps of an update; updates between checkpoints

-- Run it: what it printed, and its status.
local function run(words, fate, when, script)
  return shell.run(dir, ("FATE=%s WHEN=%s '%s' run %s %s"):format(fate or "''", when or 0, shell.program, script or "fate.lua", words))
end

local function new_run(folder, updates, more, ...)
  return run(("run=%s steps=%d checkpoint_every=%d threads=1 %s"):format(folder, updates * STEP, EVERY * STEP, more or ""), ...)
end

local function checkpoints(folder) return files.list(dir .. "/" .. folder .. "/checkpoints") end
local function checkpoint(folder, update)
  return files.read(("%s/%s/checkpoints/step-%d.safetensors"):format(dir, folder, update * STEP))
end
local function load(folder, update)
  return safetensors.load(("%s/%s/checkpoints/step-%d.safetensors"):format(dir, folder, update * STEP)).tensors
end
local function log_of(folder)
  return (files.read(dir .. "/" .. folder .. "/metrics.jsonl"):gsub('"charts/SPS": [%d.e+-]+', ""))
end

-- 84 updates go past the first line of the log.
local cases = { agalite = { 84, "" }, galite = { 22, "core=galite core.eta=2" }, gru = { 22, "core=gru core.d_model=16" },
  ppo = { 22, "learner=ppo core=gru core.d_model=16 horizon=16 context=7 previous=action,reward" },
  signs = { 22, "learner=ppo core.approximation=random_sign previous=reward carry=0 weight_decay=0.1" },
  settings = { 22, "core=gru core.d_model=16 horizon=8 context=9 previous=action lr_schedule=inverse_root warmup=30" },
  exact = { 22, "learner=ppo core=mingru core.d_model=16 credit=exact" },
  decay = { 22, "core=gru core.d_model=16 lr_schedule=cosine" } }
for name, case in pairs(cases) do
  local updates, options = case[1], case[2]
  t.test(name .. ": killed twice and stopped once, a run ends as one that was not", function()
    local text, rc = new_run("whole_" .. name, updates, options)
    t.eq(rc, 0, text)
    local folder = "torn_" .. name
    text, rc = new_run(folder, updates, options, 9, 16)
    t.eq(rc, 137, text)
    t.eq(#checkpoints(folder), 2, "checkpoints")
    text, rc = run("resume=" .. folder, 2, 5)         -- SIGINT: the update is finished, and kept
    t.eq(rc, 130, text)
    t.ok(text:find("going on at step " .. 14 * STEP, 1, true), text)
    t.ok(text:find("stopped at step " .. (14 + 5) * STEP .. "; to go on: mneme run fate.lua resume=" .. folder, 1, true), text)
    text, rc = run("resume=" .. folder, 9, 1)          -- dies at once
    t.eq(rc, 137, text)
    text, rc = run("resume=" .. folder .. " threads=2")
    t.eq(rc, 0, text)
    t.ok(text:find("going on at step " .. (14 + 5) * STEP, 1, true), text)
    t.ok(checkpoint(folder, updates) == checkpoint("whole_" .. name, updates), "the last checkpoints differ")
    t.eq(log_of(folder), log_of("whole_" .. name))
    text, rc = run("resume=" .. folder)
    t.ok(rc == 0 and text:find "is finished", text)
  end)
end

for name in pairs(learner_rig.learners()) do
  t.test(name .. ": 1, 2 and 6 environments of a script: killed and resumed with other threads, a run ends as one that was not", function()
    for _, n in ipairs { 1, 2, 6 } do
      local step, last = 8 * n, nil
      for folder, fate in pairs { whole = "''", torn = 9 } do
        local text, rc = run(("run=%s_%s%d learner=%s num_envs=%d steps=%d checkpoint_every=%d threads=1"):format(folder, name, n, name, n, 12 * step,
          5 * step), fate, 9, "own.lua")
        t.eq(rc, folder == "torn" and 137 or 0, text)
      end
      local text, rc = run(("resume=torn_%s%d threads=2"):format(name, n), nil, nil, "own.lua")
      t.eq(rc, 0, text)
      for _, folder in ipairs { "whole", "torn" } do
        local bytes = files.read(("%s/%s_%s%d/checkpoints/step-%d.safetensors"):format(dir, folder, name, n, 12 * step))
        t.ok(not last or bytes == last, n .. " environments: the last checkpoints differ")
        last = bytes
      end
    end
  end)
end

t.test("steps=N carries a finished run on, as if it had been asked for at first", function()
  t.eq(select(2, new_run("long", 40)), 0)
  t.eq(select(2, new_run("short", 10)), 0)
  local text, rc = run("resume=short steps=" .. 40 * STEP)
  t.eq(rc, 0, text)
  local short, long = load("short", 40), load("long", 40)
  for name, tensor in pairs(long) do t.ok(core_rig.bytes(short[name]) == core_rig.bytes(tensor), name .. " differs") end
end)

t.test("steps=N continues a decaying rate from where it was, whatever kills the run then, and the run says so", function()
  for _, name in ipairs { "linear", "cosine" } do
    local whole, torn = "further_" .. name, "torn_further_" .. name
    local line = "core=gru core.d_model=16 lr_schedule=" .. name
    for _, folder in ipairs { whole, torn } do t.eq(select(2, new_run(folder, 10, line)), 0) end
    local text, rc = run(("resume=%s steps=%d"):format(whole, 30 * STEP))
    t.eq(rc, 0, text)
    t.eq(select(2, run(("resume=%s steps=%d"):format(torn, 30 * STEP), 9, 9)), 137)
    t.eq(select(2, run("resume=" .. torn)), 0)
    t.ok(checkpoint(whole, 30) == checkpoint(torn, 30), name .. ": a killed run ends elsewhere")
    local history = run_folder.read_info(dir .. "/" .. torn).history
    for i, updates in ipairs { 10, 30, 30 } do t.eq(history[i].steps, updates * STEP) end
    t.eq(starts.text(run_folder.read_info(dir .. "/" .. whole), "steps"), ("%d, %d from step %d"):format(10 * STEP, 30 * STEP, 10 * STEP))
    local rate = tonumber(log_of(whole):match '.*"charts/learning_rate": ([^,]*)')
    t.ok(rate > 0 and rate < 1e-4, "the last rate: " .. tostring(rate))          -- a tenth at most was left
  end
end)

t.test("a run is one process's: another that would go on with it is refused, and nothing has changed", function()
  t.eq(select(2, new_run("held", 10)), 0)
  local before = log_of "held"
  local line = ([[export FATE='' WHEN=0; was=$(wc -c < held/metrics.jsonl); '%s' run fate.lua resume=held steps=1e9 >first 2>&1 &
    first=$!; i=0; while [ $(wc -c < held/metrics.jsonl) = $was ] && [ $i -lt 2400 ]; do sleep 0.05; i=$((i+1)); done;
    timeout 300 '%s' run fate.lua resume=held steps=1e9; status=$?; kill -9 $first; wait $first 2>/dev/null; ( exit $status )]])
  local text, rc = shell.run(dir, line:format(shell.program, shell.program))
  t.eq(rc, 1, text)
  t.ok(text:find "held/lock: process %d+ is at work here", text)
  t.eq(log_of "held":sub(1, #before), before)
  t.eq(select(2, run("resume=held steps=" .. 20 * STEP)), 0, "a dead process holds nothing")
end)

t.test("who looks at a run while it is trained finds the checkpoints that took the place of those it had listed", function()
  local folder = dir .. "/held/checkpoints/"
  local seen = run_folder.load(dir .. "/held")
  local at, newest = seen:latest().step, seen:latest().path:match "[^/]+$"
  for _, name in ipairs(checkpoints "held") do      -- and what was being written when that process was killed
    if name ~= newest then files.remove(folder .. name) end
  end
  files.rename(folder .. newest, folder .. ("step-%d.safetensors"):format(at + 1))
  t.eq(seen:latest().step, at)           -- what the file itself says
  t.eq(#seen.checkpoints, 1)
  seen = run_folder.load(dir .. "/held")
  seen.checkpoints = { { step = 1, path = folder .. "step-1.safetensors" } }
  t.eq(seen:best().step, at)
end)

t.test("another seed is another run", function()
  t.eq(select(2, new_run("seed2", 40, "seed=2")), 0)
  t.ok(checkpoint("seed2", 40) ~= checkpoint("long", 40))
end)

-- ---- NaN ----

-- It must stop at update `when`, say what and where, and leave the checkpoint of the update before it.
local function diverges(folder, fate, when, pattern, more)
  local text, rc = new_run(folder, 30, more, fate, when)
  t.eq(rc, 3, text)
  local line = text:match "[^\n]*training diverged[^\n]*"
  t.ok(line, text)
  t.ok(line:find(pattern), ("expected '%s' in: %s"):format(pattern, line))
  local last = math.floor((when - 1) / EVERY) * EVERY
  t.ok(line:find("at step " .. when * STEP .. ":", 1, true), line)
  text = shell.mneme(dir, "check " .. folder)
  t.ok(text:find "^ok" and not text:find "has not ended", text)
  if last == 0 then t.ok(line:find("there is no checkpoint yet", 1, true), line)
  else t.ok(line:find("the last good checkpoint is at step " .. last * STEP, 1, true), line) end
  for _, name in ipairs(checkpoints(folder)) do
    local file = safetensors.load(dir .. "/" .. folder .. "/checkpoints/" .. name)
    for key, tensor in pairs(file.tensors) do
      if tensor:dtype() == "f32" then t.ok(core_rig.finite(tensor), name .. ": " .. key) end
    end
  end
  local after, status = run("resume=" .. folder .. " steps=" .. (last + 1) * STEP)
  t.eq(status, last > 0 and 0 or status, after)
end

t.test("a NaN stops training with status 3, names op and tensor, and keeps the last good checkpoint", function()
  diverges("nan_bias", "core.layers.0.gate1.bias", 9, "gru_gate: input bias is not finite")
  diverges("nan_weight", "actor.1.weight", 3, "linear: input w is not finite", "core=gru core.d_model=16 max_norm=0")
  diverges("nan_reward", "reward", 15, "lambda_returns: input rewards is not finite")
end)

t.test("a learning rate that is far too large: status 3, in one line", function()
  local text, rc = new_run("huge", 200, "lr=1e30")
  t.eq(rc, 3, text)
  t.ok(text:find "training diverged at step %d+: [%w_]+: [^;]+ is not finite; .*%(a smaller lr or max_norm may help%)", text)
end)

t.test("a run's folder says why its training ended and what it came to; that of a killed one does not", function()
  local small, at = "core=gru core.d_model=16 learner=ppo", dir .. "/ends"
  local text, rc = new_run("ends", 8, small)
  local ended = outcome.read(at)
  t.eq(rc, 0, text) t.eq(ended.ended, "steps") t.eq(ended.step, 8 * STEP)
  t.ok(text:find(("score %.3f over the last"):format(ended.results.score), 1, true), text)
  text, rc = run(("resume=ends steps=%d"):format(30 * STEP), 2, 3)
  t.eq(rc, 130, text) t.eq(outcome.read(at).ended, "signal") t.ok(outcome.read(at).step < 30 * STEP)
  text, rc = run("resume=ends", 9, 3)
  t.eq(rc, 137, text) t.eq(outcome.read(at), nil)
  t.eq(files.is_file(at .. "/outcome.json"), false, "what an earlier start came to is not what this one did")
  text, rc = shell.mneme(dir, "check ends")
  t.eq(rc, 0, text)
  t.eq(select(2, run "resume=ends"), 0)
  t.eq(outcome.read(at).ended, "steps") t.eq(outcome.read(at).step, 30 * STEP)
  text, rc = new_run("solved", 200, small .. " stop_score=0")
  ended = outcome.read(dir .. "/solved")
  t.eq(rc, 0, text) t.eq(ended.ended, "stop_score") t.ok(ended.step < 200 * STEP and text:find "first reached 0 at step [%d,]+; fresh episodes: [%d.]+ sampled")
  t.ok(shell.mneme(dir, "check solved"):find "\nok +solved" or shell.mneme(dir, "check solved"):find "^ok +solved")
  files.write(dir .. "/solved/outcome.json", { (files.read(dir .. "/solved/outcome.json"):gsub('"score": ', '"score": 1')) })
  text, rc = shell.mneme(dir, "check solved")
  t.ok(rc ~= 0 and text:find "outcome.json: was altered", text)
end)

os.execute("rm -rf " .. dir)
