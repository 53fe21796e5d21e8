-- sample.lua -- checks the arguments of all statistics: lists of numbers, scores[task][seed],
-- options (`what`: how errors name what is asked, "stats.mean"); and a sort that LuaJIT compiles, because the bootstrap sorts some ten thousand times.
local ffi = require "ffi"
local errors = require "mneme.base.errors"
local tables = require "mneme.base.tables"

local sample = {}
local LARGEST = 1e100          -- of such numbers the squares of differences still have finite sums
local ROUNDING = 1e-12         -- of what a number was computed from: so much is no difference (0.3 - 0.1 is 0.2)

---A number that can be counted with: no NaN, no infinity, nothing beyond 1e100.
---@param what string "stats.mean: value 3"
function sample.number(v, what)
  if type(v) ~= "number" or not (v >= -LARGEST and v <= LARGEST) then
    errors.raise(("%s is %s, expected a finite number"):format(what, type(v) == "table" and "a table" or tostring(v)))
  end
  return v
end

---By how much x is above y: 0 where rounding explains it.
function sample.difference(x, y)
  local d = x - y
  return math.abs(d) > ROUNDING * math.max(math.abs(x), math.abs(y)) and d or 0
end

---A whole number of at least `least`.
function sample.whole(v, least, what)
  if type(v) ~= "number" or v % 1 ~= 0 or v < least or v > 2 ^ 53 then
    errors.raise(("%s is %s, expected a whole number of at least %d"):format(what, tostring(v), least))
  end
  return v
end

---A list of finite numbers, not empty.
---@param what string how errors name it: "stats.mean"
---@param task integer? whose list it is, where there are several
function sample.numbers(list, what, task)
  local n = type(list) == "table" and #list or 0
  if n == 0 then
    what = task and ("%s: task %d"):format(what, task) or what
    if type(list) ~= "table" then errors.raise(("%s: given %s, expected a list of numbers"):format(what, tostring(list))) end
    errors.raise(what .. ": the list is empty, expected at least one number")
  end
  for i = 1, n do
    local v = list[i]
    local fine = type(v) == "number" and v >= -LARGEST and v <= LARGEST
    if not fine then sample.number(v, ("%s: %svalue %d"):format(what, task and ("task %d, "):format(task) or "", i)) end
  end
  return n
end

---Two lists of equal length, number i of both of the same seed.
function sample.pairs(x, y, what)
  local n, m = sample.numbers(x, what), sample.numbers(y, what)
  if n ~= m then errors.raise(("%s: lists of %d and %d numbers, expected equal seeds in both"):format(what, n, m)) end
  return n
end

---scores[task][seed], or the list of one task's seeds, as the former; each task has equally many seeds, because
---otherwise the one with more would count for more.
---@return number[][] rows
---@return integer seeds
function sample.rows(scores, what)
  if type(scores) ~= "table" or type(scores[1]) ~= "table" then
    return { scores }, sample.numbers(scores, what)
  end
  local rows, seeds = scores, sample.numbers(scores[1], what, 1)
  for i = 2, #rows do
    local n = sample.numbers(rows[i], what, i)
    if n ~= seeds then
      errors.raise(("%s: task 1 has %d seeds and task %d has %d, expected as many of each"):format(what, seeds, i, n))
    end
  end
  return rows, seeds
end

---Two of them with the same tasks; the numbers of seeds may differ.
function sample.two_rows(x, y, what)
  local a, n = sample.rows(x, what)
  local b, m = sample.rows(y, what)
  if #a ~= #b then errors.raise(("%s: scores of %d and of %d tasks, expected the same tasks"):format(what, #a, #b)) end
  return a, b, n, m
end

---The share that an interval is to cover: default 0.95.
function sample.level(level, what)
  level = level or 0.95
  if type(level) ~= "number" or not (level > 0 and level < 1) then
    errors.raise(("%s: level is %s, expected a number between 0 and 1, such as 0.95"):format(what, tostring(level)))
  end
  return level
end

---Options with their defaults; keys that are not among these are refused.
---@param defaults table<string, any> false where there is none
function sample.options(options, defaults, what)
  if options ~= nil and type(options) ~= "table" then
    errors.raise(("%s: options are %s, expected a table such as { reps = 2000 }"):format(what, tostring(options)))
  end
  for key in pairs(options or {}) do
    if defaults[key] == nil then errors.unknown("option of " .. what .. ":", key, tables.keys(defaults)) end
  end
  return tables.merged(defaults, options)
end

-- ---- in order ----

local GAPS = { 1750, 701, 301, 132, 57, 23, 10, 4, 1 }             -- Ciura 2001
local room, scratch = 0, nil

---Sort x[from .. from + n - 1] of an array of doubles in place (Shell's sort).
function sample.sort(x, from, n)
  local last = from + n - 1
  for g = 1, #GAPS do
    local gap = GAPS[g]
    for i = from + gap, last do
      local v, j = x[i], i
      while j >= from + gap and x[j - gap] > v do
        x[j], j = x[j - gap], j - gap
      end
      x[j] = v
    end
  end
end

---All numbers of scores[task][seed], ascending, in an array from 0 that the next call writes over.
---@param rows number[][]
---@return ffi.cdata* x doubles
function sample.sorted(rows)
  local n = 0
  for i = 1, #rows do n = n + #rows[i] end
  if n > room then room, scratch = 2 * n, ffi.new("double[?]", 2 * n) end
  local at = 0
  for i = 1, #rows do
    local row = rows[i]
    for k = 1, #row do scratch[at], at = row[k], at + 1 end
  end
  sample.sort(scratch, 0, n)
  return scratch, n
end

---The p-quantile of x[from .. from + n - 1], ascending: linear between neighbours (type 7 of Hyndman and Fan 1996,
---numpy's and R's default).
function sample.quantile(x, from, n, p)
  local at = p * (n - 1)
  local i = math.min(math.floor(at), n - 1)
  local next_one = math.min(i + 1, n - 1)
  return x[from + i] + (at - i) * (x[from + next_one] - x[from + i])
end

return sample
