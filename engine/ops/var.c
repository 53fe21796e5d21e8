/* var.c -- y = the variance of x over one axis, or over all. */
#include "variance.h"

MN_FOLD double slope_of(double dy, double y, double p) { (void)y; return 2 * dy / p; }
static void forward(mn_call *c) { mn_variance(c, mn_divided); }
static void back(mn_call *c, const mn_span *s, long k) { mn_variance_back(c, s, k, slope_of); }
static void backward(mn_call *c) { mn_each_lane(c, back); }

const mn_op mn_op_var = {
  .sig = "x[*] -> y[*] | axis=-100 keepdim=0 correction=1",
  .doc = "y = sum of (x - mean)^2 / (n - correction) over an axis; axis=-100: over all, giving shape [1]",
  .time = MN_PER_ROW, .shape = mn_reduce_shape, .forward = forward, .backward = backward,
};
