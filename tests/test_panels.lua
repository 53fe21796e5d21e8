-- test_panels.lua -- what panels show is so: weights on past steps give what heads really read, horizons are those
-- of the gates, curves are those of the log, places and outcomes those that were seen.
local ffi = require "ffi"
local lfs = require "lfs"
local t = require "tests.harness"
local core = require "mneme.core"
local curves = require "mneme.curves"
local fake = require "tests.fake_player"
local mn = require "mneme"
local player = require "mneme.player"
local recall = require "mneme.recall"
local recorder = require "mneme.recorder"
local scene = require "mneme.scene"
local shares = require "mneme.shares"

-- ---- what is read ----

local small = { d_model = 16, n_layers = 2, n_heads = 2, d_head = 8, d_ffn = 16 }

-- The frame of the nth step of a small agent that has not learnt.
local function frame_of(spec, n)
  local config, known = { spec[1] }, core.definition(spec[1]).config
  for _, set in ipairs { small, spec } do
    for key, value in pairs(set) do if known[key] ~= nil then config[key] = value end end
  end
  mn.manual_seed(3)
  local source, film = player.fresh { task = { "tmaze", corridor = 30 }, core = config }, recorder.new()
  local frame
  for _ = 1, n do frame = film:add(source:next()) end
  return frame
end

-- What a head read now and what the weights say it read, the latter up to a factor where there is a normaliser.
local function check_reading(spec, normalised)
  local frame = frame_of(spec, 12)
  t.eq(recall.problem(frame), nil, spec[1])
  local layers, heads = recall.size(frame)
  t.eq(layers, 2) t.eq(heads, 2)
  for layer = 0, layers - 1 do
    for head = 0, heads - 1 do
      local V, got, want = small.d_head, {}, {}
      local function values(entry, kind) return entry.probes["layers." .. layer .. "." .. kind].values + head * V end
      for d = 0, V - 1 do
        local w, n, unseen = recall.weights(frame, layer, head, d)
        t.eq(n, 12) t.eq(unseen, 0)
        got[d + 1], want[d + 1] = 0, values(frame, "retrieved")[d]
        for j = 0, n - 1 do got[d + 1] = got[d + 1] + w[j] * values(frame.history[j + 1], "v")[d] end
      end
      local top, bottom, most = 0, 0, 0
      for d = 1, V do
        top, bottom, most = top + got[d] * want[d], bottom + got[d] * got[d], math.max(most, math.abs(want[d]))
      end
      local factor = normalised and bottom > 0 and top / bottom or 1
      t.ok(most > 0 and factor > 0, spec[1] .. ": something is read")
      for d = 1, V do t.near(factor * got[d], want[d], 1e-4 * math.max(most, 1e-3), ("%s %d.%d"):format(spec[1], layer, head)) end
    end
  end
end

t.test("weights on past steps times what was written there are what a head reads", function()
  check_reading({ "galite", eta = 2, feature = "outer_elu1" }, true)
  check_reading({ "galite", gate = "elementwise", feature = "elu1", nu = 1 }, true)
  check_reading({ "galite", gate = "elementwise", eta = 2, feature = "outer_elu1" }, true)
  check_reading({ "galite", gate = "outer", feature = "elu1", nu = 2 }, true)
  check_reading({ "gated_linear" }, true)
  check_reading({ "linear_transformer" }, true)
  check_reading({ "delta", feature = "elu1" }, false)
  check_reading({ "delta_released", feature = "elu1", nu = 1 }, true)
  check_reading({ "gated_deltanet" }, false)
  check_reading({ "transformer", memory = 32 }, false)
end)

t.test("softmax reads its window and no more, and its weights sum to 1", function()
  local frame = frame_of({ "transformer", memory = 5 }, 12)
  local w, n = recall.weights(frame, 1, 0)
  local sum = 0
  for j = 0, n - 1 do
    sum = sum + w[j]
    t.eq(w[j] > 0, j >= n - 6)
  end
  t.near(sum, 1, 1e-5)
  t.eq(recall.horizon(frame, 0, 0), 5)
end)

