-- test_supervised.lua -- learning sequences: the loss against hand-computed values, a text read in batches against the
-- text read at once, evaluation, schedules, runs that are resumed, and what `mneme eval` says of them.
local ffi = require "ffi"
local t = require "tests.harness"
local mn = require "mneme"
local files = require "mneme.base.files"
local tables = require "mneme.base.tables"
local validation = require "mneme.learn.validation"
local nn = require "mneme.tensor.nn"
local safetensors = require "mneme.tensor.safetensors"
local shell = require "tests.support.shell"
local ops = mn.ops

local dir = shell.folder()

local letters = {}
for i = 1, 600 do letters[i] = string.char(97 + (i * i % 7 + 5 * i) % 11) end
files.write(dir .. "/letters", { table.concat(letters) })
local function letters_task(more)
  local settings = { file = dir .. "/letters", batch = 2, length = 8, valid = 0.2, test = 0.2, seed = 1 }
  for key, value in pairs(more or {}) do settings[key] = value end
  return mn.dataset("text", settings)
end

local widths = { galite = { d_model = 8, n_layers = 1, n_heads = 2, d_head = 4, d_ffn = 8, eta = 2 }, gru = { d_model = 6 } }
local function model_of(dataset, name)
  local config = { d_in = 5 }
  for key, value in pairs(widths[name]) do config[key] = value end
  mn.manual_seed(1)
  return mn.sequence_model { dataset = dataset, core = mn.core(name, config) }
end

-- ---- the loss ----

t.test("cross_entropy: nats, mean over what is asked, and right answers, worked out by hand", function()
  local rows = { { 0, math.log(3), 0 }, { 2, 2, 2 }, { -1, 0, 50 }, { 1, 0, 0 } }
  local logits = mn.tensor { shape = { 2, 2, 3 }, grad = true }
  for r, row in ipairs(rows) do for i, x in ipairs(row) do logits:data()[(r - 1) * 3 + i - 1] = x end end
  local target = mn.tensor { shape = { 2, 2 }, data = { { 1, 0 }, { 2, 2 } }, dtype = "i32" }
  local loss, nats, right = ops.cross_entropy { logits = logits, target = target }
  local want = { math.log(5 / 3), math.log(3), 0, math.log(math.exp(1) + 2) }
  for r = 1, 4 do t.near(nats:data()[r - 1], want[r], 1e-6) end
  t.near(loss:item(), (want[1] + want[2] + want[4]) / 4, 1e-6)
  t.eq(right:data()[0] + 2 * right:data()[1] + 4 * right:data()[2] + 8 * right:data()[3], 1 + 2 + 4)   -- of equals the first
  mn.clear_tape()
  local asked = mn.tensor { shape = { 2, 2 }, data = { { 1, 0 }, { 0, 1 } }, dtype = "u8" }
  loss = ops.cross_entropy { logits = logits, target = target, asked = asked }
  t.near(loss:item(), (want[1] + want[4]) / 2, 1e-6)
  loss:backward()
  local g = logits:grad_data()
  for i, dx in ipairs { 0.1, -0.2, 0.1, 0, 0, 0, 0, 0, 0 } do t.near(g[i - 1], dx, 1e-6, "gradient " .. i) end
  local e = math.exp(1) / (math.exp(1) + 2) / 2
  t.near(g[9], e, 1e-6)
  t.near(g[11], (0.5 - e) / 2 - 0.5, 1e-6)
  mn.clear_tape()
  asked:fill(0)
  t.eq(ops.cross_entropy { logits = logits, target = target, asked = asked }:item(), 0)
  mn.clear_tape()
end)

t.test("cross_entropy is what log_softmax and pick come to", function()
  local x = mn.tensor { shape = { 7, 13 } }
  for i = 0, 90 do x:data()[i] = ((i * 7919 + 13) % 101 - 50) / 4 end
  local target = mn.tensor { shape = { 7 }, dtype = "i32" }
  for i = 0, 6 do target:data()[i] = i * 5 % 13 end
  local loss, nats = ops.cross_entropy { logits = x, target = target }
  local chosen = ops.pick(ops.log_softmax(x), target)
  local sum = 0
  for i = 0, 6 do
    t.near(nats:data()[i], -chosen:data()[i], 2e-5)
    sum = sum - chosen:data()[i]
  end
  t.near(loss:item(), sum / 7, 2e-5)
  mn.clear_tape()
end)

