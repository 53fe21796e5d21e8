-- gtrxl.lua -- the gated Transformer-XL: attention over the last M steps with relative positions, and GRU gates as residuals.
-- In a sequence a row attends to all earlier rows of the call besides the M carried ones, as in the released update; a call of one
-- step, as the released agents act by, to exactly M.  So acting is a window of M on the rows, and the update runs them again.  With
-- sees=rollout the policy acts as a sequence, on what the update differentiates: on up to M + num_steps - 1 steps.
local block = require "mneme.models.block"
local engine = require "mneme.base.engine"
local errors = require "mneme.base.errors"
local nn = require "mneme.tensor.nn"
local tensor = require "mneme.tensor.tensor"
local ops = tensor.ops

-- [E,d]: row p is [sin(p f_i), cos(p f_i)] with f_i = 10000^(-2i/d).  One table, made longer when it must be.
local function positions(d)
  local table_of, rows
  return function(E)
    if not rows or rows < E then
      rows = math.max(E, 2 * (rows or 0))
      table_of = tensor.new { shape = { rows, d } }
      local p = table_of:data()
      for e = 0, rows - 1 do
        for i = 0, d / 2 - 1 do
          local angle = e * 10000 ^ (-2 * i / d)
          p[e * d + i], p[e * d + d / 2 + i] = math.sin(angle), math.cos(angle)
        end
      end
    end
    return tensor.view(table_of, 0, { E, d })
  end
end

-- Names q, k, v, pos [H*dh,d], out [d,H*dh].  Keys and values come from the normalised memory and input, queries
-- from the raw input.  The biases of k and pos add the same to every score of a row, which softmax does not see:
-- they are left out, and their gradients are exactly zero.
local function attention(cfg, n, init, shared)
  local H, K, D, prefix = cfg.n_heads, cfg.d_head, cfg.d_model, "layers." .. n .. "."
  -- Acting without a gradient, on a CPU, reads the inputs themselves where they are fewer numbers than keys and values.
  local fewer = D <= 2 * K and D <= H * K
  local function map() return nn.linear(cfg.d_model, H * K, { init = init }) end
  local p = { q = map(), k = map(), v = map(), pos = map() }
  local out = nn.linear(H * K, cfg.d_model, { act = block.closing(cfg.flow), init = init })
  local children = { { "q", p.q }, { "k", p.k }, { "v", p.v }, { "pos", p.pos }, { "out", out } }
  return nn.module({ children = children }, function(_, norm, e, pe, done, state, window, probe)
    local T, B = unpack(e:shape())
    local function heads(name, t)
      t = ops.reshape(t, { d0 = T, d1 = B, d2 = H, d3 = K })
      return probe and probe(prefix .. name, t) or t
    end
    local seen, old = norm(e), norm(ops.memory_read { memory = state.memory, mask = state.mask, done = done, level = n })
    local function unbiased(m, x) return (ops.linear(x, m.weight)) end
    local function carried(t) return ops.reshape(t, { d0 = cfg.memory, d1 = B, d2 = H, d3 = K }) end
    local args = { q = heads("q", p.q(e)), mask = state.mask, done = done, window = window, w = shared.v,
      r = ops.reshape(unbiased(p.pos, pe), { d0 = -1, d1 = H, d2 = K }) }
    local y
    if fewer and window >= 0 and engine.device == "cpu" and not args.q:wants_grad() then
      local turned = ops.permute(ops.reshape(p.k.weight, { d0 = H, d1 = K, d2 = D }), { a0 = 0, a1 = 2, a2 = 1 })
      args.a, args.x, args.old = ops.head_linear(args.q + shared.u, ops.reshape(turned, { d0 = H * D, d1 = K })), seen, old
      for _, of in ipairs(probe and { { "k", p.k.weight }, { "v", p.v.weight, p.v.bias } } or {}) do
        probe(prefix .. of[1], ops.reshape(ops.last_linear(seen, of[2], of[3]), { d0 = 1, d1 = B, d2 = H, d3 = K }))
      end
      if probe then probe(prefix .. "attention", (ops.input_attention_weights(args))) end
      y = ops.head_linear(ops.input_attention(args), p.v.weight, p.v.bias)
    else
      args.k, args.mk, args.u = heads("k", unbiased(p.k, seen)), carried(unbiased(p.k, old)), shared.u
      args.v, args.mv = heads("v", p.v(seen)), carried(p.v(old))
      if probe then probe(prefix .. "attention", (ops.attention_weights(args))) end
      y = ops.attention(args)
    end
    return out(ops.reshape(heads("retrieved", y), { d0 = T, d1 = B, d2 = H * K }))
  end)
