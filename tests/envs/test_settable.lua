-- test_settable.lua -- facts of a world changed from outside: in every environment that lets one, and in rules in Lua.
local ffi = require "ffi"
local t = require "tests.harness"
local engine = require "mneme.base.engine"
local envs = require "mneme.envs"
local env_rig = require "tests.support.env_rig"

local C = engine.C
local rig, seen, hidden, roll, follow = env_rig.rig, env_rig.seen, env_rig.hidden, env_rig.roll, env_rig.follow

local function place(r, i) return ffi.cast("char *", r.obs) + i * r.bytes end

-- Values of a fact to try: all of few, else some, the ends among them.
local function values_of(fact)
  local list, n = {}, fact.whole and math.min(fact.hi - fact.lo, 40) or 8
  for i = 0, n do list[i + 1] = fact.lo + (fact.hi - fact.lo) * i / n end
  for i, v in ipairs(list) do if fact.whole then list[i] = math.floor(v) end end
  return list
end

local able = 0
for _, e in ipairs(envs.list()) do
  local env = envs.new(e.name, { num_envs = 3 })
  if #env.settable == 0 then
    t.test(e.name .. ": nothing can be set, and that is said", function()
      env:reset(1)
      t.raises(function() env:set(0, "cue", 1) end, e.name .. "%-v%d+: no fact of this environment can be changed")
    end)
  else
    able = able + 1
    t.test(e.name .. ": a fact set to what it is changes nothing that is seen or known", function()
      for _, steps in ipairs { 0, 1, 4 } do
        local _, r = roll(env, 3, steps)
        for _, fact in ipairs(env.settable) do
          local before, secret, value = ffi.string(r.obs, 3 * r.bytes), hidden(env, 1), env:truth(1)[fact.name]
          t.ok(value, fact.name .. " is not among the facts of truth")
          t.eq(env:set(1, fact.name, value, place(r, 1)), true, fact.name)
          t.ok(ffi.string(r.obs, 3 * r.bytes) == before, fact.name .. ": another observation")
          t.eq(hidden(env, 1), secret, fact.name)
        end
      end
    end)

    t.test(e.name .. ": what is set is so, in its copy alone; what cannot be changes nothing", function()
      local differs = 0
      for _, steps in ipairs { 0, 5 } do
        for _, fact in ipairs(env.settable) do
          local refused = 0
          for _, value in ipairs(values_of(fact)) do
            local _, r = roll(env, 3, steps)
            local before, others, saved = seen(r, 1), seen(r, 0) .. seen(r, 2) .. env:save(0) .. env:save(2), env:save(1)
            if env:set(1, fact.name, value, place(r, 1)) then
              t.near(env:truth(1)[fact.name], value, 0.5, fact.name)
              if fact.whole then t.eq(env:truth(1)[fact.name], value, fact.name) end
              differs = differs + (seen(r, 1) ~= before and 1 or 0)
            else
              refused = refused + 1
              t.eq(seen(r, 1), before)
              t.eq(env:save(1), saved)
            end
            t.eq(seen(r, 0) .. seen(r, 2) .. env:save(0) .. env:save(2), others, "another copy")
          end
          t.ok(refused < #values_of(fact), fact.name .. " can never be set")
        end
      end
      t.ok(differs > 0 or e.name == "multiarmed_bandit", "no fact is ever seen")          -- an arm shows nothing until it is pulled
    end)

    t.test(e.name .. ": a copy that was changed is saved, restored and goes on bit for bit; a reset forgets it", function()
      for _, steps in ipairs { 0, 5 } do
        for _, fact in ipairs(env.settable) do
          local _, r = roll(env, 3, steps)
          local done
          for _, value in ipairs(values_of(fact)) do
            if value ~= env:truth(1)[fact.name] then done = env:set(1, fact.name, value, place(r, 1)) or done end
          end
          t.ok(done, fact.name)
          local bytes, here, secret = env:save(1), seen(r, 1), hidden(env, 1)
          local there = rig(envs.new(e.name, { num_envs = 2, seed = 4 }))
          there.env:reset_raw(there.obs, 9)
          there.env:restore(0, bytes, place(there, 0))
          t.ok(seen(there, 0) == here, "the observation")
          t.eq(hidden(there.env, 0), secret)
          t.eq(there.env:save(0), bytes, "saved again")
          there.time = steps
          t.eq(follow(there, { 0 }, 40, { [0] = 1, 1 })[1], follow(r, { 1 }, 40)[1], fact.name)
          t.ok(roll(env, 3, 30)[1] == roll(envs.new(e.name, { num_envs = 3 }), 3, 30)[1], "a reset does not forget it")
        end
      end
    end)

    t.test(e.name .. ": what is wrong is refused", function()
      local fresh = envs.new(e.name, { num_envs = 2 })
      local fact = fresh.settable[1]
      local obs = rig(fresh).obs
      t.raises(function() fresh:set(0, fact.name, fact.lo, obs) end, "set before reset")
      fresh:reset(1)
      for _, bad in ipairs { fact.lo - 1, fact.hi + 1, 0 / 0, 1e300, "nonsense" } do
        t.raises(function() fresh:set(0, fact.name, bad) end, fact.name)
      end
      t.raises(function() fresh:set(0, fact.name) end, fact.name)
      t.raises(function() fresh:set(2, fact.name, fact.lo) end, "environment 2, expected 0..1")
      t.raises(function() fresh:set(0, "colour of hope", 1) end, "unknown fact of " .. e.name)
      local vec = fresh.world.vec                -- the engine checks for itself
      for _, bad in ipairs { { "colour of hope", 1 }, { fact.name, fact.hi + 1 }, { fact.name, 0 / 0 } } do
        t.eq(C.mn_vec_set(vec, 0, bad[1], bad[2], obs), -1)
      end
      t.eq(C.mn_vec_set(vec, 7, fact.name, fact.lo, obs), -1)
      t.eq(C.mn_vec_set(vec, 0, fact.name, fresh:truth(0)[fact.name], nil), 1, "nobody wants the observation")
      local bytes = fresh:save(0)
      fresh:set(0, fact.name, fresh:truth(0)[fact.name])
      t.eq(#fresh:save(0), #bytes)
    end)
  end
end

t.test("several environments can be changed, and what they mean by it", function()
  t.ok(able >= 5)
  local maze = envs.new("tmaze", { corridor = 6, num_envs = 1 })
  local obs = maze:reset(1)
  t.eq(maze:set(0, "cue", "down"), true)
  t.eq(obs:data()[0] - obs:data()[1], 1, "at the start it is seen")
  maze:set(0, "cue", "up")
  t.eq(obs:data()[0] - obs:data()[1], -1)
  t.eq(maze:set(0, "position", 5), true)
  t.eq(maze:set(0, "position", 6), false, "beyond the junction")
  local _, reward, over = maze:step { 0 }
  t.ok(reward:data()[0] == 4 and over:data()[0] == 1)
  local grid = envs.new("gridworld", { num_envs = 1, map = "#######\n#S?.1.#\n#..2..#\n#######" })
  grid:reset(1)
  t.ok(grid:set(0, "right", 2) and not grid:set(0, "right", 3), "choices that the map has")
  t.ok(grid:set(0, "x", 3) and not grid:set(0, "x", 4) and not grid:set(0, "x", 0) and not grid:set(0, "x", 60), "onto floor alone")
  _, reward = grid:step { 3 }
  t.eq(reward:data()[0], -1, "choice 1 is no longer the right one")
  local ball = envs.new("memory_maze", { num_envs = 1, mode = "continuous", observation = "vector" })
  ball:reset(1)
  local done = 0
  for x = 0, 8 do
    if ball:set(0, "x", x) then
      done = done + 1
      t.eq(ball:truth(0).x, x, "the middle of the cell")
    end
  end
  t.ok(done >= 1 and done < 9)
end)

t.test("cards change places, so decks keep their cards; a question follows its cards, and what is seen shows them", function()
  local function made(name, settings)
    settings.num_envs, settings.seed = 1, 5
    local env = envs.new(name, settings)
    return env, env:reset(1)
  end
  local first, obs = made("repeat_first", {})
  t.ok(first:set(0, "answer", "hearts") and first:set(0, "answer", "clubs"))
  t.eq(obs:data()[0], 2, "the first card is seen")
  local _, reward = first:step { 2 }
  t.near(reward:data()[0], 1 / 51, 1e-6)
  local now = obs:data()[0]
  t.eq(first:set(0, "answer", "spades"), true)
  t.eq(obs:data()[0], now, "it was dealt before")
  _, reward = first:step { 2 }
  t.near(reward:data()[0], -1 / 51, 1e-6)
  for name, of in pairs { autoencode = "row", repeat_previous = "recent" } do
    local env = made(name, { level = "medium" })
    local counts, cards = { 0, 0, 0, 0 }, 0
    while true do
      local before = env:truth(0)
      for _ = 1, 3 do env:set(0, "card", math.random(4) - 1) end
      local truth = env:truth(0)
      if truth.answer >= 0 and name == "autoencode" then t.eq(truth.card, truth.answer) end
      if name == "repeat_previous" then
        local there = truth[of][32]
        t.eq(truth.answer, there)
        counts[truth.card + 1], cards = counts[truth.card + 1] + 1, cards + 1
        if cards == 103 then break end
      elseif truth.asked == 20 then
        for i = 1, 104 do counts[truth[of][i] + 1] = counts[truth[of][i] + 1] + 1 end
        break
      end
      t.eq(before.asked, truth.asked)
      env:step { 0 }
    end
    table.sort(counts)
    t.eq(table.concat(counts, " "), name == "autoencode" and "26 26 26 26" or "25 26 26 26", name)
  end
  local count, seen_now = made("count_recall", { level = "medium" })
  for step = 1, 60 do
    for _, fact in ipairs { "card", "query" } do
      local to = math.random(4) - 1
      if count:set(0, fact, to) then t.eq(count:truth(0)[fact], to) end
    end
    local truth = count:truth(0)
    t.eq(truth.answer, truth.counts[truth.query + 1])
    t.eq(seen_now:data()[0] * 4 + seen_now:data()[1], truth.card * 4 + truth.query)
    local all = 0
    for _, n in ipairs(truth.counts) do all = all + n end
    t.eq(all, step)
    count:step { 0 }
  end
end)

t.test("a card that was turned over decides the pair; a cell that was shot at or viewed is so, and hits no more; the path begins where it is set", function()
  local pairs_game = envs.new("concentration", { num_envs = 1 })
  local obs = pairs_game:reset(3)
  local cards = pairs_game:truth(0).cards
  local partner
  for i = 52, 2, -1 do if cards[i] == cards[1] then partner = i - 1 end end
  t.ok(pairs_game:set(0, "first", 0) and not pairs_game:set(0, "first", 60))
  t.eq(obs:data()[0], cards[1])
  local _, reward = pairs_game:step { partner }
  t.near(reward:data()[0], 2 / 52, 1e-6)
  t.ok(not pairs_game:set(0, "first", 0), "it lies open")
  local ships = envs.new("battleship", { num_envs = 1 })
  local lamp = ships:reset(3)
  local board = ships:truth(0).ships
  for cell = 0, 63 do
    if board[cell + 1] == 1 and ships:set(0, "last", cell) then t.eq(lamp:data()[0], 1) end
  end
  local truth = ships:truth(0)
  t.eq(truth.hits, 11, "the last cell of all ships cannot be sunk by it")
  _, reward = ships:step { truth.last }
  t.near(reward:data()[0], -1 / 52, 1e-6)
  local mines = envs.new("minesweeper", { num_envs = 1 })
  local count = mines:reset(3)
  for cell = 0, 15 do
    local was = mines:truth(0)
    local done = mines:set(0, "last", cell)
    t.eq(done, was.mines[cell + 1] == 0 and was.left > 1)
    if done then t.eq(count:data()[0], mines:truth(0).known[cell + 1]) end
  end
  t.eq(mines:truth(0).left, 1)
  local path = envs.new("mystery_path_endless", { num_envs = 1 })
  path:reset(3)
  for column = 1, 23 do
    t.ok(path:set(0, "column", column))
    truth = path:truth(0)
    t.ok(truth.path[(truth.y % 7) * 8 + column % 8 + 1] > 0 and truth.farthest == column)
  end
  t.eq(path:set(0, "column", 24), false, "not made yet")
  t.ok(path:set(0, "column", 0) and path:set(0, "stamina", 1) and not path:set(0, "stamina", 21))
  local _, _, over = path:step { 0 }
  t.eq(over:data()[0], 1)
end)

-- ---- rules in Lua ----

local function lamp(more)
  local spec = { name = "lamp", observation = { 2 }, actions = 2, num_envs = 2,
    reset = function(self) self.on, self.at = 0, 5 return { self.on, self.at } end,
    step = function(self, action) self.at = self.at + action return { self.on, self.at }, self.on, self.at >= 9 end,
    truth = function(self) return { on = self.on, at = self.at } end,
    settable = { on = { "off", "on" }, at = { 0, 9, whole = true } },
    set = function(self, name, value)
      if name == "at" and value == 7 then return nil end
      self[name] = value
      return { self.on, self.at }
    end }
  for key, value in pairs(more or {}) do spec[key] = value end
  return spec
end

t.test("rules in Lua: facts set, saved, and refused", function()
  local env = envs.new(lamp())
  local obs = env:reset(1)
  t.eq(env.settable[1].name .. env.settable[2].name, "aton")
  t.ok(env:set(1, "on", "on") and env:set(1, "at", 3))
  t.eq(table.concat({ obs:data()[0], obs:data()[1], obs:data()[2], obs:data()[3] }, " "), "0 5 1 3")
  t.eq(env:set(1, "at", 7), false)
  t.eq(env:truth(1).at, 3)
  env:restore(0, env:save(1))
  t.eq(obs:data()[1], 3)
  local _, reward = env:step { 1, 1 }
  t.eq(reward:data()[0], 1)
  t.fails(function() env:set(0, "on", "dim") end)
  t.fails(function() env:set(0, "at", 9.5) end)
  t.fails(function() envs.new(lamp { set = 3 }) end)
  local alone = lamp()
  alone.set = nil
  t.fails(function() envs.new(alone) end)
  t.fails(function() envs.new(lamp { settable = { on = { true } } }) end)
  t.fails(function() envs.new(lamp { settable = 3 }) end)
  local forgets = envs.new(lamp { set = function(self) self.on = 1 end })
  forgets:reset(1)
  t.raises(function() forgets:set(0, "on", "on") end, "set gave nothing, and changed self")
  local wrong = envs.new(lamp { set = function() return { 1 } end })
  wrong:reset(1)
  t.fails(function() wrong:set(0, "at", 1) end)
end)
