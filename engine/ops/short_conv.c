/* short_conv.c -- every channel mixes its last few inputs:  y_t = act(sum over j of w[j] x_(t-W+1+j)).
** A causal, depthwise convolution along time, as torch's Conv1d(D, D, W, groups=D) after W-1 zeros; Mamba
** and its descendants put it before their memories.  What came before the first row is the state, oldest
** first; an input of an earlier episode counts as zero.  Columns go in blocks, all of time at once, so
** that threads never share a sum. */
#include <string.h>
#include "../maths.h"
#include "op.h"

enum { BLOCK = 64, MOST_W = 16 };
enum { IN_X, IN_W, IN_DONE, IN_STATE, OUT_Y = 0, OUT_STATE, OUT_PACKED };

static int shape(mn_call *c) {
  int W = DIM(c, 'W');
  if (W < 2 || W > MOST_W)
    return mn_fail(c->ctx, "short_conv: axis 1 of w is %d, expected 2 to %d inputs", W, MOST_W);
  if (c->in[IN_STATE].data && c->in[IN_STATE].shape[1] != W - 1)
    return mn_fail(c->ctx, "short_conv: axis 1 of state is %d, expected %d, one less than axis 1 of w",
                   c->in[IN_STATE].shape[1], W - 1);
  c->out[OUT_STATE].shape[1] = W - 1;
  return 0;
}

/* How many inputs before that of row t belong to its episode; of W-1. */
static int reach(const mn_call *c, int t, int b) {
  const uint8_t *done = c->in[IN_DONE].u8;
  int i = 0;
  while (i < DIM(c, 'W') - 1 && !(done && t >= i && done[(t - i) * DIM(c, 'B') + b])) i++;
  return i;
}

/* The place of row t, which may be before 0, in a sequence and the state before it; NULL if neither is there. */
static float *row(const mn_call *c, float *x, float *state, int t, int b) {
  long B = DIM(c, 'B'), D = DIM(c, 'D'), S = DIM(c, 'W') - 1;
  if (t >= 0) return x ? x + (t * B + b) * D : NULL;
  return state ? state + (b * S + S + t) * D : NULL;
}

static const float *input(const mn_call *c, int t, int b) {
  return row(c, c->in[IN_X].data, c->in[IN_STATE].data, t, b);
}

/* n columns from column d of the sum, before act. */
static void mix(const mn_call *c, int t, int b, long d, long n, float *z) {
  long D = DIM(c, 'D'), W = DIM(c, 'W');
  const float *w = c->out[OUT_PACKED].data + d, *now = input(c, t, b) + d;
  for (long k = 0; k < n; k++) z[k] = now[k] * w[(W - 1) * D + k];
  for (int i = 1, most = reach(c, t, b); i <= most; i++) {
    const float *x = input(c, t - i, b), *wi = w + (W - 1 - i) * D;
    if (x) for (long k = 0; k < n; k++) z[k] += x[d + k] * wi[k];
  }
}

static void block_forward(const mn_call *c, long d) {
  long D = DIM(c, 'D'), B = DIM(c, 'B'), n = D - d < BLOCK ? D - d : BLOCK;
  int S = DIM(c, 'W') - 1;
  for (int t = c->t0; t < c->t1; t++)
    for (int b = 0; b < B; b++) {
      float *y = c->out[OUT_Y].data + (t * B + b) * D + d;
      mix(c, t, b, d, n, y);
      if (OPT(c, 0) == 0) continue;
      MN_PRAGMA(omp simd)
      for (long k = 0; k < n; k++) y[k] *= mn_sigmoidf(y[k]);
    }
  for (int b = 0; b < B; b++)
    for (int i = 0, most = reach(c, c->t1 - 1, b); i < S; i++) {
      const float *x = i <= most ? input(c, c->t1 - 1 - i, b) : NULL;
      float *to = row(c, NULL, c->out[OUT_STATE].data, -1 - i, b);
      for (long k = 0; k < n; k++) to[d + k] = x ? x[d + k] : 0;
    }
}

