-- test_same_values.lua -- a value is one value in whatever way it is written: of every setting of every experiment, on axes, in only=, in
-- claims and figures, where a sweep goes on, where finished runs are imported; and what no double holds is refused.
local t = require "tests.harness"
local claims = require "mneme.lab.study.claims"
local study_folder = require "mneme.lab.study.study_folder"
local grid = require "mneme.lab.study.grid"
local registry = require "mneme.base.registry"
local script = require "mneme.runs.script"
local figure_runs = require "mneme.lab.study.figure_runs"
local shell = require "tests.support.shell"
local search_space = require "mneme.lab.search.search_space"
local sweep = require "mneme.lab.study.sweep"
local setting_types = require "mneme.base.setting_types"

local here = shell.folder()
local function path(name) return here .. "/" .. name end
local function write(name, text)
  local f = assert(io.open(path(name), "w"))
  f:write(text)
  f:close()
  return path(name)
end
local function mneme(words, status)
  local said, code = shell.mneme(here, words)
  t.eq(code, status or 0, words .. "\n" .. said)
  return said
end

-- Ways to write a number, a switch.
local function spellings(v)
  if type(v) == "boolean" then return v and { "1", "true", "on", "YES" } or { "0", "false", "Off", "no" } end
  local list = { ("%.17g"):format(v), ("%.16e"):format(v), (("%.17ge0"):format(v):gsub("e([+-]%d+)e0", "e%1")), ("  %.17g"):format(v) }
  if v % 1 == 0 and math.abs(v) < 2 ^ 53 then
    list[#list + 1] = ("%.0f.0"):format(v)
    list[#list + 1] = ("%.0f.e0"):format(v)
    if v % 1000 == 0 and v > 0 then list[#list + 1], list[#list + 2] = ("%.0fk"):format(v / 1000), ("%.0f_000"):format(v / 1000) end
    if v >= 0 then list[#list + 1] = ("0%.0f"):format(v) end
  end
  return list
end

local study = write("study.lua", [[
local mn = require "mneme"
return mn.study {
  title = "values",
  axes = { a = { 10, 0.001, quick = { 10 } }, b = { true, false, quick = { true } }, s = { "1", "1.0", quick = { "1" } },
    core = { "gru", { "galite", eta = 4, label = "four" }, quick = { "gru" } },
    kind = { { label = "1e1", set = { lr = 0.1 } }, { label = "10", set = { lr = 0.5 } }, quick = { { label = "1e1", set = { lr = 0.1 } } } } },
  settings = { steps = 10, gamma = 0.5, wide = false, list = { 1, 2 }, text = "1" },
  seeds = { 2 },
  metrics = { score = { "it" } },
  claims = { { id = "C", text = "c", test = { "better", metric = "score", a = { a = "1e1" }, b = { a = "1e-3" } } } },
  run = function(cfg) return { score = cfg.a + cfg.seed } end,
}
]])

t.test("every setting of every experiment: each way to write a value gives that value, one key, and one point of a sweep", function()
  local count = 0
  for _, name in ipairs(registry.names "experiments") do
    local survey = script.survey(script.locate(name), {})
    for key, entry in pairs(survey.schema) do
      local v = entry.default
      for _, text in ipairs((type(v) == "number" or type(v) == "boolean") and spellings(v) or {}) do
        local cfg = {}
        setting_types.set(cfg, survey.schema, key, text)
        t.eq(cfg[key], v, name .. " " .. key .. "=" .. text)
        t.eq(setting_types.key(text, v), setting_types.key(v, v), key .. "=" .. text)
        t.ok(setting_types.same(text, v))
        count = count + 1
      end
      if type(v) == "number" then t.ok(setting_types.key(("%.17g"):format(v + 1), v) ~= setting_types.key(v, v) or v + 1 == v) end
    end
  end
  t.ok(count > 1000, "settings of " .. count .. " ways")
  t.eq(setting_types.key("1", "text"), "1")
  t.ok(setting_types.key("1.0", "text") ~= setting_types.key("1", "text"), "of a text every letter counts")
  t.eq(setting_types.key("1, 2.0", { 1, 2 }), setting_types.key("1,2", { 1, 2 }))
  t.eq(setting_types.key("1e5", setting_types.like({ size = { default = "script" } }, "size")), setting_types.key("100000",
    setting_types.like({ size = { default = "script" } }, "size")))
end)

t.test("a sweep refuses a value that is there twice, in any writing, and takes blanks after commas", function()
  local function plan(...) return sweep.plan({ script = study, seeds = "1" }, { "quick=1", ... }) end
  for key, v in pairs { a = 10, gamma = 0.5, b = true, wide = true, steps = 3000, lr = 0.1 } do
    local list = key == "lr" and {} or spellings(v)
    for _, x in ipairs(list) do
      for _, y in ipairs(list) do
        t.raises(function() plan(key .. "=" .. x .. "," .. y) end, "axis " .. key .. " has .* twice")
      end
      local one = plan(key .. "=" .. x .. ", " .. (type(v) == "boolean" and tostring(not v) or key == "gamma" and "0.25" or "7"))
      t.eq(#one.runs, 2)
    end
  end
  t.eq(#plan("text=1,1.0").runs, 2)
  t.eq(#plan("s=1, 1.0").runs, 2)
  t.eq(#plan("kind=10,1e1").runs, 2)
  t.fails(function() plan "text=1,1" end)
  t.fails(function() plan "core=gru,gru" end)
  t.fails(function() plan "core.d_model=8,8.0" end)
  t.raises(function() sweep.plan({ script = study }, { "quick=1", "seed=1,1.0" }) end, "twice")
  t.raises(function() sweep.plan({ script = script.locate "train" }, { "env=tmaze,tmaze-v0" }) end, "axis env has tmaze twice, once as tmaze%-v0")
  t.eq(sweep.plan({ script = study }, { "quick=1", "seed=1k,2" }).seeds[1], 1000)
  for _, x in ipairs(spellings(10)) do t.eq(plan("a=" .. x).runs[1].labels.a, "10", x) end
  for _, x in ipairs(spellings(true)) do t.eq(plan("b=" .. x).runs[1].labels.b, "true", x) end
  for axes, what in pairs { ['{ a = { "1e-3", 0.001 } }'] = false, ['{ a = { 0.001, "1e-3" } }'] = "has 0.001 twice, once as 1e%-3",
    ['{ core = { "gru", { "gru", label = "again" } } }'] = "has gru twice, once as again",
    ['{ k = { { label = "a", set = { lr = 0.1 } }, { label = "b", set = { lr = 1e-1 } } } }'] = "has a twice, once as b" } do
    local bad = write("bad.lua", 'local mn = require "mneme"\nreturn mn.study { axes = ' .. axes .. ", run = function() end }")
    local ok, e = pcall(sweep.plan, { script = bad }, {})
    t.ok(ok == not what and (ok or tostring(e):find(what)), axes .. tostring(e))
  end
end)

t.test("what no double holds is refused: as a setting, an option, a value of a list, an end of a range", function()
  for _, text in ipairs { "1e-400", "1e400", "-1e400", ".1e-330", "0.0000001e-330" } do
    t.fails(function() setting_types.parse("lr", text, 0.1) end)
    local cfg, schema = { core = { "gru" } }, { core = { default = { "gru" } }, list = { default = { 1 } } }
    t.fails(function() setting_types.set(cfg, schema, "core.eta", text) end)
    t.raises(function() setting_types.set(cfg, schema, "list", "1," .. text) end, "list=")
    t.raises(function() search_space.new { lr = text:gsub("^%-", "") .. "..5" } end, "is too ")
  end
  for text, n in pairs { ["0"] = 0, ["0e-400"] = 0, ["-0.0"] = 0, ["5e-324"] = 5e-324, ["1.7e308"] = 1.7e308, ["0x10"] = 16 } do
    t.eq(setting_types.parse("lr", text, 0.1), n, text)
  end
end)

t.test("a sweep goes on under the names that its folder has: the settings, declared values, only= in another writing", function()
  mneme "sweep study.lua quick=1 a=10,2.50 gamma=5e-1 wide=1 steps=1e1 seeds=1 run=s estimate=0 jobs=2"
  local function names()
    local list = {}
    for i, r in ipairs(study_folder.load(path "s").runs) do list[i] = r.name:match "^a=[^,]*" .. (r.status == "done" and "" or " open") end
    return table.concat(list, " ")
  end
  t.eq(names(), "a=10 a=2.50")
  mneme "sweep study.lua quick=true a=1e1,2.50,3 steps=10 wide=on gamma=0.5 seeds=1 run=s estimate=0 jobs=2"
  t.eq(names(), "a=10 a=2.50 a=3")
  mneme "sweep study.lua quick=1 a=7e0 steps=10 wide=1 gamma=.5 seeds=1 run=s estimate=0 only=a=7,b=1,core=gru,kind=1e1,s=1,seed=01"
  t.eq(names(), "a=10 a=2.50 a=3 a=7e0")
  t.ok(mneme("sweep study.lua quick=1 a=3 steps=11 wide=1 gamma=.5 run=s estimate=0", 2):find "other settings")
  t.ok(mneme("check s"):find "s: nothing", "each run is the one that study.json names")
  -- Finished runs from a file keep their names, too.
  mneme "report s export=s.jsonl out=s.html"
  mneme "sweep study.lua quick=1 a=10.0,2.50,3,7e0 steps=1e1 wide=true gamma=50e-2 seeds=1 run=i import=s.jsonl jobs=0"
  local taken = study_folder.load(path "i").runs
  t.eq(#taken, 4)
  for _, r in ipairs(taken) do t.ok(r.status == "done" and r.kept, r.name) end
  t.eq(taken[2].name, "a=2.50,b=true,core=gru,kind=1e1,s=1,seed=1")
end)

t.test("claims, figures and references know a value in any writing", function()
  local spec = script.survey(study, {}).spec
  t.eq(spec.claims[1].test.a.a, 10)
  t.eq(spec.claims[1].test.b.a, 0.001)
  for _, written in ipairs(spellings(0.001)) do
    local swept = { runs = {} }
    for seed = 1, 5 do
      for label, score in pairs { ["1e1"] = 2, [written] = 1 } do
        table.insert(swept.runs, study_folder.run {
          name = label, path = path "none", labels = { a = label, s = "1" }, seed = seed, status = "done", metrics = { score = score + seed / 100 } })
      end
    end
    t.eq(claims.judge(swept, spec.claims, spec.metrics)[1].n, 5, written)
    local pick = figure_runs.pick(swept, { "bars", y = "score", by = "a", where = { a = { 0.001 } } })
    t.eq(#pick.runs, 5, written)
    t.eq(#pick.swapped, 0)
  end
  t.eq(figure_runs.number("300k", "steps"), 300000)
  t.ok(grid.is(grid.value("s", "1"), "1"))
  t.ok(not grid.is(grid.value("s", "1"), "1.0"))
end)
