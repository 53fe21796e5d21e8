/* ranks_mean.c -- replaces a leaf's gradient by its mean over all ranks, so that several processes train one agent.
** It is an op so that a replayed update performs it between the backward pass and the optimiser. */
#include "op.h"

static void forward(mn_call *c) {
  float *g = c->in[0].grad;
  mn_ranks_mean(g, g ? (double)c->in[0].n : 0, OPT(c, 0) != 0);
}

const mn_op mn_op_ranks_mean = {
  .sig = "w[...] -> | more=0",
  .doc = "average a leaf's gradient over all MPI ranks, with the same bits on each. more=1: together with the leaf of the next call",
  .time = MN_WHOLE, .off_tape = true, .forward = forward,
};
