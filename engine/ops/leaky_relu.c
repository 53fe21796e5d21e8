/* leaky_relu.c -- y = x above 0, slope x below. */
#include "elementwise.h"

MN_UNARY(x > 0 ? x : p * x, x > 0 ? 1 : p)

const mn_op mn_op_leaky_relu = {
  .sig = "x[...] -> y[...] | slope=0.01",
  .doc = "y = x where x > 0, else slope x",
  .time = MN_PER_ROW, .forward = forward, .backward = backward,
};
