/* block_attention.c -- causal attention to listed blocks of the row's episode.
** Big Bird (Zaheer et al. 2020, section 2), step by step: the row at position P is in block P / b and sees the
** blocks that are listed for that block, up to its own position. */
#include "block.h"

static int shape(mn_call *c) { return mn_block_check(c, "block_attention"); }

EPISODE_PASSES(mn_block, mn_block_of, mn_block_episode)


const mn_op mn_op_block_attention = {
  .sig = BLOCK_INPUTS " -> y[T,B,H,D]",
  .doc = "softmax(q.k / sqrt(D)) v over blocks of positions of the episode (Big Bird: Zaheer et al. 2020, section 2). N blocks of S/N positions each "
      "(see position, kv_slots); a row of block i attends, up to its own position, to the runs of blocks see[h,i] = (first, count); a block named twice "
      "counts twice",
  .time = MN_SCAN, .shape = shape, .forward = forward, .backward = backward,
};
