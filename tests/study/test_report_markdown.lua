-- test_report_markdown.lua -- the texts beside the scripts: read, refused where they are none, taken over from the experiment that a
-- study is of; and the report of every study here with nothing lived, with runs missing, failed and without numbers.
local t = require "tests.harness"
local files = require "mneme.base.files"
local registry = require "mneme.base.registry"
local study_folder = require "mneme.lab.study.study_folder"
local authors_texts = require "mneme.lab.study.authors_texts"
local report = require "mneme.lab.reports.report"
local script = require "mneme.runs.script"
local shell = require "tests.support.shell"
local sweep = require "mneme.lab.study.sweep"
local report_markdown = require "mneme.lab.reports.report_markdown"

local here = shell.folder()
local function path(name) return here .. "/" .. name end

local function write(name, text)
  files.write(path(name), { text })
  return path(name)
end

t.test("headings or keys, paragraphs or lists, sources", function()
  local r = report_markdown.read(("# Title\n\nnot told\n\n## Scope\n\nOne.\n\nTwo `x`.\n\n## what WAS hard\n\n- first,\n  longer\n- second\n\n" ..
    "## Hyperparameters\n\n- lr, gamma: paper: table 3\n- optimiser (Adam (eps 1e-8)): released code,\n  its default\n\n## easy\n## Set-up\r\nhere\r\n"),
    "a.md")
  t.eq(r.scope, "One.\n\nTwo `x`.") t.eq(r.hard[1], "first, longer") t.eq(r.hard[2], "second") t.eq(r.easy, nil) t.eq(r.setup, "here")
  t.eq(r.hyperparameters[1], "lr, gamma: paper: table 3") t.eq(r.hyperparameters[2], "optimiser (Adam (eps 1e-8)): released code, its default")
  authors_texts.check(r)
end)

t.test("what is no such text is refused, with its line", function()
  local function refused(text, what) t.raises(function() report_markdown.read(text, "b.md") end, what) end
  refused("\n## Scoop\n", "b.md:2: unknown heading of a report: 'Scoop'.*known: .*scope") refused("## Scope\na\n## scope\nb\n", "written twice")
  t.eq(report_markdown.read("## Scope\n\n    a  b\n      c\n", "c.md").scope, "    a  b\n      c", "a text may begin with an indented block")
end)

