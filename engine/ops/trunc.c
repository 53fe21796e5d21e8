/* trunc.c -- y = x without its fraction, a constant for gradients. */
#include <math.h>
#include "elementwise.h"

MN_CONSTANT(truncf(x))

const mn_op mn_op_trunc = {
  .sig = "x[...] -> ~y[...]",
  .doc = "y = x without its fraction, rounded towards 0; a constant for gradients",
  .time = MN_PER_ROW, .forward = forward,
};
