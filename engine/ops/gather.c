/* gather.c -- picks one element of each row: y[...] = x[..., index[...]].
** A replayed plan does not check its indices: one out of range gives NaN. */
#include <string.h>
#include "op.h"

static void forward(mn_call *c) {
  long A = DIM(c, 'A');
  for (long r = 0; r < c->out[0].n; r++) {
    int32_t i = c->in[1].i32[r];
    c->out[0].data[r] = i >= 0 && i < A ? c->in[0].data[r * A + i] : __builtin_nanf("");
  }
}

static void backward(mn_call *c) {
  long A = DIM(c, 'A');
  float *dx = c->in[0].grad;
  memset(dx, 0, (size_t)c->in[0].n * sizeof *dx);
  for (long r = 0; r < c->out[0].n; r++) {
    int32_t i = c->in[1].i32[r];
    if (i >= 0 && i < A) dx[r * A + i] = c->out[0].grad[r];
  }
}

const mn_op mn_op_gather = {
  .sig = "x[...,A] index[...]:<A -> y[...]",
  .doc = "y[...] = x[..., index[...]], along the last axis",
  .time = MN_PER_ROW, .forward = forward, .backward = backward,
};
