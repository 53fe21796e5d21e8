/* clamp.c -- y = x limited to lo .. hi.  NaN stays NaN. */
#include "elementwise.h"

MN_UNARY(mn_at_most(mn_at_least(x, p), q), x < p || x > q ? 0.0f : 1.0f)

static int shape(mn_call *c) {
  if (OPT(c, 0) <= OPT(c, 1)) return 0;
  return mn_fail(c->ctx, "clamp: lo is %g, expected at most hi, %g", OPT(c, 0), OPT(c, 1));
}

const mn_op mn_op_clamp = {
  .sig = "x[...] -> y[...] | lo=-inf hi=inf",
  .doc = "y = x clamped to lo .. hi; the slope is 0 outside",
  .time = MN_PER_ROW, .shape = shape, .forward = forward, .backward = backward,
};
