/* sign.c -- y = the sign of x, a constant for gradients. */
#include "elementwise.h"

MN_CONSTANT(x > 0 ? 1.0f : x < 0 ? -1.0f : x)

const mn_op mn_op_sign = {
  .sig = "x[...] -> ~y[...]",
  .doc = "y = 1 where x > 0, -1 where x < 0, else x; a constant for gradients",
  .time = MN_PER_ROW, .forward = forward,
};
