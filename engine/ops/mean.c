/* mean.c -- y = the mean of x over one axis, or over all. */
#include "reduce.h"

static double part_of(const mn_call *c) { return 1.0 / (double)mn_reduced_span(c).size; }
static void forward(mn_call *c) { mn_sum_axis(c, c->out[0].data, part_of(c)); }
static void backward(mn_call *c) { mn_spread_axis(c, part_of(c)); }

const mn_op mn_op_mean = {
  .sig = "x[*] -> y[*] | axis=-100 keepdim=0",
  .doc = "y = mean of x over an axis; axis=-100: over all, giving shape [1]",
  .time = MN_PER_ROW, .shape = mn_reduce_shape, .forward = forward, .backward = backward,
};
