/* any.c -- 1 where any element of a mask is 1, along one axis, or of all. */
#include "count.h"

static void one(mn_call *c, const mn_span *s, long k) { c->out[0].u8[k] = mn_count(c, s, k) > 0; }
static void forward(mn_call *c) { mn_each_lane(c, one); }

const mn_op mn_op_any = {
  .sig = "mask[*]:bit -> y[*]:bit | axis=-100 keepdim=0",
  .doc = "y = 1 where any element of a mask is 1, along an axis; axis=-100: of all, giving shape [1]",
  .time = MN_PER_ROW, .shape = mn_reduce_shape, .forward = forward,
};
