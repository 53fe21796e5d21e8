/* roll.c -- shifts along one axis; what leaves at one end comes in at the other. */
#include "axis.h"
#include "numerics/strided.h"

static int shape(mn_call *c) {
  const int axis = mn_axis(c, "roll", "axis", OPT(c, 1), &c->in[0]);
  if (axis < 0) return -1;
  if (!(OPT(c, 0) >= -1e9 && OPT(c, 0) <= 1e9) || OPT(c, 0) != (int)OPT(c, 0))
    return mn_fail(c->ctx, "roll: shift is %g, expected a whole number", OPT(c, 0));
  mn_same_shape(&c->in[0], &c->out[0]);
  if (axis == 0) c->time = MN_WHOLE;
  return 0;
}

static void shift(mn_call *c, long by, const void *from, void *to) {
  const mn_arg *x = &c->in[0];
  const mn_span s = mn_span_of(x, mn_axis_of(x, OPT(c, 1)));
  by = (by % s.size + s.size) % s.size;
  const long inner = s.inner * mn_item(x->dtype), step = s.size * inner, rest = (s.size - by) * inner;
  mn_copy_rows(c->ctx, (char *)to + by * inner, step, from, step, s.outer, rest);
  mn_copy_rows(c->ctx, to, step, (const char *)from + rest, step, s.outer, by * inner);
}

static void forward(mn_call *c) { shift(c, (long)OPT(c, 0), c->in[0].data, c->out[0].data); }
static void backward(mn_call *c) { shift(c, -(long)OPT(c, 0), c->out[0].grad, c->in[0].grad); }

const mn_op mn_op_roll = {
  .sig = "x[*]:any -> y[*]:any | shift=1 axis=-1",
  .doc = "y[..., (i + shift) mod n, ...] = x[..., i, ...] along an axis of n; a negative shift goes back",
  .time = MN_PER_ROW, .shape = shape, .forward = forward, .backward = backward,
};
