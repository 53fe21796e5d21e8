/* ceil.c -- y = the smallest whole number from x on, a constant for gradients. */
#include <math.h>
#include "elementwise.h"

MN_CONSTANT(ceilf(x))

const mn_op mn_op_ceil = {
  .sig = "x[...] -> ~y[...]",
  .doc = "y = the smallest whole number that is no smaller than x; a constant for gradients",
  .time = MN_PER_ROW, .forward = forward,
};
