/* logical_or.c -- where a or b is set: a mask of two masks. */
#include "comparison.h"

MN_COMPARE_CHUNK(combine, uint8_t, u8, a || b)
static void forward(mn_call *c) { mn_in_parts(c, NULL, c->out[0].n, combine); }

const mn_op mn_op_logical_or = {
  .sig = "a[*]:bit b[*]:bit -> mask[*]:bit",
  .doc = "mask = 1 where a or b is 1, else 0. Shapes broadcast from the right, as in torch",
  .time = MN_PER_ROW, .shape = mn_broadcast_shape, .forward = forward,
};
