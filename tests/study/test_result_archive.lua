-- test_result_archive.lua -- finished runs in a file: written, taken elsewhere and not run again, named in the report; what is
-- another run, damaged or another study's is refused.  Numbers that a study measures of finished runs, and two such
-- measures: what linear memories divide by, and what the same weights say with other options.
local t = require "tests.harness"
local denominators = require "mneme.insight.measure.denominators"
local files = require "mneme.base.files"
local study_folder = require "mneme.lab.study.study_folder"
local json = require "mneme.base.json"
local result_archive = require "mneme.lab.study.result_archive"
local mn = require "mneme"
local stepper = require "mneme.insight.episodes.stepper"
local weight_transplant = require "mneme.insight.measure.weight_transplant"
local shell = require "tests.support.shell"

local here = shell.folder()
local function path(name) return here .. "/" .. name end

local function write(name, text)
  files.write(path(name), { text })
  return path(name)
end

local function mneme(words)
  local said, status = shell.mneme(here, words)
  return status, said
end

-- Each run leaves a mark; its metric tells the settings that it was run with.
local marked = write("marked.lua", ([[
local mn = require "mneme"
return mn.study {
  title = "marks", axes = { a = { 1, 2 } }, settings = { steps = 10, b = 3 }, seeds = { 2 },
  run = function(cfg)
    local f = assert(io.open("HERE/marks", "a"))
    f:write("x")
    f:close()
    return { score = cfg.a * cfg.b + cfg.seed, line = { x = { 1, 2 }, y = { cfg.a, cfg.seed } } }
  end,
}
]]):gsub("HERE", here))

-- How often a run was run since the last time.
local function marks()
  local n = files.is_file(path "marks") and #files.read(path "marks") or 0
  os.remove(path "marks")
  return n
end

local function sweep(words) return mneme(("sweep %s estimate=0 jobs=2 %s"):format(marked, words)) end

t.test("kept runs are taken, not lived again, and told as such; others are lived", function()
  local status, said = sweep("seeds=1 run=" .. path "first")
  t.eq(status, 0, said) t.eq(marks(), 2)
  status, said = mneme(("report %s export=%s"):format(path "first", path "kept.jsonl"))
  t.eq(status, 0, said) t.ok(said:find("kept.jsonl: 2 runs", 1, true), said)
  status, said = sweep(("run=%s import=%s"):format(path "second", path "kept.jsonl"))
  t.eq(status, 0, said) t.ok(said:find "2 of the 2 runs" and said:find "4 of 4 runs done", said)
  t.eq(marks(), 2)
  local study = study_folder.load(path "second")
  for _, c in ipairs(study.runs) do
    t.eq(c.status, "done")
    t.eq(c.metrics.score, tonumber(c.labels.a) * 3 + c.seed)
    t.eq(c.series.line.y[2], c.seed)
    t.eq(c.kept ~= nil, c.seed == 1)
    if c.kept then t.eq(c.kept.commit, c:info().commit) end
  end
  t.eq(mneme("report " .. path "second"), 0)
  local page, taken = files.read(path "second/report.html"), 0
  for _ in page:gmatch "taken from [^<]*kept%.jsonl, commit" do taken = taken + 1 end
  t.eq(taken, 2) t.ok(page:find("imported from a file of finished runs: 2.", 1, true))
  status, said = sweep(("run=%s import=%s"):format(path "second", path "kept.jsonl"))
  t.eq(status, 0, said) t.ok(said:find "0 of the 2 runs", said) t.eq(marks(), 0)
end)

