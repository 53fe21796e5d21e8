/* last_linear.c -- `linear` of the last row alone, for display: what acting does not compute. */
#include "numerics/activation.h"
#include "op.h"

static void forward(mn_call *c) {
  const int B = DIM(c, 'B'), D = DIM(c, 'D'), E = DIM(c, 'E');
  const float *x = c->in[0].data + (long)(c->t1 - 1) * B * D;
  mn_gemm(c->ctx, false, true, B, E, D, x, D, c->in[1].data, D, c->out[0].data, E, false);
  mn_finish(c->out[0].data, E, c->out[0].data, E, c->in[2].data, B, E, MN_NONE);
}

const mn_op mn_op_last_linear = {
  .sig = "x[T,B,D] w[E,D] b?[E] -> ~y[1,B,E]",
  .doc = "y = x w^T + b of the last row, as `linear` computes it from the same inputs, for display",
  .time = MN_ON_DEMAND, .forward = forward,
};
