/* outer.c -- y[i_e*D + i_d] = p[i_e] a[i_d]: every product of two vectors, the rows of p outermost.
** With p and a positive it is the feature map of AGaLiTe (Pramanik et al. 2023, eq. 11). */
#include "op.h"

static int shape(mn_call *c) {
  double n = (double)DIM(c, 'E') * DIM(c, 'D');
  if (n > 1e9) return mn_fail(c->ctx, "outer: y would have %g values per row, expected at most 1e9", n);
  c->out[0].shape[c->in[0].ndim - 1] = (int)n;
  return 0;
}

static void forward(mn_call *c) {
  long E = DIM(c, 'E'), D = DIM(c, 'D'), rows = c->in[0].n;
  MN_PARALLEL_ROWS(c->ctx, rows * D, rows)
  for (long r = 0; r < rows; r++) {
    const float *a = c->in[1].data + r / E * D;
    float *y = c->out[0].data + r * D, p = c->in[0].data[r];
    MN_PRAGMA(omp simd)
    for (long d = 0; d < D; d++) y[d] = p * a[d];
  }
}

static void backward(mn_call *c) {
  long E = DIM(c, 'E'), D = DIM(c, 'D'), rows = c->in[0].n / E;
  MN_PARALLEL_ROWS(c->ctx, rows * E * D, rows)
  for (long r = 0; r < rows; r++) {
    const float *p = c->in[0].data + r * E, *a = c->in[1].data + r * D,
                *dy = c->out[0].grad + r * E * D;
    float *dp = c->in[0].grad, *da = c->in[1].grad;
    for (long e = 0; dp && e < E; e++) {
      float sum = 0;
      MN_PRAGMA(omp simd reduction(+:sum))
      for (long d = 0; d < D; d++) sum += dy[e * D + d] * a[d];
      dp[r * E + e] = sum;
    }
    for (long d = 0; da && d < D; d++) da[r * D + d] = 0;
    for (long e = 0; da && e < E; e++)
      for (long d = 0; d < D; d++) da[r * D + d] += dy[e * D + d] * p[e];
  }
}

const mn_op mn_op_outer = {
  .sig = "p[...,E] a[...,D] -> y[...,?]",
  .doc = "y[..., e*D + d] = p[..., e] a[..., d]: eta-major outer product (Pramanik et al. 2023)",
  .time = MN_PER_ROW, .shape = shape, .forward = forward, .backward = backward,
};
