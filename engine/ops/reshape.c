/* reshape.c -- the same values in another shape. */
#include <stdio.h>
#include "numerics/strided.h"

/* "[2, -1, 3]" */
static const char *asked(const mn_call *c, int ndim, char *text, size_t size) {
  int at = snprintf(text, size, "[");
  for (int i = 0; i < ndim; i++)
    at += snprintf(text + at, size - (size_t)at, "%s%g", i ? ", " : "", OPT(c, i));
  snprintf(text + at, size - (size_t)at, "]");
  return text;
}

static int shape(mn_call *c) {
  const mn_arg *x = &c->in[0];
  mn_arg *y = &c->out[0];
  char text[128];
  int ndim = MN_AXES, infer = -1;
  double n = 1;
  while (ndim > 0 && OPT(c, ndim - 1) == 0) ndim--;
  if (!ndim) return mn_fail(c->ctx, "reshape: no sizes given, expected d0, d1, ...");
  for (int i = 0; i < ndim; i++) {
    double d = OPT(c, i);
    if (!(d >= -1 && d < 2147483648.0) || d != (int)d || d == 0)
      return mn_fail(c->ctx, "reshape: d%d is %g, expected a whole number of at least 1, or -1", i,
                     d);
    if (d == -1 && infer >= 0)
      return mn_fail(c->ctx, "reshape: d%d and d%d are -1, expected at most one", infer, i);
    if (d == -1) infer = i;
    else n *= d;
    y->shape[i] = (int)d;
  }
  if (n > (double)x->n || x->n % (long)n || (infer < 0 && (long)n != x->n))
    return mn_fail(c->ctx, "reshape: x has %ld elements, which do not fit %s", x->n,
                   asked(c, ndim, text, sizeof text));
  if (infer >= 0) y->shape[infer] = (int)(x->n / (long)n);
  y->ndim = ndim;
  if (!x->ndim || y->shape[0] != x->shape[0]) c->time = MN_WHOLE;
  return 0;
}

static void forward(mn_call *c) { mn_copy_rows(c->ctx, c->out[0].data, 0, c->in[0].data, 0, 1, c->in[0].n * mn_item(c->in[0].dtype)); }
static void backward(mn_call *c) { mn_copy_rows(c->ctx, c->in[0].grad, 0, c->out[0].grad, 0, 1, c->in[0].n * 4); }

const mn_op mn_op_reshape = {
  .sig = "x[*]:any -> y[*]:any | d0=0 d1=0 d2=0 d3=0 d4=0 d5=0",
  .doc = "y = x in the shape [d0, d1, ...]. One size may be -1: it is inferred",
  .time = MN_PER_ROW, .alias = true, .shape = shape, .forward = forward, .backward = backward,
};
