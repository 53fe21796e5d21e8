/* count_nonzero.c -- how many elements of a mask are 1, along one axis, or of all. */
#include "count.h"

static void one(mn_call *c, const mn_span *s, long k) { c->out[0].i32[k] = (int32_t)mn_count(c, s, k); }
static void forward(mn_call *c) { mn_each_lane(c, one); }

const mn_op mn_op_count_nonzero = {
  .sig = "mask[*]:bit -> n[*]:i32 | axis=-100 keepdim=0",
  .doc = "n = how many elements of a mask are 1, along an axis; axis=-100: of all, giving shape [1]",
  .time = MN_PER_ROW, .shape = mn_reduce_shape, .forward = forward,
};
