/* concat.c -- y = a and then b, and then what else is given, along one axis. */
#include "axis.h"
#include "numerics/strided.h"

static int shape(mn_call *c) {
  const mn_arg *a = &c->in[0];
  mn_arg *y = &c->out[0];
  int axis = mn_axis(c, "concat", "axis", OPT(c, 0), a);
  if (axis < 0) return -1;
  mn_same_shape(a, y);
  for (int k = 1; k < c->n_in; k++) {
    const mn_arg *b = &c->in[k];
    const char *name = mn_input_name(c, k);
    if (!b->data) continue;
    if (b->ndim != a->ndim)
      return mn_fail(c->ctx, "concat: %s has %d axes, expected %d as a", name, b->ndim, a->ndim);
    for (int i = 0; i < a->ndim; i++)
      if (i != axis && b->shape[i] != a->shape[i])
        return mn_fail(c->ctx, "concat: axis %d of %s is %d, expected %d as in a", i, name, b->shape[i], a->shape[i]);
    if (y->shape[axis] > INT32_MAX - b->shape[axis])
      return mn_fail(c->ctx, "concat: axis %d of y would be %ld, expected at most %d", axis, (long)y->shape[axis] + b->shape[axis], INT32_MAX);
    y->shape[axis] += b->shape[axis];
    if (a->timed != b->timed) c->time = MN_WHOLE;
  }
  if (axis == 0) c->time = MN_WHOLE;
  return 0;
}

static void forward(mn_call *c) {
  const mn_arg *y = &c->out[0];
  const mn_span s = mn_span_of(y, mn_axis_of(y, OPT(c, 0)));
  const long item = mn_item(y->dtype), step = y->n / s.outer * item;
  char *to = (char *)y->data;
  for (int k = 0; k < c->n_in; k++) {
    if (!c->in[k].data) continue;
    const long bytes = c->in[k].n / s.outer * item;
    mn_copy_rows(c->ctx, to, step, c->in[k].data, bytes, s.outer, bytes);
    to += bytes;
  }
}

static void backward(mn_call *c) {
  const mn_arg *y = &c->out[0];
  const mn_span s = mn_span_of(y, mn_axis_of(y, OPT(c, 0)));
  const float *from = y->grad;
  for (int k = 0; k < c->n_in; k++) {
    if (!c->in[k].data) continue;
    const long n = c->in[k].n / s.outer;
    if (c->in[k].grad) mn_copy_rows(c->ctx, c->in[k].grad, n * 4, from, y->n / s.outer * 4, s.outer, n * 4);
    from += n;
  }
}

const mn_op mn_op_concat = {
  .sig = "a[*]:any b[*]:any c?[*]:any d?[*]:any e?[*]:any f?[*]:any g?[*]:any h?[*]:any -> y[*]:any | axis=-1",
  .doc = "y = a followed by b, and by the others that are given, along an axis. mn.cat takes a list of any length",
  .time = MN_PER_ROW, .shape = shape, .forward = forward, .backward = backward,
};
