/* topk.c -- the k largest or smallest along one axis, sorted. */
#include "sort_rows.h"

enum { K, AXIS, LARGEST };       /* options */

static int shape(mn_call *c) {
  const mn_arg *x = &c->in[0];
  const int axis = mn_axis(c, "topk", "axis", OPT(c, AXIS), x);
  if (axis < 0) return -1;
  if (!(OPT(c, K) >= 1 && OPT(c, K) <= x->shape[axis]) || OPT(c, K) != (int)OPT(c, K))
    return mn_fail(c->ctx, "topk: k is %g, expected a whole number from 1 to %d, the size of axis %d", OPT(c, K), x->shape[axis], axis);
  for (int i = 0; i < 2; i++) {
    mn_same_shape(x, &c->out[i]);
    c->out[i].shape[axis] = (int)OPT(c, K);
  }
  if (axis == 0) c->time = MN_WHOLE;
  return 0;
}

static mn_sorting sorting(const mn_call *c) { return mn_sorting_of(c, mn_axis_of(&c->in[0], OPT(c, AXIS)), OPT(c, LARGEST) != 0); }

static void forward(mn_call *c) {
  const mn_sorting s = sorting(c);
  mn_sorting_forward(c, &s);
}

static void backward(mn_call *c) {
  const mn_sorting s = sorting(c);
  mn_sorting_backward(c, &s);
}

const mn_op mn_op_topk = {
  .sig = "x[*]:any -> y[*]:any index[*]:i32 | k=1 axis=-1 largest=1",
  .doc = "y = the k largest x along an axis (largest=0: smallest), the first of them first, and where they were (from 0). Of equal "
      "values the earlier comes first; NaN counts as the largest",
  .time = MN_PER_ROW, .accumulates = true, .shape = shape, .forward = forward, .backward = backward,
};
