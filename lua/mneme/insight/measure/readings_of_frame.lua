-- readings_of_frame.lua -- readings of the memory that a window shows (see readings.lua): fitted on other episodes of the same run while the
-- window is open, and what they say at each step of the episode.
local errors = require "mneme.base.errors"
local readings = require "mneme.insight.measure.readings"
local stepper = require "mneme.insight.episodes.stepper"
local tables = require "mneme.base.tables"

local readings_of_frame = {}
local ROWS = 4                     -- of the plan that plays those episodes
local recent = {}                  -- of the runs shown last, the newest first: { run, checkpoint, job or problem }

local function open(now)
  if not now.run then return { problem = "not shown: readings are fitted on other episodes of a run, and this is none" } end
  local ok, made = errors.try(function()
    local of = now.stepper
    local player = of and of.run == now.run and of:twin({ num_envs = readings.episodes, seed = 1 }, { memory = of.given.memory, rows = ROWS })
      or stepper.from_run(now.run, { num_envs = readings.episodes, checkpoint = now.checkpoint, rows = ROWS })
    return readings.new(player, { keep = true })
  end)
  if ok and not made.keep then return { problem = "not shown: this memory is too large to keep its readings" } end
  return ok and { job = made } or { problem = "not shown: " .. made.message }
end

---The readings of the agent of a frame, as far as they are made.
---@param now Frame
---@param deadline number? of engine.C.mn_clock(false): what is not done by then is left out; call again to continue
---@return Readings?
---@return string? problem why there are none
function readings_of_frame.job(now, deadline)
  local found = tables.recent(recent, 2, function(known) return known.run == now.run and known.checkpoint == now.checkpoint end,
    function() return open(now) end)
  found.run, found.checkpoint = now.run, now.checkpoint
  local ok, why = errors.try(function() return found.job and found.job:work(deadline) end)
  if not ok then found.job, found.problem = nil, "not shown: " .. why.message end
  return found.job, found.problem
end

---Says of failed episodes whether the memory had what they needed, where that is asked and read by then.
---@param now Frame
---@param episodes table[] of a window's episodes_of
---@param deadline number? see job
---@return Readings? unfinished
---@return string? problem why there are no readings
function readings_of_frame.settle(now, episodes, deadline)
  local unfinished, problem
  for _, e in ipairs(episodes) do
    if e.settle then
      local job, why = readings_of_frame.job(now, deadline)
      unfinished, problem = job and not job.done and job or nil, why
      if job and job.done then e.settle(function(frame, fact) return readings_of_frame.answers(job, frame, fact) end) end
    end
  end
  return unfinished, problem
end

-- What was read of frames, by their observations: a page is painted far more often than an agent steps.
local told = setmetatable({}, { __mode = "k" })

---What the memory says of a fact at each step of the episode of a frame, of the steps whose frames are kept.
---@param job Readings
---@param now Frame
---@param fact table { name, kind }
---@param part integer index in job.parts
---@return table<integer, table> by step, up to now.step; between two steps that are read the one before counts:
---  { p = mean probability of the right answers, or nil; list = as of Job:of }
function readings_of_frame.episode(job, now, fact, part)
  local list, key, k = {}, fact.name .. "/" .. part, 1
  for step = 0, job.steps and now.step or -1 do
    local frame = step == now.step and now or now.frame_of and now.frame_of(step)
    local entry = frame and frame.history[#frame.history]
    if entry then
      local of = told[entry]
      if not of or of.job ~= job then
        of = { job = job }
        told[entry] = of
      end
      if not of[key] then
        local said = job:of(fact.name, part, step, frame)
        if said then
          local sum, n = 0, 0
          for _, one in ipairs(said) do
            local right = frame.truth[fact.name]
            if type(right) == "table" then right = right[one.entry] end
            if one.scored and one.p and right and right >= 0 then sum, n = sum + (one.p[right] or 0), n + 1 end
          end
          of[key] = { p = n > 0 and sum / n or nil, list = said }
        end
      end
      while job.steps[k + 1] and job.steps[k + 1] <= step do k = k + 1 end
      list[step] = of[key] or k <= job.read and step < job.steps[#job.steps] and list[step - 1] or nil
    end
  end
  return list
end

---What each part of the memory says at each step of the episode of a frame, at the steps that are read.
---@param job Readings
---@param now Frame
---@param fact table a class
---@return PartMap
function readings_of_frame.map(job, now, fact)
  local said = {}
  local map = job:map(fact, function(part, step)
    said[part] = said[part] or readings_of_frame.episode(job, now, fact, part)
    return said[part][step] and said[part][step].p
  end)
  map:mark_used(now.known and now.known(), 1)
  if job.done and now.step > job.steps[#job.steps] then map.note = ("read to step %d, which half of the episodes reach"):format(job.steps[#job.steps]) end
  return map
end

---The probabilities that all of the memory gives to the answers of a fact in one frame.
---@param job Readings
---@param frame Frame
---@param fact table { name }
---@return table<integer, number>? p by answer, {} where less than half of the way from chance to always is read; nil: not this fact
function readings_of_frame.answers(job, frame, fact)
  local step
  for _, at in ipairs(job.steps or {}) do if at <= frame.step then step = at end end          -- of later ones the last that is read
  local said = step and job.cells[fact.name] and job:of(fact.name, 1, step, frame)
  if said and (readings_of_frame.worth(job, step, fact, 1) or 0) < 0.5 then return {} end
  return said and said[1] and said[1].p or nil
end

---How much of a fact is read at a step, scored on episodes that the reading was not fitted on: 0 is no more than chance, 1 is all.
---@param job Readings
---@param step integer
---@param fact table { name, kind }
---@param part integer index in job.parts
---@return number? share of the variance of a number, or of the way from the most frequent class to always; nil: not read yet
function readings_of_frame.worth(job, step, fact, part)
  local cell
  for k, at in ipairs(job.steps or {}) do
    if at <= step and k <= job.read then cell = (job.cells[fact.name][k] or {})[part] end
  end
  if not cell then return nil end
  if fact.kind == "number" then return math.max(0, cell.p) end
  return cell.chance < 1 and math.max(0, (cell.right - cell.chance) / (1 - cell.chance)) or 0
end

return readings_of_frame
