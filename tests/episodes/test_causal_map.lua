-- test_causal_map.lua -- where it is remembered: erasing nothing changes nothing, erasing everything is a reset, a cell from a kept state
-- is the cell from the beginning, for every core; an agent made by hand has its memory where the map says; stored, resumed, by pieces.
local ffi = require "ffi"
local t = require "tests.harness"
local core_rig = require "tests.support.core_rig"
local cue_agent = require "tests.support.cue_agent"
local shell = require "tests.support.shell"
local mn = require "mneme"
local causal_map = require "mneme.insight.episodes.causal_map"
local engine = require "mneme.base.engine"
local files = require "mneme.base.files"
local paired_episodes = require "mneme.insight.episodes.paired_episodes"
local interventions = require "mneme.insight.episodes.interventions"
local causal_map_file = require "mneme.insight.episodes.causal_map_file"
local memory_parts = require "mneme.insight.episodes.memory_parts"
local narrower = require "mneme.insight.episodes.narrower"
local stepper = require "mneme.insight.episodes.stepper"

local ENVS, SEED, LIMIT = 6, 40, 9

-- A stepper of a small core that has learned nothing.
local function wanderer(settings)
  local env = mn.env("tmaze", { corridor = 3, num_envs = ENVS, time_limit = LIMIT })
  mn.manual_seed(5)
  return stepper.new(env, mn.agent { env = env, core = core_rig.build(settings, 1, { d_in = 16 }), hidden = 6 }, { seed = SEED })
end

local function seeds()
  local list = {}
  for b = 0, ENVS - 1 do list[b + 1] = SEED + b end
  return list
end

-- The numbers of a map, as a text.
local function numbers(map) return mn.json.encode { map.steps, map.outcomes, map.columns } end

-- Logits of the next steps, of all environments, as bytes.
local function next_logits(p, steps)
  local list, n = {}, ENVS * p.env.action_space.n
  for i = 1, steps do
    p:forward()
    list[i] = ffi.string(p.logits:data() + p.row * n, 4 * n)
    p:step()
  end
  return table.concat(list)
end

