/* favor_logits.c -- logarithms of Performer's positive features: z = W b - |b|^2 / 2, b = x D^(-1/4).
** The mean over W of exp(z_q).exp(z_k) is the softmax kernel exp(q.k / sqrt(D)).  Against overflow
** the largest is subtracted before exp (ops running_max, favor_features). */
#include <math.h>
#include "numerics/fast_math.h"
#include "op.h"

static const float MOST = 1e30f; /* largest logit: far beyond any use, and finite */

static float scale_of(const mn_call *c) { return powf((float)DIM(c, 'D'), -0.25f); }

/* One row: z from x W^T, in place. */
static void finish(const mn_call *c, long r) {
  long D = DIM(c, 'D'), M = DIM(c, 'M');
  float *z = c->out[0].data + r * M, s = scale_of(c), half = 0;
  const float *x = c->in[0].data + r * D;
  MN_PRAGMA(omp simd reduction(+:half))
  for (long i = 0; i < D; i++) half += x[i] * x[i];
  half *= 0.5f * s * s;
  MN_PRAGMA(omp simd)
  for (long i = 0; i < M; i++) z[i] = mn_at_most(mn_at_least(z[i] * s - half, -MOST), MOST);
}

static void forward(mn_call *c) {
  int H = DIM(c, 'H'), D = DIM(c, 'D'), M = DIM(c, 'M'), N = (int)(c->in[0].n / (H * D));
  for (int h = 0; h < H; h++)
    mn_gemm(c->ctx, false, true, N, M, D, c->in[0].data + h * D, H * D, c->in[1].data + (long)h * M * D, D,
            c->out[0].data + h * M, H * M, false);
  MN_FOR(c->ctx, (double)N * H * (D + M), r, 0, (long)N * H, 1, finish(c, r));
}

/* dx = s W^T dz - s^2 x sum(dz): the first part is in dx. */
static void finish_back(const mn_call *c, long r) {
  long D = DIM(c, 'D'), M = DIM(c, 'M');
  const float *x = c->in[0].data + r * D, *dz = c->out[0].grad + r * M;
  float *dx = c->in[0].grad + r * D, s = scale_of(c), sum = 0;
  MN_PRAGMA(omp simd reduction(+:sum))
  for (long i = 0; i < M; i++) sum += dz[i];
  for (long i = 0; i < D; i++) dx[i] = s * (dx[i] - s * x[i] * sum);
}

static void backward(mn_call *c) {
  int H = DIM(c, 'H'), D = DIM(c, 'D'), M = DIM(c, 'M'), N = (int)(c->in[0].n / (H * D));
  const float *dz = c->out[0].grad;
  float *dx = c->in[0].grad, *dw = c->in[1].grad, s = scale_of(c);
  for (int h = 0; h < H; h++) {
    long at = (long)h * M * D;
    if (dx)
      mn_gemm(c->ctx, false, false, N, D, M, dz + h * M, H * M, c->in[1].data + at, D, dx + h * D, H * D, false);
    if (dw)
      mn_gemm(c->ctx, true, false, M, D, N, dz + h * M, H * M, c->in[0].data + h * D, H * D, dw + at, D, false);
  }
  if (dx) MN_FOR(c->ctx, (double)N * H * (D + M), r, 0, (long)N * H, 1, finish_back(c, r));
  for (long i = 0; dw && i < c->in[1].n; i++) dw[i] *= s;
}

const mn_op mn_op_favor_logits = {
  .sig = "x[T,B,H,D] w[H,M,D] -> z[T,B,H,M]",
  .doc = "logarithms of positive random features (FAVOR+: Choromanski et al. 2021, lemma 1). z = W b - |b|^2/2, b = x D^(-1/4), with random features "
      "W for each head",
  .time = MN_PER_ROW, .forward = forward, .backward = backward,
};
