-- test_mpi.lua -- several ranks train as one process does: the same episodes, losses and parameters, whatever is
-- stopped, killed or gone on with by another number of them.
local ffi = require "ffi"
local t = require "tests.harness"
local engine = require "mneme.base.engine"
local files = require "mneme.base.files"
local json = require "mneme.base.json"
local safetensors = require "mneme.tensor.safetensors"
local shell = require "tests.support.shell"

local TOLERANCE = 2e-5
local folder = shell.folder()

-- A run that leaves each rank's parameters and number of process behind.
files.write(folder .. "/s.lua", { [[
local ffi, mn = require "ffi", require "mneme"
local cfg = mn.config { core = { "gru", d_model = 16 }, steps = 2048, num_envs = 4, num_steps = 32, lr = 1e-3, learner = "a2c",
  minibatches = 1, epochs = 2, target_kl = 0.0, own = false, previous = "", context = 0 }
local rank = require("mneme.tensor.ranks").rank
local f = assert(io.open("pid-" .. rank, "w"))
f:write((assert(io.open "/proc/self/stat"):read "*n"))
f:close()
-- A walk in Lua: it ends where a coin says so, and what it remembers of itself grows.
local walk = { observation = { 3 }, actions = 2, name = "walk", num_envs = cfg.num_envs, seed = cfg.seed, time_limit = 9,
  reset = function(self) self.way = {} return { 0, 1, 0 } end,
  step = function(self, action, random)
    table.insert(self.way, random())
    local x = self.way[#self.way]
    return { x, action, #self.way / 9 }, action == 1 and x or -x, random(6) == 1, x
  end }
local env = cfg.own and mn.env(walk) or mn.env("tmaze", { corridor = 4, time_limit = 11, num_envs = cfg.num_envs, seed = cfg.seed })
local agent = mn.agent { env = env, core = cfg.core, hidden = 16, previous = cfg.previous ~= "" and cfg.previous or nil }
mn[cfg.learner](cfg, env, agent):train()
local out = assert(io.open(cfg.run .. "-" .. rank, "wb"))
for _, p in ipairs(agent:parameters()) do out:write(ffi.string(p:data(), 4 * p:size())) end
out:close()
]] })

-- More processes than processors are fine here, and so is root.  A sanitizer looks at the ranks, not at mpirun, which
-- has faults of its own.
local preload = os.getenv "LD_PRELOAD"
local MPIRUN = "env -u LD_PRELOAD OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 mpirun --oversubscribe -n %d "
  .. (preload and ("env LD_PRELOAD='%s' "):format(preload) or "") .. "'%s' run s.lua %s"
local _, missing = shell.run(folder, "command -v mpirun")

local function need_mpi()
  if missing ~= 0 then t.skip "there is no mpirun (Debian: openmpi-bin)" end
end

local function run(ranks, words)
  if ranks == 1 then return shell.mneme(folder, "run s.lua threads=1 " .. words) end
  return shell.run(folder, MPIRUN:format(ranks, shell.program, words))
end

local function fine(ranks, words)
  local said, status = run(ranks, words)
  t.eq(status, 0, said)
  return said
end

local function newest(name)
  local last = 0
  for _, file in ipairs(files.list(("%s/%s/checkpoints"):format(folder, name))) do
    last = math.max(last, tonumber(file:match "^step%-(%d+)%.safetensors$") or 0)
  end
  return last, ("%s/%s/checkpoints/step-%.0f.safetensors"):format(folder, name, last)
end

-- Tables alike, numbers in them to rounding.
local function same_values(a, b, name)
  if type(a) ~= "table" then
    if type(a) ~= "number" then return t.eq(a, b, name) end
    return t.near(a, b, TOLERANCE * math.max(1, math.abs(b)), name)
  end
  for key, value in pairs(a) do same_values(value, b[key], key) end
  for key in pairs(b) do t.ok(a[key] ~= nil, key) end
end

-- Whole numbers and bytes alike, others to rounding.
local function same_checkpoints(a, b)
  local step_a, path_a = newest(a)
  local step_b, path_b = newest(b)
  t.eq(step_a, step_b)
  local x, y, compared = safetensors.load(path_a), safetensors.load(path_b), 0
  for name, left in pairs(x.tensors) do
    local right = y.tensors[name]
    t.ok(right, name)
    t.eq(table.concat(left:shape(), ","), table.concat(right:shape(), ","), name)
    local float, n, at, other = left:dtype() == "f32", left:size(), left:data(), right:data()
    if name:find "^normalise" then            -- doubles, as bytes
      float, n, at, other = true, n / 8, ffi.cast("const double *", at), ffi.cast("const double *", other)
    end
    for i = 0, n - 1 do
      local p, q = at[i], other[i]
      if math.abs(p - q) > (float and TOLERANCE * math.max(1, math.abs(q)) or 0) then
        error(("%s[%d] is %.9g, expected %.9g"):format(name, i, p, q), 0)
      end
    end
    compared = compared + 1
  end
  t.ok(compared > 10)
  same_values(json.decode(x.metadata.state).counters, json.decode(y.metadata.state).counters, "counters")
end

-- The last line of a log, but for its speed.
local function last_line(name)
  local line = files.read(("%s/%s/metrics.jsonl"):format(folder, name)):match "([^\n]*)\n$"
  local m = json.decode(line)
  m["charts/SPS"] = nil
  return m
end

local function same_logs(a, b)
  local x, y, count = last_line(a), last_line(b), 0
  for name, number in pairs(x) do
    t.near(y[name], number, TOLERANCE * math.max(1, math.abs(number)), name)
    count = count + 1
  end
  for name in pairs(y) do t.ok(x[name], name) end
  t.ok(count > 10)
end

local function bytes(name) return (files.read(folder .. "/" .. name)) end

local cases = {
  { "A2C", "" },
  { "A2C that is told its last action, and forgets", "previous=action,reward context=5" },
  { "A2C in a world of Lua, whose copies are saved in unequal lengths", "own=1" },
  { "random signs, which know their copy", "core=agalite core.approximation=random_sign core.d_model=16 core.n_layers=1 core.n_heads=2"
    .. " core.d_head=8 core.d_ffn=16 core.d_in=16" },
  { "PPO with one minibatch", "learner=ppo target_kl=0.01" },
  { "A2C, normalised", "norm_obs=1 norm_reward=1 previous=action,reward own=1" },
  { "PPO, normalised and clipped", "learner=ppo norm_obs=1 norm_reward=1 clip_reward=1" },
  { "PQN with a window in front", "learner=pqn window=4 epsilon_decay=0.5" },
  { "A2C by exact credit", "credit=exact core=mingru core.d_model=16 core.d_in=16" },
}
for i, case in ipairs(cases) do
  t.test("two ranks are one process: " .. case[1], function()
    need_mpi()
    local one, two = "one" .. i, "two" .. i
    fine(1, case[2] .. " run=" .. one)
    local said = fine(2, case[2] .. " run=" .. two)
    t.eq(select(2, said:gsub("2048 steps, score", "")), 1, said)           -- one of them speaks
    same_checkpoints(two, one)
    same_logs(two, one)
    t.ok(bytes(two .. "-0") == bytes(two .. "-1"), "the ranks' parameters differ")
    t.ok(bytes(two .. "-0") ~= bytes(one .. "-0") or i > 1)                -- summed in another order
  end)
end

t.test("PPO with minibatches: each takes the same copies of every rank, and equal runs give equal files", function()
  need_mpi()
  for _, name in ipairs { "ppo1", "ppo2" } do fine(2, "learner=ppo minibatches=2 run=" .. name) end
  t.ok(bytes "ppo1-0" == bytes "ppo1-1", "the ranks' parameters differ")
  t.ok(bytes "ppo1-0" == bytes "ppo2-0", "equal runs differ")
  local said, status = run(2, "learner=ppo minibatches=4 run=ppo3")
  t.eq(status, 2)
  t.ok(said:find("minibatches=4 does not divide the 2 sequences of a rollout: num_envs=4 in 2 ranks", 1, true), said)
end)

t.test("a run goes on with as many ranks, with more and with fewer", function()
  need_mpi()
  fine(2, "run=whole checkpoint_every=1024")
  shell.run(folder, "for to in half half1 half4; do cp -r whole $to; rm $to/checkpoints/step-2048.safetensors; done")
  fine(2, "resume=half")
  t.ok(select(1, files.read((select(2, newest "half")))) == files.read((select(2, newest "whole"))), "not the same bytes")
  fine(1, "resume=half1")
  same_checkpoints("half1", "whole")
  fine(4, "resume=half4")
  same_checkpoints("half4", "whole")
  local said = fine(2, "resume=half")
  t.ok(said:find("half is finished: 2048 steps", 1, true), said)
end)

t.test("what cannot be is said once, and ends all", function()
  need_mpi()
  local said, status = run(3, "run=thirds")
  t.eq(status, 2)
  t.eq(select(2, said:gsub("num_envs=4 cannot be shared out evenly among 3 ranks", "")), 1, said)
  said, status = run(2, "run=one1")
  t.eq(status, 2)
  t.ok(said:find("one1 already holds a run", 1, true), said)
end)

t.test("ranks that disagree end, and the message names what differs and the ranks", function()
  need_mpi()
  files.write(folder .. "/s2.lua", { files.read(folder .. "/s.lua") .. "\n" })
  files.write(folder .. "/nothing.lua", { "print(require('mneme').config { num_envs = 4 }.run)\n" })
  files.write(folder .. "/twice.lua", { (files.read(folder .. "/s.lua"):gsub("(mn%[cfg.learner%]%(cfg, env, agent%):train%(%))",
    'if rank == 0 then %1 end\nif rank == 1 then return end')) })
  local line = MPIRUN:gsub("%-n %%d .*$", ""):gsub("^env ", "timeout 120 env ")
  local function two(a, b)
    local words = preload and ("env LD_PRELOAD='%s' "):format(preload) or ""          -- one program for all: mpirun's A : B crashes under qemu-user
    return shell.run(folder, ("rm -rf differ; %s -n 2 %ssh -c 'exec \"%s\" run $([ $OMPI_COMM_WORLD_RANK = 0 ] && echo %s || echo %s) run=differ'"):format(
      line, words, shell.program, a, b))
  end
  for _, case in ipairs { { "lr", "0.001", "0.002" }, { "seed", "1", "2" }, { "steps", "2048", "4096" }, { "num_envs", "4", "8" }, { "learner", "a2c", "ppo" },
    { "core.d_model", "16", "32", "core" }, { "core", "gru", "lstm" } } do
    local said, status = two(("s.lua %s=%s"):format(case[1], case[2]), ("s.lua %s=%s"):format(case[1], case[3]))
    t.eq(status, 2, case[1] .. ": " .. said)
    t.ok(said:find(("disagree: .*%%f[%%w]%s: [^|]-%s[^|]* on rank 0; [^|]-%s[^|]* on rank 1"):format(case[4] or case[1], case[2]:gsub("%p", "%%%0"),
      case[3]:gsub("%p", "%%%0"))), said)
  end
  local said, status = two("s.lua", "s2.lua")
  t.ok(status == 2 and said:find "disagree: .*s2.lua: nothing on rank 0; checksum %x+ on rank 1", said)
  for _, other in ipairs { "nothing.lua", "twice.lua" } do
    said, status = two(other == "twice.lua" and other or "s.lua", other)
    t.ok(status == 2 and said:find "what comes next: training on rank 0; the end on rank 1", said)
  end
end)

-- Begin an endless run with two ranks; once it has a checkpoint, do something to it: what it says, and its status.
local function meanwhile(name, line)
  local begin = MPIRUN:format(2, shell.program, ("run=%s steps=1e12 checkpoint_every=512"):format(name))
  return shell.run(folder, ("rm -f pid-*; %s & all=$!; i=0; until ls %s/checkpoints/*.safetensors > /dev/null 2>&1 || [ $i = 1200 ]; "
    .. "do sleep 0.1; i=$((i + 1)); done; %s; wait $all"):format(begin, name, line))
end

t.test("kill -9 of a rank ends the others; nothing before the last checkpoint is lost", function()
  need_mpi()
  local said, status = meanwhile("killed", "kill -9 $(cat pid-1)")
  t.ok(status ~= 0, said)
  t.ok(said:find "signal 9", said)
  local there = "i=0; while [ -e /proc/$(cat pid-0) ] && [ $i -lt 1200 ]; do sleep 0.1; i=$((i + 1)); done; [ ! -e /proc/$(cat pid-0) ]"
  t.eq(select(2, shell.run(folder, there)), 0, "rank 0 lives on")
  local step = newest "killed"
  t.ok(step >= 512)
  said = fine(2, ("resume=killed steps=%d"):format(step + 512))
  t.ok(said:find(("going on at step %d"):format(step), 1, true), said)
  t.eq((newest "killed"), step + 512)
end)

t.test("a signal to mpirun: all ranks finish the update, one checkpoint, status 143", function()
  need_mpi()
  local said, status = meanwhile("stopped", "kill -USR1 $all")
  t.eq(status, 143, said)
  t.eq(select(2, said:gsub("stopped at step %d+; to go on: mneme run s.lua resume=stopped", "")), 1, said)
  local step = newest "stopped"
  fine(2, ("resume=stopped steps=%d"):format(step + 256))
end)

t.test("a sweep starts processes of its own, and says so once", function()
  need_mpi()
  local said, status = shell.run(folder, (MPIRUN:gsub("run s.lua %%s", "sweep s.lua lr=1e-3,1e-4")):format(2, shell.program))
  t.eq(status, 2, said)
  t.eq(select(2, said:gsub("mpirun started 2 processes, but a sweep starts its own %(mneme sweep %.%.%. jobs=N", "")), 1, said)
  t.ok(not files.is_folder(folder .. "/runs"), "it left something behind")
end)

-- Sequences of a batch ask differently often here, so the mean over ranks is not that of their means.
files.make_folder(folder .. "/datasets")
files.write(folder .. "/datasets/uneven.lua", { [[
return { doc = "the token before, asked now and then", config = { length = 12 },
  build = function(cfg)
    return { tokens = 5, classes = 5, length = cfg.length, draw = function(random, token, answer)
      local share = random:uniform()
      for i = 0, cfg.length - 1 do
        token[i] = random:below(5)
        if i > 0 and random:uniform() < share then answer[i] = token[i - 1] end
      end
    end }
  end }
]] })
files.write(folder .. "/text", { ("pack my box with five dozen liquor jugs and mix them. "):rep(40) })
files.write(folder .. "/words.lua", { [[
local ffi, mn = require "ffi", require "mneme"
local cfg = mn.config { set = { "uneven", length = 12 }, core = { "gru", d_model = 16, d_in = 16 }, steps = 960, batch = 4, eval_every = 240,
  eval_batches = 3, lr = 1e-2, stop_score = 1 }
local dataset = mn.dataset(cfg.set, { batch = cfg.batch, seed = cfg.seed })
mn.manual_seed(cfg.seed)
local model = mn.sequence_model { dataset = dataset, core = mn.core(cfg.core) }
mn.supervised(cfg, dataset, model):train()
local out = assert(io.open(cfg.run .. "-" .. require("mneme.tensor.ranks").rank, "wb"))
for _, p in ipairs(model:parameters()) do out:write(ffi.string(p:data(), 4 * p:size())) end
out:close()
]] })

local function learn(n, words)
  local line = n == 1 and ("'%s' run words.lua threads=1 %s"):format(shell.program, words)
    or (MPIRUN:gsub("s.lua %%s", "words.lua %%s")):format(n, shell.program, words)
  local said, status = shell.run(folder, line)
  t.eq(status, 0, said)
  return said
end

local signs = "core=agalite core.approximation=random_sign core.d_model=8 core.n_layers=1 core.n_heads=2 core.d_head=4 core.d_ffn=8 core.d_in=16"
for i, case in ipairs { { "sequences that ask differently often", "" }, { "a text that goes on", "set=text set.file=text set.length=12" },
                        { "random signs, which know their sequence", "set=text set.file=text set.length=12 " .. signs } } do
  t.test("supervised, two ranks are one process: " .. case[1], function()
    need_mpi()
    local one, two = "learn-one" .. i, "learn-two" .. i
    learn(1, case[2] .. " run=" .. one)
    local said = learn(2, case[2] .. " run=" .. two)
    t.eq(select(2, said:gsub("960 steps, on the validation part", "")), 1, said)
    same_checkpoints(two, one)
    same_logs(two, one)
    t.ok(bytes(two .. "-0") == bytes(two .. "-1"), "the ranks' parameters differ")
    t.ok(bytes(two .. "-0") ~= bytes(one .. "-0"))
  end)
end

t.test("a supervised run goes on with as many ranks and with fewer; batches that cannot be shared out are refused", function()
  need_mpi()
  local words = "set=text set.file=text set.length=12 checkpoint_every=480 run="
  learn(2, words .. "text-whole")
  shell.run(folder, "for to in text-half text-half1; do cp -r text-whole $to; rm $to/checkpoints/step-960.safetensors; done")
  learn(2, "resume=text-half")
  t.ok(files.read((select(2, newest "text-half"))) == files.read((select(2, newest "text-whole"))), "not the same bytes")
  learn(1, "resume=text-half1")
  same_checkpoints("text-half1", "text-whole")
  local said, status = shell.run(folder, (MPIRUN:gsub("s.lua %%s", "words.lua run=thirds")):format(3, shell.program))
  t.eq(status, 2, said)
  t.eq(select(2, said:gsub("supervised: batch=4 cannot be shared out evenly among 3 ranks", "")), 1, said)
end)

-- What ranks exchange while a plan is replayed: as graphs of a device, and on the CPU.
files.write(folder .. "/exchange.lua", { [[
local ffi, mn = require "ffi", require "mneme"
local cfg = mn.config { out = "" }
local rank = require("mneme.tensor.ranks").rank
local function leaf(grad, ...)
  local t = mn.tensor { shape = { ... }, grad = grad }
  for k = 0, t:size() - 1 do t:data()[k] = ((k * 37 + (grad and 0 or 11 * rank)) % 19 - 9) / 9 end
  return t
end
local logits, values, actions = leaf(true, 5, 3, 4), leaf(true, 5, 3), mn.tensor { shape = { 5, 3 }, dtype = "i32" }
local given = { logits = logits, values = values, actions = actions, old_log_probs = leaf(false, 5, 3), old_values = leaf(false, 5, 3),
  advantages = leaf(false, 5, 3), returns = leaf(false, 5, 3), over_ranks = true }
local optimiser = mn.adam({ logits, values }, { lr = 0.1, max_norm = 0.1 })
local update = mn.plan(function()
  optimiser:zero_grad()
  local loss = mn.ops.ppo_loss(given)
  loss:backward()
  optimiser:apply()
  return loss
end)
local out = assert(io.open(cfg.out .. rank, "w"))
local plugin
if cfg.device == "emu" then
  ffi.cdef "const char *mn_emu_listen(int on);"
  plugin = ffi.load(require("mneme.base.engine").build .. "/libmneme_emu.so")
  plugin.mn_emu_listen(1)
end
for _ = 1, 4 do
  optimiser:tick()
  local loss = update()
  given.advantages:data()[rank] = given.advantages:data()[rank] + 1
  out:write(loss:item(), "\n")
end
for _, p in ipairs { logits, values } do for k = 0, p:size() - 1 do out:write(("%.9g\n"):format(p:data()[k])) end end
out:close()
if plugin then
  local heard, by_nccl = ffi.string(plugin.mn_emu_listen(0)), 0
  for _ in heard:gmatch "nccl\n" do by_nccl = by_nccl + 1 end
  print("messages by NCCL: " .. by_nccl)
end
]] })

-- emu: each rank has an emulated GPU of its own, and an emulated NCCL.
t.test("ranks on GPUs exchange what ranks on CPUs do, by NCCL or, where they share a GPU, by the host: the same bits", function()
  need_mpi()
  if not files.is_file(engine.build .. "/libmneme_emu.so") then t.skip "there is no emulated device" end
  local function lived(n, device, name, environment)
    local said, status = shell.run(folder, environment .. " " .. (MPIRUN:gsub("s.lua %%s", "exchange.lua device=%%s out=%%s-")):format(n,
      shell.program, device, name))
    t.eq(status, 0, said)
    return tonumber(said:match "messages by NCCL: (%d+)")
  end
  local function numbers(name, rank)
    local list = {}
    for line in files.read(("%s/%s-%d"):format(folder, name, rank)):gmatch "%S+" do list[#list + 1] = tonumber(line) end
    return list
  end
  for _, n in ipairs { 2, 3 } do
    lived(n, "cpu", "cpu", "")
    t.eq(lived(n, "emu", "host", "EMU_ONE_GPU=1"), 0)
    -- Two sums forward and back; the stretches, the means: leaf by leaf in the first update, of all leaves in the others.
    t.eq(lived(n, "emu", "emu", ""), (4 + 2 * 2) + 3 * (4 + 2))
    for rank = 0, n - 1 do
      local want, got = numbers("cpu", rank), numbers("emu", rank)
      t.eq(#want, 4 + 75)
      for k, x in ipairs(want) do t.near(got[k], x, TOLERANCE, ("rank %d, number %d"):format(rank, k)) end
      t.ok(bytes("emu-" .. rank) == bytes("host-" .. rank), "NCCL and the host give other bits")
    end
    for k = 5, 79 do t.eq(numbers("emu", 0)[k], numbers("emu", 1)[k]) end
  end
end)

t.test("two ranks with an emulated GPU each are one process on a CPU", function()
  need_mpi()
  if not files.is_file(engine.build .. "/libmneme_emu.so") then t.skip "there is no emulated device" end
  for i, learner in ipairs { "a2c", "ppo" } do
    local words = ("learner=%s steps=512 "):format(learner)
    fine(1, words .. "run=cpu" .. i)
    fine(2, words .. "device=emu run=gpus" .. i)
    same_checkpoints("gpus" .. i, "cpu" .. i)
    same_logs("gpus" .. i, "cpu" .. i)
    t.ok(bytes("gpus" .. i .. "-0") == bytes("gpus" .. i .. "-1"), "the ranks' parameters differ")
  end
end)

t.test("without mpirun there is one rank, and means over it change nothing", function()
  local mn, C = require "mneme", require("mneme.base.engine").C
  t.eq(C.mn_ranks(), 1)
  t.eq(C.mn_rank(), 0)
  local w = mn.tensor { shape = { 3 }, grad = true }
  w:copy(mn.tensor { 1, 2, 3 })
  w:square():sum():backward()
  mn.ranks_mean { w = w }
  t.eq(w:grad():data()[2], 6)
end)

t.test("copies that are kept do what they would have done among the others", function()
  local mn = require "mneme"
  local kept = mn.env("tmaze", { num_envs = 40, seed = 3 })
  local all = mn.env("tmaze", { num_envs = 40, seed = 3 })
  kept:keep(19, 18)
  t.eq(kept.num_envs, 18)
  local a, b = kept:reset(3), all:reset(3)
  local wide = a:size() / 18
  for step = 1, 30 do
    t.ok(ffi.string(a:data(), 4 * a:size()) == ffi.string(b:data() + 19 * wide, 4 * a:size()), "step " .. step)
    local few, many = {}, {}
    for i = 1, 40 do many[i] = (i + step) % 4 end
    for i = 1, 18 do few[i] = many[19 + i] end
    kept:step(few)
    all:step(many)
  end
  t.raises(function() kept:keep(0, 1) end, "keep is called after reset")
  t.raises(function() mn.env("tmaze", { num_envs = 4 }):keep(3, 2) end, "keep 2 environments from 3, expected 0..3")
end)

shell.run(folder, "cd /; rm -r '" .. folder .. "'")
