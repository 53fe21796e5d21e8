/* scale.c -- y = a x + b: arithmetic of a tensor with numbers. */
#include "elementwise.h"

MN_UNARY(MN_FMA(p, x, q), p)

const mn_op mn_op_scale = {
  .sig = "x[...] -> y[...] | a=1 b=0",
  .doc = "y = a x + b, with scalars a and b",
  .time = MN_PER_ROW, .forward = forward, .backward = backward,
};