end

return {
  doc = "gated Transformer-XL: softmax attention over the last M steps with relative positions (GTrXL)",
  source = "Parisotto et al. 2020; Dai et al. 2019, Transformer-XL; as in the released agents of AGaLiTe (a port of DI-engine's)",
  checked = "the released code and an independent program",
  equations = [[
X = [memory_l; h],  K, V from norm1(X),  Q from h,  r_p = pos [sin(p f), cos(p f)],  f_i = 10000^(-2i/d)
score_tj = ((q_t + u).k_j + (q_t + v).r_{M+t-j}) / sqrt(dh),  y_t = sum_j softmax_j(score) v_j
over the carried steps of the episode and those of the sequence up to t, which may be more than M back; when acting over the last M
and itself (sees=memory, as released), or as in a sequence (sees=rollout)
memory: the last M inputs of every layer, and the last layer's output; no gradient leaves through it]],
  config = {
    d_in = 16, d_model = 128, n_layers = 4, n_heads = 4, d_head = 64, d_ffn = 128, memory = 128, sees = "memory",
    flow = "gtrxl", embed_act = "relu", ln_eps = 1e-6, reset = true,
  },
  choices = { flow = { gtrxl = true, residual = true }, sees = { memory = true, rollout = true } }, counts = { memory = 1 },
  build = function(cfg)
    if cfg.d_model % 2 ~= 0 then
      errors.raise(("core gtrxl: d_model = %g, expected an even number: positions are pairs of sine and cosine"):format(cfg.d_model),
        { status = 2 })
    end
    local init = nn.init.lecun_normal()
    local shape = { shape = { cfg.n_heads, cfg.d_head }, grad = true }
    local shared, pe = { u = tensor.new(shape), v = tensor.new(shape) }, positions(cfg.d_model)
    local embed = nn.linear(cfg.d_in, cfg.d_model, { act = cfg.embed_act, init = init })
    local layers = {}
    for n = 0, cfg.n_layers - 1 do
      layers[n + 1] = { tostring(n), block.new(cfg, attention(cfg, n, init, shared), { init = init, raw = true }) }
    end
    local module = nn.module { named = { { "u", shared.u }, { "v", shared.v } },
      children = { { "embed", embed }, { "layers", nn.container(layers) } } }
    return {
      module = module, d_out = cfg.d_model,
      states = { memory = "[S,M,B,D]", mask = "[M,B]" },
      sizes = { S = cfg.n_layers + 1, M = cfg.memory, D = cfg.d_model, H = cfg.n_heads, K = cfg.d_head },
      start = { mask = 1 }, stops = { memory = true }, reads = "softmax",
      claims = { steps = "until memory is full" },
      acts = cfg.sees == "memory" and "steps" or nil, looks_back = cfg.sees == "memory" and "L*M" or nil,
      complexity = { step = "3*L*H*K*(min(N, M) + 1)", sequence = "3*L*H*K*N*(N + 1)/2", update = "L*H*K*(3*(min(N, M) + (N + 1)/2) + 2*D*M/N)" },
      forward = function(x, done, state, probe, _, acting)
        local e, T = embed(x), x:shape()[1]
        local levels, window = e, acting and cfg.memory or -1
        done = cfg.reset and done or nil
        local distances = pe(cfg.memory + T)
        for n = 1, cfg.n_layers do
          e = layers[n][2](e, distances, done, state, window, probe)
          levels = ops.concat(levels, e)
        end
        return e, { memory = (ops.memory_push { x = levels, memory = state.memory, stop = 1 }),
                    mask = (ops.memory_push_mask { x = levels, mask = state.mask, done = done }) }
      end,
    }
  end,
}
