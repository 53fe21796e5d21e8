/* cumsum.c -- y_t = x_0 + ... + x_t along an axis. */
#include "cumulative.h"

enum { NOTHING = 0 };
MN_CUMULATIVE_OP(s + x, 1, 1)

const mn_op mn_op_cumsum = {
  .sig = MN_CUMULATIVE_SIG,
  .doc = "y_t = y_{t-1} + x_t along an axis; with axis=0, done: y_{t-1} = 0",
  .time = MN_SCAN, .shape = mn_cumulative_shape, .forward = forward, .backward = backward,
};
