/* floor.c -- y = the largest whole number up to x, a constant for gradients. */
#include <math.h>
#include "elementwise.h"

MN_CONSTANT(floorf(x))

const mn_op mn_op_floor = {
  .sig = "x[...] -> ~y[...]",
  .doc = "y = the largest whole number that is no larger than x; a constant for gradients",
  .time = MN_PER_ROW, .forward = forward,
};
