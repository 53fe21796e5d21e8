-- outcome.lua -- RUN/outcome.json: why the last training of a run ended, at which step, and what it came to: of an agent the mean score and
-- return of its last hundred episodes, which is more than the log's last line has.  A run that is being trained, was killed or failed has none.
-- Of one that its stop_score ended, that score was reached for the first time, by luck, too: `fresh` is what its agent does afterwards.
--   { ended = "steps" | "stop_score" | "learner" (says that it is over) | "signal" | "budget", step, results = { score, mean_return ... },
--     fresh = { score, low, high (its 95 % interval), greedy, episodes, num_envs, seed } }
local files = require "mneme.base.files"
local json = require "mneme.base.json"
local run_folder = require "mneme.runs.folder"
local sealed = require("mneme.base.json").sealed

local outcome = {}
local function file_of(path) return path .. "/outcome.json" end

---@param path string of the run
---@param ended string
---@param step number
---@param results table the learner's summary; of it the finite numbers are kept
---@param fresh table? likewise, of fresh episodes
function outcome.write(path, ended, step, results, fresh)
  local function finite(t)
    local kept = {}
    for name, value in pairs(t) do if type(value) == "number" and value - value == 0 then kept[name] = value end end
    return kept
  end
  files.write(file_of(path), { sealed.encode { of = run_folder.whose_is(path), ended = ended, step = step, results = finite(results),
    fresh = fresh and finite(fresh) } })
end

---Training goes on: what it came to is not known any more.
---@param path string of the run
function outcome.forget(path) if files.is_file(file_of(path)) then files.remove(file_of(path)) end end

---@param path string of the run
---@return { ended: string, step: number, results: table<string, number>, fresh: table<string, number>? }? nil: there is none, or a damaged one
function outcome.read(path)
  if not files.is_file(file_of(path)) then return nil end
  local ok, o = pcall(function() return (json.decode((files.read(file_of(path))))) end)
  if not ok or type(o) ~= "table" or type(o.ended) ~= "string" or type(o.step) ~= "number" or type(o.results) ~= "table" then return nil end
  for _, numbers in ipairs { o.results, o.fresh } do
    if type(numbers) ~= "table" then return nil end
    for name, value in pairs(numbers) do if type(name) ~= "string" or type(value) ~= "number" or value - value ~= 0 then return nil end end
  end
  if o.fresh and not (o.fresh.score and o.fresh.episodes) then return nil end
  return o
end

---What its fresh episodes came to, by the names that a study's metrics have: fresh_score, fresh_greedy.
---@param path string of the run
---@return table<string, number> metrics empty: it played none
function outcome.metrics(path)
  local fresh = (outcome.read(path) or {}).fresh or {}
  return { fresh_score = fresh.score, fresh_greedy = fresh.greedy }
end

return outcome
