/* round.c -- y = the nearest whole number, a constant for gradients. */
#include <math.h>
#include "elementwise.h"

MN_CONSTANT(rintf(x))

const mn_op mn_op_round = {
  .sig = "x[...] -> ~y[...]",
  .doc = "y = the nearest whole number, of two the even one, as torch.round; a constant for gradients",
  .time = MN_PER_ROW, .forward = forward,
};
