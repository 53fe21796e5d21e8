/* block_weights.c -- the weights that the last row of a block_attention gives to each key, for display. */
#include "block.h"

static int shape(mn_call *c) {
  if (mn_block_check(c, "block_weights")) return -1;
  mn_block s = mn_block_of(c);
  long most = mn_block_most(c, &s);
  c->out[0].shape[3] = most > 0 ? (int)most : 1;
  return 0;
}

EPISODE_WEIGHTS(mn_block, mn_block_of, mn_block_episode)

const mn_op mn_op_block_weights = {
  .sig = BLOCK_INPUTS " -> ~weights[1,B,H,?,3]",
  .doc = "attention weights of the last row, as `block_attention` computes them from the same inputs. Entries of steps back, number of steps (1), "
      "weight; unused entries are 0",
  .time = MN_ON_DEMAND, .shape = shape, .forward = forward,
};
