/* ne.c -- where a differs from b: a mask. */
#include "comparison.h"

MN_COMPARISON(a != b)

const mn_op mn_op_ne = {
  .sig = "a[*]:any b[*]:any -> mask[*]:bit",
  .doc = "mask = 1 where a != b, else 0; NaN compares as in C. Shapes broadcast from the right, as in torch",
  .time = MN_PER_ROW, .shape = mn_broadcast_shape, .forward = forward,
};
