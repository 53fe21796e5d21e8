/* fourier.c -- random Fourier features: sines and cosines of projections, whose products stand for a
** Gaussian kernel (Rahimi, Recht 2007; random feature attention: Peng et al. 2021, eq. 4). */
#include <math.h>
#include "numerics/fast_math.h"
#include "op.h"

static int shape(mn_call *c) {
  if (DIM(c, 'M') > 1 << 29) return mn_fail(c->ctx, "fourier: the last axis (M) of x is %d, expected at most 2^29", DIM(c, 'M'));
  c->out[0].shape[c->in[0].ndim - 1] = 2 * DIM(c, 'M');
  return 0;
}

static void row_forward(const mn_call *c, long r) {
  long M = DIM(c, 'M');
  const float *x = c->in[0].data + r * M, scale = 1 / sqrtf((float)M);
  float *y = c->out[0].data + 2 * r * M;
  MN_PRAGMA(omp simd)
  for (long i = 0; i < M; i++) {
    float s, k;
    mn_sincosf(x[i], &s, &k);
    y[i] = s * scale;
    y[M + i] = k * scale;
  }
}

static void forward(mn_call *c) {
  long M = DIM(c, 'M'), rows = c->in[0].n / M;
  MN_FOR(c->ctx, 8 * rows * M, r, 0, rows, 1, row_forward(c, r));
}

static void backward(mn_call *c) {
  long M = DIM(c, 'M'), rows = c->in[0].n / M;
  MN_PARALLEL_ROWS(c->ctx, rows * M, rows)
  for (long r = 0; r < rows; r++) {
    const float *y = c->out[0].data + 2 * r * M, *dy = c->out[0].grad + 2 * r * M;
    float *dx = c->in[0].grad + r * M;
    for (long i = 0; i < M; i++) dx[i] = dy[i] * y[M + i] - dy[M + i] * y[i];
  }
}

const mn_op mn_op_fourier = {
  .sig = "x[...,M] -> y[...,?]",
  .doc = "y = [sin x, cos x] / sqrt(M) along the last axis: random Fourier features of projections x "
         "(Peng et al. 2021, eq. 4)",
  .time = MN_PER_ROW, .shape = shape, .forward = forward, .backward = backward,
};
