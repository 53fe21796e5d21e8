-- test_gtrxl_acting.lua -- a GTrXL agent acts and learns as the released one: acting is one step a call, on M carried steps; the
-- update runs the row again, on the M of its beginning and all of its own.  Compared with loops of doubles (naive_gtrxl.lua).
local t = require "tests.harness"
local mn = require "mneme"
local naive_gtrxl = require "tests.support.naive_gtrxl"
local learner_rig = require "tests.support.learner_rig"

local CLOSE = 2e-5
local SIZES = { n_layers = 2, d_model = 8, d_head = 4, d_ffn = 6, memory = 4 }
local SETTINGS = { num_steps = 14, num_envs = 2, corridor = 6, time_limit = 9, hidden = 5, bootstrap_truncated = 0, entropy_coef = 0.02,
  value_coef = 0.6, gamma = 0.9, lambda = 0.8, lr = 3e-3, max_norm = 0 }

-- Every parameter under its name, as numbers.
local function parameters(l)
  local p = {}
  for name, tensor in pairs(l.agent:state_dict()) do
    p[name] = {}
    for i = 1, tensor:size() do p[name][i] = tensor:data()[i - 1] end
  end
  return p
end

-- A [rows, B, n] buffer as lists [row][environment] of f(pointer).
local function listed(tensor, f)
  local shape, list = tensor:shape(), {}
  local each = tensor:size() / shape[1] / shape[2]
  for row = 1, shape[1] do
    list[row] = {}
    for b = 1, shape[2] do list[row][b] = f(tensor:data() + ((row - 1) * shape[2] + b - 1) * each, each) end
  end
  return list
end
local function number(p) return p[0] end
local function flag(p) return p[0] ~= 0 end
local function numbers(p, n)
  local list = {}
  for i = 1, n do list[i] = p[i - 1] end
  return list
end

