/* sin.c -- y = sin x. */
#include <math.h>
#include "elementwise.h"

MN_UNARY(sinf(x), cosf(x))

const mn_op mn_op_sin = {
  .sig = "x[...] -> y[...]",
  .doc = "y = sin x, x in radians",
  .time = MN_PER_ROW, .forward = forward, .backward = backward,
};