t.test("a study's own words, then those beside it, then those of its experiment", function()
  write("study.md", "## Scope\nbeside\n\n## Data\nbeside\n\n## Hyperparameters\n- lr: beside\n")
  write("env.md", "## Data\nof the environment\n\n## Model\nof the environment\n\n## Hyperparameters\n- lr, gamma: of the environment\n")
  local function beside(name, own) return { path = name, text = (files.read(path(name))), own = own } end
  local r = report_markdown.of({ report = { scope = "own" } }, { beside("study.md", true),
    beside("env.md", false) })
  t.eq(r.scope, "own") t.eq(r.data, "beside") t.eq(r.model, "of the environment")
  t.eq(r.hyperparameters[1], "lr: beside") t.eq(report_markdown.of({}, {}).hyperparameters, nil)
  local elsewhere = beside("env.md", false)
  elsewhere.elsewhere = true
  r = report_markdown.of({}, { elsewhere })
  t.eq(r.data, "of the environment") t.eq(r.model, nil, "what its authors write of theirs") t.eq(#r.hyperparameters, 1)
  local declaration_file = require "mneme.lab.study.declaration_file"
  write("far.lua", 'return require("mneme").study { title = "far", of = "tmaze", axes = { core = { "gru" } } }')
  t.eq(declaration_file.by(path "far.lua").texts[1].elsewhere, true) t.eq(declaration_file.by("experiments/gate_start.lua").texts[2].elsewhere, false)
end)

-- A study of this repository as a folder with runs of these statuses, in turn; "bare": done, without any number.
local function pretend(name, statuses)
  local script_path = "experiments/" .. name .. ".lua"
  local plan, at = sweep.plan({ script = script_path }, { "quick=1" }), path(name .. "-" .. #statuses)
  local info = { mneme = "0", script = script_path, title = plan.title, settings = "quick=1", runs = {} }
  for i, c in ipairs(plan.runs) do
    info.runs[i] = { name = c.name, labels = c.labels, seed = c.seed, words = c.words }
    local status, metrics = statuses[(i - 1) % #statuses + 1], {}
    if status == "done" then
      for metric in pairs(plan.spec.metrics) do metrics[metric] = 0.25 + 0.5 * (i % 3) end
    end
    files.make_folder(study_folder.run_path(at, c.name))
    if status ~= "open" then
      study_folder.write_result(study_folder.run_path(at, c.name), { status = status == "failed" and "failed" or "done", seed = c.seed, one_run = c.labels,
        words = c.words, metrics = metrics, error = status == "failed" and "it fell" or nil })
    end
  end
  study_folder.write_info(at, info)
  return study_folder.load(at), script_path
end

local studies = {}
for _, name in ipairs(registry.names "experiments") do
  local file = "experiments/" .. name .. ".lua"
  if files.is_file(file) and script.survey(file, {}).spec then studies[#studies + 1] = name end
end

t.test("every study has a report: nothing lived; runs missing, failed, without numbers; without texts", function()
  t.ok(#studies >= 14)
  local lived = { { "done", "failed" }, { "done", "open", "failed", "bare" }, { "bare", "bare", "open", "bare", "bare" } }
  for k, name in ipairs(studies) do
    for _, statuses in ipairs { { "open" }, lived[k % #lived + 1] } do
      local study, file = pretend(name, statuses)
      local source = report.source(file)
      study_folder.add_means(study, source.spec)
      local ok, page = pcall(report.page, study, source)
      t.ok(ok, ("%s, %s: %s"):format(name, table.concat(statuses, " "), tostring(page)))
      t.ok(page:find("</html>", 1, true) and page:find(authors_texts.headings.scope, 1, true), name)
      if #statuses == 1 then
        source.report, source.spec.report = nil, nil
        t.ok(report.page(study, source):find("Not written yet", 1, true), name)
      end
    end
  end
end)

t.test("the same page as Markdown: texts, equations, verdicts, figures as files", function()
  local study, file = pretend("fig13a_gating", { "done" })
  local source = report.source(file)
  study_folder.add_means(study, source.spec)
  report.write(path "page.md", study, source)
  local md = files.read(path "page.md")
  for _, what in ipairs { "\n## <a id=\"introduction\"></a>Introduction\n", "\n$$C_t = ", "[gate](#verdict-1)", "](page-figures/figure-1.svg)",
    "Was it replicable?", "Hyperparameters\n\n- " } do t.ok(md:find(what, 1, true), what) end
  for link in md:gmatch "%]%(#([%w_-]+)%)" do t.ok(md:find(('id="%s"'):format(link), 1, true), link) end
  t.ok(files.is_file(path "page-figures/figure-1.svg"))
end)

t.test("signs of a text, and of the file's name, stand for themselves in Markdown", function()
  local study, file = pretend("gate_start", { "done" })
  local source = report.source(file)
  study_folder.add_means(study, source.spec)
  source.report.discussion = [[\input{x} *a* _b_ __c__ d_e ~f~ g^h^ 2_ _ i__ $\alpha_1^2$ `_j_*\` **k**]]
  report.write(path "a b (1) #%.md", study, source)
  local md = files.read(path "a b (1) #%.md")
  t.ok(md:find([[\\input{x} \*a\* \_b\_ \_\_c\_\_ d_e \~f\~ g\^h\^ 2\_ \_ i\_\_ $\alpha_1^2$ `_j_*\` **k**]], 1, true), md:match "[^\n]*input{x}[^\n]*")
  local address = md:match "!%[[^\n]-%]%(([^\n]-)%)\n"
  t.ok(not address:find "[ ()#]", address)
  t.ok(files.is_file(path(address:gsub("%%(%x%x)", function(hex) return string.char(tonumber(hex, 16)) end))), address)
end)

t.test("a figure that cannot be made takes the number of none that is", function()
  local study, file = pretend("gate_start", { "done" })
  local source = report.source(file)
  study_folder.add_means(study, source.spec)
  source.spec.figures = { { "bars", y = "nothing", by = "corridor" }, { "bars", y = "score", by = "corridor", title = "the second" } }
  local html = report.page(study, source)
  t.ok(html:find "Entry 1 of the study's figures" and html:find "Figure 1%. [Tt]he second" and not html:find "Figure 1 ", "the first has no number")
end)

t.test("a name that could be a number is kept by a study's folder", function()
  local declaration_file = require "mneme.lab.study.declaration_file"
  local names, metrics, figures = { "200", "-3", "1e5", "0x10", "inf", "nan", "'a", "'", "b" }, {}, {}
  for i, name in ipairs(names) do metrics[name], figures[i] = { "what it is" }, { "bars", y = name, by = "core" } end
  local at = path "names"
  files.make_folder(at)
  declaration_file.write(at, { path = "names.lua", texts = {}, defaults = {},
    spec = { title = "names", axes = { core = { { "gru", d_model = 4, label = "four" } } }, metrics = metrics, figures = figures } })
  local spec = declaration_file.read(at).spec
  for _, name in ipairs(names) do t.eq(spec.metrics[name] and spec.metrics[name][1], "what it is", name) end
  t.eq(spec.axes.core[1][1], "gru") t.eq(spec.figures[1][1], "bars")
end)

t.test("indented lines stay as they are, in each kind of page", function()
  local study, file = pretend("gate_start", { "done" })
  local source = report.source(file)
  study_folder.add_means(study, source.spec)
  source.report.discussion = "Seeds:\n\n    start  a<b\n      one    2%\n\nAfter it."
  report.write(path "indented.md", study, source)
  local md, html = files.read(path "indented.md"), report.page(study, source)
  t.ok(md:find("Seeds:\n\n    start  a<b\n      one    2%\n\nAfter it.", 1, true), "Markdown")
  t.ok(html:find("<pre>start  a&lt;b\n  one    2%</pre>\n<p>After it.</p>", 1, true), "HTML")
end)

t.test("claims of which a study has no runs stand in one line, the others are judged", function()
  local at = path "narrow"
  local study, file = pretend("gate_start", { "done" })
  local info = study_folder.info(study.path)
  for i = #info.runs, 1, -1 do if info.runs[i].labels.corridor ~= "200" then table.remove(info.runs, i) end end
  files.make_folder(at)
  os.execute(("cp -r '%s/runs' '%s/'"):format(study.path, at))
  study_folder.write_info(at, info)
  local html = report.page(study_folder.load(at), report.source(file))
  t.ok(html:find("no runs for these claims: 60-published, 120-published, 60-1-steps, 60-sooner.", 1, true))
  local _, cards = html:gsub('<a class="card ', "")
  t.eq(cards, 1) t.ok(html:find('href="#verdict-1"><span class="word"><span>undecided</span><span>200-published</span>', 1, true))
  _, cards = report.page(study, report.source(file)):gsub('<a class="card ', "")
  t.eq(cards, 5)
end)

t.test("every study here says what a reviewer asks for", function()
  for _, name in ipairs { "fig13a_gating", "fig13b_feature_map", "fig13c_approximation", "fig13d_linear_vs_gated", "fig2_noisy_cartpole", "tmaze_length",
    "probe", "memory_capacity", "gradient_blowup", "state_growth", "params_memory_ops", "table1_complexity", "fig12_latency", "memory_maze_fps",
    "xformers_scaling", "char_lm", "recall", "memory_maze", "mystery_path", "listops_scale" } do
    local source = report.source("experiments/" .. name .. ".lua")
    for key in pairs(authors_texts.headings) do
      local found_elsewhere = key == "model" or key == "objective" or key == "beyond" or key == "discussion" or key == "published_values"
      t.ok(found_elsewhere or source.report[key], ("%s: nothing of %s"):format(name, key))
    end
  end
end)

t.test("every result here names a commit of this history", function()
  local root = shell.root
  local function git(line) return select(2, shell.run(root, "git " .. line)) end
  local commits = tonumber((shell.run(root, "git rev-list --count HEAD"))) or 0
  if commits < 100 then t.skip "the history is not here: a shallow clone, or files that were unpacked" end
  local known, seen = {}, 0
  for _, name in ipairs(files.list(root .. "docs/results")) do
    local text = files.read(root .. "docs/results/" .. name)
    for commit in text:gmatch "%f[%x]%x+%f[%X]" do
      if #commit == 40 then
        if known[commit] == nil then known[commit] = git("cat-file -e " .. commit .. "^{commit}") == 0 end
        t.ok(known[commit], ("docs/results/%s: no commit %s"):format(name, commit))
        seen = seen + 1
      end
    end
  end
  t.ok(seen > 15, seen .. " commits named")
end)
