/* mean.c -- y = the mean of x over one axis, or over all. */
#include "reduce.h"

static int shape(mn_call *c) { return mn_reduce_shape(c, "mean"); }
static void forward(mn_call *c) { mn_sum_axis(c, 1.0 / (double)mn_reduced_span(c).size); }
static void backward(mn_call *c) { mn_spread_axis(c, 1.0 / (double)mn_reduced_span(c).size); }

const mn_op mn_op_mean = {
  .sig = "x[*] -> y[*] | axis=-100 keepdims=0",
  .doc = "y = mean of x over an axis; axis=-100: over all, giving shape [1]",
  .time = MN_PER_ROW, .shape = shape, .forward = forward, .backward = backward,
};
