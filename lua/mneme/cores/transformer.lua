-- transformer.lua -- causal softmax attention over the current token and the M before it: a KV cache of M tokens.
local block = require "mneme.models.block"
local nn = require "mneme.tensor.nn"
local ops = require("mneme.tensor.tensor").ops

-- Names q, k, v [H*dh,d], out [d,H*dh].
local function attention(cfg, prefix)
  local H, K, M = cfg.n_heads, cfg.d_head, cfg.memory
  local init = nn.init.orthogonal(math.sqrt(2), H)
  local function map() return nn.linear(cfg.d_model, H * K, { init = init }) end
  local p = { q = map(), k = map(), v = map() }
  local out = nn.linear(H * K, cfg.d_model, { act = block.closing(cfg.flow) })
  local children = { { "q", p.q }, { "k", p.k }, { "v", p.v }, { "out", out } }
  return nn.module({ children = children }, function(_, x, done, state, new, probe)
    local T, B = unpack(x:shape())
    local function heads(name, t)
      t = ops.reshape(t, { d0 = T, d1 = B, d2 = H, d3 = K })
      return probe and probe(prefix .. name, t) or t
    end
    -- The state's first axis is the batch: for `memory_push`, a memory of B levels.
    local function kept(name, t)
      local old = ops.reshape(state[prefix .. name], { d0 = B, d1 = M, d2 = 1, d3 = H * K })
      local after = ops.memory_push { x = ops.reshape(t, { d0 = T, d1 = 1, d2 = B * H * K }), memory = old }
      return ops.reshape(after, { d0 = B, d1 = M, d2 = H, d3 = K })
    end
    local function carried(name) return ops.transpose(state[prefix .. name], { a = 0, b = 1 }) end
    local k, v = heads("k", p.k(x)), heads("v", p.v(x))
    local args = { q = heads("q", p.q(x)), k = k, v = v, mk = carried "k", mv = carried "v", mask = state.mask, done = done,
      window = M }
    if probe then probe(prefix .. "attention", (ops.attention_weights(args))) end
    local y = ops.attention(args)
    new[prefix .. "k"], new[prefix .. "v"] = kept("k", k), kept("v", v)
    return out(ops.reshape(heads("retrieved", y), { d0 = T, d1 = B, d2 = H * K }))
  end)
end

return {
  doc = "causal softmax attention over the last M tokens, with cached keys and values (Transformer)",
  source = "Vaswani et al. 2017; no positional encoding: a token knows its position only from its input",
  checked = "an independent program",
  equations = [[
y_t = sum_j softmax_j(q_t.k_j / sqrt(dh)) v_j  over itself and at most M tokens before it in its episode
kept: keys and values of the last M tokens, and which of them are of this episode]],
  config = {
    d_in = 16, d_model = 128, n_layers = 4, n_heads = 4, d_head = 64, d_ffn = 128, memory = 128,
    flow = "gtrxl", embed_act = "relu", ln_eps = 1e-6, reset = true,
  },
  counts = { memory = 1 },
  build = function(cfg)
    return block.stack(cfg, {
      states = { mask = "[M,B]" }, start = { mask = 1 }, reads = "softmax", looks_back = "L*M",
      sizes = { M = cfg.memory, H = cfg.n_heads, K = cfg.d_head },
      complexity = { step = "2*L*H*K*(min(N, M) + 1)",
                     sequence = "2*L*H*K*(N*(M + 1) - min(N, M)*(2*M + 1 - min(N, M))/2)" },
    }, { k = "[B,M,H,K]", v = "[B,M,H,K]" }, function(_, prefix) return block.new(cfg, attention(cfg, prefix)) end,
      { after = function(e, done, state, new) new.mask = ops.memory_push_mask { x = e, mask = state.mask, done = done } end })
  end,
}
