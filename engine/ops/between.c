/* between.c -- which elements are in an interval: a mask for `where`. */
#include "op.h"

static int shape(mn_call *c) {
  return OPT(c, 0) <= OPT(c, 1) ? 0
    : mn_fail(c->ctx, "between: lo is %g and hi is %g, expected lo <= hi", OPT(c, 0), OPT(c, 1));
}

static void forward(mn_call *c) {
  const float *x = c->in[0].data, lo = (float)OPT(c, 0), hi = (float)OPT(c, 1);
  uint8_t *mask = c->out[0].u8;
  for (long i = 0; i < c->in[0].n; i++) mask[i] = x[i] >= lo && x[i] <= hi;
}

const mn_op mn_op_between = {
  .sig = "x[...] -> mask[...]:bit | lo=-inf hi=inf",
  .doc = "mask = 1 where lo <= x <= hi, else 0 (0 for NaN)",
  .time = MN_PER_ROW, .shape = shape, .forward = forward,
};
