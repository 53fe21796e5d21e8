/* square.c -- y = x^2. */
#include "elementwise.h"

MN_UNARY(x * x, 2 * x)

const mn_op mn_op_square = {
  .sig = "x[...] -> y[...]",
  .doc = "y = x^2",
  .time = MN_PER_ROW, .forward = forward, .backward = backward,
};
