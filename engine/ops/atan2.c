/* atan2.c -- y = the angle of the point (b, a), with broadcasting. */
#include <math.h>
#include "elementwise.h"

MN_BINARY(atan2f(a, b), b / (a * a + b * b), -a / (a * a + b * b))

const mn_op mn_op_atan2 = {
  .sig = "a[*] b[*] -> y[*]",
  .doc = "y = the angle of the point (b, a) from the axis of b, -pi .. pi. Shapes broadcast from the right, as in torch",
  .time = MN_PER_ROW, .shape = mn_broadcast_shape, .forward = forward, .backward = backward,
};
