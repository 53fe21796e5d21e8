/* logical_not.c -- where a mask is 0. */
#include "op.h"

static void forward(mn_call *c) { for (long i = 0; i < c->in[0].n; i++) c->out[0].u8[i] = !c->in[0].u8[i]; }

const mn_op mn_op_logical_not = {
  .sig = "a[...]:bit -> mask[...]:bit",
  .doc = "mask = 1 where a is 0, else 0",
  .time = MN_PER_ROW, .forward = forward,
};
