/* sqrt.c -- y = square root of x. */
#include "elementwise.h"

MN_UNARY(__builtin_sqrtf(x), 0.5f / y)

const mn_op mn_op_sqrt = {
  .sig = "x[...] -> y[...]",
  .doc = "y = square root of x; the slope at 0 is infinite",
  .time = MN_PER_ROW, .forward = forward, .backward = backward,
};
