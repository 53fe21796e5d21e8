/* power.c -- y = a^b, with broadcasting: `pow` for exponents that are tensors. */
#include <math.h>
#include "elementwise.h"

MN_BINARY(powf(a, b), b == 0 ? 0 : b * powf(a, b - 1), a == 0 && b >= 0 ? 0 : y * logf(a))

const mn_op mn_op_power = {
  .sig = "a[*] b[*] -> y[*]",
  .doc = "y = a^b; NaN where a < 0 and b is no whole number. Shapes broadcast from the right, as in torch",
  .time = MN_PER_ROW, .shape = mn_broadcast_shape, .forward = forward, .backward = backward,
};
