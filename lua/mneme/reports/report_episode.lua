-- report_episode.lua -- an episode of a report's best run, to be played in the page: as it was, and with its memory erased half-way.
local errors = require "mneme.base.errors"
local episode_data = require "mneme.view.episode_data"
local episode_page = require "mneme.view.episode_page"
local files = require "mneme.base.files"
local intervention_options = require "mneme.episodes.intervention_options"
local playback = require "mneme.episodes.playback"
local source_files = require "mneme.base.source_files"
local stepper = require "mneme.episodes.stepper"
local values = require "mneme.base.setting_types"

local episode = {}
local MOST_STEPS = 400
local SHARE = 0.4                              -- of what an episode's own file may hold

-- The run of the best score, or of the best return where none has a score; it is done and has a checkpoint.
local function best_run(study)
  for _, metric in ipairs { "score", "mean_return" } do
    local best
    for _, run in ipairs(study.runs) do
      local x = run.metrics and run.metrics[metric]
      local here = run.path and files.is_folder(run.path .. "/checkpoints") and #files.list(run.path .. "/checkpoints") > 0
      if x and here and (not best or x > best.metrics[metric]) then best = run end
    end
    if best then return best, metric end
  end
end

-- The first episode of a run; the step half-way, from which on a second course has no memory, where it has one.
local function played(path)
  local function open(given) return stepper.from_run(path, { seeded = true, episode = given.episode }) end
  local shown = playback.new { { source = open {}, open = open } }
  repeat until not shown:forward() or shown:ended() or shown.at > MOST_STEPS
  local at = math.floor(shown:tick_of(1).step / 2)
  local core = shown:source().agent.core
  if at == 0 or next(core.states) == nil then return shown, nil end
  shown:seek(at + 1)
  local line, slot = shown.tracks[1].timeline, shown.slots[shown.at][1]
  local change = intervention_options.change(intervention_options.of { { kind = "erase", what = "all" } }, line, slot)
  return shown, shown:change(change, 0) and at or nil
end

---Put an episode of the best run into a page, with its heading; nothing where no run can play one.
---@param out table page
---@param study table of study/folder.lua
---@param words table
function episode.write(out, study, words)
  local run, metric = best_run(study)
  local before = source_files.folder
  local ok, data, at = pcall(function()
    if not run or (run:info() or {}).sequence_task then return nil end
    local shown, erased = played(run.path)
    return episode_data.of(shown, { at = erased, open = erased, most = MOST_STEPS, share = SHARE }), erased
  end)
  source_files.folder = before
  if not ok then
    if not errors.is(data) then error(data, 0) end
    io.stderr:write(("mneme: warning: no episode in the report: %s\n"):format(data.message))
    return
  end
  if not data then return end
  out:heading(3, "episode", words.episode)
  out:paragraphs(words.episode_of:format(run.name, values.show(metric):gsub("_", " "), ("%.3g"):format(run.metrics[metric])) ..
    (at and words.episode_erased:format(at) or ""))
  local command = ("mneme view %s out=episode.html"):format(run.path) .. (at and (" erase=all at=%d"):format(at) or "")
  out:add { kind = "episode", html = episode_page.section(data, "episode-1"), command = command }
end

return episode
