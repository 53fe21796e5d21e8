/* log1p.c -- y = ln(1 + x), exact near 0. */
#include <math.h>
#include "elementwise.h"

MN_UNARY(log1pf(x), 1 / (1 + x))

const mn_op mn_op_log1p = {
  .sig = "x[...] -> y[...]",
  .doc = "y = ln(1 + x), exact near 0",
  .time = MN_PER_ROW, .forward = forward, .backward = backward,
};
