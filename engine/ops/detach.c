/* detach.c -- y = x as a constant: no gradient passes back. */
#include <string.h>
#include "op.h"

static void forward(mn_call *c) { memcpy(c->out[0].data, c->in[0].data, sizeof(float) * (size_t)c->in[0].n); }

const mn_op mn_op_detach = {
  .sig = "x[...] -> ~y[...]",
  .doc = "y = x, a constant for the gradient",
  .time = MN_PER_ROW, .forward = forward,
};
