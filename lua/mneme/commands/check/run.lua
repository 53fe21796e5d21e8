-- run.lua -- `mneme check RUN|STUDY`: prints what reports/integrity.lua finds in the folders of runs and studies.
local files = require "mneme.base.files"
local integrity = require "mneme.reports.integrity"
local progress = require "mneme.base.progress"
local study_folder = require "mneme.study.folder"
local terminal = require "mneme.base.terminal"

local check_run = {}

-- Prints what was found; is it sound?
local function report(path, found, summary)
  print(("%-9s %s  %s"):format(#found.bad == 0 and "ok" or "DAMAGED", path, summary))
  for _, text in ipairs(found.bad) do print("          " .. terminal.plain(text, true)) end
  for _, text in ipairs(found.notes) do print("          note: " .. terminal.plain(text, true)) end
  return #found.bad == 0
end

-- Takes from several runs the notes that more than one of them has, each as one line for all of them; a run's own path reads RUN.
local function take_common(all)
  local count, order, lines = {}, {}, {}
  local function key(run, text) return (text:gsub(run.path:gsub("%p", "%%%0"), "RUN")) end
  for _, run in ipairs(all) do
    for _, text in ipairs(run.found.notes) do
      local k = key(run, text)
      if not count[k] then order[#order + 1] = k end
      count[k] = (count[k] or 0) + 1
    end
  end
  for _, run in ipairs(all) do
    local own = {}
    for _, text in ipairs(run.found.notes) do own[#own + 1] = count[key(run, text)] == 1 and text or nil end
    run.found.notes = own
  end
  for _, k in ipairs(order) do
    local which = count[k] == #all and ("all %d runs"):format(#all) or ("%d of %d runs"):format(count[k], #all)
    if count[k] > 1 then lines[#lines + 1] = which .. ": " .. k end
  end
  return lines
end

---Checks runs and studies, and prints what it found.
---@param path string the folder of a run, or of a study, whose runs are checked one by one
---@return integer status 0, or 1 where something is damaged
function check_run.main(path)
  path = path:gsub("(.)/+$", "%1")
  if not files.is_file(path .. "/study.json") then
    local ok, found, summary = integrity.steady(path, integrity.run, path)
    if not ok then error(found, 0) end
    return report(path, found, summary) and 0 or 1
  end
  local study = study_folder.load(path)
  local sound, damaged, all = report(path, integrity.study(path, study)), 0, {}
  for i, r in progress.each(study.runs, "runs") do
    if files.is_file(r.path .. "/config.json") then
      local ok, found, summary = integrity.steady(r.path, integrity.run_of_study, r, study.info.runs[i])
      if not ok then found, summary = { bad = { found.message }, notes = {} }, "" end
      all[#all + 1] = { path = r.path, found = found, summary = summary }
    end
  end
  local common = take_common(all)
  for _, run in ipairs(all) do if not report(run.path, run.found, run.summary) then damaged = damaged + 1 end end
  for _, text in ipairs(common) do print("note: " .. terminal.plain(text, true)) end
  print(("%s: %s"):format(path, damaged > 0 and ("%d of %d runs are damaged"):format(damaged, #study.runs) or sound and "nothing is damaged"
    or "its runs are sound, the study's folder is not"))
  return sound and damaged == 0 and 0 or 1
end

return check_run
