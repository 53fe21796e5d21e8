/* reciprocal.c -- y = a / x. */
#include "elementwise.h"

MN_UNARY(p / x, -y / x)

const mn_op mn_op_reciprocal = {
  .sig = "x[...] -> y[...] | a=1",
  .doc = "y = a / x, with a scalar a",
  .time = MN_PER_ROW, .forward = forward, .backward = backward,
};
