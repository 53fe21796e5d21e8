/* gelu.c -- y = x Phi(x), the Gaussian error linear unit, exact. */
#include "elementwise.h"

MN_UNARY(0.5f * x * (1 + mn_erff(0.7071067812f * x)), 0.5f * (1 + mn_erff(0.7071067812f * x)) + 0.3989422804f * x * mn_expf(-0.5f * x * x))

const mn_op mn_op_gelu = {
  .sig = "x[...] -> y[...]",
  .doc = "y = x Phi(x), Phi the normal distribution function (Hendrycks and Gimpel 2016), not its tanh approximation",
  .time = MN_PER_ROW, .forward = forward, .backward = backward,
};
