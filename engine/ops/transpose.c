/* transpose.c -- swaps two axes. */
#include <string.h>
#include "axis.h"

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

/* to[outer, B, middle, A, inner] = x[outer, A, middle, B, inner], with A and B the sizes of from's
** axes. */
static void swap(mn_call *c, const mn_arg *from, const float *x, float *to) {
  int a = (int)OPT(c, 0) + (OPT(c, 0) < 0 ? from->ndim : 0),
      b = (int)OPT(c, 1) + (OPT(c, 1) < 0 ? from->ndim : 0);
  mn_span first = mn_span_of(from, a < b ? a : b), last = mn_span_of(from, a < b ? b : a);
  if (a == b) { memcpy(to, x, (size_t)from->n * sizeof *to); return; }
  long A = first.size, B = last.size, inner = last.inner, middle = first.inner / (B * inner);
  MN_PARALLEL(c->ctx, from->n)
  for (long ob = 0; ob < first.outer * B; ob++)
    for (long m = 0; m < middle; m++) {
      const float *row = x + ((ob / B * A * middle + m) * B + ob % B) * inner;
      float *y = to + (ob * middle + m) * A * inner;
      for (long i = 0; i < A; i++)
        for (long j = 0; j < inner; j++) y[i * inner + j] = row[i * middle * B * inner + j];
    }
}

static void forward(mn_call *c) { swap(c, &c->in[0], c->in[0].data, c->out[0].data); }
static void backward(mn_call *c) { swap(c, &c->out[0], c->out[0].grad, c->in[0].grad); }

const mn_op mn_op_transpose = {
  .sig = "x[*] -> y[*] | a=0 b=1",
  .doc = "y = x with the axes a and b swapped. Negative axes count from the end",
  .time = MN_PER_ROW, .shape = shape, .forward = forward, .backward = backward,
};
