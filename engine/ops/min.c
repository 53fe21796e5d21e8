/* min.c -- y = the smallest x along one axis, or of all, and its index. */
#include "extreme.h"

static void one(mn_call *c, const mn_span *s, long k) { c->out[1].i32[k] = mn_extreme(c, s, k, -1, &c->out[0].data[k]); }
static void forward(mn_call *c) { mn_each_lane(c, one); }

const mn_op mn_op_min = {
  .sig = "x[*] -> y[*] ~index[*]:i32 | axis=-100 keepdim=0",
  .doc = "y = smallest x along an axis, index = where; axis=-100: of all, giving shape [1]",
  .time = MN_PER_ROW, .shape = mn_reduce_shape, .forward = forward, .backward = mn_extreme_backward,
};