for _, case in ipairs(core_rig.cases()) do
  local a, b = wanderer(case.settings), wanderer(case.settings)
  local core = a.agent.core
  if not next(core.states) then
    t.test(case.name .. ": no memory, no map", function()
      t.raises(function() causal_map.new(a, b) end, "has no memory")
    end)
  else
    local map = causal_map.new(a, b, { measure = "return", every = 3, seed = SEED })
    local apart = core.config.sees == "rollout"          -- a plan that restarts sees less

    t.test(case.name .. ": erasing nothing changes nothing; every cell is that of an episode run from the beginning", function()
      t.ok(map:work())
      local p = wanderer(case.settings)
      local nothing = { seed = SEED, act = false, most = ENVS, first = 0 }
      local untouched = paired_episodes.round(p, interventions.new(p, {}), nothing)
      for _, o in ipairs(untouched) do o.seen = nil end          -- what pairs are compared by
      local as_they_are = {}
      for i, o in ipairs(map.outcomes) do as_they_are[i] = { score = o.score, ret = o.ret, length = o.length } end
      t.eq(mn.json.encode(untouched), mn.json.encode(as_they_are))
      t.ok(#map.steps > 0 and #map.columns == #map.steps)
      local plays = wanderer(case.settings)
      plays.free = false                           -- plays from each step on without an intervention, too
      local played = causal_map.new(wanderer(case.settings), plays, { measure = "return", every = 3, seed = SEED })
      played:work()
      for c, column in ipairs(apart and {} or map.columns) do
        t.eq(mn.json.encode(played.columns[c].base), mn.json.encode(column.base), "without, at step " .. column.at)
      end
      local column = map.columns[#map.columns]
      for r, row in ipairs(map.rows) do
        local list = interventions.new(p, { { kind = "erase", what = row.word, at = column.at } })
        local whole = paired_episodes.round(p, list, { seed = SEED, act = true, most = ENVS, first = 0 })
        for i, env in ipairs(column.envs) do t.eq(column.base[i] - column.loss[r][i], whole[env + 1].ret, row.word) end
      end
    end)

    t.test(case.name .. ": the parts of a map together are the whole memory", function()
      local p = wanderer(case.settings)
      for name, x in pairs(p.state) do if not core:is_constant(name) then x:fill(7) end end
      local rows, of_layer = memory_parts.list(core), {}
      for _, row in ipairs(rows) do if row.layer then of_layer[row.layer] = (of_layer[row.layer] or 0) + 1 end end
      for _, row in ipairs(rows) do
        local divided = row.word:find "^layers%.%d+$" and of_layer[row.layer] > 1
        if row.word ~= "all" and not divided then
          interventions.new(p, { { kind = "erase", what = row.word, at = 0 } }):before(0, { 0, 1, 2, 3, 4, 5 })
        end
      end
      for name, x in pairs(p.state) do
        local left, data = 0, x:data()
        for i = 0, core:is_constant(name) and -1 or x:size() - 1 do left = left + (data[i] == 7 and 1 or 0) end
        t.eq(left, 0, name)
      end
    end)

    t.test(case.name .. ": erasing everything is a reset, and a branch leaves its stepper as it was", function()
      local p, q, r = wanderer(case.settings), wanderer(case.settings), wanderer(case.settings)
      for _, one in ipairs { p, q, r } do one:restart(seeds(), SEED) next_logits(one, 2) end
      local envs, moment = {}, p:branch()
      for env = 0, ENVS - 1 do envs[env + 1] = env end
      t.ok(next_logits(p, 4) == next_logits(q, 4), "the stepper that branched goes on differently")
      q:restore(moment)
      if not apart then
        p:restore(moment)
        r:restart_plan()
        t.ok(next_logits(p, 3) == next_logits(r, 3), "the branch is another memory")
        r = wanderer(case.settings)
        r:restart(seeds(), SEED)
        next_logits(r, 2)
      end
      local list = { { kind = "erase", what = "all", at = 2 } }
      if core.claims.reset ~= "exact" then               -- a reset leaves the clock as it is
        for layer = 0, core.config.n_layers - 1 do list[layer + 1] = { kind = "erase", what = "layers." .. layer, at = 2 } end
      end
      interventions.new(q, list):before(2, envs)
      r:restart_plan()
      ffi.fill(r.resets:data(), ENVS, 1)
      t.ok(next_logits(q, 3) == next_logits(r, 3), "erased, it is not as after a reset")
    end)
  end
end

t.test("episodes continue in a narrower stepper as in a wide one: every core, every kind of action", function()
  local spaces, moved = { false, mn.multi_discrete { 2, 3 }, mn.box { low = -1, high = 1 } }, 0
  local function wide(case, space)
    local env = space and mn.env { name = "one", observation = { 16 }, actions = space, num_envs = 33, reset = function(self, random)
      self.seen = {}
      for i = 1, 16 do self.seen[i] = random() end
      return self.seen
    end, step = function(self, action, random)
      self.seen[random(16)] = type(action) == "table" and action[1] or action
      return self.seen, 0, false
    end } or mn.env("tmaze", { corridor = 3, num_envs = 33, time_limit = LIMIT })
    mn.manual_seed(5)
    local p = stepper.new(env, mn.agent { env = env, core = core_rig.build(case.settings, 1, { d_in = 16 }), hidden = 6 }, { seed = SEED })
    for _ = 1, 3 do p:forward() p:step() end
    return p
  end
  for i, case in ipairs(core_rig.cases()) do
    local p = wide(case, spaces[i % 3 + 1])
    local envs, of = { 1, 2, 7, 30, 32 }, { [0] = 1, 2, 7, 30, 32 }
    local q = p.free and next(p.agent.core.states) and narrower.of(p, envs)
    if q then
      t.ok(q.num_envs == 9 and narrower.of(p, envs) == q)
      p:restart_plan()
      moved = moved + 1
      for step = 1, 4 do
        p:forward() q:forward()
        for k, b in pairs(of) do
          local A, size = p.agent.actions, p.env.action_space.size
          local function bytes(s, e) return ffi.string(s.logits:data() + (s.row * s.num_envs + e) * A, 4 * A) .. ffi.string(s:acting() + e * size, 4 * size) end
          t.ok(bytes(p, b) == bytes(q, k), ("%s, step %d, environment %d"):format(case.name, step, b))
        end
        p:step() q:step()
        for k, b in pairs(of) do t.eq(q.done[k], p.done[b]) t.eq(q.return_of[k], p.return_of[b]) end
      end
    end
  end
  t.ok(moved > 40, moved)
end)

-- ---- the truth ----

local function cue_map(options)
  options.seed = options.seed or 7
  return causal_map.new(cue_agent.new(options.envs or 60), cue_agent.new(options.envs or 60), { measure = options.measure, seed = options.seed,
    on_column = options.on_column, every = options.every })
end

t.test("an agent made by hand: the channel that keeps the cue stands out at every step, the other at none", function()
  local map = cue_map {}
  t.ok(map:work())
  t.eq(map.measure, "success")
  t.eq(map.steps[#map.steps], cue_agent.corridor - 1)
  local cells, rows = map:cells(), {}
  local test = map:test(cells)
  for r, row in ipairs(map.rows) do rows[row.word] = cells[r] end
  for c = 1, #map.steps do
    local keeps, none = rows["layers.0.channels.0-0"][c], rows["layers.0.channels.1-1"][c]
    t.ok(keeps.clear and keeps.loss > 0.3 and keeps.low > 0.1 and keeps.noise < keeps.loss, "the cue's channel at column " .. c)
    t.eq(none.loss, 0) t.ok(not none.clear)
    t.eq(keeps.loss, rows.all[c].loss)
  end
  t.eq(test.clear, 2 * #map.steps)
  t.eq(test.of, 3 * #map.steps)
end)

t.test("episodes that fail are played once more with the likeliest actions: as a greedy agent plays them", function()
  local function of(greedy)
    local env = mn.env("tmaze", { corridor = 3, num_envs = 32, time_limit = 40 })
    mn.manual_seed(5)
    return stepper.new(env, mn.agent { env = env, core = { "gru", d_model = 8 }, hidden = 6 }, { seed = SEED, greedy = greedy })
  end
  local map, likeliest = causal_map.new(of(), of(), { seed = SEED, every = 30, measure = "success" }), causal_map.new(of(true), of(true),
    { seed = SEED, every = 30, measure = "success" })
  map:work()
  likeliest:work()
  local failed = 0
  for i, o in ipairs(map.outcomes) do
    failed = failed + (o.score < 1 and 1 or 0)
    t.eq(o.greedy, likeliest.outcomes[i].score)
    t.eq(likeliest.outcomes[i].greedy, nil, "of a greedy agent nothing is drawn")
  end
  t.ok(failed > 0, "some fail")
end)

t.test("by pieces, on any number of threads, resumed from any column: the same bits", function()
  local whole, folder = cue_map { every = 4 }, shell.folder()
  whole:work()
  local pieces, calls = cue_map { every = 4 }, 0
  while not pieces:work(0) do calls = calls + 1 end
  t.ok(calls > 50, "one piece is one step")
  t.eq(numbers(pieces), numbers(whole))
  local threads = engine.C.mn_threads(engine.ctx)
  engine.check(engine.C.mn_set_threads(engine.ctx, threads == 1 and 2 or 1))
  local other = cue_map { every = 4 }
  other:work()
  engine.check(engine.C.mn_set_threads(engine.ctx, threads))
  t.eq(numbers(other), numbers(whole))
  for stop = 0, #whole.steps do
    files.remove_folder(folder .. "/where")
    local killed = cue_map { every = 4 }
    local path, found = causal_map_file.attach(killed, folder)
    t.eq(found, 0)
    while #killed.columns < stop do killed:work(0) end
    local resumed = cue_map { every = 4 }
    t.eq(select(2, causal_map_file.attach(resumed, folder)), stop)
    resumed:work()
    t.eq(numbers(resumed), numbers(whole))
    t.eq(mn.json.encode(resumed:cells()), mn.json.encode(whole:cells()))
    local others = cue_map { every = 4, seed = 8 }
    t.ok(causal_map_file.attach(others, folder) ~= path, "another seed is another map")
  end
  os.execute("rm -r '" .. folder .. "'")
end)

t.test("some columns over all steps come first; stopped there, the map is resumed, with the same bits", function()
  local whole, folder = cue_map { every = 1 }, shell.folder()
  whole:work()
  local killed = cue_map { every = 1 }
  causal_map_file.attach(killed, folder)
  while not killed.coarse do killed:work(0) end
  local cells, of, left = killed:progress()
  t.ok(cells < of / 2 and not killed.done and left > 0, cells .. " of " .. of)
  local first, last
  for c in ipairs(killed.steps) do if killed.columns[c] then first, last = first or c, c end end
  t.ok(first <= 4 and last == #killed.steps, "they span the episode")
  local test = killed:test(killed:cells())
  t.ok(test.of == cells, "and can be tested")
  local resumed = cue_map { every = 1 }
  t.eq(select(2, causal_map_file.attach(resumed, folder)), cells / #killed.rows)
  resumed:work()
  t.eq(numbers(resumed), numbers(whole))
  files.remove_folder(folder)
end)

t.test("maps of erasing and of holding share two steppers, in turn between passes, and each is what it is alone; what is done gives them back", function()
  local function agent()
    return wanderer { "gated_deltanet", n_layers = 2, d_model = 8, d_head = 4, n_heads = 2, d_ffn = 8 }
  end
  local carrier, maps, alone = agent(), {}, {}
  local worker = carrier:twin()
  t.ok(worker.agent == carrier.agent and worker.env ~= carrier.env)
  t.eq(worker.num_envs, carrier.num_envs)
  for k, test in ipairs { "erase", "hold" } do
    local options = { seed = SEED, measure = "return", every = 1, outline = true, test = test }
    maps[k], alone[k] = causal_map.new(carrier, worker, options), causal_map.new(agent(), agent(), options)
    alone[k]:work()
  end
  local rounds = 0
  repeat
    for _, map in ipairs(maps) do map:work(math.huge) end                  -- to the end of a pass
    rounds = rounds + 1
  until maps[1].done and maps[2].done
  t.ok(rounds > 1)
  for k, map in ipairs(maps) do
    t.eq(numbers(map), numbers(alone[k]))
    local before = mn.json.encode(map:view().cells)
    map:release()
    t.eq(map.worker, nil)
    t.eq(mn.json.encode(map:view().cells), before)
    t.ok(map:work())
  end
end)

t.test("layers come first where asked for; stopped anywhere in them, the map is resumed, with the same bits", function()
  local function of(options)
    local function agent()
      local env = mn.env("tmaze", { corridor = 30, num_envs = 3, time_limit = 14 })
      mn.manual_seed(5)
      return stepper.new(env, mn.agent { env = env, core = { "gated_deltanet", n_layers = 2, d_model = 8, d_head = 4, n_heads = 2, d_ffn = 8 }, hidden = 6 },
        { seed = SEED })
    end
    options.seed, options.measure, options.every = SEED, options.measure or "return", 1
    return causal_map.new(agent(), agent(), options)
  end
  for _, kind in ipairs { { "erase", "return" }, { "hold", "return" } } do
    local whole = of { outline = false, test = kind[1], measure = kind[2] }
    whole:work()
    local layers, told = of { outline = true, test = kind[1], measure = kind[2] }, 0
    while not layers.outlined do layers:work(0) told = told + 1 end
    t.ok(told > 10 and not layers.coarse and not layers.done)
    local cells, n = layers:cells(), 0
    for r, row in ipairs(layers.rows) do
      for c in ipairs(layers.steps) do
        local first = (#layers.steps - c) % 4 == 0 and (row.word == "all" or row.word:find "^layers%.%d+$" ~= nil)
        t.eq(cells[r][c] ~= nil, first, row.word .. " at column " .. c)
        n = n + (first and 1 or 0)
      end
    end
    t.eq(layers:progress(), n)
    t.eq(layers:test(cells).of, n)
    layers:work()
    t.eq(numbers(layers), numbers(whole))
    t.eq(layers:progress(), #whole.steps * #whole.rows)
    t.eq(mn.json.encode(layers:cells()), mn.json.encode(whole:cells()))
  end
  local whole, folder = of { outline = false }, shell.folder()
  whole:work()
  for stop = 1, 5 do
    files.remove_folder(folder .. "/where")
    local killed, stored = of { outline = true }, 0
    causal_map_file.attach(killed, folder)
    local store = killed.on_column
    killed.on_column = function(map) store(map) stored = stored + 1 end
    while stored < stop do killed:work(0) end
    local resumed = of {}
    causal_map_file.attach(resumed, folder)
    t.eq(resumed:progress(), killed:progress(), "after " .. stop .. " stores")
    t.eq(mn.json.encode(resumed:cells()), mn.json.encode(killed:cells()))
    resumed:work()
    t.eq(numbers(resumed), numbers(whole))
    t.eq(select(2, causal_map_file.attach(of {}, folder)), #whole.steps)
  end
  files.remove_folder(folder)
end)

-- Long episodes of an agent that has learned nothing: all of them reach the time limit.
local function long_map(options)
  local function agent()
    local env = mn.env("tmaze", { corridor = 400, num_envs = 2, time_limit = 300 })
    mn.manual_seed(5)
    return stepper.new(env, mn.agent { env = env, core = { "gru", d_model = 4 }, hidden = 4 }, { seed = SEED })
  end
  options.seed, options.measure, options.by = SEED, "return", "layer"
  return causal_map.new(agent(), agent(), options)
end

t.test("of long episodes fewer columns are measured; columns= measures the others, and those that are stored stay, with the same bits", function()
  local folder, few, whole = shell.folder(), long_map {}, long_map { columns = causal_map.columns }
  local path = causal_map_file.attach(few, folder)
  few:work()
  whole:work()
  t.ok(#few.steps >= 4 and 2 * #few.steps <= #whole.steps + 1 and #whole.steps >= 20, ("%d of %d columns"):format(#few.steps, #whole.steps))
  t.eq(mn.json.encode(few:columns_of(nil, true)), mn.json.encode(whole.steps), "the others are known")
  local place = {}
  for c, at in ipairs(whole.steps) do place[at] = c end
  for c, at in ipairs(few.steps) do
    t.ok(place[at], "step " .. at .. " is one of the others")
    t.eq(mn.json.encode(few.columns[c]), mn.json.encode(whole.columns[place[at]]))
  end
  local more = long_map { columns = causal_map.columns }
  local same, found = causal_map_file.attach(more, folder)
  t.eq(same, path)
  t.eq(found, #few.steps)
  t.ok(not more.done and not more:work(0))
  more:work()
  t.eq(numbers(more), numbers(whole))
  t.eq(select(2, causal_map_file.attach(long_map {}, folder)), #whole.steps, "measured columns stay")
  local short = cue_map {}
  while not short.steps do short:work(0) end
  t.eq(#short:columns_of(), #short:columns_of(causal_map.columns, true), "short ones have all")
  files.remove_folder(folder)
end)

t.test("what is left is foreseen by the steps to replay", function()
  local map, asked = long_map { columns = 12 }, {}
  while not map:work(0) do
    local _, of, left = map:progress()
    local done = 0
    for c in ipairs(map.steps or {}) do if map.columns[c] then done = done + 1 end end
    if of and left and done > 0 and not asked[done] then asked[done] = { foreseen = left * map.played / map.spent, played = map.played } end
  end
  local n = 0
  for done, one in pairs(asked) do
    local really = map.played - one.played
    n = n + 1
    t.ok(math.abs(one.foreseen - really) <= 0.1 * really + 300, ("after %d columns %.0f steps are foreseen, it were %d"):format(done, one.foreseen, really))
  end
  t.ok(n >= 10, n .. " moments")
end)

t.test("a stored map that is damaged is measured again", function()
  local folder, whole = shell.folder(), cue_map { every = 5 }
  local path = causal_map_file.attach(whole, folder)
  whole:work()
  local text = files.read(path)
  local function found(damaged)
    files.write(path, { damaged })
    local map = cue_map { every = 5 }
    local _, n
    local err = io.stderr
    io.stderr = { write = function() end }
    local ok, why = pcall(function() _, n = causal_map_file.attach(map, folder) end)
    io.stderr = err
    t.ok(ok, why)
    return n, map
  end
  t.eq(found(text), #whole.steps)
  for at = 1, #text - 2, math.ceil(#text / 60) do
    t.eq(found(text:sub(1, at)), 0, "cut short")
    local n, map = found(text:sub(1, at) .. "9" .. text:sub(at + 2))
    t.ok(n == 0 or n == #whole.steps)
    map:work()
    map:test(map:cells())
  end
  os.execute("rm -r '" .. folder .. "'")
end)

t.test("options that do not exist are refused", function()
  local p, q = cue_agent.new(2), cue_agent.new(2)
  t.raises(function() causal_map.new(p, q, { measure = "loss" }) end, "loss")
  t.raises(function() causal_map.new(p, q, { by = "neuron" }) end, "neuron")
  t.raises(function() causal_map.new(p, q, { evry = 2 }) end, "evry")
  t.raises(function() causal_map.new(p, q, { every = 0 }) end, "every=0")
  t.raises(function() causal_map.new(p, q, { columns = 0 }) end, "columns=0")
  t.raises(function() causal_map.new(p, q, { columns = 4, every = 2 }) end, "got both")
  t.raises(function() causal_map.new(p, p) end, "two steppers")
end)

t.test("what is suggested to look at stands out: a small part if one does, else all of the memory, else nothing", function()
  local worth_seeing = require("mneme.commands.where").worth_seeing
  local function result(all, part)
    local rows = { { word = "all" }, { word = "layers.0.channels.0-3" } }
    return { test = {}, map = { steps = { 4 }, rows = rows }, steps = { 4 }, rows = rows, cells = { { all }, { part } } }
  end
  local loses, noise = { loss = 0.5, clear = true }, { loss = 0.02, clear = false }
  local word, at = worth_seeing(result(loses, { loss = 0.3, clear = true }))
  t.eq(word, "layers.0.channels.0-3")
  t.eq(worth_seeing(result(loses, { loss = 0.1, clear = true })), "all", "it has less than half of what is lost")
  t.eq(at, 4)
  t.eq(worth_seeing(result(loses, noise)), "all")
  t.eq(worth_seeing(result(noise, noise)), nil)
  t.eq(worth_seeing(result(loses, { loss = -0.5, clear = true })), "all", "a gain is no loss")
end)
