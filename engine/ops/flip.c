/* flip.c -- turns one axis around. */
#include "walks.h"

static int shape(mn_call *c) {
  const int axis = mn_axis(c, "flip", "axis", OPT(c, 0), &c->in[0]);
  if (axis < 0) return -1;
  mn_same_shape(&c->in[0], &c->out[0]);
  if (axis == 0) c->time = MN_WHOLE;
  return 0;
}

static void forward(mn_call *c) {
  const mn_strides s = mn_flipped(c);
  mn_strided_copy(c->ctx, &s, mn_item(c->in[0].dtype), c->out[0].data, c->in[0].data);
}

static void backward(mn_call *c) {
  const mn_strides s = mn_flipped(c);
  mn_strided_copy(c->ctx, &s, sizeof(float), c->in[0].grad, c->out[0].grad);
}

const mn_op mn_op_flip = {
  .sig = "x[*]:any -> y[*]:any | axis=-1",
  .doc = "y[..., i, ...] = x[..., n-1-i, ...]: the order along an axis of n reversed",
  .time = MN_PER_ROW, .shape = shape, .forward = forward, .backward = backward,
};