-- ---- carried state ----

-- Logits of a split read batch by batch with the state handed on, column by column.
local function read_carried(dataset, model, split)
  local batch, state, out = dataset:buffers(), model.core:initial(dataset.batch), {}
  for n = 0, dataset:batches(split) - 1 do
    dataset:fill(batch, split, n)
    local logits = mn.no_grad(function()
      local y, after = model(batch.token, batch.done, state)
      mn.keep(after, state)
      return y
    end)
    for k = 0, dataset.length - 1 do
      for b = 0, dataset.batch - 1 do
        if batch.asked:data()[k * dataset.batch + b] == 1 then
          out[b] = out[b] or {}
          for c = 0, dataset.classes - 1 do table.insert(out[b], logits:data()[(k * dataset.batch + b) * dataset.classes + c]) end
        end
      end
    end
  end
  return out
end

for _, core in ipairs { "galite", "gru" } do
  t.test(core .. ": a text read in batches with the state handed on is one long sequence", function()
    local short, long = letters_task(), letters_task { length = 59 }
    local _, n = short.stream "valid"
    local part = math.floor((n - 1) / 2)
    t.ok(part > 56 and part <= 59 and short:batches "valid" == 8, part .. " tokens a column")
    local model = model_of(short, core)
    local a, b = read_carried(short, model, "valid"), read_carried(long, model, "valid")
    for column = 0, 1 do
      t.eq(#a[column], part * short.classes)
      for i, x in ipairs(b[column]) do t.near(a[column][i], x, 2e-5 * math.max(1, math.abs(x))) end
    end
  end)

  t.test(core .. ": evaluation with and without carry is what reading says", function()
    local dataset = letters_task()
    local model = model_of(dataset, core)
    local carried = validation.new(dataset, model, { split = "valid", carry = true }):run(math.huge)
    local fresh = validation.new(dataset, model, { split = "valid", carry = false }):run(math.huge)
    local logits, nats, right, count = read_carried(dataset, model, "valid"), 0, 0, 0
    local ids, n = dataset.stream "valid"
    local part = math.floor((n - 1) / 2)
    for b = 0, 1 do
      for k = 0, part - 1 do
        local sum, best, target = 0, 0, ids[b * part + k + 1]
        local function logit(c) return logits[b][k * dataset.classes + c + 1] end
        for c = 0, dataset.classes - 1 do
          sum = sum + math.exp(logit(c))
          if logit(c) > logit(best) then best = c end
        end
        nats, count, right = nats + math.log(sum) - logit(target), count + 1, right + (best == target and 1 or 0)
      end
    end
    t.eq(carried.asked, count)
    t.near(carried.loss, nats / count, 1e-5)
    t.eq(carried.accuracy, right / count)
    t.near(carried.perplexity, math.exp(nats / count), 1e-4)
    t.near(carried.bits_per_character, nats / count / math.log(2), 1e-5)   -- a character is a token
    t.ok(math.abs(fresh.loss - carried.loss) > 1e-4, "the carried state makes no difference")
    t.eq(validation.new(dataset, model, { split = "valid", carry = true }):run(2).sequences, 4)
  end)
end

t.test("evaluation of a model that knows nothing: ln(classes), one in so many right, intervals around them", function()
  local dataset = mn.dataset("induction", { length = 12, vocab = 9, batch = 50 })
  local model = model_of(dataset, "gru")
  for _, p in ipairs(model.head:parameters()) do p:fill(0) end
  local r = validation.new(dataset, model, { split = "test", carry = true }):run(20)
  t.eq(r.asked, 1000)
  t.near(r.loss, math.log(9), 1e-5)
  t.near(r.loss_half, 0, 1e-5)
  t.near(r.perplexity, 9, 1e-4)
  t.near(r.accuracy, 1 / 8, 4 * math.sqrt(1 / 8 * 7 / 8 / 1000))           -- token 0, one of the eight that may follow
  t.ok(r.accuracy_low < r.accuracy and r.accuracy < r.accuracy_high and r.accuracy_high - r.accuracy_low < 0.05)
  t.eq(r.bits_per_character, nil)
end)

-- ---- updates ----

local function learner_of(cfg, dataset, name)
  cfg.steps = cfg.steps or 1e9
  local learner = mn.supervised(cfg, dataset, model_of(dataset, name))
  learner:begin()
  return learner
end

t.test("an update is Adam's step on the gradient of the mean cross-entropy", function()
  local dataset = letters_task()
  local learner = learner_of({ lr = 0.01, max_norm = 0 }, dataset, "gru")
  local reference, batch = model_of(dataset, "gru"), dataset:buffers()
  local adam = mn.adam(reference:parameters(), { lr = 0.01 })
  for n = 0, 3 do
    dataset:fill(batch, "train", n)
    adam:zero_grad()
    local logits = reference(batch.token, batch.done, mn.keep(learner.state))
    local loss = ops.mean(ops.pick(ops.log_softmax(logits), batch.answer)) * -1
    loss:backward()
    adam:step()
    local want = loss:item()
    mn.clear_tape()
    local made, fine = learner:advance()
    t.eq(made, 16)
    t.ok(fine)
    t.near(learner.losses.loss, want, 1e-5)
    local mine = learner.model:state_dict()
    for name, p in pairs(reference:state_dict()) do
      for i = 0, p:size() - 1 do t.near(mine[name]:data()[i], p:data()[i], 2e-4, name) end
    end
  end
end)

t.test("carry=0 begins every batch with an empty memory", function()
  local losses = {}
  for _, carry in ipairs { 1, 0 } do
    local learner = learner_of({ lr = 0, carry = carry }, letters_task(), "gru")
    for _ = 1, 3 do learner:advance() end
    losses[carry] = learner.losses.loss
    local sum, state = 0, learner.state[learner.model.core:state_names()[1]]
    for i = 0, state:size() - 1 do sum = sum + math.abs(state:data()[i]) end
    t.eq(sum > 0, carry == 1)
  end
  t.ok(math.abs(losses[0] - losses[1]) > 1e-5)
end)

t.test("the learning rate follows its schedule, counted in tokens", function()
  local learner = learner_of({ lr = 0.1, lr_schedule = "linear", warmup = 2, steps = 160 }, letters_task(), "gru")
  local seen = {}
  for n = 1, 10 do
    learner:advance()
    seen[n] = learner.optimiser.hyper_data[0]
  end
  t.near(seen[1], 0.05, 1e-7)
  for n = 2, 10 do t.near(seen[n], 0.1 * (1 - (n - 1) / 10), 1e-7, "update " .. n) end
end)

t.test("weights decay only where weight_decay says so; gradients are clipped to max_norm", function()
  local dataset = letters_task()
  local function moved(cfg)
    cfg.lr = 0.01
    local learner = learner_of(cfg, dataset, "gru")
    local before = mn.keep(learner.model.head.weight)
    learner:advance()
    local norm, sum, p = learner.optimiser:grad_norm(), 0, learner.model.head.weight:data()
    for i = 0, before:size() - 1 do sum = sum + math.abs(p[i] - before:data()[i]) end
    return sum, norm
  end
  local plain, norm = moved {}
  t.ok(norm > 1e-3 and moved { weight_decay = 0.5 } ~= plain)
  t.near(moved { max_norm = norm / 10, adam_eps = 1 }, moved { max_norm = 0, adam_eps = 10 } , 1e-5)
end)

t.test("what is evaluated and when; training is over where stop_score is reached; a NaN is told", function()
  local learner = learner_of({ eval_every = 48, eval_batches = 2, steps = 160, stop_score = 0.0 }, letters_task(), "gru")
  local m = {}
  t.ok(not learner:over() and learner:best() == nil)
  learner:advance()
  learner:metrics(m)
  t.ok(m["losses/loss"] and m["eval/loss"] == nil and m["charts/accuracy"] >= 0 and m["grad/norm"] > 0)
  learner:advance()
  learner:advance()
  learner:metrics(m)
  t.ok(m["eval/loss"] and m["eval/bits_per_character"] and learner:over() and learner:best() == -m["eval/loss"])
  t.near(m["eval/perplexity"], math.exp(m["eval/loss"]), 1e-9)
  learner.model.head.weight:data()[2] = 0 / 0
  local _, fine = learner:advance()
  t.ok(not fine and learner:find_nan():find "NaN" or learner:find_nan():find "finite", learner:find_nan())
end)

t.test("bad settings of the learner and the model", function()
  local dataset = letters_task()
  t.fails(function() learner_of({ lr = -1 }, dataset, "gru") end)
  t.fails(function() learner_of({ eval_every = 0 }, dataset, "gru") end)
  t.fails(function() learner_of({ lr_schedule = "sine" }, dataset, "gru") end)
  t.fails(function() mn.sequence_model { dataset = dataset } end)
  t.fails(function() mn.sequence_model { dataset = dataset, cores = 1 } end)
end)

-- ---- models of one size ----

t.test("sized: every memory comes within 6 % of the parameters that are wanted (widths go by its heads)", function()
  local dataset = mn.dataset("induction", { length = 16 })
  local function model(core) return mn.sequence_model { dataset = dataset, core = core } end
  for _, name in ipairs(require("mneme.base.registry").names "cores") do
    for _, wanted in ipairs { 1e5, 3e5 } do
      local spec = mn.sized({ name, n_layers = 2, d_in = 64 }, wanted, model)
      local count = nn.dry(function() return model(mn.core(spec)).module:count() end)
      t.near(count / wanted, 1, 0.06, name)
    end
  end
  t.eq(mn.sized({ "gru", d_model = 7 }, 1e5, model).d_model, 7)
  t.fails(function() mn.sized({ "gru", d_in = 64 }, 100, model) end)
end)

-- ---- whole runs ----

local function mneme(line) return shell.mneme(dir, line) end

local small = "run char_lm file=letters core=gru parameters=2000 d_embed=8 batch=2 length=8 eval_every=64 checkpoint_every=160 "

t.test("a run that was stopped and resumed has the numbers of one that was not; eval tells of it", function()
  local said = shell.fine(dir, small .. "steps=640 run=whole")
  t.ok(said:find "whole: gru on text, %d+ parameters" and said:find "accuracy 0%.%d+ %(the most frequent answer gives 0%.%d+%), loss %d", said)
  t.eq(select(2, mneme(small .. "steps=640 lr_schedule=constant run=constant")), 0)
  t.eq(select(2, mneme(small .. "steps=320 lr_schedule=constant run=half")), 0)
  shell.fine(dir, "run resume=half steps=640")
  local last = "/checkpoints/step-640.safetensors"
  local mine, other = safetensors.load(dir .. "/half" .. last).tensors, safetensors.load(dir .. "/constant" .. last).tensors
  t.eq(table.concat(tables.keys(mine), " "), table.concat(tables.keys(other), " "))
  t.ok(mine["model.embed.weight"] and mine["adam.hyper"] and mine["state.layers.0.h"], table.concat(tables.keys(mine), " "))
  for name, x in pairs(mine) do
    t.ok(ffi.string(x:data(), 4 * x:size()) == ffi.string(other[name]:data(), 4 * x:size()), name .. ": the same bits")
  end
  said = shell.fine(dir, "eval whole")
  local low, share, high = said:match "accuracy ([%d.]+)  %[([%d.]+), ([%d.]+)%]"
  t.ok(share and said:find "loss +[%d.]+  %+%- [%d.]+ nats" and said:find "perplexity" and said:find "bits per character", said)
  t.ok(tonumber(share) <= tonumber(low) and tonumber(low) <= tonumber(high), said)
  t.ok(mneme "eval whole split=valid length=16":find "of the valid part", said)
end)

t.test("a checkpoint that is a link to nowhere is no checkpoint", function()
  t.eq(select(2, mneme(small .. "steps=320 run=linked")), 0)
  os.execute(("ln -s /nowhere/at/all '%s/linked/checkpoints/step-999999.safetensors'"):format(dir))
  shell.fine(dir, "run resume=linked steps=384")
end)

t.test("a run of any memory can be evaluated, also where some of its keys lie idle", function()
  for _, line in ipairs { small:gsub("core=gru parameters=2000", "core=delta parameters=5000") .. "steps=64 run=idle",
    "run tmaze core=delta core.n_layers=1 core.d_model=8 core.d_head=4 core.d_ffn=8 hidden=8 num_envs=2 num_steps=16 "
      .. "corridor=3 steps=64 run=idle-agent" } do
    t.eq(select(2, mneme(line)), 0, line)
    shell.fine(dir, "eval " .. line:match "run=(%S+)" .. (line:find "tmaze" and " episodes=2" or ""))
  end
end)

t.test("eval of a run of sequences: what is wrong is told", function()
  for words, pattern in pairs {
    ["eval whole split=all"] = "eval: split=all, expected one of train, valid, test", ["eval whole batches=half"] = "batches=half, expected a whole number",
    ["eval whole lengths=9"] = "unknown setting of data set text 'lengths'; did you mean 'length'",
    ["eval whole file=other"] = "other: cannot be read", ["eval none"] = "there is no such run",
    ["eval whole file=shifted"] = "was trained on a text with other tokens", ["view whole out=x.png"] = "learns sequences %(text%), not episodes",
    [small:gsub("file=letters", "file=empty") .. "run=bad"] = "empty: is empty", [small .. "run=bad2 unit=letter"] = "unit=letter: expected one of",
  } do
    files.write(dir .. "/empty", {})
    files.write(dir .. "/shifted", { (table.concat(letters):gsub(".", function(c) return string.char(c:byte() + 1) end)) })
    local said, status = mneme(words)
    t.ok(status == 2 or status == 1, said)
    t.ok(said:find(pattern), words .. ": " .. said)
    t.ok(not said:find "traceback", said)
  end
end)

t.test("every experiment of sequences runs with quick=1, and its data sets are listed and explained", function()
  for _, name in ipairs { "recall", "listops", "char_lm file=letters" } do
    local said, status = mneme(("run %s quick=1 steps=1024 batch=2 eval_batches=1 parameters=2e4 run=%s"):format(name,
      name:match "^%w+"))
    t.eq(status, 0, said)
  end
  local listed = mneme "list datasets"
  for _, name in ipairs { "listops", "text", "mqar", "selective_copy", "induction" } do
    t.ok(listed:find("  " .. name .. " "), listed)
    local said = mneme("help " .. name)
    t.ok(said:find("mn.dataset(\"" .. name .. "\")", 1, true) and said:find "batch +32", said)
  end
end)

t.test("an error of a data set of one's own loses nothing: the resume has the bits of an undisturbed training", function()
  files.make_folder(dir .. "/datasets")
  files.write(dir .. "/datasets/mine.lua", { [[
local calls = 0
local function build(cfg)
  return { tokens = 8, classes = 4, length = 6, draw = function(random, token, answer)
    calls = calls + 1
    if calls == tonumber(os.getenv "BREAKS") then error "the file is gone" end
    for p = 0, 5 do token[p] = random:below(8) end
    answer[5] = token[0] % 4
  end }
end
return { doc = "the first token, asked last", config = {}, about = {}, build = build }
]] })
  files.write(dir .. "/fit.lua", { [[
local mn = require "mneme"
local cfg = mn.config { steps = 6000, seed = 1, eval_every = 2000 }
local dataset = mn.dataset("mine", { batch = 8, seed = cfg.seed })
local model = mn.sequence_model { dataset = dataset, core = mn.core("gru", { d_in = 8, d_model = 8 }) }
return mn.supervised(cfg, dataset, model):train()
]] })
  shell.fine(dir, "run fit.lua run=calm")
  for calls, step in pairs { [400] = 2016, [508] = 2208, [1300] = 6000 } do           -- in an evaluation, in a batch, in the last evaluation
    local run = "run" .. calls
    local said, status = shell.run(dir, ("BREAKS=%d '%s' run fit.lua run=%s"):format(calls, shell.program, run))
    t.eq(status, 1, said)
    t.ok(said:find "mine.lua:%d+: the file is gone", said)
    said = shell.fine(dir, "run resume=" .. run)
    t.ok(said:find("going on at step " .. step, 1, true) and said:find "on the validation part", said)
    if step < 6000 then t.ok(shell.fine(dir, "diff calm " .. run):find("checkpoints at step 6000 hold equal tensors", 1, true)) end
    t.eq(files.text(("%s/%s/outcome.json"):format(dir, run)), files.text(dir .. "/calm/outcome.json"))
  end
end)

os.execute("rm -rf " .. dir)