t.test("runs whose core got its width by size= are taken, and not where another size is asked for", function()
  local script = write("sized.lua", [[
local mn = require "mneme"
return mn.study {
  title = "sizes", axes = { core = { { "agalite", label = "agalite", n_layers = 1, d_model = 16, d_head = 8, d_ffn = 16 }, "gtrxl", "gru" } }, seeds = { 1 },
  settings = { steps = 64, num_envs = 2, num_steps = 16, hidden = 8, learner = "a2c", threads = 1 },
  run = function(cfg)
    local env = mn.env("tmaze", { corridor = 2, num_envs = cfg.num_envs, seed = cfg.seed })
    return mn.learner(cfg, env, mn.agent { env = env, core = cfg.core, hidden = cfg.hidden }):train()
  end,
  metrics = { score = { "success" } },
}
]])
  local function sized(words) return mneme(("sweep %s estimate=0 jobs=1 %s"):format(script, words)) end
  local status, said = sized("run=" .. path "sizes")
  t.eq(status, 0, said)
  t.eq(mneme(("report %s export=%s"):format(path "sizes", path "sizes.jsonl")), 0)
  status, said = sized(("run=%s import=%s"):format(path "sizes2", path "sizes.jsonl"))
  t.eq(status, 0, said) t.ok(said:find("3 of the 3 runs", 1, true), said)
  status, said = sized(("size=published run=%s import=%s"):format(path "sizes3", path "sizes.jsonl"))
  t.eq(status, 2) t.ok(said:find("size is published, there it was script", 1, true), said)
  script = write("sized_train.lua", [[
return require("mneme").study {
  title = "sizes", of = "train", axes = { core = { "gru", "lstm" }, size = { 3000 } }, seeds = { 1 }, metrics = { score = { "success" } },
  settings = { env = "repeat_first", steps = 64, num_envs = 2, num_steps = 16, hidden = 8, learner = "a2c", threads = 1 },
}
]])
  status, said = sized("run=" .. path "sizes4")
  t.eq(status, 0, said)
  t.eq(mneme(("report %s export=%s"):format(path "sizes4", path "sizes4.jsonl")), 0)
  status, said = sized(("run=%s import=%s"):format(path "sizes5", path "sizes4.jsonl"))
  t.eq(status, 0, said) t.ok(said:find("2 of the 2 runs", 1, true), "the script has a width of its own for gru, which size= replaced: " .. said)
end)