t.test("where a core's way of reading has no weights, the panel can say so", function()
  t.ok(recall.problem(frame_of({ "gru" }, 3)):find "no queries")
  t.ok(recall.problem(frame_of({ "galite_released" }, 3)):find "no weights")
  t.ok(recall.problem(frame_of({ "performer", m = 4 }, 3)):find "no weights")
  t.ok(recall.problem(frame_of({ "rwkv6" }, 3)):find "no queries")
end)

t.test("probes that do not go together, as those of a damaged file, are not read", function()
  for _, kind in ipairs { "k", "gamma", "p_k", "p_gamma", "p_q", "q" } do
    for _, shape in ipairs { { 2, 1 }, { 1, 8 }, { 3, 8 }, {} } do
      local frame = frame_of({ "galite", eta = 2 }, 3)
      local name = "layers.1." .. kind
      if table.concat(shape, ",") ~= table.concat(frame.probes[name].shape, ",") then
        frame.probes[name] = { shape = shape, values = frame.probes[name].values }
        t.ok(recall.problem(frame), kind)
      end
    end
  end
  local frame = frame_of({ "gated_deltanet" }, 3)
  frame.probes["layers.0.keep"] = nil
  t.ok(recall.problem(frame))
end)

t.test("steps that were not seen are told", function()
  local frame = frame_of({ "galite", eta = 2 }, 9)
  frame.history[4].probes = nil
  local _, n, unseen = recall.weights(frame, 0, 0)
  t.eq(n, 9) t.eq(unseen, 4)
  frame = frame_of({ "gated_deltanet" }, 9)
  frame.history[2].probes = nil
  _, n, unseen = recall.weights(frame, 0, 0)
  t.eq(n, 9) t.eq(unseen, 2)
end)

t.test("shares are the weights of each step as they were then, whichever is asked for first", function()
  local film, frames = recorder.new(), {}
  mn.manual_seed(3)
  local source = player.fresh { task = { "tmaze", corridor = 30 }, core = { "galite", d_model = 16, n_layers = 2,
    n_heads = 2, d_head = 8, d_ffn = 16, eta = 2, feature = "outer_elu1" } }
  for i = 1, 12 do frames[i] = film:add(source:next()) end
  local rows = { { layer = 1, head = 0 }, { layer = 0, head = 1 } }
  local none, all = shares.since(frames[12], 3, rows, -math.huge)
  t.eq(next(none), nil) t.eq(all, false, "no time")
  local at, whole = shares.since(frames[12], 3, rows)
  t.ok(whole and not at[2])
  for i = 3, 12 do
    for r, row in ipairs(rows) do
      local w, n = recall.weights(frames[i], row.layer, row.head)
      local sum, share = 0, shares.of(frames[12], i, row.layer, row.head)
      for j = 0, n - 1 do sum = sum + math.abs(w[j]) end
      for j = 0, n - 1 do t.near(share[j], math.abs(w[j]) / sum, 1e-6) end
      t.eq(at[i][r], share[2])
      t.eq(shares.of(frames[i], i, row.layer, row.head), share, "kept")
    end
  end
  frames[12].history[4].probes = nil
  at = shares.since(frames[12], 3, rows)
  t.ok(at[12] and not at[3], "a step whose probes are gone")
end)

t.test("of a long episode some steps are looked at, the same ones as it goes on", function()
  local history = {}
  for i = 1, 700 do
    local k = ffi.new("float[2]", 1, i % 7)
    local probes = { ["layers.0.q"] = { shape = { 1, 2 }, values = k }, ["layers.0.k"] = { shape = { 1, 2 }, values = k } }
    history[i] = { step = i - 1, probes = probes }
  end
  local function frame(n)
    local so_far = {}
    for i = 1, n do so_far[i] = history[i] end
    return { reads = "gated", history = so_far, probes = history[n].probes, memory = {} }
  end
  local a, b = shares.since(frame(600), 5, { { layer = 0, head = 0 } }), shares.since(frame(700), 5, { { layer = 0, head = 0 } })
  local count = 0
  for i in pairs(a) do
    t.ok(b[i] or i == 600)
    count = count + 1
  end
  t.ok(count > 128 and count <= 257)
  local share = shares.of(frame(700), 700, 0, 0)
  t.eq(b[700][1], share[4])
end)

