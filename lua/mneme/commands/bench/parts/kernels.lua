-- kernels.lua -- every attention and recurrence alone: one layer, T=256, B=8, H=4, forward and backward, next to
-- the time of its arithmetic and memory traffic at the machine's measured rates, and to PyTorch's best form.
local published_agents = require "mneme.commands.bench.parts.published_agents"
local engine = require "mneme.base.engine"
local errors = require "mneme.base.errors"
local registry = require "mneme.base.registry"
local shell_quote = require("mneme.base.terminal").shell_quote
local stopwatch = require "mneme.insight.measure.stopwatch"
local plan = require "mneme.tensor.plan"
local tensor = require "mneme.tensor.tensor"
local progress = require "mneme.base.progress"
local tables = require "mneme.base.tables"
local C, ops = engine.C, tensor.ops

local kernels = {}
local T, B, H, V = 256, 8, 4, 64

-- Lane operations of one token and head (one lane's multiply-add, or multiply): by chunks of 16 where decays meet
-- outer products, by the plain recurrence elsewhere; building features from their factors is not counted.
local function chunked(K) return 2 * V * K * (1 + 1 / 16) + 16 * (K + V), 5 * V * K + 7 * V * K / 16 + 40 * (K + V) end
-- A delta rule reads its matrix twice, by key and by query.
local function delta(K) return 3 * V * K + 32 * K + 17 * V, 8 * V * K + 97 * K + 70 * V end
-- RWKV's matrices: keys forget, values do not, and the state before every chunk is kept, so that none is worked out
-- again.  Step t meets the steps before it, 7.5 on the mean, or 8.5 with itself.  For a channel of a key that is its
-- running row and a product for each reader; backward the same again, then the gradients of the row (once for itself,
-- once for each reader), of its decay and of each reader; for a channel of a value one product, backward two.
-- RWKV-6 forward: read and write; 15 K, 4 K for the running decays, decayed queries and the step's own key.  Backward:
-- four products; 19 K again, 30 K, and 9 K for those four.
local function forgetting(K)
  return 2 * V * K + V * K / 16 + 19 * K + 8.5 * V, 4 * V * K + V * K / 8 + 58 * K + 17 * V
end
-- RWKV-7 reads by r and out and writes by k and back: twice the products, two readers of two keys (47 K, 94 K), and
-- values found by substitution.  Backward it reads by `out` again.
local function unlearning(K)
  return 4 * V * K + V * K / 16 + 50 * K + 32 * V, 9 * V * K + V * K / 8 + 150 * K + 79 * V
end
local function plain(K) return 2 * V * K, 5 * V * K end
-- AGaLiTe of one channel, from factors.  A key's number takes 1 for its decay, 1 written, 1 for s, 2 for the channel and
-- 2 read by q; a value's 3.  Back, a key's: those first 5 again; 2 from q, 2 to q, 2 carried on, 1 to what was written, 2
-- to the decay, 2 each to the factors of these two.  A value's: 2 again, 2 to and from y, 2 carried on, 2 to v and beta.
local function waves(K) return 7 * K + 3 * V + 64, 18 * K + 8 * V + 5 * 64 end
-- Softmax over M carried tokens and the past: the number of products of its scores' size.
local function seen(M, ahead, back) local n = (M + (T + 1) / 2) * V return ahead * n, back * n end
local function all_heads(forward, backward) return forward / H, backward / H end     -- counted for the whole layer

-- Inputs as in the cores: features are not negative, gates lie between 0 and 1.
local function qkv(r, more) return tables.merged({ q = r(T, B, H, 64), k = r(T, B, H, 64), v = r(T, B, H, V) }, more) end
local function factors(r, more)
  return qkv(r, tables.merged({ p_q = r(T, B, H, 4), p_k = r(T, B, H, 4), gamma = r(T, B, H, 64), p_gamma = r(T, B, H, 4), beta = r(T, B, H, V) }, more))
end

-- The same with what is kept given, not worked out from the gates.
local function kept(r)
  local a = factors(r, { keep_v = r(T, B, H, V), keep_k = r(T, B, H, 256) })
  a.write_v, a.write_k, a.p_write_k, a.beta, a.gamma, a.p_gamma = a.beta, a.gamma, a.p_gamma, nil, nil, nil
  return a
end

-- Transformer-XL's attention with M carried tokens.
local function xl(r, M)
  return qkv(r, { mk = r(M, B, H, 64), mv = r(M, B, H, V), u = r(H, 64), w = r(H, 64), r = r(M + T, H, 64) })
end

---name, its op, sizes, the op's inputs given r(shape...) -> a leaf of values in 0..1, and its lane operations.
kernels.list = {
  { "gated", op = "linear_attention", size = "64x256", inputs = factors, lanes = function() return chunked(256) end },
  { "apart", op = "linear_attention", size = "64x256", inputs = kept, lanes = function() return chunked(256) end },
  { "ungated", op = "linear_attention", size = "64x64", lanes = function() return plain(64) end, inputs = qkv },
  { "scalar", op = "linear_attention", size = "64x64", lanes = function() return plain(64) end,
    inputs = function(r) return qkv(r, { beta = r(T, B, H, 1) }) end },
  { "joint", op = "joint_gate_attention", size = "64x256", inputs = factors, lanes = function() return 4 * V * 256, 12 * V * 256 end },
  { "agalite", op = "agalite", size = "64+256, r=2",
    inputs = function(r) return factors(r, { tick = tensor.new { shape = { B } }, r = 2 }) end,
    lanes = function() return waves(256) end },
  { "delta", op = "delta_rule", size = "64x64", lanes = function() return delta(64) end,
    inputs = function(r) return qkv(r, { k = r(T, B, H, 64, 0.1), write = r(T, B, H), keep = r(T, B, H), normalise = 0 }) end },
  { "softmax", op = "attention", size = "64", lanes = function() return seen(0, 2, 5) end, inputs = qkv },
  { "xl128", op = "attention", size = "64, M=128", lanes = function() return seen(128, 3, 8) end, inputs = function(r) return xl(r, 128) end },
  { "xl256", op = "attention", size = "64, M=256", lanes = function() return seen(256, 3, 8) end, inputs = function(r) return xl(r, 256) end },
  { "wkv", op = "wkv4", size = "128", lanes = function() return all_heads(52 * 128, 150 * 128) end,     -- an exponential counts 10
    inputs = function(r) return { k = r(T, B, 128), v = r(T, B, 128), decay = r(128), first = r(128) } end },
  { "wkv6", op = "wkv6", size = "64x64", lanes = function() return forgetting(64) end,
    inputs = function(r)
      return { r = r(T, B, H, 64), k = r(T, B, H, 64), v = r(T, B, H, V), keep = r(T, B, H, 64), first = r(H, 64) }
    end },
  { "wkv7", op = "wkv7", size = "64x64", lanes = function() return unlearning(64) end,
    inputs = function(r)
      return { r = r(T, B, H, 64), keep = r(T, B, H, 64), k = r(T, B, H, 64), v = r(T, B, H, V), out = r(T, B, H, 64, 0.1),
               back = r(T, B, H, 64, 0.1) }
    end },
  { "lstm", op = "lstm", size = "600", lanes = function() return all_heads(4 * 600 * 600, 8 * 600 * 600) end,
    inputs = function(r) return { i = r(T, B, 4 * 600), w = r(4 * 600, 600, 0.05) } end },
  { "gru", op = "gru", size = "680", lanes = function() return all_heads(3 * 680 * 680, 6 * 680 * 680) end,
    inputs = function(r) return { i = r(T, B, 3 * 680), w = r(3 * 680, 680, 0.05), bias = r(680) } end },
}

-- ---- measuring ----

local streams = 0

-- A leaf of uniform values in 0..scale; a last argument below 1 is the scale.
local function random(...)
  local shape, scale = { ... }, 1
  if shape[#shape] < 1 then scale = table.remove(shape) end
  local t = tensor.new { shape = shape, grad = true }
  streams = streams + 1
  C.mn_random_uniform(1, streams, 0, t:data(), t:size())
  local p = t:data()
  for i = 0, t:size() - 1 do p[i] = p[i] * scale end
  return t
end

-- Seconds that a plan has spent in an op so far.
local function spent(p, op)
  local seconds = 0
  for name, s in pairs(p:profile()) do if name:match "^%S+" == op then seconds = seconds + s end end
  return seconds
end

-- The minimum of seven runs, or of as many as fit into half a second: other programs only slow a run down.
local function each_run(p, op)
  local best, runs, began = math.huge, 0, C.mn_clock(false)
  p:run()
  while runs < 7 or C.mn_clock(false) - began < 0.5 do
    local before = spent(p, op)
    p:run()
    best, runs = math.min(best, spent(p, op) - before), runs + 1
  end
  return best
end

---Time one kernel: seconds forward and backward, and the bound of the machine for each.
---@param k table an entry of the list
---@param machine table { lanes = lane operations a second, bytes = a second, look = measure both again }
function kernels.measure(k, machine)
  local inputs, numbers = k.inputs(random), 0
  -- What a kernel reads was computed, in a model, and lies in the plan's memory.
  local forward = plan(function()
    local computed = {}
    for key, t in pairs(inputs) do computed[key] = tensor.is(t) and t:wants_grad() and t * 1 or t end
    return (ops[k.op](computed))
  end)
  local y = forward()
  local backward = plan(function() ops.sum({ x = y }):backward() end)
  backward()
  for _, t in pairs(inputs) do if tensor.is(t) then numbers = numbers + t:size() end end
  numbers = numbers + y:size()
  machine:look()
  local ahead, back = k.lanes()
  local function least(lanes, bytes) return math.max(lanes * T * B * H / machine.lanes, bytes / machine.bytes) end
  -- Forward reads the inputs and writes y; backward reads both, y's gradient, and writes the inputs' gradients.
  local result = { name = k[1], op = k.op, size = k.size, forward = each_run(forward, k.op), backward = each_run(backward, k.op),
                   least = least(ahead, 4 * numbers) + least(back, 8 * numbers) }
  tensor.clear_tape()
  collectgarbage()
  return result
end

---Kernels take this many steps and environments from now on.
function kernels.sized(steps, num_envs) T, B = steps, num_envs end

---Seconds that one kernel takes on the device that is open, forward and backward: the mean of several launches that wait once,
---in the fastest of some rounds.
---@param k table an entry of the list
---@return number forward
---@return number backward
function kernels.on_device(k, rounds)
  local inputs, several = k.inputs(random), 20
  local forward = plan(function() return (ops[k.op](inputs)) end)
  local y = forward()
  local backward = plan(function() ops.sum({ x = y }):backward() end)
  backward()
  local function seconds(p)
    for _ = 1, 3 do p:run() end                       -- the first is ordinary, the second makes the graph
    engine.wait()
    return stopwatch.least(rounds, function()
      for _ = 1, several do p:run() end
      engine.wait()
    end) / several
  end
  local ahead, back = seconds(forward), seconds(backward)
  tensor.clear_tape()
  collectgarbage()
  return ahead, back
end

---Run a PyTorch script with the same number of threads: name -> { ms, form } of its best form.
---@param python string a Python that has torch
---@param words any the script's arguments: the number of threads, or sizes
---@param file string the script, in tests/reference
---@param each fun(name: string, ms: number, form: string)? called for every form, not the best alone
function kernels.torch(python, words, file, each)
  local best, said = {}, "nothing"
  local script = registry.root .. "tests/reference/" .. file
  local pipe = io.popen(("%s %s %s 2>&1"):format(shell_quote(python), shell_quote(script), words))
  for line in pipe:lines() do
    local name, ms, form = line:match "^(%w+) ([%d.]+) (%w+)$"
    said = line
    if name then
      published_agents.progress("PyTorch: " .. name)
      if each then each(name, tonumber(ms), form) end
      if not best[name] or tonumber(ms) < best[name].ms then best[name] = { ms = tonumber(ms), form = form } end
    end
  end
  pipe:close()
  if next(best) == nil then
    errors.raise(("torch=%s: tests/reference/%s said: %s"):format(python, file, said), { status = 2, where = false,
      hint = "a Python with PyTorch, as in tests/reference/README.md" })
  end
  return best
end

---All kernels as a table of text, and their figures.
---@param torch table? what kernels.torch returned
function kernels.run(machine, torch)
  print(("kernels, one layer, T=%d B=%d H=%d, forward + backward:"):format(T, B, H))
  print(("%-10s %-12s %8s %9s %9s %6s  %s"):format("", "size", "forward", "backward", "roofline", "share", torch and "PyTorch's best form" or ""))
  for _, k in progress.each(kernels.list, "kernels") do
    if rawget(ops, k.op) then
      published_agents.progress(k[1])
      local r = kernels.measure(k, machine)
      local total, other = r.forward + r.backward, torch and torch[r.name]
      local beside = other and ("%8.1f ms (%s): %.1f x"):format(other.ms, other.form, other.ms / (1e3 * total)) or ""
      print(("%-10s %-12s %5.1f ms %6.1f ms %6.1f ms %4.0f %%  %s"):format(r.name, r.size, 1e3 * r.forward, 1e3 * r.backward,
        1e3 * r.least, 100 * r.least / total, beside))
    end
  end
end

return kernels
