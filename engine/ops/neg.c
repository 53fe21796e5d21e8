/* neg.c -- y = -x. */
#include "elementwise.h"

MN_UNARY(-x, -1)

const mn_op mn_op_neg = {
  .sig = "x[...] -> y[...]",
  .doc = "y = -x",
  .time = MN_PER_ROW, .forward = forward, .backward = backward,
};
