/* erf.c -- y = the error function of x. */
#include "elementwise.h"

MN_UNARY(mn_erff(x), 1.128379167f * mn_expf(-x * x))

const mn_op mn_op_erf = {
  .sig = "x[...] -> y[...]",
  .doc = "y = 2/sqrt(pi) * integral of e^(-t^2) from 0 to x, the error function",
  .time = MN_PER_ROW, .forward = forward, .backward = backward,
};
