-- memory_story.lua -- maps of a memory (causal_map.lua) in words: which part holds what success needs, from which step to which, and which part
-- lost it when.  Said only of cells that stand out of the noise of all cells; what the maps do not decide is called so.
local stats = require "mneme.stats"
local memory_story = {}
local FAILING, MOSTLY = 0.05, 0.9    -- of the episodes; of the failures
local NAMED = 3                    -- parts in one sentence

-- The parts that no other one divides; "all" is a part only of a memory that has no others.
local function finest(rows)
  local list = {}
  for r, row in ipairs(rows) do
    local whole = row.word == "all" and #rows > 1
    for _, other in ipairs(rows) do whole = whole or other.word:sub(1, #row.word + 1) == row.word .. "." end
    if not whole then list[#list + 1] = r end
  end
  return list
end

-- Where a row stands out: { row, most, best, first, last = columns with at least half of the most }; nil: nowhere.
local function stretch(map, cells, r)
  local of
  for c in ipairs(map.steps) do
    local cell = cells[r][c]
    if cell and cell.clear and cell.loss > 0 and (not of or cell.loss > of.most) then
      of = { row = map.rows[r], r = r, cells = cells[r], most = cell.loss, best = c }
    end
  end
  for c in ipairs(of and map.steps or {}) do
    local cell = cells[r][c]
    if cell then of.sum = (of.sum or 0) + cell.loss end               -- of a part that stands out somewhere: noise hides its other columns
    if cell and cell.clear and cell.loss >= of.most / 2 then of.first, of.last = of.first or c, c end
  end
  return of
end

-- The parts that stand out, the largest effect first: heads, or where these make up less than half of what a layer, or all of the memory, costs, that.
local function found(map, cells)
  local levels, most, sums, small = { {}, {}, {} }, 0, { 0, 0, 0 }, {}
  for _, r in ipairs(finest(map.rows)) do small[r] = true end
  for r, row in ipairs(map.rows) do
    local of, level = stretch(map, cells, r), small[r] and 1 or row.word == "all" and 3 or 2
    if of then
      table.insert(levels[level], of)
      sums[level], most = math.max(sums[level], of.sum), math.max(most, of.sum)
    end
  end
  for level, list in ipairs(levels) do
    if #list > 0 and 2 * sums[level] >= most then
      table.sort(list, function(a, b) return a.most > b.most or a.most == b.most and a.row.word < b.row.word end)
      return list
    end
  end
  return {}
end

-- The mean over the episodes that reach a column.
local function base_of(map, c)
  local sum, list = 0, map:known(c).base
  for _, value in ipairs(list) do sum = sum + value / #list end
  return sum
end

---The parts that stand out of a map of erasing, the largest effect first, and where.
---@param cells table[][] after Map:test
---@return table[] list { row, cells, most = largest loss, sum, first, last = columns with at least half of it }
memory_story.parts = found

local function names(list, from, about)
  local texts = {}
  for i = from, math.min(#list, NAMED) do texts[#texts + 1] = ("%s (%s)"):format(list[i].row.text, about(list[i])) end
  return table.concat(texts, ", ")
end

-- A part and its verb as the beginning of a sentence: "Layer 1, head 2 holds", "Layer 0, channels 0 to 7 hold", "State h holds".
local function begin(row, one, many)
  if row.word == "all" then return ("The memory as a whole, no part alone beyond the noise, %s"):format(one) end
  local text = row.layer and "L" .. row.text:sub(2) or "State " .. row.text          -- a state's name stays as it is written
  return ("%s %s"):format(text, row.text:find("channels", 1, true) and many or one)
end

-- Is there surely less than half at a column of what there is at another?  Both are asked of the same episodes: either is an estimate.
local function is_less(map, of, c, than)
  local here, there, at, d = map:known(c), map:known(than), {}, {}
  for i, b in ipairs(there.envs) do at[b] = there.loss[of.r][i] end
  for i, b in ipairs(here and here.loss[of.r] and here.envs or {}) do d[#d + 1] = at[b] and here.loss[of.r][i] - at[b] / 2 end
  local high = d[1] and select(3, stats.t_interval(d))          -- nothing where no episode is in both, or a column is not measured
  return high and high < 0
end

-- Earlier and later losses that the noise hides may be there: an edge is one only where the next column surely has less than half.
local function steps(map, of)
  local a, b = map.steps[of.first], map.steps[of.last]
  local early = of.first > 1 and not is_less(map, of, of.first - 1, of.first) and " at the latest" or ""
  local late = of.last < #map.steps and not is_less(map, of, of.last + 1, of.last) and " at least" or ""
  if a == b then return ("at step %d%s"):format(a, (early ~= "" or late ~= "") and " at least" or "") end
  return ("from step %d%s to %d%s"):format(a, early, b, late)
end

-- What each of the finest parts surely costs less than.
local function bound_of(map, cells)
  local bound = 0
  for _, r in ipairs(finest(map.rows)) do
    for _, cell in pairs(map.rows[r].word ~= "all" and cells[r] or {}) do bound = math.max(bound, cell.high or cell.loss) end
  end
  return bound
end

---Which part holds what success needs.
---@param map CausalMap complete, of erasing
---@param cells table[][] of Map:cells, after Map:test
---@param what string "the cue"
---@return boolean decided
function memory_story.kept(map, cells, what)
  local list = found(map, cells)
  if #list == 0 then return ("Which part holds %s is not decided: no part, erased, lowers the %s beyond the noise."):format(what, map.measure), false end
  local top = list[1]
  if top.row.word == "all" then
    for _, r in ipairs(finest(map.rows)) do
      if next(cells[r]) == nil then                    -- layers alone, so far
        return ("The memory as a whole holds %s %s: erased there, it costs up to %.2f of %s. No layer alone stands out, and smaller parts are not measured.")
          :format(what, steps(map, top), top.most, map.measure), true
      end
    end
    local bound = bound_of(map, cells)                 -- what the noise may hide
    local alone = bound < top.most / 2 and ("No part of the memory is needed alone to hold %s (each costs less than %.2f)"):format(what, bound)
      or ("Which part holds %s is not decided (each alone may cost up to %.2f; more episodes= narrow that)"):format(what, bound)
    return ("%s: all of it, erased %s, costs up to %.2f of %s."):format(alone, steps(map, top), top.most, map.measure), true
  end
  local text = ("%s %s %s: erased there, it costs up to %.2f of %s"):format(begin(top.row, "holds", "hold"), what, steps(map, top), top.most, map.measure)
  local more = names(list, 2, function(of) return ("%s, %.2f"):format(steps(map, of), of.most) end)
  return text .. (more ~= "" and "; also " .. more or "") .. ".", true
end

---Which part lost what success needs, and when.
---@param map CausalMap complete, of holding
---@param cells table[][]
---@param why string? what readings say where no part stands out
---@param held boolean? a part is known to hold it
---@return table? lost { row = MemoryRow, last = step before which it still holds it, gone = by which it holds it no more, nil: not decided }
function memory_story.lost(map, cells, what, why, held)
  local list = found(map, cells)
  if #list == 0 and why then return why end
  if #list == 0 then
    return ("Which part lost %s is not decided: no part, kept as it is at any step, raises the %s beyond the noise. %s."):format(what, map.measure,
      held and "What fails is its use, or a loss too small to see: mneme probe says how long it can be read"
        or "It was never there, or is there and not used: mneme probe says which")
  end
  local top, gone = list[1], nil
  for c = top.last + 1, #map.steps do
    if is_less(map, top, c, top.last) then gone = c break end
  end
  local at, cell, base = map.steps[top.last], top.cells[top.last], base_of(map, top.last)
  local name = begin(top.row, "loses", "lose")
  local text
  local here = ("kept as it is before step %d, %s is %.2f in place of %.2f"):format(at, map.measure, base + cell.loss, base)
  if gone then
    local later = map.steps[gone]
    text = ("%s %s between steps %d and %d: %s; kept as it is before step %d, %.2f"):format(name, what, at, later, here, later,
      base_of(map, gone) + top.cells[gone].loss)
  elseif top.last == #map.steps then
    text = ("%s %s in the last step, %d: %s"):format(name, what, at, here)
  else
    text = ("%s %s after step %d, by which step is not decided: %s"):format(name, what, at, here)
  end
  local more = names(list, 2, function(of) return "after step " .. map.steps[of.last] end)
  return text .. (more ~= "" and "; so do " .. more or "") .. ".", { row = top.row, last = at, gone = gone and map.steps[gone] }
end

---Why episodes fail that fail by the draw of an action: the simplest explanation, known from the episodes as they are.
---@param outcomes table[] { score; wrong, drawn, clear = wrong decisions, those where the right action had more probability than the one drawn, and those
---  where it had clearly more, where an environment declares what is right (envs/right_actions.lua); greedy = score of the same episode with the likeliest
---  action at each step, where known }
---@return string? sentence nil: few episodes fail, or nothing is known
function memory_story.draw(outcomes)
  local n, failed, known, several, left, before, greedy = #outcomes, 0, true, false, 0, 0, 0
  local wrong, drawn, clear = 0, 0, 0
  for _, o in ipairs(outcomes) do
    if not o.score then return nil end
    before, greedy, left = before + o.score / n, greedy and o.greedy and greedy + o.greedy / n, left + ((o.greedy or 0) < 1 and 1 or 0)
    if o.score < 1 then
      failed, known, several = failed + 1, known and o.wrong ~= nil, several or (o.wrong or 0) > 1
      wrong, drawn, clear = wrong + (o.wrong or 0), drawn + (o.drawn or 0), clear + (o.clear or 0)
    end
  end
  if failed <= FAILING * n or not (known or greedy) then return nil end
  local tail = greedy and (" (greedy=1%s: %.2f in place of %.2f)"):format(greedy > before and "" or " is no cure", greedy, before) or ""
  if known and wrong == 0 then
    return ("No wrong decision was taken in the %d failures: what is missing comes before it (a place not reached, a cue not fetched)%s."):format(failed, tail)
  end
  local of, by_draw = known and wrong or failed, known and clear or failed - left
  local text = known and ("%s %d of %d %s the right action had more probability than the one drawn"):format(several and "At" or "In", drawn, of,
      several and ("wrong decisions of %d episodes"):format(failed) or "failures")
    or ("%d fail, with the likeliest action at each step %d"):format(failed, left)
  if known and drawn > clear then text = ("%s, in %d clearly (twice as much)"):format(text, clear) end
  local why = by_draw >= MOSTLY * of and "the draw of actions, not the memory"
    or by_draw > of / 2 and ("the draw of actions; in the other %d something else"):format(of - by_draw)
    or known and greedy and drawn > of / 2 and failed - left > failed / 2
      and ("near to a toss in the other %d, where the policy follows the memory weakly"):format(of - by_draw)
    or by_draw > (1 - MOSTLY) * of and ("mostly not the draw of actions, which explains %d"):format(by_draw)
    or drawn > of / 2 and "the draw only because nothing decides clearly" or "it is not the draw of actions that fails"
  return ("%s: %s%s."):format(text, why, tail)
end

---What both maps say, in sentences: first whether the draw fails; of an agent that fails without it what was lost.
---@param kept table { map, cells } of erasing
---@param held table? { map, cells } of holding; nil: not measured
---@param what string "the cue"
---@param why (fun(measure: string, word: string?): string?)? what readings of the memory say; asked where holding decides nothing
---@return string[] sentences
---@return table? lost as of memory_story.lost
function memory_story.sentences(kept, held, what, why)
  local first, holds = memory_story.kept(kept.map, kept.cells, what)
  local draw = memory_story.draw(kept.map.outcomes)
  if not held then return { draw or first, draw and first } end
  local second, lost = memory_story.lost(held.map, held.cells, what, why and #found(held.map, held.cells) == 0
    and why(held.map.measure, (found(kept.map, kept.cells)[1] or { row = {} }).row.word) or nil, holds)
  local list = not lost and { first, second } or holds and { second, first } or { second }
  if draw then table.insert(list, 1, draw) end
  return list, lost
end

---Whether that many episodes fail, by more than the draw of an action, that it is worth asking what was lost.
function memory_story.fails(map)
  local failed, without = 0, 0                       -- by more than the draw, as far as it is known; with the likeliest actions
  for _, o in ipairs(map.outcomes) do
    if (o.score or 1) < 1 and not (o.wrong and o.clear == o.wrong and o.wrong > 0) then failed = failed + 1 end
    if o.wrong or (o.greedy or 0) < 1 then without = without + 1 end
  end
  return map.measure == "success" and math.min(failed, without) > FAILING * #map.outcomes
end

---What success needs, in words: the fact that an environment declares as a class, if it is the only one.
function memory_story.what(env)
  local name
  for _, fact in ipairs(env.to_know) do
    if fact.kind == "class" then
      if name then return "what is needed" end
      name = "the " .. fact.name
    end
  end
  return name or "what is needed"
end

return memory_story
