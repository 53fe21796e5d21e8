-- estimate.lua -- estimates the time and memory of a sweep before it begins: times a few runs for a moment, and computes the
-- others from the costs of their cores (core:describe).
local costs = require "mneme.models.costs"
local C = require("mneme.base.engine").C
local errors = require "mneme.base.errors"
local grid = require "mneme.lab.study.grid"
local files = require "mneme.base.files"
local json = require "mneme.base.json"
local model_sizes = require "mneme.lab.study.model_sizes"
local process_pool = require "mneme.lab.study.process_pool"
local progress = require "mneme.base.progress"
local script = require "mneme.runs.script"
local trainer = require "mneme.learn.trainer"
local setting_types = require "mneme.base.setting_types"
local tables = require "mneme.base.tables"

local estimate = {}
local TRIED, SECONDS = 8, 1.5          -- at most that many kinds of runs, for so long each
local PATIENCE = 6                     -- seconds after which a run that does not train is given up

-- Runs that differ by their seed alone are of one kind; the first of each is tried.
local function kinds_of(runs)
  local list = grid.groups(runs, grid.kind)
  for _, kind in ipairs(list) do
    kind.run = kind.runs[1]
    for _, c in ipairs(kind.runs) do c.kind = kind end
  end
  return list
end

-- What training a kind costs: its steps, its core in words, and the core's operations a step where it has one.
local function describe(kind, path)
  local cfg = script.survey(path, kind.run.words, true).cfg
  kind.steps, kind.core = cfg.steps, setting_types.show(cfg.core or "")
  local options = type(cfg.core) == "table" and tables.merged(cfg.core) or { cfg.core }
  local ok, flops = pcall(costs.training, table.remove(options, 1), options)
  kind.flops = ok and flops or nil
end

-- Some kinds that are unlike each other: of each core one, then others.
local function choose(kinds)
  local chosen, seen = {}, {}
  for _, again in ipairs { false, true } do
    for _, kind in ipairs(kinds) do
      if #chosen < TRIED and not kind.tried and (again or not seen[kind.core]) then
        chosen[#chosen + 1], kind.tried, seen[kind.core] = kind, true, true
      end
    end
  end
  return chosen
end

-- Run a run for a moment in this process: writes the time of a step, and of all else, to a file.
local function try(kind, path, folder)
  local began = C.mn_clock(false)
  trainer.budget = SECONDS
  local ok, result = xpcall(script.run, errors.handler, path, { "run=" .. folder .. "/run", unpack(kind.run.words) })
  if not ok then return result.status end
  local step = type(result) == "table" and tonumber(result.seconds_per_step)
  local rest = C.mn_clock(false) - began - (step and tonumber(result.seconds_measured) or 0)
  files.write(folder .. "/tried.json", { json.encode { step = step or 0, rest = rest } })
  return 0
end

-- Seconds of a kind that was not tried: as the one with its core, or the one whose core costs about as much.
local function follow(kind, tried)
  local best, off
  for _, other in ipairs(tried) do
    local far = other.core == kind.core and -1 or kind.flops and other.flops and math.abs(math.log(kind.flops / other.flops)) or math.huge
    if other.seconds and (not best or far < off) then best, off = other, far end
  end
  if not best then return end
  local ratio = best.core ~= kind.core and kind.flops and best.flops and kind.flops / best.flops or 1
  kind.seconds, kind.peak = best.seconds * kind.steps / best.steps * ratio, best.peak
end

---Estimate runs: of each c.estimate = { wall_s, peak_mib }, where it can be known.
---@param o table run = the study's folder, jobs
---@return table sum { seconds of the whole sweep, peak_mib of the largest run, tried = kinds that were, parameters = of their models }, without seconds where
---  nothing is known
function estimate.of(runs, path, o)
  local kinds, at = kinds_of(runs), 0
  for _, kind in ipairs(kinds) do describe(kind, path) end
  local chosen, base, parameters = choose(kinds), o.run .. "/estimate", {}
  local function place(kind) return base .. "/" .. kind.name:gsub("^$", "run") end
  files.remove_folder(base)
  process_pool.run {
    jobs = o.jobs, patience = SECONDS + PATIENCE,
    next = function()
      at = at + 1
      if chosen[at] then files.make_folder(place(chosen[at])) end
      return chosen[at]
    end,
    none_left = function() return at > #chosen end,
    log = function(kind) return place(kind) .. "/log.txt" end, run = function(kind) return try(kind, path, place(kind)) end,
    ended = function(kind, about)
      local file = place(kind) .. "/tried.json"
      model_sizes.read(parameters, { kind.run }, function() return place(kind) .. "/run" end)
      local tried = about.status == 0 and files.is_file(file) and json.decode((files.read(file)), file) or {}
      kind.seconds, kind.peak = tried.step and tried.step * kind.steps + tried.rest, about.peak / 2 ^ 20
      kind.least = not tried.step and about.wall >= SECONDS + PATIENCE and about.wall or nil        -- it was given up
    end,
    tick = function() end,
  }
  files.remove_folder(base)
  local sum, known, seconds, longest = { tried = #chosen, peak_mib = 0, parameters = parameters }, true, 0, 0
  for _, kind in ipairs(kinds) do
    if not kind.seconds then follow(kind, chosen) end
    if kind.seconds and kind.least then kind.seconds = math.max(kind.seconds, kind.least) end
  end
  for _, c in ipairs(runs) do
    local kind = c.kind
    known = known and kind.seconds ~= nil
    seconds, longest, sum.peak_mib = seconds + (kind.seconds or 0), math.max(longest, kind.seconds or 0), math.max(sum.peak_mib, kind.peak or 0)
    c.estimate, c.kind = kind.seconds and { wall_s = kind.seconds, peak_mib = kind.peak } or nil, nil
  end
  sum.seconds = known and process_pool.seconds(seconds, #runs, o.jobs, longest) or nil
  return sum
end

---An estimate in words.
function estimate.text(sum, n, jobs)
  local runs, wide = ("%d run%s"):format(n, n > 1 and "s" or ""), math.min(jobs, n)
  if not sum.seconds then return ("%s: how long %s is not known before"):format(runs, n > 1 and "they take" or "it takes") end
  return ("%s in %d process%s: about %s, up to %.0f MiB each (%d kind%s tried)"):format(runs, wide, wide > 1 and "es" or "",
    progress.clock(sum.seconds), sum.peak_mib, sum.tried, sum.tried > 1 and "s were" or " was")
end

return estimate
