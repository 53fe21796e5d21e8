/* pad.c -- elements of one value before and after those of one axis. */
#include <string.h>
#include "axis.h"
#include "numerics/strided.h"

enum { AXIS, BEFORE, AFTER, VALUE };             /* options */

static int shape(mn_call *c) {
  const mn_arg *x = &c->in[0];
  mn_arg *y = &c->out[0];
  const int axis = mn_axis(c, "pad", "axis", OPT(c, AXIS), x);
  if (axis < 0) return -1;
  for (int i = BEFORE; i <= AFTER; i++)
    if (!(OPT(c, i) >= 0 && OPT(c, i) < 1e9) || OPT(c, i) != (int)OPT(c, i))
      return mn_fail(c->ctx, "pad: %s is %g, expected a whole number of at least 0 (slice cuts)", i == BEFORE ? "before" : "after", OPT(c, i));
  if (x->dtype != MN_F32 && !mn_fits(x->dtype, OPT(c, VALUE)))
    return mn_fail(c->ctx, "pad: value is %g, which does not fit the type of x", OPT(c, VALUE));
  const double size = x->shape[axis] + OPT(c, BEFORE) + OPT(c, AFTER);
  if (size > INT32_MAX) return mn_fail(c->ctx, "pad: axis %d of y would be %g, expected at most %d", axis, size, INT32_MAX);
  mn_same_shape(x, y);
  y->shape[axis] = (int)size;
  if (axis == 0) c->time = MN_WHOLE;
  return 0;
}

static void fill(const mn_arg *y, long from, long n, double value) {
  if (y->dtype == MN_U8) memset(y->u8 + from, (int)value, (size_t)n);
  else if (y->dtype == MN_I32) for (long i = from; i < from + n; i++) y->i32[i] = (int32_t)value;
  else for (long i = from; i < from + n; i++) y->data[i] = (float)value;
}

static void forward(mn_call *c) {
  const mn_arg *x = &c->in[0], *y = &c->out[0];
  const mn_span s = mn_span_of(x, mn_axis_of(x, OPT(c, AXIS)));
  const long before = (long)OPT(c, BEFORE) * s.inner, after = (long)OPT(c, AFTER) * s.inner, n = s.size * s.inner, step = before + n + after;
  const long item = mn_item(x->dtype);
  for (long o = 0; o < s.outer; o++) {
    fill(y, o * step, before, OPT(c, VALUE));
    fill(y, o * step + before + n, after, OPT(c, VALUE));
  }
  mn_copy_rows(c->ctx, mn_element(y, before), step * item, x->data, n * item, s.outer, n * item);
}

static void backward(mn_call *c) {
  const mn_arg *x = &c->in[0];
  const mn_span s = mn_span_of(x, mn_axis_of(x, OPT(c, AXIS)));
  const long n = s.size * s.inner * 4, step = n + (long)(OPT(c, BEFORE) + OPT(c, AFTER)) * s.inner * 4;
  mn_copy_rows(c->ctx, x->grad, n, c->out[0].grad + (long)OPT(c, BEFORE) * s.inner, step, s.outer, n);
}

const mn_op mn_op_pad = {
  .sig = "x[*]:any -> y[*]:any | axis=-1 before=0 after=0 value=0",
  .doc = "y = x with `before` and `after` elements of `value` around it, along an axis; x:pad({ l, r, ... }, value) as in torch",
  .time = MN_PER_ROW, .shape = shape, .forward = forward, .backward = backward,
};
