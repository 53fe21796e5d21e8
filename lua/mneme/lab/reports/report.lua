-- report.lua -- write the report of a study (a sweep's folder, or a file of finished runs), or of runs: as one self-contained HTML page, as
-- Markdown.  First the question, a card for each claim, the main figure and what the evidence is worth; then results, method,
-- settings and runs.
-- Prose comes from the study's script and from the .md file of the same name, everything else from the runs.  The page of
-- an unfinished study says so, so it can be written at any time.
local blocks = require "mneme.lab.reports.page.blocks"
local claims = require "mneme.lab.study.claims"
local declaration_file = require "mneme.lab.study.declaration_file"
local errors = require "mneme.base.errors"
local export = require "mneme.insight.figures.export"
local figure = require "mneme.lab.study.figure"
local files = require "mneme.base.files"
local report_front = require "mneme.lab.reports.report_front"
local figure_runs = require "mneme.lab.study.figure_runs"
local tables = require "mneme.base.tables"
local study_folder = require "mneme.lab.study.study_folder"
local result_archive = require "mneme.lab.study.result_archive"
local html = require "mneme.lab.reports.page.html"
local authors_texts = require "mneme.lab.study.authors_texts"
local archive_study = require "mneme.lab.reports.archive_study"
local report_method = require "mneme.lab.reports.report_method"
local format = require "mneme.base.format"
local plain_runs = require "mneme.lab.reports.plain_runs"
local provenance = require "mneme.lab.study.provenance"
local report_results = require "mneme.lab.reports.report_results"
local run_sources = require "mneme.runs.run_sources"
local script = require "mneme.runs.script"
local trusted_code = require "mneme.base.trusted_code"
local terminal = require "mneme.base.terminal"
local markdown = require "mneme.lab.reports.page.markdown"
local setting_types = require "mneme.base.setting_types"
local report_claims = require "mneme.lab.reports.report_claims"
local report_markdown = require "mneme.lab.reports.report_markdown"

local report = {}

-- ---- figures ----

-- The figures that a study asks for: curves with an axis as x are one for each of its values.
local function asked_figures(study, spec)
  local list = {}
  for _, f in ipairs(spec.figures or {}) do
    if f[1] == "curves" and (spec.axes or {})[f.x] then
      for _, group in ipairs(figure_runs.groups(study.runs, f.x)) do
        local where = tables.merged({ [f.x] = group.name }, f.where)
        list[#list + 1] = { "curves", y = f.y, by = f.by, where = where, statistic = f.statistic, title = ("%s: %s"):format(group.name, f.title or f.y) }
      end
    else list[#list + 1] = f end
  end
  return list
end

-- The figures that can be made, by their place: { fig, id, place } or { problem } or { sentence }.  One that cannot, of runs that lack a
-- number or by a name that none has, says why in its place: the rest of the page does not depend on it.
local function make_figures(study, spec)
  local made, n = {}, 0
  for i, f in ipairs(asked_figures(study, spec)) do
    local ok, fig = xpcall(figure.new, errors.handler, study, spec, f)
    local value, places
    if ok then value, places = figure.only_value(fig) end
    if not ok then
      terminal.note(("mneme: warning: figure %d: %s"):format(i, fig.message))
      made[i] = { problem = ("Entry %d of the study's figures could not be made: %s."):format(i, fig.message) }
    elseif value then
      local axis = fig.kind == "heat" and fig.value or fig.y
      made[i] = { sentence = ("%s: %s in all %d places, so there is nothing to draw."):format((fig.title or axis.label):gsub("^%l", string.upper),
        format.short(value, axis.unit), places) }
    else
      n = n + 1
      made[i] = { fig = fig, id = "figure-" .. n, place = n, y = f.y }
    end
  end
  return made
end

local function show_figure(out, m)
  if m.fig then
    out:figure(tables.merged(m.fig, { title = ("Figure %d. %s"):format(m.place, (m.fig.title or ""):gsub("^%l", string.upper)) }), m.id)
  elseif m.sentence then out:paragraphs(m.sentence)
  else out:paragraphs(m.problem, "warning") end
  m.shown = true
end

-- The figure that shows a claim's numbers: of its metric, or of the curve that this is the mean of.
local function figure_of(made, claim, spec)
  local name = claim.test and claim.test.metric
  local mean_of = name and ((spec.metrics or {})[name] or {}).mean_of
  for _, m in ipairs(made) do
    if m.fig and name and (m.y == name or m.y == mean_of or m.y:match "[^/]*$" == name) then return m end
  end
end

-- ---- records ----

local function encoded(name) return (name:gsub("[^%w_.,=+-]", function(c) return ("%%%02X"):format(c:byte()) end)) end

-- A failed run's last message; where it ran, if not here.
local function note_of(c)
  return c.error or c.kept and ("taken from %s, commit %s, host %s"):format(setting_types.show(c.kept.file):match "[^/]*$",
    setting_types.show(c.kept.commit or "–"), setting_types.show(c.kept.host or "–")) or ""
end

-- Runs link to their folders if the page is next to them.
local function run_table(out, study, beside)
  local taken = 0
  local rows = tables.map(study.runs, function(c)
    local used = c.resources and tonumber(c.resources.wall_s)
    taken = taken + (c.kept and 1 or 0)
    return { { c.name, href = beside and ("runs/%s/"):format(encoded(c.name)) or nil }, c.status,
      { used and format.short(used, "s") or "–", class = "number" }, { note_of(c), class = (c.error or c.kept) and "wide" or nil } }
  end)
  if taken > 0 then
    out:paragraphs(("Runs that were imported from a file of finished runs: %d. The table of runs marks them, with their commits. Their curves are "
      .. "thinned."):format(taken), "dim")
  end
  out:paragraphs("Each run has a folder: settings, log, checkpoints.", "dim")
  out:fold(("All %d runs"):format(#rows), function() out:table({ "run", "status", "time", "note" }, rows) end)
end

-- The files that the runs were made by, and the script as a run keeps it; as it is now, where none does.
local function code(out, study, runs)
  local path = setting_types.show(study.info.script or "")
  if path ~= "" then out:table({}, { { "script", path }, { "commit", setting_types.show(study.info.commit or "–") } }) end
  local rows, text = {}, nil
  for _, file in ipairs(provenance.files(runs)) do
    for _, version in ipairs(file.versions) do rows[#rows + 1] = { file.name, file.kind, version.checksum, tostring(#version.runs) } end
  end
  if #rows > 0 then out:table({ "file", "what it is", "checksum (CRC-32C)", "runs" }, rows) end
  for _, r in ipairs(runs) do text = text or r.info.script and run_sources.texts(r.run.path, r.info)[r.info.script] end
  if text then out:folded("The script, as the runs keep it", text)
  elseif path:find "%.lua$" and files.is_file(path) and trusted_code.may_load(path) then out:folded("The script, as it is now", (files.read(path)))
  elseif path ~= "" then out:paragraphs(("%s is no longer there, and no run keeps it."):format(path), "dim") end
end

-- ---- the whole ----

local STATISTICS = "Intervals are Student's, over seeds; pairs of equal seeds where two sides are compared; of ratios, by their logarithms; of a number "
  .. "that has a range, within it; of the probability that a run is better (Agarwal et al. 2021), the bootstrap's. "
  .. "Shares of seeds that solve it are compared by Boschloo's exact test, times by the log-rank test, with runs that did not up to their end. "
  .. "In brackets after p: Holm's correction for all claims together, which decides. An undecided claim is not a refuted one."

-- The page, and what comes before its contents.
local function compose(study, source, options)
  local spec = plain_runs.spec(study, source.spec)
  local texts = source.report or spec.report or {}
  local runs, judged, asked, unasked = report_method.runs(study), report_claims.asked(claims.judge(study, spec.claims, spec.metrics))
  spec.claims = asked
  local size, made, missing = report_method.size(runs), make_figures(study, spec), {}
  blocks.note_names(study.runs, study.info.runs, study.info.settings, study.info.script, runs, source.unsound, study.path)
  local title = spec.title or study.info.title or study.path:match "[^/]*$"
  local out, opening = blocks.new(title), blocks.new(title)
  -- A part of the page, which is left out if it would be empty; whether there is one.
  local function filled(level, name, heading, fill)
    local before = #out.blocks
    out:heading(level, name, heading)
    fill()
    local any = #out.blocks > before + 1
    if not any then out.blocks[before + 1] = nil end
    return any
  end
  -- A section of the authors' text and of what `fill` adds; one that would be empty is left out.
  local function write(name, level, fill)
    local any = filled(level or 3, name, authors_texts.headings[name], function()
      if texts[name] then out:paragraphs(texts[name]) end
      if fill then fill(out, runs) end
    end)
    if not any and name ~= "objective" then missing[#missing + 1] = authors_texts.headings[name] end          -- where nothing was minimised there is none
  end
  report_front.write(opening, study, spec, judged, size)
  local function warn(form, list) if #list > 0 then opening:paragraphs(form:format(table.concat(list, "; ")), "warning") end end
  for _, text in ipairs(source.unsound or {}) do
    warn("This folder is not as it was written, and this page shows it as it is now. %s. mneme check lists all of it.", { text })
  end
  local codes, resumed = provenance.differences(runs)
  warn("These runs were not all made by the same code. %s.", codes)
  for _, text in ipairs(source.changes or {}) do warn("%s", { text }) end
  warn("%s.", resumed)
  if made[1] then show_figure(opening, made[1]) end
  write("discussion", 2)
  write("introduction", 2)
  filled(2, "claims_and_scope", "Scope and claims", function()
    write "scope"
    filled(3, "claims", "Claims, as statements that can be tested", function() report_claims.claims(out, spec.claims, unasked) end)
  end)
  out:heading(2, "results", "Results")
  for i, v in ipairs(judged) do
    local m = figure_of(made, v.claim, spec)
    report_claims.section(out, v, i, spec, m and ("[Figure %d](#%s) shows it%s."):format(m.place, m.id, m.fig.kind == "curves" and " while learning" or ""))
    if m and not m.shown then show_figure(out, m) end
  end
  if #judged > 0 then out:paragraphs(STATISTICS, "dim") end
  filled(3, "figures", "More figures", function()
    for _, m in ipairs(made) do if not m.shown then show_figure(out, m) end end
  end)
  report_results.published(out, study, spec, texts.published_values)
  out:heading(3, "numbers", "Numbers")
  report_results.write(out, study, spec)
  filled(3, "remembers", "What the memory does", function() report_results.memory(out, study) end)
  write "beyond"
  out:heading(2, "method", "Method")
  write("model", 3, report_method.model)
  write("objective", 3, report_method.objective)
  write("data", 3, report_method.data)
  write("hyperparameters", 3, function()
    out:fold("All settings", function() report_method.hyperparameters(out, runs, source.defaults, setting_types.show(study.info.settings or "")) end)
  end)
  report_results.tuning(out, study, spec)
  write("implementation", 3, report_method.checks)
  write("setup", 3, function() report_method.setup(out, study, runs) end)
  out:heading(3, "resources", "Resources")
  report_method.resources(out, study)
  filled(2, "discussed", "Experience", function()
    for _, name in ipairs { "easy", "hard", "recommendations", "authors" } do write(name) end
  end)
  out:heading(2, "records", "Code and records")
  write("code", 3, function() code(out, study, runs) end)
  out:heading(3, "runs", "Runs")
  run_table(out, study, options.beside ~= false)
  if #missing > 0 and source.spec then
    out:paragraphs(("Not written yet: %s. The study's `report` table or the .md file of the same name takes them."):format(table.concat(missing, ", ")), "dim")
  end
  return out, opening, made
end

---A study as a page.
---@param source table { spec = what mn.study was given, report = what is written of it, defaults = the script's settings, flat,
---  unsound = what is wrong with the folders, changes = what differs from the runs' code } as known
---@param options table? { beside = false: the page is not in the study's folder }
---@param path string? Markdown, whose figures are files in a folder next to it
---@return string page
---@return table<string, table> figures by their ids
function report.page(study, source, options, path)
  local out, opening, list = compose(study, source, options or {})
  local made = {}
  for _, m in ipairs(list) do made[m.id or ""] = m.fig end
  if not path then return html.write(out, opening, "Contents"), made end
  local beside = path:gsub("%.%w+$", "-figures")
  if next(made) then files.make_folder(beside) end
  return markdown.write(out, opening, function(block)
    export.write(made[block.id], ("%s/%s.svg"):format(beside, block.id), { title = false })
    return ("%s/%s.svg"):format(encoded(beside:match "[^/]*$"), block.id)
  end), made
end

---A study as a file: Markdown where its name ends in .md, else HTML.
---@return table<string, table> figures by their ids
function report.write(path, study, source, options)
  local page, made = report.page(study, source, options, path:lower():find "%.md$" and path or nil)
  files.write(path, { page })
  return made
end

---What the script of a study says.
---@param core string? the word that chooses the runs' core: published values go with it
---@return table source a declaration (lab/study/declaration_file.lua) with the authors' texts as `report`
function report.source(path, core)
  local source = declaration_file.by(path, core)
  source.report = report_markdown.of(source.spec or {}, source.texts)
  return source
end

-- ---- the command ----

-- The script of a study: where it was, or an experiment of that name.
local function find_script(given, study)
  if given then return script.named(given) end
  local path = setting_types.show(study.info.script)
  if trusted_code.exists(path) then return path end
  local ok, found = pcall(script.locate, path:match "([^/]*)$":gsub("%.lua$", ""))
  return ok and found or nil
end

-- How the code that is there now differs from that of a study's first run; nil: no run keeps its code.
local function changes_since(study)
  for _, r in ipairs(study.runs) do
    local info = not r.kept and r:info()
    if info then return run_sources.changes(r.path, info), r, info end
  end
end

-- Claims that are others than study.json keeps from the study's beginning; studies of earlier versions keep none.
local function claims_changed(study, spec)
  local list = study.info.declared and declaration_file.changed(study.info.claims, spec) or {}
  return tables.map(list, function(text) return ("%s after the study had begun"):format(text) end)
end

-- What a study declares: by its script, where that is the user's own, or by what its folder holds as data; a script that only the folder
-- brings is run with trust=1.
local function source_of(o, study)
  local core, changes = nil, {}
  for _, word in ipairs((study.info.runs[1] or {}).words or {}) do core = word:match "^core=.*" or core end
  local since, run, info = changes_since(study)
  trusted_code.folder = study.path
  local held = not o.script and declaration_file.read(study.path)
  local path = find_script(o.script, study)
  for _, change in ipairs(since or {}) do
    -- Of a moved folder all is gone: what it holds is what was run.
    if not change.gone and change.kind == "code" then
      changes[#changes + 1] = ("%s: claims, figures and texts are those of the files as they are now"):format(change.text)
    end
  end
  local elsewhere = path and not o.script and path ~= study.info.script and since and since[1]
  local unknown = path and not trusted_code.may_load(path)
  if held and (not path or elsewhere or run_sources.choice == "stored" or unknown) then
    if unknown and run_sources.choice ~= "stored" then
      terminal.note(("mneme: warning: %s: %s is not known as yours, and was not run: claims, figures and texts are those of the folder; script=%s takes its")
        :format(study.path, path, path))
    end
    held.report = report_markdown.of(held.spec or {}, held.texts)
    held.changes = claims_changed(study, held.spec)
    return held
  end
  if not path then
    local kept = run and info.script and run_sources.texts(run.path, info)[info.script] and xpcall(run_sources.adopt, errors.handler, run.path, info)
    if not kept or not trusted_code.may_load(info.script) then          -- where it is trusted, or the user's own
      terminal.note(("mneme: warning: %s: the script is no longer there, and with it claims, figures and texts; script=FILE names it%s")
        :format(setting_types.show(study.info.script), kept and "; trust=1 runs the copy that the run keeps" or ""))
      return {}
    end
    path = study.info.script
  end
  for _, text in ipairs(changes) do terminal.note(("mneme: warning: %s: %s"):format(study.path, text)) end
  local source = report.source(path, core)
  source.changes = changes
  for _, text in ipairs(claims_changed(study, source.spec)) do changes[#changes + 1] = text end
  if held and not o.out and not o.script then declaration_file.write(study.path, source) end          -- texts are often written after the runs
  return source
end

-- Figures as files of their own.
local function write_figures(o, made)
  if not o.figures or not next(made) then return end
  local kinds = export.kinds()
  files.make_folder(o.figures)
  for _, name in ipairs(tables.keys(made)) do
    for _, kind in ipairs(kinds) do export.write(made[name], ("%s/%s.%s"):format(o.figures, name, kind), o.drawing) end
    print(("%s/%s: .%s"):format(o.figures, name, table.concat(kinds, " .")))
  end
end

local function is_kept(path) return path:find "%.jsonl$" ~= nil and files.is_file(path) end

-- The study of a command line: a sweep's folder, or runs as one.
local function load(paths)
  for _, path in ipairs(paths) do
    if is_kept(path) then errors.usage(path .. ": a file of kept runs is a report by itself", "mneme report " .. path) end
    if not files.is_folder(path) then errors.usage(path .. ": there is no such study or run", "mneme list runs") end
  end
  if #paths == 1 and files.is_file(paths[1] .. "/study.json") then return study_folder.load(paths[1]), true end
  return plain_runs.study(paths), false
end

-- What is wrong with the folders, said aloud, too.
local function unsound(study, swept)
  local list = provenance.sentences(study.runs, swept and study)
  for _, text in ipairs(list) do terminal.note(("mneme: warning: not as it was written: %s"):format(text)) end
  return list
end

-- The report that the arguments ask for, of a folder or of several.
local function write_report(o)
  local study, swept = load(o.paths)
  if not swept then
    trusted_code.folder = o.paths[1]
    local to = o.out or (#o.paths == 1 and o.paths[1] .. "/report.html" or "report.html")
    local made = report.write(to, study, { unsound = unsound(study) }, { beside = false })
    print(to)
    write_figures(o, made)
    terminal.next_step.say { #o.paths > 1 and "compare" or "view", unpack(o.paths) }
    return 0
  end
  local source = source_of(o, study)
  source.unsound = unsound(study, true)
  study_folder.add_means(study, source.spec)
  local n = o.export and result_archive.write(o.export, study, result_archive.curve_names(source.spec))
  local to = o.out or study.path .. "/report.html"
  local made = report.write(to, study, source, { beside = to:match "^(.*)/" == study.path })
  print(to)
  write_figures(o, made)
  if n then
    local failed = #tables.map(study.runs, function(c) return c.status == "failed" and c or nil end)
    print(("%s: %d runs%s"):format(o.export, n, failed > 0 and (" without the %d that failed, of which a report on this file does not know"):format(failed)
      or ""))
  end
  if not o.kept then terminal.next_step.say { "compare", study.path } end
  return 0
end

---@param o table the options of `mneme report` (commands/report.lua)
function report.main(o)
  for _, key in ipairs(export.words) do
    if o[key] ~= nil and not o.figures then errors.usage(("report: %s= is for the files of figures=FOLDER"):format(key)) end
  end
  o.drawing = export.options(o)
  for i, path in ipairs(o.paths) do o.paths[i] = path:gsub("(.)/+$", "%1") end
  local file = o.paths[1]
  o.kept = not o.paths[2] and is_kept(file)
  if not o.kept then return write_report(o) end
  o.out = o.out or file:match "([^/]*)%.jsonl$" .. ".html"
  return archive_study.with(file, o.script, function(at, path)
    o.paths[1], o.script = at, path
    return write_report(o)
  end)
end

return report