-- The largest difference between logits and values in lists and in the learner's tensors, as a share of the largest.
local function apart(logits, values, tensor, of_values)
  local worst, scale, got, got_values = 0, 1, listed(tensor, numbers), listed(of_values, number)
  t.eq(#got, #logits)
  for row = 1, #logits do
    for b = 1, #logits[row] do
      for a = 1, #logits[row][b] do
        worst, scale = t.larger(worst, math.abs(got[row][b][a] - logits[row][b][a])), math.max(scale, math.abs(logits[row][b][a]))
      end
      worst, scale = t.larger(worst, math.abs(got_values[row][b] - values[row][b])), math.max(scale, math.abs(values[row][b]))
    end
  end
  return worst / scale
end

local function copy(memory)
  local out = {}
  for b, layers in ipairs(memory) do
    out[b] = {}
    for n, list in pairs(layers) do out[b][n] = { unpack(list) } end
  end
  return out
end

-- A learner whose every parameter matters, also those that begin at zero.
local function learner(make, sees, more)
  local cfg, sizes = {}, { sees = sees }
  for _, set in ipairs { SETTINGS, more or {} } do for key, value in pairs(set) do cfg[key] = value end end
  for key, value in pairs(SIZES) do sizes[key] = value end
  local l = learner_rig.learner(make, "gtrxl", cfg, sizes)
  for i, p in ipairs(l.agent:parameters()) do
    local noise = learner_rig.normal({ p:size() }, 200 + i):data()
    for k = 0, p:size() - 1 do p:data()[k] = p:data()[k] + 0.2 * noise[k] end
  end
  return l
end

-- What the rollout was, as lists.
local function seen(l)
  return { x = listed(l.x, numbers), resets = listed(l.resets, flag), done = listed(l.done, flag), rewards = listed(l.rewards, number),
    actions = listed(l.played, function(p) return p[0] + 1 end) }
end

local function empty(l)
  local memory = {}
  for b = 1, l.B do
    memory[b] = {}
    for n = 0, SIZES.n_layers - 1 do memory[b][n] = {} end
  end
  return memory
end

-- Slopes of a tensor's gradient: along its largest number, and along random signs.
local function directions(grad, stream)
  local n, best, noise = grad:size(), 0, learner_rig.normal({ grad:size() }, stream):data()
  for i = 0, n - 1 do if math.abs(grad:data()[i]) > math.abs(grad:data()[best]) then best = i end end
  return { function(i) return i == best and 1 or 0 end, function(i) return (noise[i] > 0 and 1 or -1) / math.sqrt(n) end }
end

-- The gradients that the update left, against difference quotients of the loss in doubles.
local function check_gradients(grads, p, loss_of)
  local worst, scale, stream = 0, 0, 0
  for _, g in pairs(grads) do for i = 0, g:size() - 1 do scale = math.max(scale, math.abs(g:data()[i])) end end
  t.ok(scale > 0.05, "the gradients are small: " .. scale)
  for name, g in pairs(grads) do
    stream = stream + 1
    for _, direction in ipairs(directions(g, stream)) do
      local slope, rest, h = 0, { unpack(p[name]) }, 1e-6
      local function moved(by)
        for i = 1, #rest do p[name][i] = rest[i] + by * direction(i - 1) end
        return loss_of(p)
      end
      for i = 0, g:size() - 1 do slope = slope + direction(i) * g:data()[i] end
      local quotient = (moved(h) - moved(-h)) / (2 * h)
      p[name] = rest
      worst = t.larger(worst, math.abs(slope - quotient) / scale)
    end
  end
  return worst
end

for _, horizon in ipairs { 0, 7 } do
  t.test(("a2c, horizon=%d: three rollouts of acting by single steps, and their updates"):format(horizon), function()
    local l = learner(mn.a2c, "memory", { horizon = horizon })
    local memory, begun, further = empty(l), 0, 0
    for _ = 1, 3 do
      l:rollout()
      local p, r, cfg = parameters(l), seen(l), l.agent.core.config
      for row = 1, l.T do for b = 1, l.B do begun = begun + (r.resets[row][b] and 1 or 0) end end
      -- Acting: M steps and itself, whatever the row.
      local starts, logits, values = {}, {}, {}
      for k, piece in ipairs(l.pieces) do
        starts[k] = copy(memory)
        for row = piece.first + 1, piece.to do
          if row == l.T + 1 then memory = copy(memory) end
          local before = row == l.T + 1 and copy(memory) or memory           -- the last row counts for its value alone
          local one, v = naive_gtrxl.run(p, cfg, before, { r.x[row] }, { r.resets[row] }, cfg.memory)
          logits[row], values[row] = one[1], v[1]
        end
        local own, own_values = { unpack(logits, piece.first + 1, piece.to) }, { unpack(values, piece.first + 1, piece.to) }
        t.ok(apart(own, own_values, piece.logits, piece.values) < CLOSE, "acting: " .. apart(own, own_values, piece.logits, piece.values))
      end
      -- The update: each piece again, from the memory of its beginning.
      t.ok(l:update())
      local function sequence(of)
        local all, all_values = {}, {}
        for k, piece in ipairs(l.pieces) do
          local one, v = naive_gtrxl.run(of, cfg, copy(starts[k]), { unpack(r.x, piece.first + 1, piece.to) },
            { unpack(r.resets, piece.first + 1, piece.to) }, math.huge)
          for i = 1, #one do all[#all + 1], all_values[#all_values + 1] = one[i], v[i] end
        end
        return all, all_values
      end
      local again, again_values = sequence(p)
      for row = 1, #again do for b = 1, l.B do further = math.max(further, math.abs(again_values[row][b] - values[row][b])) end end
      local G, advantages = naive_gtrxl.returns(again_values, r.rewards, r.done, l.gamma, l.lambda), {}
      for row = 1, l.T do
        advantages[row] = {}
        for b = 1, l.B do
          advantages[row][b] = G[row][b] - again_values[row][b]
          t.near(l.returns:data()[(row - 1) * l.B + b - 1], G[row][b], CLOSE * 4, "return")
        end
      end
      local function loss_of(of)
        local z, v = sequence(of)
        return naive_gtrxl.loss(z, v, r.actions, G, advantages, l.entropy_coef, l.value_coef)
      end
      t.near(l.losses.loss, loss_of(p), CLOSE)
      local grads = {}
      for name, tensor in pairs(l.agent:state_dict()) do grads[name] = tensor:grad() end
      local worst = check_gradients(grads, p, loss_of)
      t.ok(worst < CLOSE, "gradients: " .. worst)
    end
    t.ok(begun > 4, "episodes must begin for this test")
    t.ok(further > 0.01, "the update sees no more than acting does")
  end)
end

t.test("sees=rollout: acting is the row of the update", function()
  local l = learner(mn.a2c, "rollout")
  local memory = empty(l)
  for _ = 1, 2 do
    l:rollout()
    local r, cfg, start = seen(l), l.agent.core.config, copy(memory)
    local logits, values = naive_gtrxl.run(parameters(l), cfg, start, r.x, r.resets, math.huge)
    t.ok(apart(logits, values, l.pieces[1].logits, l.pieces[1].values) < CLOSE)
    naive_gtrxl.run(parameters(l), cfg, memory, { unpack(r.x, 1, l.T) }, { unpack(r.resets, 1, l.T) }, math.huge)
    for b = 1, l.B do
      for n, list in pairs(memory[b]) do memory[b][n] = { unpack(list, math.max(1, #list + 1 - cfg.memory)) } end
    end
    t.ok(l:update())
  end
end)

t.test("ppo: log probabilities and values are of acting, a minibatch is the row again", function()
  local l = learner(mn.ppo, "memory", { minibatches = 1, epochs = 1, lr = 0 })
  local memory = empty(l)
  for _ = 1, 2 do
    l:rollout()
    local p, r, cfg, start = parameters(l), seen(l), l.agent.core.config, copy(memory)
    local logits, values = naive_gtrxl.run(p, cfg, memory, { unpack(r.x, 1, l.T) }, { unpack(r.resets, 1, l.T) }, cfg.memory)
    t.ok(l:update())
    local again = naive_gtrxl.run(p, cfg, start, { unpack(r.x, 1, l.T) }, { unpack(r.resets, 1, l.T) }, math.huge)
    local old, old_values, m = listed(l.log_probs, number), listed(l.values, number), l.minibatch
    for row = 1, l.T do
      for b = 1, l.B do
        local z, sum = logits[row][b], 0
        for a = 1, #z do sum = sum + math.exp(z[a]) end
        t.near(old[row][b], z[r.actions[row][b]] - math.log(sum), CLOSE, "log probability")
        t.near(old_values[row][b], values[row][b], CLOSE, "value")
      end
      for i = 1, l.B do
        local b = l.sequences.order[i - 1] + 1
        for a = 1, #again[row][b] do
          t.near(m.logits:data()[((row - 1) * l.B + i - 1) * #again[row][b] + a - 1], again[row][b][a], CLOSE * 4, "of the update")
        end
      end
    end
  end
end)
