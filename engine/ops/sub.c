/* sub.c -- y = a - b, with broadcasting. */
#include "elementwise.h"

MN_BINARY(a - b, 1, -1)

const mn_op mn_op_sub = {
  .sig = "a[*] b[*] -> y[*]",
  .doc = "y = a - b. Shapes broadcast from the right, as in torch",
  .time = MN_PER_ROW, .shape = mn_broadcast_shape, .forward = forward, .backward = backward,
};
