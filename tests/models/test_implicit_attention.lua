-- test_implicit_attention.lua -- what is said of what a memory reads is so: weights of softmax are those of the definition, weights
-- of the others give what heads really read, every core has weights or a reason, horizons are those of the gates.
local ffi = require "ffi"
local t = require "tests.harness"
local cores = require "mneme.models.cores"
local registry = require "mneme.base.registry"
local mn = require "mneme"
local naive_weights = require "tests.support.naive_weights"
local stepper = require "mneme.insight.episodes.stepper"
local implicit_attention = require "mneme.models.implicit_attention"
local frames = require "mneme.insight.episodes.frames"
local contract_rig = require "mneme.models.contract_rig"
local attention_history = require "mneme.insight.view.attention_history"

-- ---- softmax: the weights of the definition ----

local B, T = 2, 33
local resets = { { 0 }, { 6, 0 }, { 9, 1 }, { 21, 0 } }

-- n numbers as a list; with heads as a list of lists.
local function numbers(p, n, heads)
  local list = {}
  if heads then
    for h = 1, heads do list[h] = numbers(p + (h - 1) * n / heads, n / heads) end
  else
    for i = 1, n do list[i] = p[i - 1] end
  end
  return list
end

-- A life of T steps, as a stepper leads it: a plan of `rows` rows in turn, whose state goes on.  See naive_weights.lua.
local function live(c, rows)
  local x, done = mn.sequence { shape = { rows, B, c.config.d_in } }, mn.sequence { shape = { rows, B }, dtype = "u8" }
  local state, probes, run = c:initial(B), {}, { cfg = c.config, p = {}, steps = {} }
  for name, p in pairs(c:state_dict()) do run.p[name] = numbers(p:data(), p:size()) end
  local plan = mn.plan(function(...)
    local args, y, after = { ... }, nil, nil
    mn.no_grad(function() y, after = c:act(args[1], args[2], args[3], function(name, p) probes[name] = p return p end) end)
    return y, after
  end)
  local _, after = plan(x, done, state)
  local inputs, flags = contract_rig.normal({ T, B, c.config.d_in }, 1), contract_rig.done(T, B, resets)
  local start, row = {}, 0
  for step = 0, T - 1 do
    local n = B * c.config.d_in
    ffi.copy(x:data() + row * n, inputs:data() + step * n, 4 * n)
    ffi.copy(done:data() + row * B, flags:data() + step * B, B)
    plan:rows(row, row + 1)
    local now = { probes = {}, row = row, start = {}, mem = {} }
    for b = 0, B - 1 do
      if flags:data()[step * B + b] ~= 0 then start[b] = step end
      now.start[b] = start[b]
      if after.mem then now.mem[b] = numbers(after.mem:data() + b * after.mem:size() / B, after.mem:size() / B) end
    end
    for name, p in pairs(probes) do
      local shape, each = p:shape(), p:size() / p:shape()[1] / B
      local of_row = p:data() + (shape[1] == 1 and 0 or row * B * each)
      now.probes[name] = { shape = { unpack(shape, 3) } }
      for b = 0, B - 1 do now.probes[name][b] = numbers(of_row + b * each, each, #shape == 4 and shape[3]) end
    end
    run.steps[step], row = now, row + 1
    if row == rows then row = 0 mn.keep(after, state) end
  end
  return run
end

-- Weights of { back, steps, weight }, those of equal steps together.
local function by_steps(list)
  local sums = {}
  for _, e in ipairs(list) do
    local key = e[1] .. "+" .. e[2]
    sums[key] = (sums[key] or 0) + e[3]
  end
  return sums
end

local function softmax(list)
  local top, sum = -math.huge, 0
  for _, e in ipairs(list) do top = math.max(top, e[3]) end
  for _, e in ipairs(list) do sum = sum + math.exp(e[3] - top) end
  for _, e in ipairs(list) do e[3] = math.exp(e[3] - top) / sum end
  return list
end

-- What the core says of a head at a step.
local function told(run, step, b, layer, head)
  local list, now = {}, run.steps[step].probes
  local function add(numbers_of, n, from)
    for i = 0, n - 1 do
      local back, steps, weight = unpack(numbers_of, from + 3 * i + 1, from + 3 * i + 3)
      if weight > 0 then list[#list + 1] = { back, steps, weight } end
    end
  end
  for _, kind in ipairs { "attention", "attention_global" } do
    local own, whole = now["layers." .. layer .. "." .. kind], now[kind]
    if own then
      local s = own.shape
      local flat = own[b]
      add(flat, s[2], head * s[2] * 3)
    elseif whole then
      local s = whole.shape
      add(whole[b], s[3], (layer * s[2] + head) * s[3] * 3)
    end
  end
  return list
end

local softmax_cores = {
  { { "transformer", memory = 5 }, rows = 7 }, { { "transformer", memory = 9 }, rows = 4 }, { { "transformer", memory = 3 }, rows = T },
  { { "gtrxl", memory = 5 }, rows = 7 }, { { "gtrxl", memory = 4 }, rows = 2 }, { { "gtrxl", memory = 3, flow = "residual" }, rows = T },
  { { "gtrxl", memory = 5, sees = "rollout" }, rows = 7 }, { { "gtrxl", memory = 4, sees = "rollout" }, rows = 2 },
  { { "gtrxl", memory = 3, flow = "residual", sees = "rollout" }, rows = T },
  { { "longformer", window = 3, globals = 2, dilation = 2 }, rows = 7 }, { { "longformer", window = 4, globals = 0, dilation = 1 }, rows = T },
  { { "bigbird", block = 3, context = 12, random = { { {}, {}, { 0 }, { 1 } }, { {}, {}, {}, { 0, 1 } } }, global_blocks = { 2 } }, rows = 5 },
  { { "bigbird", block = 2, context = 6, random = { { {}, {}, { 0 } }, { {}, {}, {} } }, global_blocks = {} }, rows = 16 },
  { { "longshort", window = 3, chunk = 4, rho = 2, context = 8 }, rows = 7 }, { { "longshort", window = 6, chunk = 2, rho = 1, context = 4 }, rows = T },
  { { "rmt", segment = 4, mem_slots = 3, flow = "residual" }, rows = 7 },
  { { "rmt", segment = 4, mem_slots = 3, flow = "residual", sees = "rollout" }, rows = 7 },
  { { "rmt", segment = 5, mem_slots = 2, flow = "residual", sees = "rollout" }, rows = T },
}

for _, case in ipairs(softmax_cores) do
  local spec, rows = case[1], case.rows
  t.test(("weights of %s, %d rows at a time%s, are those of its definition"):format(spec[1], rows, spec.sees and ", sees=" .. spec.sees or ""), function()
    local run = live(contract_rig.build(spec), rows)
    for step = 0, T - 1 do
      for b = 0, B - 1 do
        for layer = 0, 1 do
          for head = 0, 1 do
            local what, sum = ("%s step %d copy %d layer %d head %d"):format(spec[1], step, b, layer, head), 0
            local got, want = by_steps(told(run, step, b, layer, head)), by_steps(softmax(naive_weights[spec[1]](run, step, b, layer, head)))
            for key, w in pairs(want) do
              t.near(got[key] or 0, w, 2e-5, what .. " key " .. key)
              got[key], sum = nil, sum + (got[key] or 0)
            end
            t.eq(next(got), nil, what)
            t.near(sum, 1, 1e-5, what)
          end
        end
      end
    end
  end)
end


-- ---- what is read of the steps of an episode ----

local small = { d_model = 16, n_layers = 2, n_heads = 2, d_head = 8, d_ffn = 16 }

-- The frame of the nth step of a small agent that has not learnt.
local function frame_of(spec, n)
  local config, known = { spec[1] }, cores.definition(spec[1]).config
  for _, set in ipairs { small, spec } do
    for key, value in pairs(set) do if known[key] ~= nil then config[key] = value end end
  end
  mn.manual_seed(3)
  local source, film = stepper.fresh { env = { "tmaze", corridor = 30 }, core = config }, frames.new()
  local frame
  for _ = 1, n do frame = film:add(source:next()) end
  return frame
end

-- What a head read now and what the weights say it read, the latter up to a factor where there is a normaliser.
local function check_reading(spec, normalised)
  local frame = frame_of(spec, 12)
  t.eq(implicit_attention.problem(frame), nil, spec[1])
  local layers, heads = implicit_attention.size(frame)
  t.eq(layers, 2) t.eq(heads, 2)
  for layer = 0, layers - 1 do
    for head = 0, heads - 1 do
      local V, got, want = small.d_head, {}, {}
      local function values(entry, kind) return entry.probes["layers." .. layer .. "." .. kind].values + head * V end
      for d = 0, V - 1 do
        local w, n, unseen = implicit_attention.weights(frame, layer, head, d)
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
  check_reading({ "performer" }, true)
  check_reading({ "mlstm", expand = 1 }, true)
  check_reading({ "rwkv6" }, false)
  check_reading({ "rwkv7" }, false)
  check_reading({ "transformer", memory = 32 }, false)
  check_reading({ "gtrxl", memory = 32 }, false)
  check_reading({ "longformer", window = 4, globals = 0 }, false)
  check_reading({ "bigbird", block = 4, context = 8 }, false)
end)

t.test("rwkv4: channel by channel, weights times values are what is read; their mean sums to 1", function()
  local frame = frame_of({ "rwkv4" }, 12)
  t.eq(implicit_attention.problem(frame), nil)
  local layers, heads = implicit_attention.size(frame)
  t.eq(layers, 2) t.eq(heads, 1)
  for layer = 0, 1 do
    for d = 0, 15 do
      local w, n = implicit_attention.weights(frame, layer, 0, d)
      local sum, read = 0, 0
      for j = 0, n - 1 do
        sum, read = sum + w[j], read + w[j] * frame.history[j + 1].probes["layers." .. layer .. ".v"].values[d]
      end
      t.near(sum, 1, 1e-5)
      t.near(read, frame.probes["layers." .. layer .. ".retrieved"].values[d], 1e-5)
    end
    local w, n, sum = implicit_attention.weights(frame, layer, 0), 12, 0
    for j = 0, n - 1 do sum = sum + w[j] end
    t.near(sum, 1, 1e-5)
  end
end)

-- The weights of a head, their sum, and what is beside them.
local function row_of(frame, layer, head)
  local w, n, unseen, beside = implicit_attention.weights(frame, layer, head)
  local list, sum = {}, 0
  for j = 0, n - 1 do list[j], sum = w[j], sum + w[j] end
  t.eq(unseen, 0)
  return list, sum, beside
end

t.test("every core shows weights that add up, or says why none belong to a step", function()
  local kinds = { weights = 0, reasons = 0 }
  for _, name in ipairs(registry.names "cores") do
    local frame = frame_of({ name }, 9)
    local reads, problem, layers, heads = frame.reads, implicit_attention.problem(frame), implicit_attention.size(frame)
    t.ok(reads, name .. " does not say how it reads its memory (see learn_recall.lua)")
    t.ok(reads ~= "softmax" or naive_weights[name], name .. ": its definition is missing in naive_weights.lua")
    if problem then
      kinds.reasons = kinds.reasons + 1
      t.ok(problem:find "^no weight belongs to a step" or problem:find "^nothing is read", name .. ": " .. problem)
      t.eq(implicit_attention.horizon(frame, 0, 0), nil)
    else
      kinds.weights = kinds.weights + 1
      t.ok(layers >= 1 and heads >= 1, name)
      local share, some = reads == "softmax" or reads == "averages" or reads == "frames", false
      for row = 0, layers * heads - 1 do
        local w, sum, beside = row_of(frame, math.floor(row / heads), row % heads)
        for j = 0, 8 do
          t.ok(w[j] - w[j] == 0, name)
          some = some or w[j] ~= 0
        end
        if share then t.near(sum + beside, 1, 1e-5, name) end
      end
      t.ok(some, name .. " reads nothing")
      local steps = implicit_attention.horizon(frame, layers - 1, heads - 1)
      t.ok(steps and (steps > 0 or name == "rmt"), name .. " has a horizon")          -- rmt sees its own step, and its memory tokens
    end
  end
  t.ok(kinds.weights > 20 and kinds.reasons > 2)
end)

t.test("a core's word for its way of reading is checked", function()
  local path = os.tmpname() .. ".lua"
  local function write(reads)
    local f = assert(io.open(path, "w"))
    f:write(([[return { doc = "d", config = { d_in = 4 }, build = function(cfg)
      return { module = require("mneme.tensor.nn").linear(4, 4), d_out = 4, states = {}, sizes = {}, forward = function(x) return x, {} end%s }
    end }]]):format(reads and (", reads = %q"):format(reads) or ""))
    f:close()
  end
  write "softmacks"
  t.raises(function() cores.new(path, {}) end, "reads = 'softmacks'")
  os.remove(path)
  path = path:gsub("lua$", "2.lua")
  write(nil)
  t.eq(cores.new(path, {}).reads, nil)
  t.ok(implicit_attention.problem { history = {}, probes = {} }:find "does not say how it reads")
  os.remove(path)
end)

for sees, first in pairs { memory = 9, rollout = 8 } do
  t.test("rmt: what goes to memory tokens is beside the steps; a new segment cannot see the old one's steps, sees=" .. sees, function()
    local frame = frame_of({ "rmt", segment = 4, mem_slots = 3, sees = sees }, 10)
    for head = 0, 1 do
      local w, sum, beside = row_of(frame, 1, head)
      t.ok(beside > 0.01 and beside < 1)
      t.near(sum + beside, 1, 1e-5)
      for j = 0, 9 do t.eq(w[j] > 0, j >= first) end
    end
    t.ok(implicit_attention.note(frame, 0.5):find "50 %% goes to memory tokens")
  end)
end

t.test("longshort: the weight of a chunk is spread over its steps", function()
  local frame = frame_of({ "longshort", window = 2, chunk = 4, rho = 2, context = 8 }, 15)
  for head = 0, 1 do
    local w, sum, beside = row_of(frame, 0, head)
    t.near(sum, 1, 1e-5)
    t.near(beside, 0, 1e-6)
    for j = 0, 3 do t.eq(w[j], 0, "a chunk that was dropped") end
    for from = 4, 8, 4 do
      for j = from, from + 3 do t.ok(w[j] > 0 and w[j] == w[from]) end
    end
    t.eq(w[12], 0)
    t.ok(w[13] > 0 and w[14] > 0)
  end
  t.eq(implicit_attention.note(frame, 0), "a chunk's weight is spread over its steps")
end)

t.test("framestack: the observations that it holds, all alike", function()
  local frame = frame_of({ "framestack", frames = 4 }, 9)
  local w, sum = row_of(frame, 0, 0)
  for j = 0, 8 do t.near(w[j], j >= 5 and 0.25 or 0, 1e-6) end
  t.near(sum, 1, 1e-6)
  t.eq(implicit_attention.horizon(frame, 0, 0), 3)
  w = row_of(frame_of({ "framestack", frames = 4 }, 2), 0, 0)
  t.near(w[0], 0.5, 1e-6)
end)

t.test("softmax: steps that the history does not have are beside; gaps do not shift the others", function()
  local frame = frame_of({ "transformer", memory = 5 }, 12)
  local whole = row_of(frame, 0, 1)
  local history = frame.history
  frame.history = { history[9], history[11], history[12] }
  local w, sum, beside = row_of(frame, 0, 1)
  for k, j in ipairs { 8, 10, 11 } do t.eq(w[k - 1], whole[j]) end
  t.near(sum + beside, 1, 1e-5)
  t.near(beside, whole[6] + whole[7] + whole[9], 1e-5)
end)

t.test("softmax reads its window and no more, and its weights sum to 1", function()
  local frame = frame_of({ "transformer", memory = 5 }, 12)
  local w, n = implicit_attention.weights(frame, 1, 0)
  local sum = 0
  for j = 0, n - 1 do
    sum = sum + w[j]
    t.eq(w[j] > 0, j >= n - 6)
  end
  t.near(sum, 1, 1e-5)
  t.eq(implicit_attention.horizon(frame, 0, 0), 5)
end)

t.test("probes that do not go together, as those of a damaged file, are not read", function()
  for _, kind in ipairs { "k", "gamma", "p_k", "p_gamma", "p_q", "q" } do
    for _, shape in ipairs { { 2, 1 }, { 1, 8 }, { 3, 8 }, {} } do
      local frame = frame_of({ "galite", eta = 2 }, 3)
      local name = "layers.1." .. kind
      if table.concat(shape, ",") ~= table.concat(frame.probes[name].shape, ",") then
        frame.probes[name] = { shape = shape, values = frame.probes[name].values }
        t.ok(implicit_attention.problem(frame), kind)
      end
    end
  end
  for name, kinds in pairs { gated_deltanet = { "keep", "beta" }, rwkv6 = { "first", "w", "r" }, rwkv7 = { "k_out", "k_write" },
    rwkv4 = { "k", "w" } } do
    for _, kind in ipairs(kinds) do
      local frame = frame_of({ name }, 3)
      frame.probes["layers.0." .. kind] = nil
      t.ok(implicit_attention.problem(frame), name .. " without " .. kind)
    end
  end
end)

t.test("weights of attention in a file may be anything: none hangs or crashes", function()
  local frame = frame_of({ "gtrxl", memory = 4 }, 6)
  local array = frame.probes["layers.0.attention"]
  for _, x in ipairs { -1, 0 / 0, math.huge, -math.huge, 1e30, 2 ^ 24, 0.5, 1e7 } do
    for i = 0, 3 * array.shape[2] - 1 do array.values[i] = x end
    t.eq(implicit_attention.problem(frame), nil)
    local _, n = implicit_attention.weights(frame, 0, 0)
    t.eq(n, 6)
    implicit_attention.horizon(frame, 0, 0)
    implicit_attention.note(frame, 0)
  end
  for _, shape in ipairs { { 2, 3 }, { 2, 68, 2 }, { 3, 1, 3 }, {}, { 1, 2, 1, 3 } } do
    frame.probes["layers.0.attention"] = { shape = shape, values = array.values }
    t.ok(implicit_attention.problem(frame), table.concat(shape, ","))
  end
  frame.probes["layers.0.attention"], frame.probes.attention = nil, { shape = { 2, 2 }, values = array.values }
  t.ok(implicit_attention.problem(frame))
end)

t.test("steps that were not seen are told", function()
  local frame = frame_of({ "galite", eta = 2 }, 9)
  frame.history[4].probes = nil
  local _, n, unseen = implicit_attention.weights(frame, 0, 0)
  t.eq(n, 9) t.eq(unseen, 4)
  frame = frame_of({ "gated_deltanet" }, 9)
  frame.history[2].probes = nil
  _, n, unseen = implicit_attention.weights(frame, 0, 0)
  t.eq(n, 9) t.eq(unseen, 2)
end)

t.test("shares are the weights of each step as they were then, whichever is asked for first", function()
  local film, shown = frames.new(), {}
  mn.manual_seed(3)
  local source = stepper.fresh { env = { "tmaze", corridor = 30 }, core = { "galite", d_model = 16, n_layers = 2,
    n_heads = 2, d_head = 8, d_ffn = 16, eta = 2, feature = "outer_elu1" } }
  for i = 1, 12 do shown[i] = film:add(source:next()) end
  local rows = { { layer = 1, head = 0 }, { layer = 0, head = 1 } }
  for i = 3, 12 do
    for _, row in ipairs(rows) do
      local w, n = implicit_attention.weights(shown[i], row.layer, row.head)
      local sum, share = 0, attention_history.of(shown[12], i, row.layer, row.head)
      for j = 0, n - 1 do sum = sum + math.abs(w[j]) end
      for j = 0, n - 1 do t.near(share[j], math.abs(w[j]) / sum, 1e-6) end
      t.eq(attention_history.of(shown[i], i, row.layer, row.head), share, "kept")
    end
  end
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
  t.near(implicit_attention.horizon(gates_frame("gated_delta", { keep = 0.9 }), 0, 0), math.log(0.5) / math.log(0.9), 1e-3)
  t.near(implicit_attention.horizon(gates_frame("gated", { gamma = 0.1, beta = 0.2 }), 0, 0), math.log(0.5) / math.log(0.72), 1e-3)
  t.near(implicit_attention.horizon(gates_frame("gated", { gamma = 0.5, p_gamma = 0.5 }), 0, 0), math.log(0.5) / math.log(0.75), 1e-3)
  t.near(implicit_attention.horizon(gates_frame("unlearned", { w = 0.99 }), 0, 0), math.log(0.5) / math.log(0.99), 0.01)
  t.near(implicit_attention.horizon(gates_frame("delta", { gamma = 1 }), 0, 0), 0, 0.02)
  local uneven = gates_frame("gated_delta", { keep = 0.5 })
  uneven.probes["layers.0.keep"].values[1] = 0.99
  local steps, slowest = implicit_attention.horizon(uneven, 0, 0)
  t.near(0.5 * (0.5 ^ steps + 0.99 ^ steps), 0.5, 1e-3)
  t.near(slowest, math.log(0.5) / math.log(0.99), 0.01)
  t.eq(implicit_attention.horizon(gates_frame("gated", {}), 0, 0), math.huge, "no gates forget nothing")
  t.eq(implicit_attention.horizon(gates_frame("gated_delta", { keep = 1 }), 0, 0), math.huge)
  t.eq(implicit_attention.horizon(gates_frame(nil, { beta = 0.5 }), 0, 0), nil, "not known")
end)


