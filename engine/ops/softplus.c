/* softplus.c -- y = ln(1 + e^x), without overflow. */
#include "elementwise.h"

MN_UNARY(mn_softplusf(x), mn_sigmoidf(x))

const mn_op mn_op_softplus = {
  .sig = "x[...] -> y[...]",
  .doc = "y = ln(1 + e^x)",
  .time = MN_PER_ROW, .forward = forward, .backward = backward,
};
