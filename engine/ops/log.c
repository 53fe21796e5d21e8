/* log.c -- y = ln x, by the polynomial in fast_math.h. */
#include "elementwise.h"

MN_UNARY(mn_logf(x), 1 / x)

const mn_op mn_op_log = {
  .sig = "x[...]:pos -> y[...]",
  .doc = "y = ln x",
  .time = MN_PER_ROW, .forward = forward, .backward = backward,
};
