/* cumprod.c -- y_t = x_0 ... x_t along an axis.  With R_t = dy_t + x_{t+1} R_{t+1} the gradient of x_t is y_{t-1} R_t: no division, so that
** it is right where x is 0. */
#include "cumulative.h"

enum { NOTHING = 1 };
MN_CUMULATIVE_OP(s * x, s, x)

const mn_op mn_op_cumprod = {
  .sig = MN_CUMULATIVE_SIG,
  .doc = "y_t = y_{t-1} x_t along an axis; with axis=0, done: y_{t-1} = 1",
  .time = MN_SCAN, .shape = mn_cumulative_shape, .forward = forward, .backward = backward,
};
