/* maximum.c -- the elementwise larger of a and b, with broadcasting.
** On a tie the gradient goes to a; a NaN wins over any number. */
#include "elementwise.h"

MN_BINARY(a >= b || a != a ? a : b, a >= b ? 1 : 0, a >= b ? 0 : 1)

const mn_op mn_op_maximum = {
  .sig = "a[*] b[*] -> y[*]",
  .doc = "y = the larger of a and b. Shapes broadcast from the right, as in torch",
  .time = MN_PER_ROW, .shape = mn_broadcast_shape, .forward = forward, .backward = backward,
};
