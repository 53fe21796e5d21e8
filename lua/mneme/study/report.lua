-- report.lua -- write the report of a study (a sweep's folder) as one self-contained HTML page: claims and verdicts, models,
-- data, settings and their sources, resources, figures, numbers, runs.
-- Prose comes from the study's script and from the .md file of the same name, everything else from the runs.  The page of
-- an unfinished study says so, so it can be written at any time.
--   out=F       default STUDY/report.html
--   figures=F   also each figure in its own file: F/figure-1.svg, .pdf, .png, .gp (for gnuplot) and .csv
--   script=F    the study's script, if it was moved
--   export=F    also write the finished runs to this file; mneme sweep SCRIPT import=F imports them
local claims = require "mneme.study.claims"
local errors = require "mneme.base.errors"
local export = require "mneme.figures.export"
local figure = require "mneme.study.figure"
local figure_words = require "mneme.study.figure_texts"
local files = require "mneme.base.files"
local tables = require "mneme.base.tables"
local folder = require "mneme.study.folder"
local archive = require "mneme.study.result_archive"
local method = require "mneme.study.report_method"
local numbers = require "mneme.base.format"
local page = require "mneme.study.html_page"
local renamed = require "mneme.base.renamed"
local results = require "mneme.study.report_results"
local run_sources = require "mneme.runs.run_sources"
local script = require "mneme.runs.script"
local source_files = require "mneme.base.source_files"
local section = require "mneme.figures.html_section"
local settings = require "mneme.study.settings_diff"
local value_sources = require "mneme.study.value_sources"
local values = require "mneme.base.setting_types"
local verdicts = require "mneme.study.report_claims"
local strings = require "mneme.study.report_strings"
local tuned = require "mneme.study.tuning_report"
local written = require "mneme.study.report_markdown"

local report = {}
local USAGE = "mneme report STUDY [out=FILE.html] [figures=FOLDER] [export=FILE]"

-- ---- figures ----

-- A figure that cannot be made, of runs that lack a number or by a name that none has, says why in its place: the rest
-- of the page does not depend on it.
local function figures(out, study, spec, made)
  local words = strings
  local of_figures = figure_words
  local list, others = spec.figures or {}, { table = of_figures.table }
  for key, word in pairs(words.figure) do others[key] = word end
  for i, f in ipairs(list) do
    local ok, fig = xpcall(figure.new, errors.handler, study, spec, f, of_figures)
    if ok then
      out:add(section.html(fig, "figure-" .. i, others))
      made["figure-" .. i] = fig
    else
      io.stderr:write(("mneme: warning: figure %d: %s\n"):format(i, fig.message))
      out:paragraphs(words.no_figure:format(i, fig.message), "warning")
    end
  end
  if #list == 0 then out:paragraphs(words.no_figures, "dim") end
  local rows = {}
  for i, r in ipairs(spec.references or {}) do
    local unit = ((spec.metrics or {})[r.of] or {}).unit
    rows[i] = { r[1], r.of or "–", { numbers.short(r.y, unit), class = "number" }, r.source or "–" }
  end
  if #rows > 0 then out:table({ words.reference, words.of, words.value, words.source }, rows, words.references) end
end

-- ---- records ----

local function encoded(name) return (name:gsub("[^%w_.,=+-]", function(c) return ("%%%02X"):format(c:byte()) end)) end

-- A failed run's last message; where it ran, if not here.
local function note_of(c, words)
  if c.error then return c.error end
  return c.kept and words.taken:format(values.show(c.kept.file):match "[^/]*$", values.show(c.kept.commit or "–"), values.show(c.kept.host or "–")) or ""
end

-- Runs link to their folders if the page is next to them.
local function run_table(out, study, beside, words)
  local rows = {}
  for i, c in ipairs(study.runs) do
    local used = c.resources and tonumber(c.resources.wall_s)
    local here = folder.run_path(study.path, encoded(c.name)):match "[^/]+/[^/]+$" .. "/"
    rows[i] = { { c.name, href = beside and here or nil }, words.statuses[c.status] or c.status,
      { used and numbers.short(used, "s") or "–", class = "number" }, { note_of(c, words), class = (c.error or c.kept) and "wide" or nil } }
  end
  out:paragraphs(words.run_note, "dim")
  out:table({ words.run, words.status, words.time, words.note }, rows)
end

local function code(out, study, source, words)
  out:table({}, { { words.script, values.show(study.info.script) }, { words.commit, values.show(study.info.commit or "–") } })
  if source.text then out:folded(words.script_text, source.text)
  else out:paragraphs(words.not_there:format(values.show(study.info.script)), "dim") end
end

-- ---- the whole ----

-- How far the study is, and what became of its claims, above everything else.
local function opening(study, spec, judged, size, words)
  local out, count, taken = page.new("", ""), { done = 0, failed = 0, open = 0 }, 0
  for _, c in ipairs(study.runs) do
    count[c.status] = (count[c.status] or 0) + 1
    if c.kept then taken = taken + 1 end
  end
  if values.show(study.info.settings):find "%f[%w]quick=1%f[%W]" then out:paragraphs(words.quick, "warning") end
  if count.done < #study.runs then out:paragraphs(words.not_all:format(count.done, #study.runs, count.failed, count.open), "warning") end
  if taken > 0 then out:paragraphs(words.all_taken:format(taken), "dim") end
  if spec.question then out:paragraphs(spec.question, "question") end
  if #judged > 0 then
    out:add "<ul>\n"
    for i, v in ipairs(judged) do
      local about = (size ~= "" and size .. ", " or "") .. words.of_seeds:format(v.n)
      for _, r in ipairs(v.rollout) do about = ("%s, %s: core.sees=rollout"):format(about, r.name) end
      out:add(('<li>%s <a class="verdict %s" href="#verdict-%d">%s</a> (%s)</li>\n'):format(page.escape(v.claim.text), v.verdict, i,
        page.escape(words[v.verdict]), page.escape(about)))
    end
    out:add "</ul>\n"
  end
  return table.concat(out.out)
end

---A study as a page.
---@param study table of mneme.studies.folder
---@param source table { spec = what mn.study was given, report = what is written of it, defaults = the script's settings, flat,
---  text = the script, about = files of the runs that it is written about, others = how many runs are not of those } as known
---@param options table? { beside = false: the page is not in the study's folder }
---@return string html
function report.html(study, source, options)
  options = options or {}
  local spec = source.spec or {}
  local texts = source.report or spec.report or {}
  local judged, runs = claims.judge(study, spec.claims, spec.metrics), method.runs(study)
  local words = strings
  local out = page.new(spec.title or study.info.title or study.path:match "[^/]*$")
  local function part(level, name) out:heading(level, name, words[name]) end
  local filled = {
    model = function() method.model(out, runs, words) end,
    data = function() method.data(out, runs, words) end,
    implementation = function() method.checks(out, runs, words) end,
    setup = function() method.setup(out, study, runs, words) end,
    code = function() code(out, study, source, words) end,
  }
  local function write(name)
    part(3, name)
    if name == "discussion" and texts[name] and (source.others or 0) > 0 then
      out:paragraphs(words.others:format(source.others, table.concat(source.about, ", ")), "warning")
    end
    if texts[name] then out:paragraphs(texts[name]) end
    local before = #out.out
    if filled[name] then filled[name]() end
    if not texts[name] then out:paragraphs(#out.out > before and words.no_more or words.unwritten, "dim") end
  end
  part(2, "claims_and_scope")
  write "scope"
  part(3, "claims")
  verdicts.claims(out, spec.claims or {}, words)
  part(2, "method")
  write "model"
  write "data"
  part(3, "hyperparameters")
  method.hyperparameters(out, runs, source.defaults, texts, words, value_sources.new(study, source, words))
  tuned.write(out, study, spec, function(title) out:heading(3, "tuning", title) end)
  write "implementation"
  write "setup"
  part(3, "resources")
  method.resources(out, study, words)
  part(2, "results")
  part(3, "verdicts")
  verdicts.table(out, judged, spec, words)
  part(3, "figures")
  local made = {}
  figures(out, study, spec, made)
  part(3, "numbers")
  results.write(out, study, spec, words)
  write "beyond"
  part(2, "discussed")
  for _, name in ipairs { "discussion", "easy", "hard", "recommendations", "authors" } do write(name) end
  part(2, "records")
  write "code"
  part(3, "runs")
  run_table(out, study, options.beside ~= false, words)
  return out:html(opening(study, spec, judged, method.size(runs, words), words), words.contents), made
end

---What the script of a study says.
---@param path string of the script
---@param core string? the word that chooses the runs' core: published values go with it
---@return table source { path, of = path of the experiment that it is of, spec, report, defaults, text }
function report.source(path, core)
  local ok, survey = pcall(script.survey, path, { core })
  if not ok then survey = script.survey(path, {}) end               -- values of an axis have other names than cores
  local cfg = {}
  for key, value in pairs(survey.cfg) do cfg[key] = values.to_json(value) end
  local spec = survey.spec or {}
  local of = spec.of and script.locate(spec.of)
  return { path = path, of = of, spec = survey.spec, report = written.of(path, spec, of), defaults = settings.flat(cfg), text = (files.read(path)) }
end

-- ---- the command ----

local known = { out = true, figures = true, script = true, export = true, keep = true }

local function parse(words)
  local o = {}
  for _, word in ipairs(words) do
    local key, text = word:match "^%-*([%a_]+)=(.*)$"
    if key == "language" then errors.usage("report: language= was removed: reports are in English", USAGE) end
    if key and not known[key] then errors.unknown("setting of report", key, tables.keys(known)) end
    if key then o[key] = text
    elseif word:find "^%-" or o.study then errors.usage(("report: '%s' means nothing here"):format(word), USAGE)
    else o.study = word:gsub("(.)/+$", "%1") end
  end
  o.export = renamed.field(o, "export", "keep", "report %s=")
  if not o.study then errors.usage("report: of which study?", USAGE) end
  if o.out and not o.out:lower():find "%.html?$" then
    errors.usage(("report: out=%s, expected a name ending in .html"):format(o.out), "figures=FOLDER writes the figures as SVG, PDF, PNG, CSV and for gnuplot")
  end
  if not files.is_folder(o.study) and files.is_folder("runs/" .. o.study) then o.study = "runs/" .. o.study end
  return o
end

-- The script of a study: where it was, or an experiment of that name.
local function find_script(given, study)
  if given then return script.locate(given) end
  local path = values.show(study.info.script)
  if files.is_file(path) then return path end
  local ok, found = pcall(script.locate, path:match "([^/]*)$":gsub("%.lua$", ""))
  return ok and found or nil
end

---@param words string[] what follows "report"
---@return integer status
function report.main(words)
  local o = parse(words)
  if not files.is_folder(o.study) then
    local near = errors.nearest(o.study:match "[^/]*$", files.list "runs")
    errors.usage(o.study .. ": there is no such study", near and "did you mean runs/" .. near .. "?" or USAGE)
  end
  local study = folder.load(o.study)
  if not o.script then source_files.folder = study.path end          -- a script that the study's folder brings is somebody's program
  local path = find_script(o.script, study)
  for i = 1, math.min(1, #study.runs) do
    for _, change in ipairs(run_sources.changes(study.runs[i].path, study.runs[i]:info() or {})) do
      io.stderr:write(("mneme: warning: %s: %s %s since its runs were made%s\n"):format(study.path, change.path,
        change.gone and "is gone" or "has changed", change.line and (" (line %d)"):format(change.line) or ""))
    end
  end
  local core
  for _, word in ipairs((study.info.runs[1] or {}).words or {}) do core = word:match "^core=.*" or core end
  local source = path and report.source(path, core) or {}
  if not path then
    io.stderr:write(("mneme: warning: %s: the script is no longer there, and with it claims, figures and texts; script=FILE names it\n")
      :format(values.show(study.info.script)))
  end
  folder.add_means(study, source.spec)
  local n = o.export and archive.write(o.export, study, archive.curve_names(source.spec))
  if path then source.about, source.others = archive.written_about(path, study) end
  local to = o.out or study.path .. "/report.html"
  local html, made = report.html(study, source, { beside = to:match "^(.*)/" == study.path })
  files.write(to, { html })
  print(to)
  for _, name in ipairs(o.figures and tables.keys(made) or {}) do
    files.make_folder(o.figures)
    for _, kind in ipairs { "svg", "gp", "pdf", "png" } do export.write(made[name], ("%s/%s.%s"):format(o.figures, name, kind)) end
    print(("%s/%s: .svg .gp .csv .pdf .png"):format(o.figures, name))
  end
  if n then print(("%s: %d runs"):format(o.export, n)) end
  return 0
end

return report
