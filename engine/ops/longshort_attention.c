/* longshort_attention.c -- causal attention to a window of the row's episode and to compressed earlier chunks:
** Transformer-LS (Zhu et al. 2021, section 3.3), step by step.  When a chunk of c tokens is full, its keys and
** values are compressed to R of each, by a softmax over the chunk of logits p, and normalised over all heads:
**   w = softmax over the chunk of p[.,h,r]     chunk[r,h] = LN(sum_i w_i k_i)     (LN over h and d)
** Chunks that end in row t are number t/c of this call: two ends lie at least c rows apart. */
#include <string.h>
#include "numerics/fast_math.h"
#include "longshort.h"
#include "numerics/norm.h"

enum { CHUNKS = 1 };

static int shape(mn_call *c) {
  if (mn_longshort_check(c, "longshort_attention")) return -1;
  c->out[CHUNKS].shape[2] = mn_longshort_of(c).C;
  return 0;
}

static mn_longshort setting_of(const mn_call *c) {
  mn_longshort s = mn_longshort_of(c);
  s.chunks = c->out[CHUNKS].data;
  return s;
}

/* ---- one chunk ---- */

typedef struct place { int input; long at; } place;      /* where token i of a chunk is: a row, or a slot */

static place token(const mn_longshort *s, const int32_t *pos, int b, int t, int i, int rows, int slots, int n_slots, int n) {
  int back = s->chunk - 1 - i, row = t - back, P = pos[(long)t * s->B + b] - back;
  if (row >= 0) return (place){ rows, ((long)row * s->B + b) * n };
  return (place){ slots, ((long)b * n_slots + P % n_slots) * n };
}

static place token_p(const mn_call *c, const mn_longshort *s, int b, int t, int i) {
  return token(s, c->in[EP_POS].i32, b, t, i, LS_P, LS_MP, s->chunk, s->H * s->R);
}
static place token_kv(const mn_call *c, const mn_longshort *s, int b, int t, int i, int kv) {
  return token(s, c->in[EP_POS].i32, b, t, i, EP_K + kv, LS_MK + kv, s->S, s->E);
}

static bool ends(const mn_call *c, const mn_longshort *s, int t, int b) {
  int P = c->in[EP_POS].i32[(long)t * s->B + b];
  return P >= 0 && P % s->chunk == s->chunk - 1;
}

static float *chunk_row(const mn_longshort *s, float *chunks, int b, int kv, int t, int r) {
  return chunks + (((long)b * 2 + kv) * s->C + t / s->chunk * s->R + r) * s->E;
}

/* w[i][h*R + r]: softmax over the tokens i of the chunk that ends in row t. */
static void weights(const mn_call *c, const mn_longshort *s, int b, int t, float *w) {
  int n = s->H * s->R;
  for (int i = 0; i < s->chunk; i++) {
    place p = token_p(c, s, b, t, i);
    memcpy(w + (long)i * n, c->in[p.input].data + p.at, sizeof(float) * (size_t)n);
  }
  for (int j = 0; j < n; j++) {
    float top = w[j], sum = 0;
    for (int i = 1; i < s->chunk; i++) top = mn_at_least(w[(long)i * n + j], top);
    for (int i = 0; i < s->chunk; i++) sum += w[(long)i * n + j] = mn_expf(w[(long)i * n + j] - top);
    for (int i = 0; i < s->chunk; i++) w[(long)i * n + j] /= sum;
  }
}

/* x[r][h,d] = sum over tokens of w k, or of w v. */
static void compress(const mn_call *c, const mn_longshort *s, int b, int t, int kv, const float *w, float *x) {
  memset(x, 0, sizeof(float) * (size_t)(s->R * s->E));
  for (int i = 0; i < s->chunk; i++) {
    place p = token_kv(c, s, b, t, i, kv);
    const float *k = c->in[p.input].data + p.at, *wi = w + (long)i * s->H * s->R;
    for (int r = 0; r < s->R; r++)
      for (int h = 0; h < s->H; h++)
        for (int d = 0; d < s->D; d++)
          x[(long)r * s->E + h * s->D + d] += wi[h * s->R + r] * k[h * s->D + d];
  }
}

static long chunk_work(const mn_longshort *s) { return 2 * (long)s->chunk * s->H * s->R + 2 * (long)s->R * s->E; }

static void chunks_of_row(const mn_call *c, const mn_longshort *s, int b, float *work) {
  float *w = work, *x = w + (long)s->chunk * s->H * s->R, stats[2];
  const float *weight = c->in[LS_WEIGHT].data, *bias = c->in[LS_BIAS].data;
  if (c->t0 == 0) memset(c->out[CHUNKS].data + (long)b * 2 * s->C * s->E, 0, sizeof(float) * 2 * (size_t)s->C * (size_t)s->E);
  for (int t = c->t0; t < c->t1; t++) {
    if (!ends(c, s, t, b)) continue;
    weights(c, s, b, t, w);
    for (int kv = 0; kv < 2; kv++) {
      compress(c, s, b, t, kv, w, x);
      for (int r = 0; r < s->R; r++) {
        float *y = chunk_row(s, c->out[CHUNKS].data, b, kv, t, r);
        mn_norm_row(x + (long)r * s->E, weight, bias, s->eps, s->E, y, stats);
      }
    }
  }
}

/* From the gradient of a normalised row to that of x, in place; adds those of weight and bias. */
static void norm_back(const mn_longshort *s, const float *weight, const float *x, float *g, float *dweight, float *dbias) {
  float stats[2];
  mn_norm_stats(x, s->eps, s->E, stats);
  mn_norm_row_params(x, stats, s->E, g, dweight, dbias);
  mn_norm_row_back(x, weight, stats, s->E, g, g, false);
}

