-- test_compare.lua -- mneme compare: runs with equal settings stand together, what differs is told, numbers are those of
-- the logs; folders that are no runs, and runs of different environments.
local t = require "tests.harness"
local compare = require "mneme.commands.compare"
local files = require "mneme.base.files"
local study_folder = require "mneme.lab.study.study_folder"
local json = require "mneme.base.json"
local mn = require "mneme"
local outcome = require("mneme.runs.run_folder").outcome
local plain_runs = require "mneme.lab.reports.plain_runs"
local settings_diff = require "mneme.lab.study.settings_diff"
local shell = require "tests.support.shell"
local terminal = require "mneme.base.terminal"

local here = shell.folder()

-- A run written by hand: its log has a score that ends at `last`.
local function run(name, seed, last, more)
  local path = here .. "/" .. name
  local config = { seed = seed, lr = 0.1, core = { name = "gru", d_model = 8 }, threads = seed }
  for key, value in pairs(more and more.config or {}) do config[key] = value end
  files.make_folder(path)
  files.write(path .. "/config.json", { json.encode { config = config, seed = seed, env = more and more.env or "tmaze-v0", parameters = 100,
    commit = more and more.commit, values_from = more and more.values_from } })
  local lines = {}
  for i = 1, last and 5 or 0 do
    lines[i] = json.encode { step = 10 * i, ["charts/score"] = last * i / 5, ["charts/SPS"] = 5, ["losses/loss"] = 1 / i,
      ["charts/episodes"] = more and more.episodes } .. "\n"
  end
  files.write(path .. "/metrics.jsonl", { table.concat(lines) })
  files.write(path .. "/resources.json", { json.encode { wall_s = 10 * seed, cpu_s = 5, peak_mib = 2048 } })
  return path
end

local a = { run("a1", 1, 0.8), run("a2", 2, 0.9) }
local b = { run("b1", 1, 0.3, { config = { lr = 0.5 } }), run("b2", 2, 0.5, { config = { lr = 0.5 } }) }
local core = run("core", 1, 0.6, { config = { core = { name = "gru", d_model = 16 } } })

t.test("settings with dotted keys, parted into equal and other", function()
  local p = settings_diff.flat { lr = 1, core = { name = "gru", eta = 4 }, sizes = json.array { 1, 2 } }
  t.eq(p.core, "gru") t.eq(p["core.eta"], 4) t.eq(p.sizes, "1,2") t.eq(p.lr, 1)
  local same, other = settings_diff.divide { p, settings_diff.flat { lr = 1, core = { name = "gru" } } }
  t.eq(table.concat(same, " "), "core lr") t.eq(table.concat(other, " "), "core.eta sizes")
end)

t.test("seeds of the same settings are a group with an interval", function()
  local text = compare.text { a[1], b[1], b[2], a[2] }
  t.ok(text:find "\n  B  %S*b1 and 1 more  seeds 1 2\n", text)
  t.ok(text:find("settings that differ\n      A    B\n  lr  0.1  0.5\n", 1, true), text)
  t.ok(not text:find "core%.d_model" and not text:find "threads" and not text:find "losses/loss", text)
  local mean, low, high = mn.stats.bounded_interval({ 0.8, 0.9 }, 0, 1)
  t.ok(text:find(("  charts/score  %.3g (%.3g to %.3g)"):format(mean, low, high), 1, true), text)
  local d, lo, hi, p = mn.stats.paired_t_interval({ 0.3, 0.5 }, { 0.8, 0.9 })
  t.ok(text:find(("  B - A  %.3g (%.3g to %.3g)  2 equal seeds  p %.3f"):format(d, lo, hi, p), 1, true), text)
  t.ok(text:find "wall%-clock time +15 s" and text:find("2 GiB", 1, true), text)
  t.ok(compare.text({ a[1] }, { all = true }):find "losses/loss")
  for runs, over in pairs { [{ a[1] }] = false, [{ a[1], b[1] }] = false, [{ a[1], a[2], b[1] }] = true } do
    t.eq(compare.text(runs):find("intervals over seeds", 1, true) ~= nil, over)          -- one seed has no interval
  end
end)

