/* relu.c -- y = max(x, 0).  NaN stays NaN. */
#include "elementwise.h"

MN_UNARY(mn_at_least(x, 0), x > 0 ? 1.0f : 0.0f)

const mn_op mn_op_relu = {
  .sig = "x[...] -> y[...]",
  .doc = "y = max(x, 0); the slope at 0 is 0",
  .time = MN_PER_ROW, .forward = forward, .backward = backward,
};
