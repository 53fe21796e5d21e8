-- bigbird.lua -- blocks of tokens that attend to their neighbours, random blocks and global blocks.  Global blocks attend to
-- everything.  `random` lists, for every head and block, further blocks that it attends to; without it, `random_blocks`
-- of them are drawn for each, the same for the same seed.
local encoder_attention = require "mneme.models.encoder_attention"
local bigbird_blocks = require "mneme.models.bigbird_blocks"
local errors = require "mneme.base.errors"
local ops = require("mneme.tensor.tensor").ops

return {
  doc = "blocks that attend to their neighbours, random blocks and global blocks",
  source = "Zaheer et al. 2020, section 2",
  config = { block = 64, global_blocks = { 0 }, random = {}, random_blocks = 0, seed = 1, causal = false },
  check = bigbird_blocks.check,
  build = function(cfg, sizes)
    local b = cfg.block
    local ranges = encoder_attention.by_length(function(N)
      local rows = {}
      for h, blocks in ipairs(bigbird_blocks.seen(cfg, sizes.H, N / b)) do
        rows[h] = {}
        for i, list in ipairs(blocks) do
          rows[h][i] = {}
          for r, run in ipairs(list) do rows[h][i][r] = { run[1] * b, run[2] * b } end
        end
      end
      return encoder_attention.ranges(rows)
    end)
    return encoder_attention.plain(function(q, k, v)
      local N = q:shape()[3]
      if N % b ~= 0 then
        errors.raise(("attention bigbird: the sequence has %d tokens, expected a multiple of block = %d"):format(N, b))
      end
      return ops.sparse_attention { q = q, k = k, v = v, ranges = ranges(N), causal = cfg.causal }
    end)
  end,
}
