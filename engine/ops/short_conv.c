/* short_conv.c -- every channel mixes its last few inputs:  y_t = act(sum over j of w[j] x_(t-W+1+j)).
** A causal, depthwise convolution along time, as torch's Conv1d(D, D, W, groups=D) after W-1 zeros; Mamba
** and its descendants put it before their memories.  The inputs before the first row are the state, oldest
** first; an input of an earlier episode counts as zero.  A thread computes one environment and a block of its columns
** through all of time, in long runs of memory; the environments' gradients of the weights are summed in order. */
#include <string.h>
#include "numerics/fast_math.h"
#include "numerics/simd.h"
#include "op.h"

enum { BLOCK = 1024, MOST_W = 16 };
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
  int i = 0, B = DIM(c, 'B'), S = DIM(c, 'W') - 1;
  if (!done) return S;
  while (i < S && !(t >= i && done[(long)(t - i) * B + b])) i++;
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

/* Products to be summed: rows of inputs or gradients, with the weights that each is multiplied by. */
typedef struct terms { const float *x[MOST_W], *w[MOST_W]; int n; } terms;

/* z = start (or 0) + the sum, n columns. */
static void sum_up(const terms *p, const float *start, long n, float *z) {
  for (long k = 0; k < n; k += MN_LANES) {
    mn_lanes sum = start ? mn_load_n(start + k, n - k) : (mn_lanes){ 0 };
    for (int i = 0; i < p->n; i++) sum += mn_load_n(p->x[i] + k, n - k) * mn_load_n(p->w[i] + k, n - k);
    mn_store_n(z + k, sum, n - k);
  }
}

/* The inputs that row t sees, from column d; the weight of the one i rows before is row W-1-i. */
static terms seen(const mn_call *c, int t, int b, long d) {
  long D = DIM(c, 'D'), S = DIM(c, 'W') - 1;
  terms p = { .n = 0 };
  for (int i = 0, most = reach(c, t, b); i <= most; i++) {
    const float *x = input(c, t - i, b);
    if (!x) break;
    p.x[p.n] = x + d;
    p.w[p.n++] = c->out[OUT_PACKED].data + (S - i) * D + d;
  }
  return p;
}

/* Columns of one environment: block `unit` of all environments' blocks. */
typedef struct block { int b; long d, n; } block;

static long blocks(const mn_call *c) { return (DIM(c, 'D') + BLOCK - 1) / BLOCK; }

static block block_at(const mn_call *c, long unit) {
  long d = unit % blocks(c) * BLOCK, left = DIM(c, 'D') - d;
  return (block){ (int)(unit / blocks(c)), d, left < BLOCK ? left : BLOCK };
}

static void block_forward(const mn_call *c, long unit) {
  block x = block_at(c, unit);
  long D = DIM(c, 'D'), B = DIM(c, 'B');
  for (int t = c->t0; t < c->t1; t++) {
    float *y = c->out[OUT_Y].data + (t * B + x.b) * D + x.d;
    terms p = seen(c, t, x.b, x.d);
    sum_up(&p, NULL, x.n, y);
    if (OPT(c, 0) == 0) continue;
    MN_PRAGMA(omp simd)
    for (long k = 0; k < x.n; k++) y[k] *= mn_sigmoidf(y[k]);
  }
  for (int i = 0, most = reach(c, c->t1 - 1, x.b); i < DIM(c, 'W') - 1; i++) {
    const float *from = i <= most ? input(c, c->t1 - 1 - i, x.b) : NULL;
    float *to = row(c, NULL, c->out[OUT_STATE].data, -1 - i, x.b) + x.d;
    for (long k = 0; k < x.n; k++) to[k] = from ? from[x.d + k] : 0;
  }
}

static void forward(mn_call *c) {
  long D = DIM(c, 'D'), W = DIM(c, 'W'), units = DIM(c, 'B') * blocks(c);
  float *packed = c->out[OUT_PACKED].data;
  for (long d = 0; c->t0 == 0 && d < D; d++)
    for (long j = 0; j < W; j++) packed[j * D + d] = c->in[IN_W].data[d * W + j];
  MN_FOR(c->ctx, (double)(c->t1 - c->t0) * DIM(c, 'B') * D * W, unit, 0, units, 1, block_forward(c, unit));
}

