/* rsqrt.c -- y = 1 / sqrt(x). */
#include <math.h>
#include "elementwise.h"

MN_UNARY(1 / sqrtf(x), -0.5f * y / x)

const mn_op mn_op_rsqrt = {
  .sig = "x[...] -> y[...]",
  .doc = "y = 1 / sqrt(x)",
  .time = MN_PER_ROW, .forward = forward, .backward = backward,
};
