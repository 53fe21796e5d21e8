/* pick.c -- picks one element of each row: y[...] = x[..., index[...]].
** A replayed plan does not check its indices: one out of range gives NaN, and 0 among whole numbers. */
#include <string.h>
#include "op.h"

static void forward(mn_call *c) {
  const mn_arg *x = &c->in[0], *y = &c->out[0];
  const long A = DIM(c, 'A');
  for (long r = 0; r < y->n; r++) {
    const int32_t i = c->in[1].i32[r];
    const bool in = i >= 0 && i < A;
    if (y->dtype == MN_F32) y->data[r] = in ? x->data[r * A + i] : __builtin_nanf("");
    else if (y->dtype == MN_I32) y->i32[r] = in ? x->i32[r * A + i] : 0;
    else y->u8[r] = in ? x->u8[r * A + i] : 0;
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

const mn_op mn_op_pick = {
  .sig = "x[...,A]:any index[...]:<A -> y[...]:any",
  .doc = "y[...] = x[..., index[...]]: one element of each row, as the log-probability of the action played. gather picks several",
  .time = MN_PER_ROW, .forward = forward, .backward = backward,
};
