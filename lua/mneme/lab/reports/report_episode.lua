-- report_episode.lua -- an episode of the best of a report's runs, to be played in the page: as it was, and with its memory erased half-way, with
-- what was measured of the memory.
local causal_map_file = require "mneme.insight.episodes.causal_map_file"
local episode_data = require "mneme.insight.view.episode_data"
local episode_page = require "mneme.insight.view.episode_page"
local errors = require "mneme.base.errors"
local files = require "mneme.base.files"
local intervention_options = require "mneme.insight.episodes.intervention_options"
local run_folder = require "mneme.runs.folder"
local scene = require "mneme.insight.view.scene"
local source_files = require "mneme.base.source_files"
local stepper = require "mneme.insight.episodes.stepper"
local terminal = require "mneme.base.terminal"
local viewer = require "mneme.insight.view.viewer"
local setting_types = require "mneme.base.setting_types"
local report_strings = require "mneme.lab.reports.report_strings"

local episode = {}
local MOST_STEPS, SHARE = 400, 0.4             -- of what an episode's own file may hold
local SECONDS = 5

-- ---- which run ----

-- An imported run has the results of another machine's training: a checkpoint next to them would not be of it.
local function can_play(run)
  if not run.path or run.kept then return false end
  return files.is_folder(run.path .. "/checkpoints") and #files.list(run.path .. "/checkpoints") > 0 and not (run:info() or {}).sequence_task
end

-- The run of the best score, of fresh episodes where some were played, or of the best return where none has a score; it is done and has a checkpoint.
local function best_run(study)
  for _, metric in ipairs { "fresh_score", "score", "mean_return" } do
    local best
    for _, run in ipairs(study.runs) do
      local x = run.metrics and run.metrics[metric]
      if x and can_play(run) and (not best or x > best.metrics[metric]) then best = run end
    end
    if best then return best, metric end
  end
end

-- ---- an episode ----

-- The first episode of a run; the step half-way, from which on a second course has no memory, where it has one.
local function played(path)
  local function open(given)
    return given == "checkpoints" and {} or stepper.from_run(path, { seeded = true, episode = given.episode })
  end
  local function map(checkpoint, test) return causal_map_file.of_run(path, { checkpoint = checkpoint, test = test }) end
  local first = { source = open {}, open = open, map = map, stored = files.is_folder(path .. "/where"),
    scene = scene.load(scene.for_env(tostring(run_folder.read_info(path).env))) }
  local shown = viewer.new({ first }, { controls = false })
  repeat until not shown:forward() or shown:ended() or shown.at > MOST_STEPS
  local at = math.floor(shown:tick_of(1).step / 2)
  local core = shown:source().agent.core
  if at == 0 or next(core.states) == nil then return shown, nil end
  shown:seek(at + 1)
  local line, slot = shown.tracks[1].timeline, shown.slots[shown.at][1]
  local change = intervention_options.change(intervention_options.of { { kind = "erase", what = "all" } }, line, slot)
  return shown, shown:change(change, 0) and at or nil
end

-- The data of a run's first episode; nil where it cannot be played.
local function data_of(run)
  local before = source_files.folder
  run_folder.held = {}
  local ok, data, at = xpcall(function()
    local shown, erased = played(run.path)
    return episode_data.of(shown, { open = erased, most = MOST_STEPS, share = SHARE, seconds = SECONDS }), erased
  end, errors.handler)
  source_files.folder, run_folder.held = before, nil
  if ok then return data, at end
  if data.silent then error(data, 0) end
  terminal.note(("mneme: warning: no episode of %s in the report: %s"):format(run.name, tostring(data)))
  errors.beside = nil
end

---Put an episode of the best run into a page, with its heading; nothing where no run can play one.
---@param out table of lab/reports/page/blocks.lua
function episode.write(out, study)
  local run, metric = best_run(study)
  local data, at
  if run then data, at = data_of(run) end
  if not data then return end
  out:heading(3, "episode", report_strings.episode)
  out:paragraphs(report_strings.episode_of:format(run.name, setting_types.show(metric):gsub("_", " "), ("%.3g"):format(run.metrics[metric]))
    .. (at and report_strings.episode_erased:format(at) or "") .. ".")
  local command = ("mneme view %s out=episode.html"):format(run.path) .. (at and (" erase=all at=%d"):format(at) or "")
  out:add { kind = "episode", html = episode_page.section(data, "episode-1"), command = command }
end

return episode
