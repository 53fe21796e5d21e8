-- test_experiments.lua -- the scripts in experiments/: each is short, declares what it asks, has quick values, and lives;
-- of studies, what figures, claims and references name is there in what a run gives.
local t = require "tests.harness"
local claims = require "mneme.lab.study.claims"
local files = require "mneme.base.files"
local registry = require "mneme.base.registry"
local tables = require "mneme.base.tables"
local study_folder = require "mneme.lab.study.study_folder"
local script = require "mneme.runs.script"
local shell = require "tests.support.shell"
local sweep = require "mneme.lab.study.sweep"

local here = shell.folder()
local MOST_LINES = 60

-- Words that make a run of each study the least that there is; studies of other experiments train for a moment.
local words = "core.d_model=8 d_embed=8 batch=2 steps=2048 eval_batches=1"
local acting = "core=gru core.d_model=8 num_envs=2 num_steps=64 minibatches=1 hidden=8 steps=1024"
local tiny = {
  craftax = "env=craftax_classic " .. acting,
  char_lm = "core=gru core.n_layers=1 length=16 eval_every=1024 " .. words, recall = "core=gru pairs=2 eval_every=1024 " .. words,
  listops_scale = "attention=linformer length=32 d_model=8 n_heads=1 d_head=8 d_ffn=8 n_layers=1 steps=2048 eval_batches=1",
  minigrid_memory = acting:gsub("core.*num_envs", "num_envs"),
  memory_maze = "cue_frames=0 " .. acting, mystery_path = acting,
  fig12_latency = "core=agalite context=64 core.n_layers=1 core.d_model=16",
  gradient_blowup = "steps=3000",
  memory_capacity = "core=gru longest=3 copies=40",
  memory_maze_fps = "core=gru core.d_model=8 num_envs=1 num_steps=8 minibatches=1 hidden=8 seconds=0.1",
  popgym = acting:gsub("core.*num_envs", "num_envs"),
  params_memory_ops = "core=galite", probe = "core=gru corridor=8 steps=2048 episodes=64 last=4", state_growth = "core=gtrxl longest=128",
  table1_complexity = "core=gtrxl context=256", xformers_scaling = "attention=softmax length=256",
}

