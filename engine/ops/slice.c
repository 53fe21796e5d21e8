/* slice.c -- y = x from `from` up to, not including, `to` along one axis. */
#include <string.h>
#include "axis.h"
#include "numerics/strided.h"

enum { TO_THE_END = 1000000000 };

/* First index and length of the slice, 0-based; negative ends count from the end of the axis. */
static int extent(mn_call *c, int size, long *from, long *length) {
  *from = *length = 0;
  double a = OPT(c, 1), b = OPT(c, 2) == TO_THE_END ? size : OPT(c, 2);
  if (!(a >= -size && a < size) || a != (long)a)
    return mn_fail(c->ctx, "slice: from is %g, expected a whole number from %d to %d", a, -size,
                   size - 1);
  if (!(b >= -size && b <= size) || b != (long)b)
    return mn_fail(c->ctx, "slice: to is %g, expected a whole number from %d to %d", b, -size,
                   size);
  *from = (long)a + (a < 0 ? size : 0);
  *length = (long)b + (b < 0 ? size : 0) - *from;
  return *length >= 1 ? 0 : mn_fail(c->ctx, "slice: from %g to %g is empty, and no tensor is: it has at least one element", a, b);
}

static int shape(mn_call *c) {
  const mn_arg *x = &c->in[0];
  int axis = mn_axis(c, "slice", "axis", OPT(c, 0), x);
  long from, length;
  if (axis < 0 || extent(c, x->shape[axis], &from, &length)) return -1;
  mn_same_shape(x, &c->out[0]);
  c->out[0].shape[axis] = (int)length;
  if (axis == 0) c->time = MN_WHOLE;
  return 0;
}

static mn_span span_of(mn_call *c, long *from, long *length) {
  mn_span s = mn_span_of(&c->in[0], mn_axis_of(&c->in[0], OPT(c, 0)));
  extent(c, (int)s.size, from, length);
  return s;
}

static void forward(mn_call *c) {
  long from, length;
  mn_span s = span_of(c, &from, &length);
  const long inner = s.inner * mn_item(c->in[0].dtype), n = length * inner;
  mn_copy_rows(c->ctx, c->out[0].data, n, mn_element(&c->in[0], from * s.inner), s.size * inner, s.outer, n);
}

static void backward(mn_call *c) {
  long from, length;
  mn_span s = span_of(c, &from, &length);
  const float *dy = c->out[0].grad;
  float *dx = c->in[0].grad;
  long n = length * s.inner, step = s.size * s.inner;
  if (!mn_accumulates(c, 0)) memset(dx, 0, (size_t)c->in[0].n * sizeof *dx);
  const int rows = mn_rows_at_a_time(c->out[0].n, s.outer);
  dx += from * s.inner;
  MN_FOR(c->ctx, c->out[0].n, o, 0, s.outer, rows,
    for (long k = o; k < o + rows && k < s.outer; k++) for (long i = 0; i < n; i++) dx[k * step + i] += dy[k * n + i]);
}

const mn_op mn_op_slice = {
  .sig = "x[*]:any -> y[*]:any | axis=0 from=0 to=1e9",
  .doc = "y = x[from .. to-1] along an axis, counted from 0. Negative from, to and axis count from the end",
  .time = MN_PER_ROW, .accumulates = true, .shape = shape, .forward = forward, .backward = backward,
};
