-- readings_in_words.lua -- up to which step each part of a memory can be read, as a sentence.  A part is read at a step where the lower end of
-- the 95 % interval of its right answers is more than half-way from chance to always; it is not where the upper end is less.
local wilson = require("mneme.stats").wilson

local readings_in_words = {}
local NAMED = 3                    -- parts in the sentence

-- Is a cell read?  nil: not decided.
local function verdict(cell)
  if not cell then return nil end
  local chance = math.max(cell.chance, cell.control_right)
  local n = math.floor(cell.test + 0.5)
  local _, low, high = wilson(math.floor(cell.right * n + 0.5), n)
  local half = (1 + chance) / 2
  if low > half then return true end
  return high < half and false or nil
end

-- The last step at which a part is read, and whether it is decided that it is not read later; nil: never.
local function last_of(job, fact, at)
  local last, sure = nil, true
  for k in ipairs(job.steps) do
    local is = verdict((job.cells[fact.name][k] or {})[at])
    if is then last, sure = k, true elseif is == nil then sure = false end
  end
  return last, sure
end

---@param job Readings with controls, done
---@param fact table { name, kind }
---@return string? sentence nil: of numbers, and where nothing was asked
---@return table<integer, integer>? last by part: the last step at which it is read
function readings_in_words.of(job, fact)
  if fact.kind ~= "class" then return nil end
  local list, last = {}, {}
  for at = 2, #job.parts do
    local k, sure = last_of(job, fact, at)
    if k then
      list[#list + 1], last[at] = { at = at, k = k, sure = sure }, job.steps[k]
    end
  end
  if #list == 0 then return ("The %s is read from no part beyond half-way from chance to always."):format(fact.name), last end
  table.sort(list, function(a, b) return a.k > b.k or a.k == b.k and a.at < b.at end)
  local texts = {}
  for i = 1, math.min(NAMED, #list) do
    local one = list[i]
    texts[i] = ("from %s up to step %d%s"):format(job.parts[one.at].text, job.steps[one.k],
      one.k == #job.steps and ", the last" or one.sure and "" or " (later not decided)")
  end
  local more = #list > NAMED and ("; from others up to step %d at most"):format(job.steps[list[NAMED + 1].k]) or ""
  local nowhere = list[1].k < #job.steps and list[1].sure and ("; after step %d from no part"):format(job.steps[list[1].k]) or ""
  return ("The %s can be read %s%s%s."):format(fact.name, table.concat(texts, "; "), more, nowhere), last
end

return readings_in_words
