-- test_kept_file.lua -- mneme report FILE.jsonl: the page of the folder that the runs were kept from, found by what the records say, and a
-- helpful error where they do not say it; every file of docs/results is a report.
local t = require "tests.harness"
local files = require "mneme.base.files"
local archive_study = require "mneme.lab.reports.archive_study"
local shell = require "tests.support.shell"
local trusted_code = require "mneme.base.trusted_code"

local here = shell.folder()
local function read(name) return (files.read(here .. "/" .. name)) end
local function write(name, text) files.write(here .. "/" .. name, { text }) end
local function mneme(words, at) return shell.mneme(at or here, words) end
local function works(words, at)
  local said, status = mneme(words, at)
  t.eq(status, 0, said)
  return said
end

write("small.lua", [[
local mn = require "mneme"
return mn.study {
  title = "small", question = "Is b more than a?", axes = { kind = { { "a", label = "a b" }, "b" }, width = { 1, 2, quick = { 1 } } }, seeds = { 2 },
  settings = { steps = 10, kind = { "a" }, more = 1 },
  run = function(cfg) return { score = (cfg.kind[1] == "b" and 1 or 0) + cfg.width + 0.01 * cfg.seed * cfg.more } end,
  metrics = { score = { "score" } }, figures = { { "bars", y = "score", x = "width", by = "kind" } },
  claims = { { id = "more", text = "b is more", source = "ours", test = { "better", metric = "score", a = { kind = "b" }, b = { kind = "a b" } } },
    { id = "wider", text = "b is more at 2", source = "ours", test = { "better", metric = "score", a = { kind = "b" }, b = { kind = "a b" },
      where = { width = 2 } } } },
}
]])
write("small.md", "## What was hard\n\nNothing, here.\n")

-- Pages as they are but for the folder of their figures.
local function page(name, kind) return (read(name .. kind):gsub(name .. "%-figures", "figures")) end

t.test("a file of kept runs gives the page of the folder that has imported them, as Markdown and HTML, and its figures", function()
  works "sweep small.lua estimate=0 jobs=2"
  works "report runs/small export=small.jsonl"
  works "sweep small.lua import=small.jsonl jobs=0 run=again"
  local said = works "report small.jsonl"
  t.ok(said:find "^small.html\n", said)
  for _, kind in ipairs { ".md", ".html" } do
    works("report again out=folder" .. kind)
    works("report small.jsonl out=file" .. kind)
    t.eq(page("file", kind):gsub('<a href="runs/[^"]*">([^<]*)</a>', "%1"):gsub("%[(kind=[^%]]*)%]%(runs/[^)]*%)", "%1"),
      page("folder", kind):gsub('<a href="runs/[^"]*">([^<]*)</a>', "%1"):gsub("%[(kind=[^%]]*)%]%(runs/[^)]*%)", "%1"), kind)
  end
  t.ok(read "file.md":find("Nothing, here.", 1, true))
  works "report small.jsonl out=drawn.md figures=drawn"
  t.ok(files.is_file(here .. "/drawn/figure-1.svg") and files.is_file(here .. "/drawn/figure-1.csv"))
end)

t.test("the size, seeds, and values of axes that the command line added are read from the records", function()
  works "sweep small.lua quick=1 seeds=4..4 estimate=0 jobs=2 run=quick"
  works "report quick export=quick.jsonl"
  works "report quick.jsonl out=quick.md"
  t.ok(read "quick.md":find("small values (quick=1)", 1, true))
  t.ok(not read "quick.md":find "runs are done", "the page is about the runs that are kept")
  t.ok(read "quick.md":find("no runs for these claims: wider.", 1, true))
  works "sweep small.lua kind=b width=1,9 seeds=1 estimate=0 jobs=2 run=wide"
  works "report wide export=wide.jsonl"
  works "report wide.jsonl out=wide.md"
  t.ok(read "wide.md":find("kind=b, width=9", 1, true))
end)

t.test("what cannot be found or is not the script's says what to do, and leaves nothing behind", function()
  local function refused(words, what, at)
    local said, status = mneme(words, at)
    t.ok(status ~= 0 and said:find(what, 1, true), said)
  end
  files.make_folder(here .. "/far")
  refused("report ../small.jsonl", "runs of the study 'small', whose script small.lua is not here (script=FILE names it)", here .. "/far")
  works("report ../small.jsonl script=../small.lua", here .. "/far")
  t.ok(files.is_file(here .. "/far/small.html"), "the page is where the command was given")
  write("other.jsonl", (read "small.jsonl":gsub('"more": 1', '"more": 2')))
  refused("report other.jsonl", "more is 1, there it was 2 (mneme sweep small.lua KEY=VALUE import=other.jsonl jobs=0 run=FOLDER")
  write("two.jsonl", read "small.jsonl" .. (read "small.jsonl":gsub('"study": "small"', '"study": "else"'):gsub("seed=", "seed=1")))
  refused("report two.jsonl", "it has runs of two studies")
  write("empty.jsonl", "")
  refused("report empty.jsonl", "it has no runs")
  refused("report small.jsonl other.jsonl", "a file of kept runs is a report by itself")
  refused("report again small.jsonl", "a file of kept runs is a report by itself")
  local seen
  t.raises(function() archive_study.with(here .. "/small.jsonl", here .. "/small.lua", function(at) seen = at error "stop" end) end, "stop")
  t.ok(seen and not files.is_folder(seen), "the folder that it was unpacked into")
  trusted_code.folder = nil
  refused("report nowhere.jsonl", "there is no such study or run")
  refused("report runs/small/runs/kind=b,width=1,seed=1/metrics.jsonl", "no run of a study")
end)

t.test("every file of kept runs here is found with all its runs by the settings that its study has now", function()
  local found = 0
  for _, name in ipairs(files.list(shell.root .. "docs/results")) do
    if name:find "%.jsonl$" then
      local script = archive_study.find(shell.root .. "docs/results/" .. name, nil, ("%s/%d"):format(here, found))
      t.ok(name:find(script:match "([^/]*)%.lua$", 1, true) == 1, name .. ": " .. script)
      found = found + 1
    end
  end
  trusted_code.folder = nil
  t.ok(found >= 30, found)
end)

files.remove_folder(here)
