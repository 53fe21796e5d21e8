/* silu.c -- y = x sigmoid(x), also called swish. */
#include "elementwise.h"

static inline float silu_slope(float x, float s) { return s * (1 + x * (1 - s)); }
MN_UNARY(x * mn_sigmoidf(x), silu_slope(x, mn_sigmoidf(x)))

const mn_op mn_op_silu = {
  .sig = "x[...] -> y[...]",
  .doc = "y = x sigmoid(x)",
  .time = MN_PER_ROW, .forward = forward, .backward = backward,
};