-- ---- how long it is kept ----

-- A frame of steps with these gates, all channels alike.
local function gates_frame(reads, gates)
  local probes = {}
  for kind, value in pairs(gates) do
    probes["layers.0." .. kind] = { shape = { 1, 2 }, values = ffi.new("float[2]", value, value) }
  end
  local history = {}
  for i = 1, 20 do history[i] = { step = i - 1, probes = probes } end
  return { reads = reads, history = history, probes = probes, memory = {} }
end

t.test("horizons: steps until half is gone", function()
  t.near(recall.horizon(gates_frame("gated_delta", { keep = 0.9 }), 0, 0), math.log(0.5) / math.log(0.9), 1e-3)
  t.near(recall.horizon(gates_frame("gated", { gamma = 0.1, beta = 0.2 }), 0, 0), math.log(0.5) / math.log(0.72), 1e-3)
  t.near(recall.horizon(gates_frame("gated", { gamma = 0.5, p_gamma = 0.5 }), 0, 0), math.log(0.5) / math.log(0.75), 1e-3)
  t.near(recall.horizon(gates_frame("kept", { w = 0.99 }), 0, 0), math.log(0.5) / math.log(0.99), 0.01)
  t.near(recall.horizon(gates_frame("delta", { gamma = 1 }), 0, 0), 0, 0.02)
  local uneven = gates_frame("gated_delta", { keep = 0.5 })
  uneven.probes["layers.0.keep"].values[1] = 0.99
  local steps, slowest = recall.horizon(uneven, 0, 0)
  t.near(0.5 * (0.5 ^ steps + 0.99 ^ steps), 0.5, 1e-3)
  t.near(slowest, math.log(0.5) / math.log(0.99), 0.01)
  t.eq(recall.horizon(gates_frame("gated", {}), 0, 0), math.huge, "no gates forget nothing")
  t.eq(recall.horizon(gates_frame("gated_delta", { keep = 1 }), 0, 0), math.huge)
  t.eq(recall.horizon(gates_frame(nil, { beta = 0.5 }), 0, 0), nil, "not known")
end)

t.test("every core with gates has a horizon, every read gives weights", function()
  for _, name in ipairs { "agalite", "galite", "rfa_gate", "rwkv6", "rwkv7", "gated_deltanet", "delta_released" } do
    local frame = frame_of({ name }, 4)
    local layers, heads = recall.size(frame)
    t.ok(layers >= 1 and heads >= 1, name)
    local steps = recall.horizon(frame, layers - 1, heads - 1)
    t.ok(steps and steps > 0, name .. " forgets")
  end
end)

-- ---- what was measured ----

t.test("learning curves: what was added is read, lines that are damaged are passed over", function()
  local folder = os.tmpname()
  os.remove(folder)
  assert(lfs.mkdir(folder))
  local function put(mode, text)
    local f = assert(io.open(folder .. "/metrics.jsonl", mode))
    f:write(text)
    f:close()
  end
  t.eq(next(curves.read(folder)), nil, "no log yet")
  put("w", '{"step": 10, "charts/score": 0.25}\n{"step": 20, "charts/score": "NaN", "x": 3}\nnonsense\n{"step": 30, "cha')
  local s = curves.read(folder)
  t.eq(s["charts/score"].n, 1) t.eq(s["charts/score"].y[1], 0.25) t.eq(s.x.x[1], 20)
  put("a", 'rts/score": 0.5}\n')
  s = curves.read(folder)["charts/score"]
  t.eq(s.n, 2) t.eq(s.x[2], 30) t.eq(s.y[2], 0.5)
  put("w", '{"step": 10, "charts/score": 0.25}\n')
  t.eq(curves.read(folder)["charts/score"].n, 1, "a trainer that resumes cuts its log")
  os.execute("rm -r '" .. folder .. "'")
end)

-- ---- what was seen ----

