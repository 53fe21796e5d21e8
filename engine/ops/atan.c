/* atan.c -- y = the angle whose tangent is x. */
#include <math.h>
#include "elementwise.h"

MN_UNARY(atanf(x), 1 / (1 + x * x))

const mn_op mn_op_atan = {
  .sig = "x[...] -> y[...]",
  .doc = "y = arctan x, in radians",
  .time = MN_PER_ROW, .forward = forward, .backward = backward,
};
