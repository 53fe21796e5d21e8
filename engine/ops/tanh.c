/* tanh.c -- y = tanh x, by the polynomial in fast_math.h. */
#include "elementwise.h"

MN_UNARY(mn_tanhf(x), 1 - y * y)

const mn_op mn_op_tanh = {
  .sig = "x[...] -> y[...]",
  .doc = "y = tanh x",
  .time = MN_PER_ROW, .forward = forward, .backward = backward,
};