t.test("who solved it is counted by the score that stopped a run, not by the log's last line", function()
  local stopped = {}
  for seed, score in ipairs { 0.97, 0.98, 0.5 } do
    stopped[seed] = run("stopped" .. seed, seed, seed == 2 and 0.99 or 0.96, { config = { learner = { name = "a2c", stop_score = 0.97 } } })
    files.write(stopped[seed] .. "/result.json", { json.encode { status = "done", metrics = { score = score } } })
  end
  t.ok(compare.text(stopped):find("first reached by 2 of 3 seeds", 1, true), compare.text(stopped))
  files.remove(stopped[1] .. "/result.json")
  local text = compare.text(stopped)
  t.ok(text:find "first reached by 1 of 3 seeds [^\n]*, by the score since the last log line\n", "by the log where a run recorded no score: " .. text)
  outcome.write(stopped[1], "stop_score", 50, { score = 0.97 })
  text = compare.text(stopped)
  t.ok(text:find "first reached by 2 of 3 seeds [^\n]*%)\n", "or by what its folder says: " .. text)
  for _, path in ipairs(stopped) do files.remove_folder(path) end
end)

t.test("a report on runs calls the last hundred episodes so only where all runs recorded them", function()
  local paths = { run("hundred1", 1, 0.96), run("hundred2", 2, 0.99) }
  local function numbers()
    local study, list = plain_runs.study(paths), {}
    for i, r in ipairs(study.runs) do list[i] = r.metrics.score end
    return plain_runs.spec(study).metrics.score[1] .. ": " .. table.concat(list, " ")
  end
  t.eq(numbers(), "success, since the last log line: 0.96 0.99")
  outcome.write(paths[1], "stop_score", 50, { score = 0.975, mean_return = 0.5 })
  t.eq(numbers(), "success, since the last log line: 0.96 0.99", "not two kinds of numbers in one figure")
  outcome.write(paths[2], "steps", 50, { score = 0.9, mean_return = 0.5 })
  t.eq(numbers(), "success, mean of the last 100 episodes: 0.975 0.9")
  for _, path in ipairs(paths) do files.remove_folder(path) end
end)

t.test("supervised runs: what evaluations told, and which environment it was", function()
  local dir = shell.folder()
  files.write(dir .. "/letters", { ("the quick brown fox jumps over the lazy dog. "):rep(60) })
  local words = "file=letters core.n_layers=1 parameters=2000 d_embed=8 batch=2 length=8 eval_every=64 eval_batches=4 steps=320"
  for _, seed in ipairs { 1, 2 } do
    for _, name in ipairs { "gru", "lstm" } do
      local said, status = shell.mneme(dir, ("run char_lm %s core=%s seed=%d run=%s%d"):format(words, name, seed, name, seed))
      t.eq(status, 0, said)
    end
  end
  local told = shell.mneme(dir, ("run recall quick=1 pairs=2 core=gru core.d_model=8 batch=2 steps=256 eval_batches=1 run=recall"))
  t.ok(told:find "256 steps", told)
  local said, status = shell.mneme(dir, "compare gru1 gru2 lstm1 lstm2")
  t.eq(status, 0, said)
  t.ok(said:find "  A  gru1 and 1 more +seeds 1 2\n  B  lstm1 and 1 more +seeds 1 2\n", said)
  t.ok(said:find "eval/bits_per_character, from step %d+ to 320, between" and said:find "difference in eval/bits_per_character", said)
  local mean, low, high = said:match "eval/accuracy +([%d.]+) %(([%d.e-]+) to ([%d.]+)%)"
  t.ok(mean and tonumber(low) >= 0 and tonumber(high) <= 1, said)
  t.ok(not said:find "runs of different environments", said)
  t.ok(shell.mneme(dir, "compare gru1 recall"):find "runs of different environments: mqar, text")
  os.execute("rm -r '" .. dir .. "'")
end)

t.test("an interval of counts ends at 0", function()
  local text = compare.text { run("few1", 1, 0.5, { episodes = 10 }), run("few2", 2, 0.6, { episodes = 90 }) }
  t.ok(text:find "charts/episodes +50 %(0 to %d+%)", text)
end)

t.test("curves are as wide as the terminal leaves room for", function()
  local old = terminal.columns
  local last = 0
  local ok, problem = pcall(function()
    for _, width in ipairs { 40, 60, 70, 80, 200 } do
      terminal.columns = function() return width end
      local text = compare.text { a[1], a[2], b[1], b[2] }
      local first = text:match "\n  A  ([\226\150\129-\136]+)  0%.%d+ %("
      local letters = #(first or "") / 3
      t.ok(letters >= math.max(10, last) and letters <= 48, ("%d after %d at %d: %s"):format(letters, last, width, text))
      last = letters
      for line in text:gmatch "[^\n]*\226\150[^\n]*" do t.ok(terminal.letters(line) <= width, ("%d: %s"):format(width, line)) end
    end
  end)
  terminal.columns = old
  t.ok(ok, problem)
  t.eq(last, 48)
end)

