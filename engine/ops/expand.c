/* expand.c -- repeats axes of 1, and adds axes on the left: a tensor broadcast to a shape. */
#include "numerics/broadcast.h"
#include "walks.h"

static int shape(mn_call *c) {
  const mn_arg *x = &c->in[0];
  mn_arg *y = &c->out[0];
  int ndim = MN_AXES;
  while (ndim > 0 && OPT(c, ndim - 1) == 0) ndim--;
  if (ndim < x->ndim || !ndim) return mn_fail(c->ctx, "expand: %d sizes given, expected at least the %d axes of x", ndim, x->ndim);
  y->ndim = ndim;
  for (int i = 0; i < ndim; i++) {
    const int k = i - (ndim - x->ndim), had = k < 0 ? 1 : x->shape[k];
    const double d = OPT(c, i);
    if (!(d >= -1 && d < 2147483648.0) || d != (int)d || d == 0 || (d == -1 && k < 0))
      return mn_fail(c->ctx, "expand: d%d is %g, expected a whole number of at least 1%s", i, d, k < 0 ? "" : ", or -1");
    y->shape[i] = d == -1 ? had : (int)d;
    if (had != 1 && y->shape[i] != had)
      return mn_fail(c->ctx, "expand: axis %d of x is %d, expected 1 or %d as d%d", k, had, y->shape[i], i);
  }
  if (ndim != x->ndim || y->shape[0] != x->shape[0]) c->time = MN_WHOLE;
  return 0;
}

static void forward(mn_call *c) {
  const mn_strides s = mn_expanded(c);
  mn_strided_copy(c->ctx, &s, mn_item(c->in[0].dtype), c->out[0].data, c->in[0].data);
}

static void backward(mn_call *c) { mn_sum_to_operand(c, 0, c->out[0].grad); }

const mn_op mn_op_expand = {
  .sig = "x[*]:any -> y[*]:any | d0=0 d1=0 d2=0 d3=0 d4=0 d5=0",
  .doc = "y = x repeated to the shape [d0, d1, ...], matched from the right: only axes of 1 are repeated. -1 keeps a size",
  .time = MN_PER_ROW, .shape = shape, .forward = forward, .backward = backward,
};