/* From dx [R,E] to the gradients of the tokens (added) and of w (added). */
static void compress_back(const mn_call *c, const mn_longshort *s, int b, int t, int kv, const float *w, const float *dx, float *dw) {
  for (int i = 0; i < s->chunk; i++) {
    place p = token_kv(c, s, b, t, i, kv);
    const float *k = c->in[p.input].data + p.at, *wi = w + (long)i * s->H * s->R;
    float *dk = c->in[p.input].grad, *dwi = dw + (long)i * s->H * s->R;
    for (int r = 0; r < s->R; r++)
      for (int h = 0; h < s->H; h++) {
        const float *g = dx + (long)r * s->E + h * s->D;
        float dot = 0;
        for (int d = 0; d < s->D; d++) {
          dot += g[d] * k[h * s->D + d];
          if (dk) dk[p.at + h * s->D + d] += wi[h * s->R + r] * g[d];
        }
        dwi[h * s->R + r] += dot;
      }
  }
}

static void softmax_back(const mn_call *c, const mn_longshort *s, int b, int t, const float *w, const float *dw) {
  int n = s->H * s->R;
  for (int j = 0; j < n; j++) {
    float dot = 0;
    for (int i = 0; i < s->chunk; i++) dot += w[(long)i * n + j] * dw[(long)i * n + j];
    for (int i = 0; i < s->chunk; i++) {
      place p = token_p(c, s, b, t, i);
      float *dp = c->in[p.input].grad;
      if (dp) dp[p.at + j] += w[(long)i * n + j] * (dw[(long)i * n + j] - dot);
    }
  }
}

/* dnorm: the gradients of weight and bias by this environment. */
static void chunks_back(const mn_call *c, const mn_longshort *s, int b, float *work, float *dnorm) {
  float *w = work, *dw = w + (long)s->chunk * s->H * s->R, *x = dw + (long)s->chunk * s->H * s->R, *dx = x + (long)s->R * s->E;
  memset(dnorm, 0, sizeof(float) * 2 * (size_t)s->E);
  for (int t = 0; t < s->T; t++) {
    if (!ends(c, s, t, b)) continue;
    weights(c, s, b, t, w);
    memset(dw, 0, sizeof(float) * (size_t)(s->chunk * s->H * s->R));
    for (int kv = 0; kv < 2; kv++) {
      compress(c, s, b, t, kv, w, x);
      memcpy(dx, chunk_row(s, s->dchunks, b, kv, t, 0), sizeof(float) * (size_t)(s->R * s->E));
      for (int r = 0; r < s->R; r++)
        norm_back(s, c->in[LS_WEIGHT].data, x + (long)r * s->E, dx + (long)r * s->E, dnorm, dnorm + s->E);
      compress_back(c, s, b, t, kv, w, dx, dw);
    }
    softmax_back(c, s, b, t, w, dw);
  }
}

static void forward(mn_call *c) {
  mn_longshort s = setting_of(c);
  mn_episode e = mn_longshort_episode(c, &s);
  float *work = mn_scratch(c->ctx, 1, s.B * chunk_work(&s));
  MN_FOR(c->ctx, (double)(c->t1 - c->t0) * s.B * s.E * s.R, b, 0, s.B, 1, chunks_of_row(c, &s, (int)b, work + b * chunk_work(&s)));
  mn_episode_forward(&e);
}

static void backward(mn_call *c) {
  mn_longshort s = setting_of(c);
  long n = c->out[CHUNKS].n, part = chunk_work(&s);
  float *work = mn_scratch(c->ctx, 1, s.B * (part + 2 * s.E)), *dnorm = work + s.B * part;
  const float *dchunks = c->out[CHUNKS].grad;
  s.dchunks = mn_scratch(c->ctx, 2, n);
  if (c->out[0].grad) {
    mn_episode e = mn_longshort_episode(c, &s);
    mn_episode_backward(&e);
  } else {                     /* only the chunks led to the loss */
    memset(s.dchunks, 0, sizeof(float) * (size_t)n);
    for (int i = 0; i <= LS_SHORT; i++)
      if (c->in[i].grad) memset(c->in[i].grad, 0, sizeof(float) * (size_t)c->in[i].n);
  }
  for (long i = 0; dchunks && i < n; i++) s.dchunks[i] += dchunks[i];
  for (int i = LS_P; i <= LS_MP; i += LS_MP - LS_P)
    if (c->in[i].grad) memset(c->in[i].grad, 0, sizeof(float) * (size_t)c->in[i].n);
  MN_FOR(c->ctx, 3.0 * s.T * s.B * s.E * s.R, b, 0, s.B, 1, chunks_back(c, &s, (int)b, work + b * part, dnorm + b * 2 * s.E));
  for (int i = 0; i < 2; i++) {
    float *to = c->in[LS_WEIGHT + i].grad;
    if (to) memset(to, 0, sizeof(float) * (size_t)s.E);
    for (long b = 0; to && b < s.B; b++)
      for (int e = 0; e < s.E; e++) to[e] += dnorm[(2 * b + i) * s.E + e];
  }
}

const mn_op mn_op_longshort_attention = {
  .sig = LONGSHORT_INPUTS " -> y[T,B,H,D] chunks[B,2,?,H,D]" LONGSHORT_OPTIONS,
  .doc = "softmax(q.k / sqrt(D)) v over a window and compressed chunks of the episode (Transformer-LS: Zhu et al. 2021). Over the `window` tokens up "
      "to and including one's own and the last W/R full chunks of J tokens before it (see position, kv_slots, kv_chunk_slots); each chunk is compressed to "
      "R keys and values by a softmax of p over the chunk and layer norm over H x D; chunks: those filled in these rows",
  .time = MN_SCAN, .shape = shape, .forward = forward, .backward = backward,
};
