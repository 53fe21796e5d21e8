/* expm1.c -- y = e^x - 1, exact near 0. */
#include <math.h>
#include "elementwise.h"

MN_UNARY(expm1f(x), y + 1)

const mn_op mn_op_expm1 = {
  .sig = "x[...] -> y[...]",
  .doc = "y = e^x - 1, exact near 0",
  .time = MN_PER_ROW, .forward = forward, .backward = backward,
};
