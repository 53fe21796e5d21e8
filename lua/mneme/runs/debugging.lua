-- debugging.lua -- slow, close checks of a training: the settings debug= and profile=.
--   debug=nan     checks the values of every op, and saves everything before each update: when a value is not
--                 finite, the step before is there as a checkpoint, and the message names op, inputs and lines
--   debug=grad    gradients.jsonl: at each line of the log, the norm, the largest value and the share of zeros of every
--                 parameter's gradient, and the norm of the parameter
--   profile=1     seconds of each op, by the line that called it: printed, and as stacks in profile.txt, which programs for flame graphs read
local files = require "mneme.base.files"
local json = require "mneme.base.json"
local op_locations = require "mneme.tensor.op_locations"
local ranks = require "mneme.tensor.ranks"
local tensor = require "mneme.tensor.tensor"

local MOST = 20                      -- lines of a table that is printed

---@class Inspection
local Inspection = {}
Inspection.__index = Inspection

---An observer of a training: see learn/trainer.lua; nil where neither debug= nor profile= asks for one.
---@return Inspection?
function Inspection.open(learner, run)
  local cfg = learner.cfg
  if cfg.debug ~= "nan" and cfg.debug ~= "grad" and cfg.profile == "0" then return nil end
  local self = setmetatable({ learner = learner, run = run, cfg = cfg }, Inspection)
  if cfg.profile == "1" then for _, p in ipairs(learner:plans()) do p[2]:costs() end end
  return self
end

-- ---- the step before ----

local function same(a, b)
  local s, r = a:shape(), b:shape()
  for i = 1, math.max(#s, #r) do if s[i] ~= r[i] then return false end end
  return a:dtype() == b:dtype()
end

---Before an update: keep what a checkpoint would hold.
---@param counters fun(): table
function Inspection:before(step, counters)
  if self.cfg.debug ~= "nan" then return end
  local kept = self.kept or {}
  for i, item in ipairs(ranks.whole(self.learner:contents())) do
    local mine = kept[i]
    if not mine or not same(mine[2], item[2]) then
      mine = { item[1], tensor.like(item[2]) }
      kept[i] = mine
    end
    mine[2]:copy(item[2])
  end
  self.kept, self.step, self.counters = kept, step, counters()
end

---A number was not finite: write the step before as a checkpoint.
---@return string? what was done, for the message
function Inspection:diverged()
  if not self.kept then return nil end
  self.run:checkpoint(self.step, self.kept, self.counters)
  return ("the step before is kept: resume=%s debug=nan comes here again"):format(self.run.path)
end

-- ---- gradients ----

local function statistics(t)
  local n, g, p = t:size(), t:grad_data(), t:data()
  local sum, largest, zeros, size = 0, 0, 0, 0
  for i = 0, n - 1 do
    local x = g[i]
    sum, size = sum + x * x, size + p[i] * p[i]
    if x == 0 then zeros = zeros + 1 end
    largest = math.max(largest, math.abs(x))
  end
  return { norm = math.sqrt(sum), largest = largest, zeros = zeros / n, weight = math.sqrt(size) }
end

---With each line of the log: the gradients of the last update.
function Inspection:after(step, logged)
  if not logged or self.cfg.debug ~= "grad" or ranks.rank ~= 0 then return end
  local line = { step = step }
  local model = self.learner.agent or self.learner.model
  model.module:each(function(name, t, buffer)
    if not buffer then line[name] = statistics(t) end
  end)
  files.append(self.run.path .. "/gradients.jsonl", json.encode(line) .. "\n")
end

-- ---- where the time went ----

-- Stacks with their seconds: the lines that led to an op, and the op.
local function stacks_of(learner)
  local stacks, by_line, total = {}, {}, 0
  for _, p in ipairs(learner:plans()) do
    for _, call in ipairs(p[2]:costs()) do
      local from = op_locations.stacks[call.place] or "?"
      local stack = p[1] .. ";" .. from .. ";" .. call.name
      stacks[stack] = (stacks[stack] or 0) + call.seconds
      local line = ("%-28s %-6s %s"):format(from:match "[^;]*$", p[1], call.name)
      by_line[line] = (by_line[line] or 0) + call.seconds
      total = total + call.seconds
    end
  end
  return stacks, by_line, total
end

local function show_profile(self)
  local stacks, by_line, total = stacks_of(self.learner)
  local list = {}
  for line, seconds in pairs(by_line) do list[#list + 1] = { line, seconds } end
  table.sort(list, function(a, b) return a[2] > b[2] or a[2] == b[2] and a[1] < b[1] end)
  for i = 1, math.min(#list, MOST) do print(("%5.1f %%  %8.3f s  %s"):format(100 * list[i][2] / math.max(total, 1e-9), list[i][2], list[i][1])) end
  if #list > MOST then print(("                    and %d more"):format(#list - MOST)) end
  local path, lines = self.run.path .. "/profile.txt", {}
  for stack, seconds in pairs(stacks) do lines[#lines + 1] = ("%s %.0f\n"):format(stack:gsub(" ", "_"), seconds * 1e6) end          -- microseconds
  table.sort(lines)
  files.write(path, lines)
  print(path)
end

---Training has ended.
function Inspection:close(_, ok)
  if not ok or ranks.rank ~= 0 then return end
  if self.cfg.profile == "1" then show_profile(self) end
end

return Inspection
