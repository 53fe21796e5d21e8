/* cos.c -- y = cos x. */
#include <math.h>
#include "elementwise.h"

MN_UNARY(cosf(x), -sinf(x))

const mn_op mn_op_cos = {
  .sig = "x[...] -> y[...]",
  .doc = "y = cos x, x in radians",
  .time = MN_PER_ROW, .forward = forward, .backward = backward,
};
