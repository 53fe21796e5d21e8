-- shm.lua -- Stable Hadamard Memory: a matrix each element of which grows or shrinks by a factor of its own at every step.
--   x = norm(x);   k, q = relu(W x), divided by 1e-5 + their sum;   v, c = W x;   b = sigma(w x)
--   M = M*(1 + tanh(theta c^T)) + (b v) k^T;   y = out(M q + shortcut x)
-- The paper draws theta at random from 128 rows at each step.  The code of its POPGym results draws integers below 1, so that theta is always
-- the first row: this core, which has that row alone.  Factors are 1 on average and up to 2, so that an input that stays the same can make
-- elements grow: they stay within +-1e12, so that endless episodes are finite.  Nothing is there that core.remember could set, since the factor is 1
-- with a zero input.
local nn = require "mneme.tensor.nn"
local parameter = require("mneme.tensor.random").parameters.new
local recur = require "mneme.tensor.recur"
local recurrent = require "mneme.models.recurrent"
local tensor = require "mneme.tensor.tensor"
local ops = tensor.ops

local LARGEST = 1e12
local ROWS = 128                 -- of the published theta, for its bound at the start

-- One step.
local function write(i, C)
  local after = (C * i.a + i.x):clamp { lo = -LARGEST, hi = LARGEST }
  return after, after
end

-- Names norm, k, q, v, c .weight [m,d_in], eta.weight [1,d_in], theta [m], shortcut, out.
local function layer(d_in, d, cfg)
  local m, torch = cfg.d_head, nn.init.uniform(1 / math.sqrt(d_in))
  local W, named = parameter({ 4 * m + 1, d_in }, torch), {}
  for i, name in ipairs { "k", "q", "v", "c", "eta" } do
    named[i] = { name .. ".weight", tensor.view(W, (i - 1) * m * d_in, { i < 5 and m or 1, d_in }) }
  end
  local theta = parameter({ m }, nn.init.uniform(math.sqrt(6 / (ROWS + m))))
  named[6] = { "theta", theta }
  local norm, shortcut = nn.layer_norm(d_in, cfg.ln_eps), nn.linear(d_in, m, { init = torch })
  local out = nn.linear(m, d, { init = nn.init.uniform(1 / math.sqrt(m)) })
  return nn.module({ leaves = { W, theta }, named = named, children = { { "norm", norm }, { "shortcut", shortcut }, { "out", out } } },
    function(_, x, done, C)
      local T, B = unpack(x:shape())
      x = norm(x)
      local all = ops.linear(x, W)
      local function row(i) return all:slice(-1, i * m, (i + 1) * m) end
      local function share(t)
        t = t:relu()
        return (t / (t:sum(-1, 1) + 1e-5)):reshape(T, B, 1, 1, m)
      end
      local k, q, b = share(row(0)), share(row(1)), all:slice(-1, 4 * m):sigmoid()
      local factor = (theta:reshape(m, 1) * row(3):reshape(T, B, 1, 1, m)):tanh() + 1
      local all_C, after = recur(write, { x = { x = (b * row(2)):reshape(T, B, 1, m, 1) * k, a = factor }, state = C, done = done })
      return out((all_C * q):sum(-1):reshape(T, B, m) + shortcut(x)), after
    end)
end

return {
  doc = "a matrix whose elements grow or shrink by factors of their own (Stable Hadamard Memory, with the constant theta of its POPGym results)",
  source = "Le et al. 2025, Stable Hadamard Memory, arXiv 2410.10132, section 3, and the authors' code for POPGym",
  checked = "an independent program",
  config = { d_in = 16, d_model = 128, n_layers = 1, d_head = 16, ln_eps = 1e-5, reset = true },
  build = function(cfg)
    return recurrent.build(cfg, layer, { "C" }, { axes = "[B,H,V,K]", sizes = { H = 1, V = cfg.d_head, K = cfg.d_head },
      complexity = { step = "3*L*H*V*K" }, reads = "joint",
      no_sensitivities = "keys are divided by their sum, so that rows of all of them feed each element" })
  end,
}
