/* exp.c -- y = e^x, by the polynomial in fast_math.h. */
#include "elementwise.h"

MN_UNARY(mn_expf(x), y)

const mn_op mn_op_exp = {
  .sig = "x[...] -> y[...]",
  .doc = "y = e^x",
  .time = MN_PER_ROW, .forward = forward, .backward = backward,
};
