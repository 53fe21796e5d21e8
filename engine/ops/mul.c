/* mul.c -- y = a b, elementwise, with broadcasting. */
#include "elementwise.h"

MN_BINARY(a * b, b, a)

const mn_op mn_op_mul = {
  .sig = "a[*] b[*] -> y[*]",
  .doc = "y = a b, elementwise. Shapes broadcast from the right, as in torch",
  .time = MN_PER_ROW, .shape = mn_broadcast_shape, .forward = forward, .backward = backward,
};
