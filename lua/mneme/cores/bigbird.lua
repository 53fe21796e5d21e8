-- bigbird.lua -- causal Big Bird: a token attends to its own block, the one before, random and global blocks.
-- Blocks count from the episode's start.  All keys and values of up to `context` tokens are kept; a longer episode starts
-- over there, as after a reset.  `random` lists, for every head and block, further blocks that it attends to; without it,
-- `random_blocks` earlier ones are drawn for each, the same for the same seed.
local bigbird_blocks = require "mneme.models.bigbird_blocks"
local sparse_transformer = require "mneme.models.sparse_transformer"
local errors = require "mneme.base.errors"
local tensor = require "mneme.tensor.tensor"
local ops = tensor.ops

-- The blocks that each sees, as the op wants them: [H,N,R,2], what is missing being empty.
local function listed(seen, H, N)
  local R = 1
  for h = 1, H do for i = 1, N do R = math.max(R, #seen[h][i]) end end
  local t = tensor.new { shape = { H, N, R, 2 }, dtype = "i32" }
  local p = t:data()
  for h = 1, H do
    for i = 1, N do
      for r, run in ipairs(seen[h][i]) do
        local at = (((h - 1) * N + i - 1) * R + r - 1) * 2
        p[at], p[at + 1] = run[1], run[2]
      end
    end
  end
  return t
end

return {
  doc = "block-sparse attention: a token's own block, the one before, random and global ones (Big Bird, causal)",
  source = "Zaheer et al. 2020, section 2, as layers of the core transformer; no positional encoding: a token knows its position only from its input",
  equations = [[
y_t = sum_j softmax_j(q_t.k_j / sqrt(dh)) v_j  over j <= t in blocks i-1, i = t/block, its random ones and the global ones
(a token of a global block: over all j <= t), counted from the episode's start
kept: keys and values of the episode, up to `context` tokens; then it starts over]],
  config = sparse_transformer.with { block = 16, global_blocks = { 0 }, random = {}, random_blocks = 2, seed = 1, context = 1024 },
  counts = { block = 1, random_blocks = 0, context = 1 },
  build = function(cfg)
    if cfg.context % cfg.block ~= 0 then
      errors.raise(("core bigbird: context = %d, expected a multiple of block = %d"):format(cfg.context, cfg.block), { status = 2 })
    end
    bigbird_blocks.check(cfg)
    local N, D = cfg.context / cfg.block, cfg.d_head
    local settings = setmetatable({ causal = true }, { __index = cfg })
    local see = listed(bigbird_blocks.seen(settings, cfg.n_heads, N), cfg.n_heads, N)
    return sparse_transformer.build(cfg, {
      projections = { { "q", D }, { "k", D }, { "v", D } }, states = { k = "[B,S,H,K]", v = "[B,S,H,K]" },
      sizes = { S = cfg.context, P = cfg.block, R = cfg.random_blocks, G = #cfg.global_blocks },
      position = { cfg.context, cfg.context }, claims = { state = "grows" }, looks_back = "S - 1",
      complexity = { step = "2*L*H*K*min(N, S, P*(2 + R + G))" },
      attend = function(layer)
        local k, v = layer.heads "k", layer.heads "v"
        layer.keep("k", k, cfg.context)
        layer.keep("v", v, cfg.context)
        local args = { q = layer.heads "q", k = k, v = v, pos = layer.pos, see = see, mk = layer.state "k", mv = layer.state "v" }
        layer.show("attention", ops.block_weights, args)
        return (ops.block_attention(args))
      end,
    })
  end,
}
