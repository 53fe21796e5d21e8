/* concat.c -- y = a and then b along one axis. */
#include <string.h>
#include "axis.h"

static int shape(mn_call *c) {
  const mn_arg *a = &c->in[0], *b = &c->in[1];
  mn_arg *y = &c->out[0];
  int axis = mn_axis(c, "concat", "axis", OPT(c, 0), a);
  if (axis < 0) return -1;
  if (b->ndim != a->ndim)
    return mn_fail(c->ctx, "concat: b has %d axes, expected %d as a", b->ndim, a->ndim);
  y->ndim = a->ndim;
  for (int i = 0; i < a->ndim; i++) {
    if (i == axis && a->shape[i] > INT32_MAX - b->shape[i])
      return mn_fail(c->ctx, "concat: axis %d of y would be %ld, expected at most %d", i, (long)a->shape[i] + b->shape[i], INT32_MAX);
    y->shape[i] = i == axis ? a->shape[i] + b->shape[i] : a->shape[i];
    if (i != axis && b->shape[i] != a->shape[i])
      return mn_fail(c->ctx, "concat: axis %d of b is %d, expected %d as in a", i, b->shape[i],
                     a->shape[i]);
  }
  if (axis == 0 || a->timed != b->timed) c->time = MN_WHOLE;
  return 0;
}

/* Copies between y (or its gradient) and the parts. */
static void walk(mn_call *c, float *y, float *part[2], bool join) {
  int axis = (int)OPT(c, 0);
  if (axis < 0) axis += c->in[0].ndim;
  mn_span s = mn_span_of(&c->out[0], axis);
  long n[2] = { c->in[0].n / s.outer, c->in[1].n / s.outer };
  MN_PARALLEL_ROWS(c->ctx, c->out[0].n, s.outer)
  for (long o = 0; o < s.outer; o++)
    for (int k = 0; k < 2; k++) {
      float *in_y = y + o * (n[0] + n[1]) + (k ? n[0] : 0),
            *in_part = part[k] ? part[k] + o * n[k] : NULL;
      if (in_part) memcpy(join ? in_y : in_part, join ? in_part : in_y, (size_t)n[k] * sizeof *y);
    }
}

static void forward(mn_call *c) {
  walk(c, c->out[0].data, (float *[2]){ c->in[0].data, c->in[1].data }, true);
}
static void backward(mn_call *c) {
  walk(c, c->out[0].grad, (float *[2]){ c->in[0].grad, c->in[1].grad }, false);
}

const mn_op mn_op_concat = {
  .sig = "a[*] b[*] -> y[*] | axis=-1",
  .doc = "y = a followed by b, along an axis",
  .time = MN_PER_ROW, .shape = shape, .forward = forward, .backward = backward,
};
