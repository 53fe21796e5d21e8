/* pow.c -- y = x^p for a constant p. */
#include <math.h>
#include "elementwise.h"

MN_UNARY(powf(x, p), p == 0 ? 0 : p * powf(x, p - 1))

const mn_op mn_op_pow = {
  .sig = "x[...] -> y[...] | p=2",
  .doc = "y = x^p for a constant p; NaN where x < 0 and p is no whole number",
  .time = MN_PER_ROW, .forward = forward, .backward = backward,
};
