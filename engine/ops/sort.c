/* sort.c -- sorts along one axis. */
#include "sort_rows.h"

static int shape(mn_call *c) {
  const int axis = mn_axis(c, "sort", "axis", OPT(c, 0), &c->in[0]);
  if (axis < 0) return -1;
  mn_same_shape(&c->in[0], &c->out[0]);
  mn_same_shape(&c->in[0], &c->out[1]);
  if (axis == 0) c->time = MN_WHOLE;
  return 0;
}

static mn_sorting sorting(const mn_call *c) { return mn_sorting_of(c, mn_axis_of(&c->in[0], OPT(c, 0)), OPT(c, 1) != 0); }

static void forward(mn_call *c) {
  const mn_sorting s = sorting(c);
  mn_sorting_forward(c, &s);
}

static void backward(mn_call *c) {
  const mn_sorting s = sorting(c);
  mn_sorting_backward(c, &s);
}

const mn_op mn_op_sort = {
  .sig = "x[*]:any -> y[*]:any index[*]:i32 | axis=-1 descending=0",
  .doc = "y = x sorted along an axis, and where each value was (from 0). Equal values keep their order; NaN counts as the largest",
  .time = MN_PER_ROW, .accumulates = true, .shape = shape, .forward = forward, .backward = backward,
};
