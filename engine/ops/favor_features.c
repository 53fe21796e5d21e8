/* favor_features.c -- Performer's positive features from their logarithms: (exp(z - top) + eps) / sqrt(M).
** `top` comes from op running_max; it scales numerator and denominator of the read-out alike. */
#include <math.h>
#include "numerics/fast_math.h"
#include "op.h"

static void row_forward(const mn_call *c, long r) {
  long M = DIM(c, 'M');
  const float *z = c->in[0].data + r * M, top = c->in[1].data[r], eps = (float)OPT(c, 0);
  float *y = c->out[0].data + r * M, scale = 1 / sqrtf((float)M);
  MN_PRAGMA(omp simd)
  for (long i = 0; i < M; i++) y[i] = (mn_expf(z[i] - top) + eps) * scale;
}

static void forward(mn_call *c) {
  MN_FOR(c->ctx, 4 * c->in[0].n, r, 0, c->in[1].n, 1, row_forward(c, r));
}

static void row_backward(const mn_call *c, long r) {
  long M = DIM(c, 'M');
  const float *y = c->out[0].data + r * M, *dy = c->out[0].grad + r * M;
  float offset = (float)OPT(c, 0) / sqrtf((float)M), sum = 0;
  MN_PRAGMA(omp simd reduction(+:sum))
  for (long i = 0; i < M; i++) {
    float dz = dy[i] * (y[i] - offset);
    if (c->in[0].grad) c->in[0].grad[r * M + i] = dz;
    sum += dz;
  }
  if (c->in[1].grad) c->in[1].grad[r] = -sum;
}

static void backward(mn_call *c) {
  MN_FOR(c->ctx, c->in[0].n, r, 0, c->in[1].n, 1, row_backward(c, r));
}

const mn_op mn_op_favor_features = {
  .sig = "z[T,B,H,M] top[T,B,H] -> y[T,B,H,M] | eps=0",
  .doc = "y = (exp(z - top) + eps) / sqrt(M): positive random features (FAVOR+: Choromanski et al. 2021, lemma 1)",
  .time = MN_PER_ROW, .forward = forward, .backward = backward,
};
