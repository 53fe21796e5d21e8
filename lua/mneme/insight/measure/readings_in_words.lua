-- readings_in_words.lua -- up to which step each part of a memory can be read, and what became of a fact that no part lost, as sentences.
-- A part is read at a step where the lower end of the 95 % interval of its right answers is more than half-way from chance to always; it is
-- not where the upper end is less.
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
  if high < half then return false end
  return nil
end

-- The last step at which a part is read; the first after it, or of all, at which it is not; at how many it is not.  nil: at none.
local function reach(job, fact, at)
  local last, gone, without = nil, nil, 0
  for k in ipairs(job.steps) do
    local is = verdict((job.cells[fact.name][k] or {})[at])
    if is then last, gone = k, nil
    elseif is == false then gone, without = gone or k, without + 1 end
  end
  return last, gone, without
end

-- The latest of the last steps, of the parts of a list from one on.
local function latest(list, from)
  local k = 0
  for i = from, #list do k = math.max(k, list[i].k) end
  return k
end

---Up to which step each part can be read, as a sentence.
---@param job Readings with controls, done
---@param fact table { name, kind }
---@param shown PartMap? of the fact, with marks of what is used: that comes first
---@return string? sentence nil: of numbers, and where nothing was asked
---@return table<integer, integer>? last by part: the last step at which it is read
function readings_in_words.of(job, fact, shown)
  if fact.kind ~= "class" then return nil end
  local list, last = {}, {}
  for at = 2, #job.parts do
    local k, gone = reach(job, fact, at)
    if k then
      list[#list + 1], last[at] = { at = at, k = k, gone = gone, used = shown and shown:uses(at) or 0 }, job.steps[k]
    end
  end
  if #list == 0 then
    local _, _, without = reach(job, fact, 1)
    return (without == #job.steps and "The %s is read from no part beyond half-way from chance to always."
      or "Whether the %s is read from a part beyond half-way from chance to always is not decided: more episodes= may."):format(fact.name), last
  end
  table.sort(list, function(a, b) return a.used > b.used or a.used == b.used and (a.k > b.k or a.k == b.k and a.at < b.at) end)
  local texts = {}
  for i = 1, math.min(NAMED, #list) do
    local one = list[i]
    local name = job.parts[one.at].text .. (one.used > 0 and ", used," or "")
    texts[i] = ("from %s up to step %d%s"):format(name, job.steps[one.k], one.k == #job.steps and ", the last"
      or not one.gone and " (later not decided)" or one.gone > one.k + 1 and (", surely not at step %d"):format(job.steps[one.gone]) or "")
  end
  local more = #list > NAMED and ("; from others up to step %d at most"):format(job.steps[latest(list, NAMED + 1)]) or ""
  local whole, gone = reach(job, fact, 1)          -- the best of all parts, too
  local nowhere = gone and #list > 1 and gone > math.max(whole or 0, latest(list, 1)) and ("; at step %d surely from no part"):format(job.steps[gone]) or ""
  return ("The %s can be read %s%s%s."):format(fact.name, table.concat(texts, "; "), more, nowhere), last
end

-- The part that is read at a step: the one that `word` names, else the one read best, all of the memory only where no other is: its index, and its
-- cell.
local function best_of(job, fact, k, word)
  local best, at_best
  for at, part in ipairs(job.parts) do
    local cell = word and part.word == word and (job.cells[fact.name][k] or {})[at]
    if cell and verdict(cell) then return at, cell end
  end
  for at = #job.parts, 1, -1 do
    local cell = (job.cells[fact.name][k] or {})[at]
    if verdict(cell) and (not best or at > 1 and cell.p >= best.p) then best, at_best = cell, at end
  end
  return at_best, best
end

---Why an agent fails where no part of its memory, kept as it is, helps it: what is needed was never there, is there to the end, or fades.
---@param job Readings done
---@param measure string what the agent would gain: "success"
---@param word string? the part whose erasing costs most
---@return string? sentences nil: not decided, or not one class alone is what the memory must know
function readings_in_words.why(job, measure, word)
  local fact
  for _, one in ipairs(job.facts) do
    if one.kind == "class" and fact then return nil end
    fact = one.kind == "class" and one or fact
  end
  if not fact then return nil end
  local last, gone, without = reach(job, fact, 1)  -- all of the memory: the best of all parts, too
  for at = 2, #job.parts do
    local k = reach(job, fact, at)
    if k and (not last or k > last) then last = k end
  end
  local nothing = ("no part, kept as it is at any step, raises the %s beyond the noise"):format(measure)
  if not last then
    return 2 * without > #job.steps and ("The %s was never stored, as far as linear readings see: of %d steps they surely find less than half of it in %d, and "
      .. "surely more in none."):format(fact.name, #job.steps, without) or nil
  end
  local at, cell = best_of(job, fact, last, word)
  local from = at == 1 and "the memory as a whole" or job.parts[at].text
  local n = math.floor(cell.test + 0.5)
  local read = ("read from %s at step %d it is right in %.0f of %d other episodes"):format(from, job.steps[last], cell.right * n, n)
  if last == #job.steps then
    return ("No part loses the %s: %s. It is there to the end, which leaves its use: %s."):format(fact.name, read, nothing)
  end
  return gone and gone > last and ("The %s fades from all parts: %s, at step %d surely from none. Its use before that is not shown either: %s.")
    :format(fact.name, read, job.steps[gone], nothing) or nil
end

return readings_in_words
