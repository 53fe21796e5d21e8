/* one_hot.c -- y[..., index[...]] = 1, the rest 0.
** An index outside 0 .. classes-1 (no action yet, say -1) gives zeros. */
#include <string.h>
#include "op.h"

static int shape(mn_call *c) {
  double classes = OPT(c, 0);
  if (!(classes >= 1 && classes <= 1e6) || classes != (int)classes)
    return mn_fail(c->ctx, "one_hot: classes is %g, expected a whole number from 1 to 1e6", classes);
  c->out[0].shape[c->in[0].ndim] = (int)classes;
  return 0;
}

static void forward(mn_call *c) {
  long A = (long)OPT(c, 0);
  float *y = c->out[0].data;
  memset(y, 0, (size_t)(c->in[0].n * A) * sizeof *y);
  for (long r = 0; r < c->in[0].n; r++) {
    int32_t i = c->in[0].i32[r];
    if (i >= 0 && i < A) y[r * A + i] = 1;
  }
}

const mn_op mn_op_one_hot = {
  .sig = "index[...]:i32 -> ~y[...,?] | classes=0",
  .doc = "y[..., index[...]] = 1, else 0; an index outside 0..classes-1 gives zeros",
  .time = MN_PER_ROW, .shape = shape, .forward = forward,
};