static void forward(mn_call *c) {
  long D = DIM(c, 'D'), W = DIM(c, 'W');
  float *packed = c->out[OUT_PACKED].data;
  for (long d = 0; c->t0 == 0 && d < D; d++)
    for (long j = 0; j < W; j++) packed[j * D + d] = c->in[IN_W].data[d * W + j];
  MN_FOR(c->ctx, (double)(c->t1 - c->t0) * DIM(c, 'B') * D * W, d, 0, D, BLOCK, block_forward(c, d));
}

/* Gradient of row t of the sum. */
static void sum_back(const mn_call *c, int t, int b, long d, long n, float *dz) {
  const float *dy = c->out[OUT_Y].grad;
  if (!dy) {
    memset(dz, 0, sizeof(float) * (size_t)n);
    return;
  }
  dy += ((long)t * DIM(c, 'B') + b) * DIM(c, 'D') + d;
  if (OPT(c, 0) == 0) {
    memcpy(dz, dy, sizeof(float) * (size_t)n);
    return;
  }
  mix(c, t, b, d, n, dz);
  MN_PRAGMA(omp simd)
  for (long k = 0; k < n; k++) {
    float s = mn_sigmoidf(dz[k]);
    dz[k] = dy[k] * s * (1 + dz[k] * (1 - s));
  }
}

/* One copy from its last row to its first: `later` holds the last W gradients of the sum. */
static void copy_back(const mn_call *c, int b, long d, long n, float (*dw)[BLOCK]) {
  int T = DIM(c, 'T'), W = DIM(c, 'W'), S = W - 1;
  long D = DIM(c, 'D');
  const float *w = c->out[OUT_PACKED].data + d;
  float later[MOST_W][BLOCK];
  for (int t = T - 1; t >= -S; t--) {
    float *dz = later[(t + S) % W], *dx = row(c, c->in[IN_X].grad, c->in[IN_STATE].grad, t, b);
    if (t >= 0) {
      sum_back(c, t, b, d, n, dz);
      for (int i = 0, most = reach(c, t, b); i <= most; i++) {
        const float *x = input(c, t - i, b);
        if (x) for (long k = 0; k < n; k++) dw[S - i][k] += dz[k] * x[d + k];
      }
    }
    if (!dx) continue;
    const float *end = c->out[OUT_STATE].grad && t >= T - S && T - 1 - t <= reach(c, T - 1, b)
      ? row(c, NULL, c->out[OUT_STATE].grad, t - T, b) + d : NULL;
    for (long k = 0; k < n; k++) dx[d + k] = end ? end[k] : 0;
    for (int i = t < 0 ? -t : 0; i <= S && t + i < T; i++) {
      const float *g = later[(t + i + S) % W], *wi = w + (S - i) * D;
      if (i <= reach(c, t + i, b)) for (long k = 0; k < n; k++) dx[d + k] += g[k] * wi[k];
    }
  }
}

static void block_backward(const mn_call *c, long d) {
  long D = DIM(c, 'D'), W = DIM(c, 'W'), n = D - d < BLOCK ? D - d : BLOCK;
  float dw[MOST_W][BLOCK];
  memset(dw, 0, sizeof dw);
  for (int b = 0; b < DIM(c, 'B'); b++) copy_back(c, b, d, n, dw);
  for (long k = 0; c->in[IN_W].grad && k < n; k++)
    for (long j = 0; j < W; j++) c->in[IN_W].grad[(d + k) * W + j] = dw[j][k];
}

static void backward(mn_call *c) {
  long D = DIM(c, 'D');
  MN_FOR(c->ctx, 4.0 * DIM(c, 'T') * DIM(c, 'B') * D * DIM(c, 'W'), d, 0, D, BLOCK, block_backward(c, d));
}

const mn_op mn_op_short_conv = {
  .sig = "x[T,B,D] w[D,W] done?[T,B]:bit state?[B,?,D] -> y[T,B,D] state'[B,?,D] ~packed[W,D] | act=none|silu",
  .doc = "each channel's last W inputs of its episode, weighed: y_t = act(sum_j w_j x_(t-W+1+j)); state: the "
         "W-1 inputs before (short convolution; Gu, Dao 2023, Mamba)",
  .time = MN_SCAN, .shape = shape, .forward = forward, .backward = backward,
};