local names = {}
for _, name in ipairs(registry.names "experiments") do
  if files.is_file("experiments/" .. name .. ".lua") then names[#names + 1] = name end
end

local function path_of(name) return "experiments/" .. name .. ".lua" end

t.test("every experiment is short, opens with its question, and surveys in all its sizes", function()
  t.ok(#names >= 20)
  for _, name in ipairs(names) do
    local lines, first = 0, nil
    for line in io.lines(path_of(name)) do lines, first = lines + 1, first or line end
    t.ok(lines <= MOST_LINES, ("%s: %d lines"):format(name, lines))
    t.ok(first:find "^%-%- ", name .. ": no question at its top")
    local ok, problem = pcall(script.survey, path_of(name), { "quick=1" })
    t.ok(ok, ("%s quick=1: %s"):format(name, tostring(problem)))
    t.ok(script.survey(path_of(name), {}).cfg, name)
  end
end)

t.test("studies: the quick grid is no larger, full=1 is one, claims can be tested", function()
  local studies = 0
  for _, name in ipairs(names) do
    local spec = script.survey(path_of(name), {}).spec
    if spec then
      studies = studies + 1
      local function runs(word, seeds) return #sweep.plan({ script = path_of(name), seeds = seeds }, { word }).runs end
      t.ok(runs "quick=1" <= runs() or runs("quick=1", "1") <= runs(nil, "1"), name)       -- small runs may have more seeds
      t.ok(spec.of or runs "full=1" > 0, name)
      t.ok(spec.title and spec.question and spec.metrics and spec.figures and spec.claims, name)
      local axes = { seed = true }
      for axis in pairs(spec.axes) do axes[axis] = true end
      local ok, problem = pcall(claims.check, spec.claims, axes)
      t.ok(ok, ("%s: %s"):format(name, tostring(problem)))
    end
  end
  t.ok(studies >= 15)
end)

t.test("a run of a study has the settings of its own environment: none of those of the axis's first value", function()
  local runs, seen = 0, {}
  for _, name in ipairs(names) do
    local spec = script.survey(path_of(name), {}).spec
    for _, run in ipairs(spec and sweep.plan({ script = path_of(name), seeds = "1" }, {}).runs or {}) do
      local said = {}
      for _, word in ipairs(run.words) do if word:find "^env[.=]" then said[#said + 1] = word end end
      local key = name .. " " .. table.concat(said, " ")
      local env = said[1] and not seen[key] and script.survey(path_of(name), run.words, true).cfg.env
      seen[key] = true
      local settings = (spec.settings or {}).env
      for setting in pairs(type(env) == "table" and script.setting(run.words, "env") and env or {}) do
        runs = runs + 1
        t.ok(setting == 1 or script.setting(run.words, "env." .. setting) or (spec.settings or {})["env." .. setting]
          or type(settings) == "table" and settings[setting] ~= nil, ("%s: env.%s is of another value"):format(key, setting))
      end
    end
  end
  t.ok(runs > 50)
end)

t.test("what measures and does not train lives: few runs of each, and their numbers are those that are drawn and claimed", function()
  for _, name in ipairs(tables.keys(tiny)) do
    local spec = script.survey(path_of(name), {}).spec
    local said, status = shell.mneme(here, ("sweep %s quick=1 seeds=1 estimate=0 run=%s %s"):format(
      shell.absolute(path_of(name)), name, tiny[name]))
    t.eq(status, 0, name .. ": " .. said)
    local there = {}
    for _, c in ipairs(study_folder.load(here .. "/" .. name).runs) do
      for _, numbers in ipairs { c.metrics, c.resources, c.series or {}, c:curves() } do
        for key in pairs(numbers) do there[key], there[key:match "^[^/]*"] = true, true end
      end
    end
    local function known(metric, where) t.ok(there[metric], ("%s: %s of %s"):format(name, tostring(metric), where)) end
    for metric in pairs(spec.metrics) do known(metric, "metrics") end
    for _, f in ipairs(spec.figures) do known(f.y, "figures") end
    for _, claim in ipairs(spec.claims) do known(claim.test.metric, "claims") end
    for _, r in ipairs(spec.references or {}) do known(r.of, "references") end
  end
end)

t.test("tmaze with size=published: the released learner settings of each memory (config/tmaze of the released code)", function()
  for setting, released in pairs { agalite = { 1e-4, 0.001 }, galite_released = { 1e-4, 0.001 }, gru = { 5e-4, 0.01 }, lstm = { 1e-4, 0.001 },
    ["gtrxl core.memory=128"] = { 5e-4, 0.01 }, ["gtrxl core.memory=256"] = { 5e-4, 0.001 } } do
    local list = { "size=published" }
    for word in ("core=" .. setting):gmatch "%S+" do list[#list + 1] = word end
    local cfg = script.survey(path_of "tmaze", list, true).cfg
    t.eq(cfg.lr, released[1], setting)
    t.eq(cfg.entropy_coef, released[2], setting)
  end
end)

t.test("official_start: what stands beside ours is the mean of the released code's runs in docs/results", function()
  local last, sums = {}, {}
  for line in io.lines "docs/results/official_agalite.csv" do
    local start, seed, step = line:match "^(%a+),60,small,%d+,(%d+),(%d+),"
    if start then last[start .. " " .. seed] = { start, tonumber(step) } end
  end
  for _, run in pairs(last) do
    local of = sums[run[1]] or { sum = 0, n = 0 }
    of.sum, of.n, sums[run[1]] = of.sum + run[2], of.n + 1, of
  end
  local found = 0
  for _, r in ipairs(script.survey(path_of "official_start", {}).spec.references) do
    local of = r.where and sums[r.where.core == "published" and "published" or "long"]
    if of then
      found = found + 1
      t.near(r.y, of.sum / of.n, 0.5, r[1])
      t.ok(r[1]:find(of.n .. " seeds", 1, true), r[1])
    end
  end
  t.eq(found, 2)
end)

os.execute("rm -rf '" .. here .. "'")
