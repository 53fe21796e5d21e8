/* argmax.c -- the index of the largest x along one axis, or of all. */
#include "extreme.h"

static void one(mn_call *c, const mn_span *s, long k) {
  float unused;
  c->out[0].i32[k] = mn_extreme(c, s, k, 1, &unused);
}
static void forward(mn_call *c) { mn_each_lane(c, one); }

const mn_op mn_op_argmax = {
  .sig = "x[*] -> index[*]:i32 | axis=-100 keepdim=0",
  .doc = "index = where x is largest along an axis, from 0, the first of equals; axis=-100: among all, in row-major order, giving shape [1]",
  .time = MN_PER_ROW, .shape = mn_reduce_shape, .forward = forward,
};
