/* elu.c -- y = x above 0, alpha (e^x - 1) below. */
#include <math.h>
#include "elementwise.h"

MN_UNARY(x > 0 ? x : p * expm1f(x), x > 0 ? 1 : y + p)

const mn_op mn_op_elu = {
  .sig = "x[...] -> y[...] | alpha=1",
  .doc = "y = x where x > 0, else alpha (e^x - 1) (Clevert et al. 2016)",
  .time = MN_PER_ROW, .forward = forward, .backward = backward,
};
