-- test_episode_order.lua -- episodes count in the order in which they began: once all that began before them have ended.
local t = require "tests.harness"
local episode_stats = require "mneme.learn.episode_stats"
local ffi = require "ffi"

local T, ROLLOUTS = 16, 60

-- A world in which a success lasts 2 to 4 steps and a failure 30: its length, and whether it is one.
local function drawer(seed)
  local x = seed
  local function random(n) x = (x * 1103515245 + 12345) % 2 ^ 31 return math.floor(x / 2 ^ 16) % n end
  return function()
    local good = random(2) == 0
    return good and 2 + random(3) or 30, good and 1 or 0
  end
end

-- Plays rollouts [from, to) of a state; every episode is noted by when it began.
local function play(s, finished, from, to)
  for r = from, to - 1 do
    for step = 0, T - 1 do
      for e = 0, s.n - 1 do
        s.age[e] = s.age[e] + 1
        if s.age[e] == s.length[e] then
          local now = r * T + step + 1
          finished:add(step, e, s.score[e], s.score[e], s.age[e])
          s.ended[#s.ended + 1] = { began = now - s.age[e], env = e, score = s.score[e], length = s.age[e] }
          s.age[e], s.length[e], s.score[e] = 0, s.draw[e]()
        end
      end
    end
    finished:settle(T)
  end
end

local function begin(n)
  local s = { n = n, age = {}, length = {}, score = {}, draw = {}, ended = {} }
  for e = 0, n - 1 do
    s.draw[e] = drawer(7 * e + 1)
    s.age[e], s.length[e], s.score[e] = 0, s.draw[e]()
  end
  local finished = episode_stats(n)
  finished:begin()
  return s, finished
end

-- Those that count, by the rule itself.
local function counted(s)
  local first_began, first_env = math.huge, 0
  for e = 0, s.n - 1 do
    local began = ROLLOUTS * T - s.age[e]
    if began < first_began then first_began, first_env = began, e end
  end
  local list = {}
  for _, e in ipairs(s.ended) do
    if e.began < first_began or e.began == first_began and e.env < first_env then list[#list + 1] = e end
  end
  table.sort(list, function(a, b) if a.began ~= b.began then return a.began < b.began end return a.env < b.env end)
  return list
end

for _, n in ipairs { 1, 2, 6, 256 } do
  t.test(("%d environments: those that count are those that began before all that run"):format(n), function()
    local s, finished = begin(n)
    play(s, finished, 0, ROLLOUTS)
    local list = counted(s)
    t.eq(finished.total, #list)
    t.eq(finished.total + finished.waiting, #s.ended, "none is lost")
    local sum, most = 0, math.min(#list, finished.WINDOW)
    for i = #list - most + 1, #list do sum = sum + list[i].score / most end
    if most > 0 then t.near(finished:score(), sum, 1e-9) end
  end)
end

t.test("short episodes are not favoured, and those that end first are", function()
  local s, finished = begin(256)
  local share, early, n = 0, 0, 0
  play(s, finished, 0, 2)                     -- 32 steps: the first failures have just ended
  for i = 1, finished.WINDOW do early = early + s.ended[i].score end
  t.eq(early, finished.WINDOW, "the first hundred to end are all successes")
  t.ok(finished.total >= finished.WINDOW)
  for e = 0, 255 do
    local _, score = drawer(7 * e + 1)()
    share, n = share + score, n + 1
  end
  share = share / n
  t.ok(math.abs(finished:score() - share) < 0.2, ("%g of all begun succeed, %g of those that count"):format(share, finished:score()))
end)

t.test("stored and read back with episodes waiting, all goes on as if it had not stopped", function()
  local whole_state, whole = begin(6)
  play(whole_state, whole, 0, ROLLOUTS)
  local s, first = begin(6)
  local at = 0
  repeat play(s, first, at, at + 1) at = at + 1 until first.waiting > 1 and first.total > 0
  local second = episode_stats(6)
  second:restore(first:counters(), "checkpoint", first:running())
  t.eq(second.waiting, first.waiting)
  play(s, second, at, ROLLOUTS)
  local function bytes(x) local r = x:running() return ffi.string(r:data(), r:size()) end
  t.ok(bytes(second) == bytes(whole), "what runs and waits")
  t.eq(second.total, whole.total)
  t.eq(second:score(), whole:score())
  t.eq(second:mean_return(), whole:mean_return())
end)

t.test("what waits is stored in the order in which it began, however it came", function()
  local function stored(order)
    local finished = episode_stats(4)
    finished:begin()
    for _, e in ipairs(order) do finished:add(e, e, 1, 1, 2) end
    local r = finished:running()
    return ffi.string(r:data(), r:size())
  end
  t.ok(stored { 1, 2, 3 } == stored { 3, 2, 1 } and stored { 1, 2, 3 } == stored { 2, 3, 1 })
end)

t.test("a score that no episode has is absent", function()
  local finished = episode_stats(1)
  finished:begin()
  for step = 0, 9 do finished:add(step, 0, 0 / 0, step, 1) end
  finished:settle(10)
  t.eq(finished.total, 10)
  t.eq(finished:score(), nil)
  t.eq(finished:metrics({})["charts/score"], nil)
  t.eq(finished:counters().scores, nil)
  t.eq(finished:mean_return(), 4.5)
end)
