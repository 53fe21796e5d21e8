/* transpose.c -- swaps two axes. */
#include <string.h>
#include "axis.h"
#include "numerics/strided.h"

static int shape(mn_call *c) {
  const mn_arg *x = &c->in[0];
  mn_arg *y = &c->out[0];
  int a = mn_axis(c, "transpose", "a", OPT(c, 0), x),
      b = a < 0 ? -1 : mn_axis(c, "transpose", "b", OPT(c, 1), x);
  if (b < 0) return -1;
  y->ndim = x->ndim;
  memcpy(y->shape, x->shape, sizeof x->shape);
  y->shape[a] = x->shape[b];
  y->shape[b] = x->shape[a];
  if (a != b && (a == 0 || b == 0)) c->time = MN_WHOLE;
  return 0;
}

/* to = x with its axes swapped: both ways the same. */
static void swap(mn_call *c, const mn_arg *from, const void *x, void *to) {
  const int a = mn_axis_of(from, OPT(c, 0)), b = mn_axis_of(from, OPT(c, 1));
  mn_strides s = mn_strides_of(from);
  const long size = s.size[a], stride = s.stride[a];
  s.size[a] = s.size[b], s.stride[a] = s.stride[b];
  s.size[b] = size, s.stride[b] = stride;
  mn_strided_copy(c->ctx, &s, mn_item(from->dtype), to, x);
}

static void forward(mn_call *c) { swap(c, &c->in[0], c->in[0].data, c->out[0].data); }
static void backward(mn_call *c) { swap(c, &c->out[0], c->out[0].grad, c->in[0].grad); }

const mn_op mn_op_transpose = {
  .sig = "x[*]:any -> y[*]:any | a=0 b=1",
  .doc = "y = x with the axes a and b swapped. Negative axes count from the end",
  .time = MN_PER_ROW, .shape = shape, .forward = forward, .backward = backward,
};