t.test("places and outcomes are those of the frames before, however far one steps back", function()
  local source, film, frames = fake.new { corridor = 4 }, recorder.new(), {}
  local steps, ends = 0, 0
  while ends < 3 do
    local now = source:next()
    if now.ended then film:finish(now.ended, now.reward) ends = ends + 1 end
    frames[#frames + 1] = film:add(now)
    steps = steps + 1
    t.eq(frames[#frames].been, steps)
    t.eq(frames[#frames].ended_before, ends)
  end
  t.eq(frames[2].been, 2) t.eq(frames[2].ended_before, 0)
  t.eq(frames[#frames].places.x[steps - 1], frames[#frames].truth.position)
  for i, entry in ipairs(frames[5].history) do
    t.eq(entry.truth.position, entry.x)
    t.near(entry.policy[4], frames[i].policy[4], 0)
    t.ok(entry.norms[3] > 0 and entry.probes and entry.observation)
  end
end)

t.test("of a training that is seen now and then, steps that were seen keep what was seen", function()
  local source, film = fake.new { corridor = 20 }, recorder.new()
  local function told(n)
    local history = {}
    for i = 1, n do history[i] = { step = i - 1, value = i, x = i, gates = {} } end
    return history
  end
  local frame
  for step = 0, 6 do
    local now = source:next()
    now.step, now.episode, now.history = step, 0, told(step + 1)
    if step % 3 == 0 then frame = film:add(now) end
  end
  t.eq(#frame.history, 7) t.eq(frame.been, 7)
  for i, entry in ipairs(frame.history) do
    t.eq(entry.value, i, "what the trainer told stays")
    t.eq(entry.policy ~= nil, (i - 1) % 3 == 0)
  end
  local now = source:next()
  now.step, now.episode, now.history = 9, 0, told(8)       -- a trainer that has not told this step
  frame = film:add(now)
  t.eq(frame.history[8].norms, nil)
  local painter = scene.painter()
  for _, name in ipairs(scene.list()) do painter:paint(scene.load(name), frame, 800, 600) end
end)

-- The frames of some steps on a scene's own task, and what the scene asks of the panel of what was seen.
local function asked_of_seen(name, settings)
  local what, film, asked = scene.load(name), recorder.new(), nil
  local task = { name }
  for key, value in pairs(settings) do task[key] = value end
  mn.manual_seed(5)
  local source, frame = player.fresh { task = task, core = { "gru", d_model = 8 } }, nil
  for _ = 1, 80 do
    local now = source:next()
    frame = now.ended and frame or film:add(now)
    if now.ended then break end
  end
  local panel = scene.panels.seen
  scene.panels.seen = function(_, _, _, options) asked = options end
  local ok, why = pcall(function() scene.painter():paint(what, frame, 800, 600) end)
  scene.panels.seen = panel
  t.ok(ok, why)
  return frame, asked
end

t.test("what was seen lies where it is: in memory_maze as in its layout", function()
  for _, mode in ipairs { "grid", "continuous" } do
    local frame, asked = asked_of_seen("memory_maze", { mode = mode, size = 11, view = 5 })
    t.eq(asked.view, 5) t.eq(asked.width, 11)
    local is, checked = { [0] = 1, [1] = 2, [2] = 3 }, 0
    for _, entry in ipairs(frame.history) do
      for k = 0, 24 do
        local code, x, y = entry.observation.values[k], asked.place(entry.truth, k)
        local inside = x >= 0 and y >= 0 and x < 11 and y < 11
        if code > 0 then
          t.eq(math.min(code, 3), inside and is[entry.truth.layout[y * 11 + x + 1]] or 1)
          checked = checked + 1
        end
      end
    end
    t.ok(checked > 500, mode)
  end
end)

t.test("what was seen lies where it is: in gridworld a place is always the same", function()
  local frame, asked = asked_of_seen("gridworld", { view = 5, map = [[
#########
#S.....1#
#.?.#...#
#.....#2#
#########]] })
  local at, checked = {}, 0
  for _, entry in ipairs(frame.history) do
    for k = 0, 24 do
      local code, x, y = entry.observation.values[k], asked.place(entry.truth, k)
      if code > 0 then
        t.ok(x >= 0 and y >= 0 and x < frame.truth.width and y < frame.truth.height)
        t.eq(at[y * 64 + x] or code, code)
        at[y * 64 + x], checked = code, checked + 1
      end
    end
  end
  t.ok(checked > 100 and #frame.history > 5)
end)
