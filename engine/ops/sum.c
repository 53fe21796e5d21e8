/* sum.c -- y = the sum of x over one axis, or over all. */
#include "reduce.h"

static void forward(mn_call *c) { mn_sum_axis(c, c->out[0].data, 1); }
static void backward(mn_call *c) { mn_spread_axis(c, 1); }

const mn_op mn_op_sum = {
  .sig = "x[*] -> y[*] | axis=-100 keepdim=0",
  .doc = "y = sum of x over an axis; axis=-100: over all, giving shape [1]",
  .time = MN_PER_ROW, .shape = mn_reduce_shape, .forward = forward, .backward = backward,
};