t.test("curves lie under each other, on one scale", function()
  local text = compare.text { a[1], b[1] }
  t.ok(text:find("charts/score, from step 10 to 50, between 0.06 and 0.8", 1, true), text)
  local first, second = text:match "\n  A  (%S+)  0%.8\n  B  (%S+)  0%.3\n"
  t.ok(first and #first == 48 * 3 and #second == 48 * 3, text)
  t.ok(first:sub(-3) == "█" and second:sub(1, 3) == "▁", text)             -- A ends on top, B begins at the bottom
  local late = run("late", 2, 0.8)                        -- its only point lies beyond: no place has the group's mean
  files.write(late .. "/metrics.jsonl", { json.encode { step = 5000, ["charts/score"] = 1 } .. "\n" })
  text = compare.text { a[1], late }
  t.ok(text:find("charts/score, from step 10 to 5000\n", 1, true), text)
  t.ok(compare.text({ a[1], b[1] }, { by = "losses/loss" }):find("losses/loss, from step 10 to 50, between 0.2 and 1", 1, true))
end)

t.test("a line goes on to where its last seed ends: a run that reached its stop_score keeps its last value", function()
  local list = { run("early", 1, 0.8, { config = { lr = 0.7 } }), run("slow", 2, 0.4, { config = { lr = 0.7 } }) }
  files.write(list[1] .. "/metrics.jsonl", { json.encode { step = 10, ["charts/score"] = 0.8 } .. "\n" })
  t.ok(compare.text(list):find("charts/score, from step 10 to 50, between 0.44 and 0.44", 1, true), compare.text(list))
  outcome.write(list[1], "stop_score", 10, { score = 0.8 })
  t.ok(compare.text(list):find("charts/score, from step 10 to 50, between 0.44 and 0.6", 1, true), compare.text(list))
end)

t.test("the same seed again is another run; many groups stand as rows", function()
  local twin = run("twin", 1, 0.7)
  local text = compare.text { a[1], twin }
  t.ok(text:find("none: these are runs of the same settings", 1, true) and text:find("B - A  -0.1  1 equal seed", 1, true), text)
  local list = {}
  for i = 1, 6 do list[i] = run("many" .. i, 1, i / 10, { config = { lr = i } }) end
  list[7] = run("many7", 1, 0.7, { config = { lr = 7 } })
  text = compare.text(list)
  t.ok(text:find "\n  A  [\128-\255]+  0%.1\n  B  ", "a line each: " .. text)
  t.ok(text:find("settings that differ\n     lr\n  A  1\n", 1, true) and text:find("\n  F  6\n", 1, true), text)
end)

t.test("a study: its runs without their seeds", function()
  files.make_folder(here .. "/study/runs")
  local runs = {}
  for i, lr in ipairs { 1, 1, 2 } do
    local name = ("lr=%d,seed=%d"):format(lr, i)
    run("study/runs/" .. name, i, 0.5, { config = { lr = lr }, commit = "commit " .. i })      -- gone on with, later
    runs[i] = { name = name, labels = { lr = tostring(lr) }, seed = i, words = {} }
  end
  runs[4] = { name = "lr=2,seed=9", labels = { lr = "2" }, seed = 9, words = {} }
  files.write(here .. "/study/study.json", { json.encode { script = "x.lua", settings = "", runs = runs } })
  local text = compare.text { here .. "/study/" }
  t.ok(text:find "  A  %S*study: lr=1  seeds 1 2\n" and text:find "  B  %S*study: lr=2 +seed 3\n", text)
  t.ok(text:find "commit +several +commit 3", text)
  t.ok(text:find("other seeds", 1, true), text)
end)

t.test("seeds that all differ by the same: no interval, and signs alone decide, as in a report", function()
  local x, y = {}, {}
  for seed = 1, 3 do
    x[seed] = run("even" .. seed, seed, 0.25 * seed)
    y[seed] = run("odd" .. seed, seed, 0.25 * seed - 0.125, { config = { lr = 9 } })
  end
  local text = compare.text { y[1], y[2], y[3], x[1], x[2], x[3] }
  t.ok(text:find("  B - A  0.125  3 equal seeds, which all differ by this  p 0.250", 1, true), text)
  text = compare.text { run("flat1", 1, 0.5), run("flat2", 2, 0.5),
    run("high3", 3, 0.75, { config = { lr = 8 } }), run("high4", 4, 0.75, { config = { lr = 8 } }) }
  t.ok(text:find "  B %- A  0%.25  other seeds%s*\n", text)
end)

t.test("runs without a study have a report with the usual figures", function()
  local text = files.read
  local function mneme(line)
    local said, status = shell.mneme(here, line)
    t.eq(status, 0, said)
    return said
  end
  local list = {}
  for seed = 1, 3 do
    run("p" .. seed, seed, 0.5 + seed / 100)
    run("q" .. seed, seed, 0.8 + seed / 50, { config = { lr = 9 } })
    list[#list + 1] = "p" .. seed .. " q" .. seed
  end
  local names = table.concat(list, " ")
  mneme("report " .. names .. " out=report.html figures=drawn")
  local drawn = files.list(here .. "/drawn")
  local svg
  for _, name in ipairs(drawn) do
    local figure = text(here .. "/drawn/" .. name)
    if name:find "%.svg$" and figure:find "while learning" then svg = figure end
  end
  t.ok(svg:find "<svg" and select(2, svg:gsub('class="line c%d"', "")) == 2 and select(2, svg:gsub('class="seed', "")) >= 4, svg:sub(1, 300))
  local page = text(here .. "/report.html")
  t.ok(page:find('id="figure-1"', 1, true) and page:find("lr=9", 1, true), "the usual figures")
  t.ok(not page:find("Not written yet", 1, true) and not page:find('class="card', 1, true), "empty parts are left out")
  t.ok(svg:find(">success while learning<", 1, true) or svg:find(">charts/score while learning<", 1, true), svg:sub(1, 300))
  t.ok(mneme("report p1"):find "p1/report.html")
end)

t.test("runs are called by the settings that somebody gave, where these name them apart", function()
  local function names(...)
    local seen = {}
    for i, r in ipairs(plain_runs.study { ... }.runs) do seen[i] = r.labels.run end
    return table.concat(seen, "; ")
  end
  local function given(name, lr, wide, by_hand)
    return run(name, 1, 0.5, { config = { lr = lr, core = { name = name, d_model = wide } }, values_from = by_hand })
  end
  local gru, lstm = given("gru", 0.1, 8, { core = "given" }), given("lstm", 0.2, 16, { core = "given" })
  t.eq(names(gru, lstm), "gru; lstm")
  t.eq(names(gru, given("rnn", 0.2, 8, { core = "given", lr = "given" })), "gru lr=0.1; rnn lr=0.2")
  local other = given("gru2", 0.3, 8, { core = "given" })
  files.write(other .. "/config.json", { (files.read(other .. "/config.json"):gsub('"gru2"', '"gru"')) })
  t.eq(names(gru, other), "lr=0.1; lr=0.3")                     -- nobody gave it, and nothing else differs
end)

t.test("a learner's default that another run was given is no difference, nor is an empty text", function()
  local one = run("ppo", 1, 0.5, { config = { learner = "ppo" } })
  local other = run("ppo2", 1, 0.5, { config = { learner = "ppo", gamma = 0.99, bootstrap_truncated = 1, max_norm = 2, norm_obs = 0, previous = "" } })
  local text = compare.text { one, other }
  local listed = text:match "settings that differ\n(.-)\n\n"
  t.ok(listed:find "max_norm +0.5 +2" and not listed:find "gamma" and not listed:find "previous", listed)
  t.ok(not listed:find "bootstrap" and not listed:find "norm_obs", listed)
  for _, path in ipairs { one, other } do files.remove_folder(path) end
end)

t.test("a default that was typed is no difference: of every learner, core, environment and data set", function()
  local learners = require "mneme.learn.learners"
  local function same(what, typed, info)
    local flat = { seed = 1, [what] = typed.name }
    local all = { seed = 1, [what] = typed.name }
    for key, value in pairs(typed.values) do all[typed.dotted and what .. "." .. key or key] = value == true and 1 or value == false and 0 or value end
    info.config = { [what] = not typed.dotted and typed.name or { name = typed.name } }
    local list = { { flat = flat, info = info }, { flat = all, info = info } }
    settings_diff.fill(list)
    for key, value in pairs(all) do t.eq(json.encode { flat[key] }, json.encode { value }, ("%s=%s: %s"):format(what, typed.name, key)) end
  end
  for name, defaults in pairs(learners.defaults()) do
    same("learner", { name = name, values = defaults }, { learner = { name = name, config = defaults } })
    same("learner", { name = name, values = defaults }, {})                                   -- of an earlier version
  end
  for _, name in ipairs(require("mneme.base.registry").names "cores") do
    local values = {}
    for key, value in pairs(require("mneme.models.cores").definition(name).config) do values[key] = type(value) ~= "boolean" and value or nil end
    same("core", { name = name, values = values, dotted = true }, { core = { name = name, config = values } })
  end
  same("env", { name = "tmaze", values = { corridor = 160 }, dotted = true }, { task = { corridor = 160, distractors = 6 } })
  same("data", { name = "recall", values = { pairs = 4 }, dotted = true }, { sequence_task = { settings = { pairs = 4 } } })
  local one, other = run("bare", 1, 0.5, { config = { learner = "ppo" } }), run("typed", 1, 0.5, { config = { learner = "ppo", gamma = 0.99, norm_obs = 0 } })
  local equal, text = require("mneme.commands.diff").runs(one, other)
  t.ok(equal and not text:find "gamma", text)
  local labels = {}
  for i, r in ipairs(plain_runs.study({ one, other }).runs) do labels[i] = r.labels.run end
  t.eq(labels[2], labels[1] .. " #2", "the same settings and seed once more")
  for _, path in ipairs { one, other } do files.remove_folder(path) end
end)

t.test("runs of one study are called as its points are", function()
  local path, runs = here .. "/labels", {}
  for i, label in ipairs { "floor", "hgate" } do
    runs[i] = { name = ("core=%s,corridor=20,seed=1"):format(label), labels = { core = label, corridor = "20" }, seed = 1, words = {} }
    local at = study_folder.run_path(path, runs[i].name)
    files.make_folder(at)
    files.write(at .. "/config.json", { json.encode { config = { core = { name = "galite", d_head = 8 * i, n_heads = i } }, seed = 1, env = "tmaze-v0" } })
    files.write(at .. "/metrics.jsonl", { json.encode { step = 10, ["charts/score"] = 0.5 }, "\n" })
  end
  study_folder.write_info(path, { script = "none.lua", settings = "", runs = runs })
  local list = plain_runs.study { study_folder.run_path(path, runs[1].name), study_folder.run_path(path, runs[2].name) }.runs
  t.eq(list[1].labels.run, "floor")
  t.eq(list[2].labels.run, "hgate")
  files.remove_folder(study_folder.run_path(path, runs[2].name))        -- a point that has not begun gives its name to no other
  list = plain_runs.study({ path }).runs
  t.eq(#list, 1)
  t.ok(list[1].labels.run:find "floor", list[1].labels.run)
  files.remove_folder(path)
end)

t.test("runs whose settings differ are no seeds of each other, however long their names are", function()
  local long = { corridor = 20, hidden = 64, gamma = 0.99, lambda = 0.95, max_norm = 0.5, value_coef = 0.5, zeta = 0.75 }
  local list = { run("long1", 1, 0.5, { config = long }) }
  long.zeta = 1
  list[2] = run("long2", 2, 0.5, { config = long })
  list[3] = run("long3", 3, 0.5, { config = long })
  list[4] = run("plain", 4, 0.5, { config = { corridor = 9, hidden = 8, gamma = 0.9, lambda = 0.9, max_norm = 1, value_coef = 1, zeta = 2 } })
  local seen, n = {}, 0
  for _, r in ipairs(plain_runs.study(list).runs) do
    if not seen[r.labels.run] then n = n + 1 end
    seen[r.labels.run] = (seen[r.labels.run] or 0) + 1
  end
  t.eq(n, 3, "as many points as settings")
  for label, count in pairs(seen) do t.eq(count, label:find "zeta=1$" and 2 or 1, label) end
  for _, path in ipairs(list) do files.remove_folder(path) end
end)

t.test("what cannot be compared", function()
  local empty = run("empty", 3)
  t.fails(function() compare.text { empty } end)
  t.ok(compare.text({ a[1], empty }):find "charts/score")
  t.raises(function() compare.text { here } end, "not a run")
  t.fails(function() compare.text({ a[1] }, { by = "charts/scores" }) end)
  local _, warning = compare.text { a[1], run("maze", 1, 0.5, { env = "memory_maze-v0" }) }
  t.eq(warning, "runs of different environments: memory_maze-v0, tmaze-v0")
  t.eq(select(2, compare.text { a[1], core }), nil)
  for line, what in pairs { ["compare"] = "which runs", ["compare nowhere"] = "no such run", ["compare a1 buy=1"] = "unknown setting of compare" } do
    local said, status = shell.mneme(here, line)
    t.eq(status, 2, line)
    t.ok(said:find(what, 1, true), said)
  end
  local said, status = shell.mneme(here, "compare a1 core by=charts/score")
  t.eq(status, 0) t.ok(said:find("core.d_model  8", 1, true), said)
end)

files.remove_folder(here)
