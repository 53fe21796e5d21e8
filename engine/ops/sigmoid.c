/* sigmoid.c -- y = 1 / (1 + e^-x), by the polynomial in fast_math.h. */
#include "elementwise.h"

MN_UNARY(mn_sigmoidf(x), y * (1 - y))

const mn_op mn_op_sigmoid = {
  .sig = "x[...] -> y[...]",
  .doc = "y = 1 / (1 + e^-x)",
  .time = MN_PER_ROW, .forward = forward, .backward = backward,
};
