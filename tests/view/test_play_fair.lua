-- test_play_fair.lua -- mneme play is a game of remembering: the page holds what the agent sees and nothing else; rules, the cheat, and the
-- scores at the end.
local ffi = require "ffi"
local t = require "tests.harness"
local envs = require "mneme.envs"
local human_play = require "mneme.insight.view.human_play"
local json = require "mneme.base.json"
local action_keys = require "mneme.insight.view.action_keys"
local scene_rig = require "tests.support.scene_rig"
local scene = require "mneme.insight.view.scene"
local shell = require "tests.support.shell"

local TAB = action_keys.TAB
local painter = scene.painter()

-- The pixels of a picture in its own units.
local function pixels(picture)
  painter.view:clear(240, 160)
  painter.view:append(picture, { x = 0, y = 0, w = 240, h = 160 })
  return ffi.string(painter:fill(), 240 * 160 * 4)
end

-- The pixels of a whole page.
local function page(game)
  local what, frame = game:page()
  return ffi.string(painter:paint(what, frame, 800, 500), 800 * 500 * 4)
end

-- The settings to try: small worlds, in which different states look the same soon, with each word of each setting.
local small = { corridor = 4, distractors = 0, view = 3, size = 7, noise = 0, cue_steps = 1 }
local function variants(name)
  local own, list = envs.new(name, { num_envs = 1 }).settings, {}
  local base = { num_envs = 1 }
  for key, value in pairs(small) do if own[key] then base[key] = value end end
  for _, e in ipairs(envs.list()) do
    if e.name == name then
      for param, rule in e.params:gmatch "([%w_]+)=(%S+)" do
        for word in (not rule:find "[%[\"]" and rule or ""):gmatch "[^|]+" do
          local one = { [param] = word }
          for key, value in pairs(base) do one[key] = value end
          list[#list + 1] = one
        end
      end
    end
  end
  if #list == 0 then list[1] = base end
  return list
end

-- Every state of some short episodes: f(env, observation in bytes).
local function visit(env, seeds, steps, f)
  local game = human_play.new(env, { scene = scene.load "world" })
  for seed = 1, seeds do
    game:restart(seed)
    for step = 0, steps do
      f(game, ffi.string(game.room, game.obs_bytes))
      local action = (seed * 7 + step * 3) % #game.names
      if step < steps and not game.over then game:move(action) end
      if game.over then break end
    end
  end
end

for _, e in ipairs(envs.list()) do
  t.test(e.name .. ": what is seen alike looks alike, whatever is hidden; the true state differs", function()
    local pairs_found, told_apart = 0, 0
    for _, settings in ipairs(variants(e.name)) do
      local known = {}
      visit(envs.new(e.name, settings), 30, 4, function(game, seen)
        local picture = game.fair_frame.canvas
        t.ok(not game.fair_frame.blind, "there is a picture of its observations")
        t.eq(game.fair_frame.observation_groups, game.env.observation_space.groups, "its numbers have names")
        t.eq(next(game.fair_frame.truth), nil, "a fair frame has no fact of the state")
        local truth, was = json.encode(game.open_frame.truth), known[seen]
        if not was then known[seen] = { truth = truth, pixels = pixels(picture), open = pixels(game.open_frame.canvas) }
        elseif was.truth ~= truth then
          pairs_found = pairs_found + 1
          t.ok(pixels(picture) == was.pixels, "the same observation, another picture")
          if pixels(game.open_frame.canvas) ~= was.open then told_apart = told_apart + 1 end
        end
      end)
      -- facts that can be changed from outside, where the agent does not see it
      local env = envs.new(e.name, settings)
      local game = human_play.new(env, { scene = scene.load "world" })
      game:move(#game.names - 1)
      for _, fact in ipairs(env.settable) do
        for _, value in ipairs { fact.lo, fact.hi } do
          local seen, truth, before = ffi.string(game.room, game.obs_bytes), json.encode(env:truth(0)), env:see(game.obs)
          before = before and pixels(before)
          if env:set(0, fact.name, value, game.obs) and ffi.string(game.room, game.obs_bytes) == seen and json.encode(env:truth(0)) ~= truth then
            pairs_found = pairs_found + 1
            t.ok(pixels(env:see(game.obs)) == before, fact.name .. " is hidden, and drawn")
          end
        end
      end
    end
    if e.name:find "^craftax" then return end               -- their worlds are large: no two states of these few episodes are seen alike
    t.ok(pairs_found > 0, "no two states look alike")
    if not e.name:find "cartpole" and not e.name:find "pendulum" then t.ok(told_apart > 0, "with Tab some of them differ") end
  end)

  t.test(e.name .. ": what is seen differs where the observation does", function()
    local looks, seen_list = {}, {}
    visit(envs.new(e.name, { num_envs = 1 }), 12, 4, function(game, seen)
      if not seen_list[seen] then seen_list[seen] = true looks[pixels(game.fair_frame.canvas)] = true end
    end)
    local n, m = 0, 0
    for _ in pairs(seen_list) do n = n + 1 end
    for _ in pairs(looks) do m = m + 1 end
    t.ok(m > 1 and (n > 20 or m >= n / 8), ("%d pictures of %d observations"):format(m, n))
  end)

  t.test(e.name .. ": its rules are one sentence, and on the page", function()
    local rules = envs.new(e.name, { num_envs = 1 }).rules
    t.ok(rules and #rules > 40 and #rules < 260, "one sentence of rules")
    t.ok(rules:find "%.$" and not rules:find "[%.%?!] ", rules)
    local game = human_play.new(envs.new(e.name, { num_envs = 1 }), { scene = scene.load "world" })
    local what, frame = game:page()
    painter:draw(what, frame, 1280, 800)
    t.ok(scene_rig.place_of(painter.view, rules:match "^%S+ %S+ %S+", true), "the page does not say: " .. rules)
  end)
end

t.test("every scene draws a game, and none of them shows what the cue was", function()
  for _, name in ipairs(scene.list()) do
    local env = envs.new("tmaze", { num_envs = 1, corridor = 5, distractors = 0 })
    local shown = {}
    for _, cue in ipairs { "up", "down" } do
      local game = human_play.new(env, { scene = scene.load(name) })
      game:restart(4)
      env:set(0, "cue", cue, game.obs)
      game:move(3)
      shown[#shown + 1] = page(game)
    end
    t.ok(shown[1] == shown[2], name .. " shows the cue")
  end
end)

t.test("Tab shows the true state, and the card says so; r is the same episode, n another", function()
  local env = envs.new("memory_maze", { num_envs = 1, time_limit = 3, seed = 8 })
  local game = human_play.new(env, { scene = scene.load "world" })
  local fair, first = page(game), json.encode(env:truth(0))
  game:key(TAB)
  t.ok(page(game) ~= fair and select(2, game:page()).truth.layout, "the maze from above")
  game:key(TAB)
  t.ok(page(game) == fair, "back to what the agent sees")
  for _ = 1, 3 do game:move(1) end
  t.ok(game.over and game.results[1].looked)
  t.eq(select(2, game:page()).card[1].name, "you, with Tab")
  game:key(("r"):byte())
  t.eq(json.encode(env:truth(0)), first)
  t.eq(select(2, game:page()).card, nil)
  game:move(1)
  game:key(("n"):byte())
  t.ok(json.encode(env:truth(0)) ~= first)
  for _ = 1, 3 do game:move(1) end
  t.ok(not game.results[2].looked, "the next episode was fair")
  local ret, best = game.results[2].ret, envs.new("memory_maze", { num_envs = 1 }).reference.best_return
  t.eq(select(2, game:page()).card[1].ret, ret)
  t.near(best, 250 / (2.9 + 0.89 * 9), 1e-4)
  t.eq(env.reference, nil, "of another time limit it is not known")
end)

-- Plays with full knowledge; the return.
local function oracle(env, choose)
  local game = human_play.new(env, { scene = scene.load "world" })
  while #game.results == 0 do game:move(choose(env:truth(0), game)) end
  return game.results[1].ret
end

t.test("perfect play: who knows the answer gets the return that an environment declares", function()
  local tried = 0
  for _, e in ipairs(envs.list()) do
    local env = envs.new(e.name, { num_envs = 1, seed = 3 })
    local game = human_play.new(env, { scene = scene.load "world" })
    local truth = game.open_frame.truth
    local best = (env.reference or {}).best_return
    if truth.answer and best and env.reference.best == 1 then
      t.near(oracle(env, function(now) return math.max(0, now.answer) end), best, 1e-4, e.name)
      tried = tried + 1
    elseif truth.cue then
      local got = oracle(env, function(now) return now.distance == 0 and now.cue or not now.told and 3 or now.told == 0 and 2 or 0 end)
      t.near(got, best, 1e-4, e.name)
      tried = tried + 1
    end
  end
  t.ok(tried >= 8, "environments whose answer is a fact")
end)

t.test("environments of scripts: see draws what is observed; without it, numbers", function()
  local spec = { observation = { 1 }, actions = 2, num_envs = 1, rules = "Say what was shown.", best = 1,
    reset = function(self, random) self.hidden = random(2) return { 0.5 } end,
    step = function(self, action) return { 0.5 }, 0, action == self.hidden end,
    draw = function(self, view) view:disc(self.hidden, 0, 1, 0xFF0000FF) end,
    see = function(seen, view) view:rect(0, 0, seen[1], 1, 0xFFFFFFFF) end }
  local looks = {}
  for seed = 1, 8 do
    spec.seed = seed
    local game = human_play.new(envs.new(spec), { scene = scene.load "world" })
    looks[page(game)] = true
    t.ok(not game.fair_frame.blind)
  end
  local first = next(looks)
  t.eq(next(looks, first), nil, "one picture, whatever is hidden")
  spec.see = nil
  local game = human_play.new(envs.new(spec), { scene = scene.load "world" })
  t.ok(game.fair_frame.blind and #page(game) > 0)
  for key, wrong in pairs { see = 3, rules = {}, best = "1", chance = {} } do
    t.raises(function() envs.new { observation = { 1 }, actions = 1, reset = spec.reset, step = spec.step, [key] = wrong } end, key .. " is a")
  end
end)

t.test("mneme help play names every setting and key", function()
  local help = shell.capture and shell.capture "build/mneme help play" or io.popen("build/mneme help play"):read "*a"
  for word in ("seed= scene= blind= record= size= theme= scale= keys= out= map= Tab Esc Enter space arrows digits gamepad"):gmatch "%S+" do
    t.ok(help:find(word, 1, true), "help play does not say " .. word)
  end
end)

