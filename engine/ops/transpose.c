/* transpose.c -- swaps two axes. */
#include "walks.h"

static int shape(mn_call *c) {
  const mn_arg *x = &c->in[0];
  mn_arg *y = &c->out[0];
  int a = mn_axis(c, "transpose", "a", OPT(c, 0), x),
      b = a < 0 ? -1 : mn_axis(c, "transpose", "b", OPT(c, 1), x);
  if (b < 0) return -1;
  mn_same_shape(x, y);
  y->shape[a] = x->shape[b];
  y->shape[b] = x->shape[a];
  if (a != b && (a == 0 || b == 0)) c->time = MN_WHOLE;
  return 0;
}

static void forward(mn_call *c) {
  const mn_strides s = mn_swapped(c, &c->in[0]);
  mn_strided_copy(c->ctx, &s, mn_item(c->in[0].dtype), c->out[0].data, c->in[0].data);
}

static void backward(mn_call *c) {
  const mn_strides s = mn_swapped(c, &c->out[0]);
  mn_strided_copy(c->ctx, &s, sizeof(float), c->in[0].grad, c->out[0].grad);
}

const mn_op mn_op_transpose = {
  .sig = "x[*]:any -> y[*]:any | a=0 b=1",
  .doc = "y = x with the axes a and b swapped. Negative axes count from the end",
  .time = MN_PER_ROW, .shape = shape, .forward = forward, .backward = backward,
};
