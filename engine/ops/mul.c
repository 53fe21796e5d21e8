/* mul.c -- y = a b, number by number, with broadcasting. */
#include "elementwise.h"

MN_BINARY(a * b, b, a)

const mn_op mn_op_mul = {
  .sig = "a[*] b[*] -> y[*]",
  .doc = "y = a b, number by number; shapes are matched from the right, size 1 is repeated",
  .time = MN_ROWS, .shape = mn_broadcast_shape, .forward = forward, .backward = backward,
};
