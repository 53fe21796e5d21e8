/* abs.c -- y = |x|. */
#include "elementwise.h"

MN_UNARY(__builtin_fabsf(x), x > 0 ? 1.0f : x < 0 ? -1.0f : 0.0f)

const mn_op mn_op_abs = {
  .sig = "x[...] -> y[...]",
  .doc = "y = |x|; the slope at 0 is 0",
  .time = MN_PER_ROW, .forward = forward, .backward = backward,
};
