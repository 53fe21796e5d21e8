-- report_memory.lua -- what the stored map of a memory says, of the best of a report's runs that has one, in the sentences of `mneme where`.
local causal_map_file = require "mneme.insight.episodes.causal_map_file"
local errors = require "mneme.base.errors"
local files = require "mneme.base.files"
local memory_story = require "mneme.insight.episodes.memory_story"
local report_strings = require "mneme.lab.reports.report_strings"
local trusted_code = require "mneme.base.trusted_code"
local terminal = require "mneme.base.terminal"

local report_memory = {}

-- The sentences of a run's maps; nil where that of erasing does not go over all steps.
local function told(path)
  local function stored(test)
    local map = causal_map_file.of_run(path, { test = test })
    return map.coarse and { map = map, cells = map:view().cells } or nil
  end
  local kept = stored "erase"
  if not kept then return nil end
  local what = memory_story.what(kept.map.carrier.env)
  local sentences, lost = memory_story.sentences(kept, memory_story.fails(kept.map) and stored "hold" or nil, what)
  if not lost then sentences = memory_story.sentences(kept, nil, what) end            -- why no part lost it, readings would have to say
  return table.concat(sentences, " "), #kept.map.outcomes
end

---Adds the sentences to a page; nothing where no run keeps a map of its memory.  An imported run has no map: its checkpoints are elsewhere.
function report_memory.write(out, study)
  local best, score
  for _, run in ipairs(study.runs) do
    local m = run.metrics or {}
    local x = m.fresh_score or m.score or m.mean_return or -math.huge
    if run.path and not run.kept and #files.list(run.path .. "/where") > 0 and (not best or x > score) then best, score = run, x end
  end
  if not best then return end
  local before = trusted_code.folder
  local ok, text, episodes = xpcall(told, errors.handler, best.path)
  trusted_code.folder = before
  if ok and text then out:paragraphs(report_strings.remembers_of:format(best.name, episodes, text))
  elseif not ok and text.silent then error(text, 0)
  elseif not ok then terminal.note(("mneme: warning: nothing of the memory of %s in the report: %s"):format(best.name, tostring(text))) end
end

return report_memory
