/* tan.c -- y = tan x. */
#include <math.h>
#include "elementwise.h"

MN_UNARY(tanf(x), 1 + y * y)

const mn_op mn_op_tan = {
  .sig = "x[...] -> y[...]",
  .doc = "y = tan x, x in radians",
  .time = MN_PER_ROW, .forward = forward, .backward = backward,
};