/* Gradient of the sum of row t. */
static void sum_back(const mn_call *c, const terms *p, int t, int b, long d, long n, float *dz) {
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
  sum_up(p, NULL, n, dz);
  MN_PRAGMA(omp simd)
  for (long k = 0; k < n; k++) {
    float s = mn_sigmoidf(dz[k]);
    dz[k] = dy[k] * s * (1 + dz[k] * (1 - s));
  }
}

/* dw += dz x, for every input that was seen; that of row t itself belongs to the last row of dw. */
static void weights_back(const terms *p, const float *dz, long n, float *last, long D) {
  for (int i = 0; i < p->n; i++) {
    float *dw = last - i * D;
    for (long k = 0; k < n; k += MN_LANES)
      mn_store_n(dw + k, mn_load_n(dw + k, n - k) + mn_load_n(dz + k, n - k) * mn_load_n(p->x[i] + k, n - k), n - k);
  }
}

/* From the last row to the first: `later` holds the last W gradients of the sum, and `far` how far each saw. */
static void block_backward(const mn_call *c, long unit, float *all_dw) {
  block x = block_at(c, unit);
  int T = DIM(c, 'T'), W = DIM(c, 'W'), S = W - 1, far[MOST_W], end = reach(c, T - 1, x.b);
  long D = DIM(c, 'D');
  const float *w = c->out[OUT_PACKED].data + x.d;
  float later[MOST_W][BLOCK], *dw = all_dw + x.b * W * D + x.d;
  for (int j = 0; j < W; j++) memset(dw + j * D, 0, sizeof(float) * (size_t)x.n);
  for (int t = T - 1; t >= -S; t--) {
    float *dz = later[(t + S) % W], *dx = row(c, c->in[IN_X].grad, c->in[IN_STATE].grad, t, x.b);
    if (t >= 0) {
      terms p = seen(c, t, x.b, x.d);
      far[(t + S) % W] = reach(c, t, x.b);
      sum_back(c, &p, t, x.b, x.d, x.n, dz);
      weights_back(&p, dz, x.n, dw + S * D, D);
    }
    if (!dx) continue;
    bool stays = c->out[OUT_STATE].grad && t >= T - S && T - 1 - t <= end;
    const float *start = stays ? row(c, NULL, c->out[OUT_STATE].grad, t - T, x.b) + x.d : NULL;
    terms p = { .n = 0 };
    for (int i = t < 0 ? -t : 0; i <= S && t + i < T; i++)
      if (i <= far[(t + i + S) % W]) p.x[p.n] = later[(t + i + S) % W], p.w[p.n++] = w + (S - i) * D;
    sum_up(&p, start, x.n, dx + x.d);
  }
}

static void backward(mn_call *c) {
  long D = DIM(c, 'D'), W = DIM(c, 'W'), B = DIM(c, 'B'), units = B * blocks(c);
  float *all_dw = mn_scratch(c->ctx, 0, B * W * D), *dw = c->in[IN_W].grad;
  MN_FOR(c->ctx, 4.0 * DIM(c, 'T') * B * D * W, unit, 0, units, 1, block_backward(c, unit, all_dw));
  if (!dw) return;
  memset(dw, 0, sizeof(float) * (size_t)(D * W));
  for (long b = 0; b < B; b++)
    for (long j = 0; j < W; j++)
      for (long d = 0; d < D; d++) dw[d * W + j] += all_dw[(b * W + j) * D + d];
}

const mn_op mn_op_short_conv = {
  .sig = "x[T,B,D] w[D,W] done?[T,B]:bit state?[B,?,D] -> y[T,B,D] state'[B,?,D] ~~packed[W,D] | act=none|silu",
  .doc = "short causal convolution of each channel, within the episode (Gu, Dao 2023, Mamba). y_t = act(sum_j w_j x_(t-W+1+j)); state: the W-1 inputs "
      "before",
  .time = MN_SCAN, .shape = shape, .forward = forward, .backward = backward,
};
