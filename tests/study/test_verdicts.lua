-- test_verdicts.lua -- docs/results/README.md says "holds", "does not hold" and "undecided" where the kept runs say it: every claim of every
-- file is judged again.
local t = require "tests.harness"
local claims = require "mneme.lab.study.claims"
local files = require "mneme.base.files"
local study_folder = require "mneme.lab.study.study_folder"
local archive_study = require "mneme.lab.reports.archive_study"
local report = require "mneme.lab.reports.report"

-- The section that links to a file.
local page = files.read "docs/results/README.md"
local function section(file)
  for text in ("\n" .. page):gsub("\n### ", "\n\1"):gmatch "\1([^\1]*)" do
    if text:find("(" .. file .. ")", 1, true) then return text end
  end
end

-- How many claims come out as each verdict.
local function judged(file)
  return archive_study.with("docs/results/" .. file, nil, function(at, path)
    local study, source, count = study_folder.load(at), report.source(path), { holds = 0, fails = 0, undecided = 0 }
    study_folder.add_means(study, source.spec)
    for _, v in ipairs(claims.judge(study, source.spec.claims, source.spec.metrics)) do
      if v.why ~= "no_run" then count[v.verdict] = count[v.verdict] + 1 end
    end
    return count
  end)
end

-- Which verdicts a text has in bold.
local function said(text)
  local says = {}
  for bold in text:gmatch "%*%*(.-)%*%*" do
    local word = bold:lower()
    local fails = word:find "do[es]* not hold"
    if fails then says.fails = true elseif word:find "holds?" then says.holds = true end
    if word:find "undecided" then says.undecided = true end
  end
  return says
end

local n, bytes = 0, 0
for _, file in ipairs(files.list "docs/results") do
  if file:find "%.jsonl$" then
    n, bytes = n + 1, bytes + #files.read("docs/results/" .. file)
    t.test("the verdicts on " .. file, function()
      local text = t.ok(section(file), "a section links to it") and section(file)
      local count, says = judged(file), said(text)
      for _, verdict in ipairs { "holds", "fails" } do
        t.eq(says[verdict] or false, count[verdict] > 0, ("'%s' in bold, where %d claims come out so"):format(verdict, count[verdict]))
      end
      t.ok(says.undecided or count.holds + count.fails > 0 or text:find "too few for a verdict", "nothing is decided, and the page should say so")
    end)
  end
end
t.test("there are files, and they are small: curves that no figure of a study draws are not kept", function()
  t.ok(n > 30)
  t.ok(bytes < 6e6, ("docs/results has %.0f bytes"):format(bytes))
end)