t.test("a file grows by the runs that are done, and keeps those it has", function()
  t.eq(mneme(("sweep %s estimate=0 jobs=2 seeds=3..3 run=%s"):format(marked, path "third")), 0)
  t.eq(result_archive.write(path "kept.jsonl", study_folder.load(path "third"), {}), 4)
  local study, lines = study_folder.load(path "second"), {}
  for line in files.read(path "kept.jsonl"):gmatch "[^\n]+" do lines[#lines + 1] = json.decode(line).run end
  t.eq(table.concat(lines, " "), "a=1,seed=1 a=1,seed=3 a=2,seed=1 a=2,seed=3")
  result_archive.write(path "again.jsonl", study, {})
  local before = files.read(path "again.jsonl")
  result_archive.write(path "again.jsonl", study, {})
  t.eq(files.read(path "again.jsonl"), before)
  files.remove(study_folder.run_path(path "third", "a=1,seed=3") .. "/result.json")
  t.eq(result_archive.write(path "open.jsonl", study_folder.load(path "third"), {}), 1)
  study_folder.write_result(study_folder.run_path(path "third", "a=1,seed=3"), { status = "failed", exit = 3, error = "a NaN", seed = 3 })
  local status, said = mneme(("report %s export=%s"):format(path "third", path "failed.jsonl"))
  t.eq(status, 0, said) t.ok(said:find("failed.jsonl: 1 runs without the 1 that failed", 1, true), said)
  marks()
end)

t.test("a run that has begun here, or is being trained, is not touched", function()
  t.eq(sweep("seeds=1 run=" .. path "begun"), 0)
  local run = study_folder.run_path(path "begun", "a=1,seed=1")
  files.remove(run .. "/result.json")
  files.make_folder(run .. "/checkpoints")
  files.write(run .. "/checkpoints/step-5.safetensors", { "half-trained" })
  local function all(at)
    local names = files.list(at)
    for _, name in ipairs(files.list(at .. "/checkpoints")) do names[#names + 1] = name end
    return table.concat(names, " ")
  end
  local before = all(run)
  files.lock(run .. "/lock")                                 -- as a worker that trains it has it
  local status, said = sweep(("seeds=1 run=%s import=%s"):format(path "begun", path "kept.jsonl"))
  t.eq(status, 1, said) t.ok(said:find "a=1,seed=1: it has begun here", said)
  t.eq(all(run), before) t.eq(study_folder.result(run), nil)
  io.open(run .. "/lock"):close()                            -- which frees it
  status, said = sweep(("seeds=1 run=%s import=%s"):format(path "begun", path "kept.jsonl"))
  t.eq(status, 1, said) t.ok(said:find "a=1,seed=1: it has begun here", said)
  t.eq(all(run), before)
  files.remove_folder(run)
  status, said = sweep(("seeds=1 run=%s import=%s"):format(path "begun", path "kept.jsonl"))
  t.eq(status, 0, said) t.ok(study_folder.result(run).kept)
  marks()
end)

t.test("what most runs have stands once: any records come back as they were, in fewer bytes", function()
  math.randomseed(5)
  local function leaf()
    local kinds = { true, false, 3, 0.1, 1e300, "", "null", "a b", json.array {}, json.array { 1, json.null, 2 }, {} }
    return kinds[math.random(#kinds)]
  end
  local function random(depth)
    local of = {}
    for _, key in ipairs { "a", "b", "c", "run", "usual" } do
      local kind = math.random(4)
      if kind > 1 then of[key] = (kind == 2 and depth > 0) and random(depth - 1) or leaf() end
    end
    return of
  end
  local usual, lines, bytes = random(2), {}, 0
  for i = 1, 60 do
    local info = json.decode(json.encode(usual))
    info.config = math.random(3) == 1 and random(1) or { lr = 0.1, core = { name = "gru", width = i % 7 == 0 and i or 3 } }
    info.more = math.random(5) == 1 and random(2) or usual
    lines[#lines + 1] = json.encode { run = "a=" .. i, study = "marked", info = info, metrics = { score = i / 3 } }
    bytes = bytes + #lines[i] + 1
  end
  local at = write("random.jsonl", table.concat(lines, "\n") .. "\n")
  local before = result_archive.lines(at)
  result_archive.write(at, { path = path "nothing", info = { script = "marked.lua" }, runs = {} }, {})
  local after, n = result_archive.lines(at), 0
  for name, entry in pairs(before) do n = n + 1 t.eq(json.encode(after[name]), json.encode(entry), name) end
  t.eq(n, 60)
  t.ok(#files.read(at) < 0.7 * bytes, ("%d of %d bytes"):format(#files.read(at), bytes))
end)

t.test("other settings, damaged files and other studies are refused", function()
  local status, said = sweep(("b=4 run=%s import=%s"):format(path "fourth", path "kept.jsonl"))
  t.eq(status, 2) t.ok(said:find "b is 4, there it was 3", said) t.eq(marks(), 0)
  for text, what in pairs { ["{"] = "line 1:1:", ['{"run": 3}'] = "line 1: no run", ["[]"] = "no run",
    ['{"run": "a", "info": {"config": {}}, "metrics": {"x": "y"}}'] = "no run",
    ['{"run": "a", "info": {"config": {}}, "metrics": {}, "curves": {"step": 1}}'] = "no run",
    ['{"run": "a", "info": {"config": {}}, "metrics": {}, "resources": 5}'] = "no run" } do
    status, said = sweep(("run=%s import=%s"):format(path "fourth", write("bad.jsonl", text .. "\n")))
    t.eq(status, 1, text) t.ok(said:find(what, 1, true), said)
  end
  status, said = sweep(("run=%s import=%s"):format(path "fourth", path "nowhere.jsonl"))
  t.eq(status, 1) t.ok(said:find "nowhere.jsonl", said)
  t.raises(function()
    result_archive.write(write("other.jsonl", (files.read(path "kept.jsonl"):gsub('"marked"', '"else"'))), study_folder.load(path "first"), {})
  end, "other.jsonl holds runs of else: a=")
  status, said = sweep(("seeds=7..7 run=%s import=%s"):format(path "fourth", path "kept.jsonl"))
  t.eq(status, 0, said) t.ok(said:find "0 of the 4 runs", said) t.eq(marks(), 2)
end)

t.test("an option of the core that was the default then, and is given now", function()
  local function script(options)
    return write("cored.lua", ([[
local mn = require "mneme"
return mn.study { axes = { core = { { "gru", d_model = 8, %s label = "small" } } }, settings = { steps = 64 }, seeds = { 1 },
  run = function(cfg)
    local env = mn.env("tmaze", { corridor = 3, num_envs = 2, seed = cfg.seed })
    return mn.a2c(cfg, env, mn.agent { env = env, core = cfg.core, hidden = 8 }):train()
  end }
]]):format(options))
  end
  local function again(options, to)
    return mneme(("sweep %s estimate=0 list=0 run=%s import=%s"):format(script(options), path(to), path "cored.jsonl"))
  end
  local status, said = mneme(("sweep %s estimate=0 run=%s"):format(script "", path "cored"))
  t.eq(status, 0, said)
  t.eq(mneme(("report %s export=%s"):format(path "cored", path "cored.jsonl")), 0)
  status, said = again("n_layers = 4,", "cored4")
  t.eq(status, 2) t.ok(said:find "core.n_layers is 4, there it was 1", said)
  status, said = again("n_layers = 1,", "cored1")
  t.eq(status, 0, said) t.ok(said:find "1 of the 1 runs", said)
end)

-- ---- runs of another experiment ----

local learned = write("learned.lua", [[
local mn = require "mneme"
local denominators = require "mneme.insight.measure.denominators"
local stepper = require "mneme.insight.episodes.stepper"
return mn.study {
  title = "learned", of = "tmaze", axes = { core = { { "galite", n_layers = 1, d_model = 16, d_head = 8, d_ffn = 16, label = "galite" } } },
  settings = { steps = 4e5, num_envs = 16, num_steps = 16, hidden = 16, corridor = 3, threads = 1, lr = 1e-3 }, seeds = { 1 },
  measure = function(path) return denominators.ask(stepper.from_run(path, { num_envs = 2 }), { steps = 10 }) end,
  figures = { { "curves", y = "charts/score", by = "core" } }, metrics = { score = { "success" }, negative = { "s.q below 0" } },
}
]])

t.test("a run of another experiment: measured when it is done; its curve is thinned and comes back", function()
  local status, said = mneme(("sweep %s estimate=0 jobs=1 steps=40000 run=%s"):format(learned, path "whole"))
  t.eq(status, 0, said)
  local c = study_folder.load(path "whole").runs[1]
  t.ok(c.metrics.near_zero >= 0 and c.metrics.near_zero < 1) t.eq(c.metrics.negative, 0) t.ok(c.metrics.read > 0 and c.metrics.score > 0)
  local all = c:curves()["charts/score"]
  t.eq(mneme(("report %s export=%s"):format(path "whole", path "runs.jsonl")), 0)
  status, said = mneme(("sweep %s estimate=0 jobs=1 steps=40000 run=%s import=%s"):format(learned, path "back", path "runs.jsonl"))
  t.eq(status, 0, said)
  local back = study_folder.load(path "back").runs[1]
  local curve = back:curves()["charts/score"]
  t.eq(curve.n, all.n) t.eq(curve.x[curve.n], all.x[all.n]) t.near(curve.y[curve.n], all.y[all.n], 1e-5)
  t.eq(back:curves()["charts/SPS"], nil) t.eq(back:curves()["grad/norm"], nil)
  for name, value in pairs(c.metrics) do t.eq(back.metrics[name], value) end
  t.eq(mneme("report " .. path "back"), 0)
  t.ok(files.read(path "back/report.html"):find "<svg")
end)

t.test("each long curve becomes a hundred points, the last among them", function()
  local rows = {}
  for i = 1, 1003 do rows[i] = json.encode { step = 10 * i, ["charts/score"] = i, ["charts/SPS"] = i % 2 == 0 and 5 or nil } .. "\n" end
  os.execute(("cp -r '%s' '%s'"):format(path "whole", path "long"))
  local study = study_folder.load(path "long")
  files.write(study.runs[1].path .. "/metrics.jsonl", rows)
  result_archive.write(path "long.jsonl", study, { "charts/score", "charts/SPS" })
  local curves = json.decode((files.read(path "long.jsonl"):gsub("\n", ""))).curves
  local n, count = #curves.step, { ["charts/score"] = 0, ["charts/SPS"] = 0 }
  for name in pairs(count) do
    t.eq(#curves[name], n)
    for _, v in ipairs(curves[name]) do if v ~= json.null then count[name] = count[name] + 1 end end
    t.eq(count[name], 100, name)
  end
  t.eq(curves.step[n], 10030) t.eq(curves["charts/score"][n], 1003) t.eq(curves["charts/SPS"][n], json.null)
  t.eq(curves.step[n - 1], 10020) t.eq(curves["charts/SPS"][n - 1], 5)
end)

t.test("measure is for runs of another experiment, and gives finite numbers", function()
  t.fails(function() mn.study { run = function() end, measure = function() end } end)
  for key, value in pairs { [2] = 4, quik = 3, [0] = 1 } do          -- seeds says how many, and lists none
    t.raises(function() mn.study { run = function() end, seeds = { 3, [key] = value } } end, "seeds%[" .. key .. "%]")
  end
  local bad = write("bad.lua", files.read(learned):gsub("return denominators.ask%b()", "return { x = 0 / 0 }"))
  local status, said = mneme(("sweep %s estimate=0 jobs=1 attempts=1 steps=512 run=%s"):format(bad, path "bad"))
  t.eq(status, 1) t.ok(said:find "x = nan, expected a finite number", said)
end)

-- ---- what is divided by ----

local function agent_of(core)
  for key, value in pairs { n_layers = 2, d_model = 32, d_head = 8, d_ffn = 16 } do core[key] = value end
  local env = mn.env("tmaze", { corridor = 8, num_envs = 4, seed = 1 })
  mn.manual_seed(1)
  return stepper.new(env, mn.agent { env = env, core = mn.core(core), hidden = 16 }, { seed = 1 })
end

t.test("relu leaves nothing to divide by about once in 2^eta, elu+1 never; a signed map crosses 0", function()
  local relu = denominators.ask(agent_of { "galite", eta = 2 }, { steps = 200 })
  t.ok(relu.near_zero > 0.1 and relu.near_zero < 0.5, relu.near_zero) t.eq(relu.negative, 0)
  local elu = denominators.ask(agent_of { "galite", feature = "elu1" }, { steps = 100 })
  t.eq(elu.near_zero, 0) t.eq(elu.negative, 0)
  local signed = denominators.ask(agent_of { "galite", feature = "identity" }, { steps = 100 })
  t.ok(signed.negative > 0.2 and signed.negative < 0.8, signed.negative) t.ok(signed.read > relu.read)
  t.eq(denominators.ask(agent_of { "galite", feature = "elu1" }, { steps = 20, within = 1e9 }).near_zero, 1)
  t.fails(function() denominators.ask(agent_of { "galite", normalise = false }, { steps = 1 }) end)
end)

t.test("s.q is the key's product with the query after one step of a memory that only adds", function()
  local p = agent_of { "galite", feature = "identity", gate = "none" }
  p:forward()
  local sum, all, H, d = 0, 0, 4, 8
  for b = 0, 3 do
    local probes = p:snapshot(b).probes
    for layer = 0, 1 do
      local k, q = probes["layers." .. layer .. ".k"].values, probes["layers." .. layer .. ".q"].values
      for head = 0, H - 1 do
        local dot = 0
        for i = head * d, head * d + d - 1 do dot = dot + k[i] * q[i] end
        all, sum = all + 1, sum + (dot < 0 and 1 or 0)
      end
    end
  end
  t.eq(denominators.ask(agent_of { "galite", feature = "identity", gate = "none" }, { steps = 1 }).negative, sum / all)
end)

t.test("the released form at r = 1 and r = 2 is one function; the exact series is not", function()
  local config = study_folder.load(path "whole").runs[1].path
  t.eq(weight_transplant.difference(config, {}, {}), 0)
  for form, same in pairs { code = true, cossin = false } do
    local run = path("run-" .. form)
    local status, said = mneme(("run tmaze core=agalite core.form=%s core.n_layers=1 core.d_model=16 core.d_head=8 corridor=3 steps=2048 run=%s")
      :format(form, run))
    t.eq(status, 0, said)
    local d = weight_transplant.difference(run, { r = 1, eps = 1e-12 }, { r = 2, eps = 1e-12 })
    t.ok(same and d < 1e-6 or not same and d > 1e-3, ("%s: %g"):format(form, d))
  end
end)
