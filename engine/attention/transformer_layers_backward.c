/* transformer_layers_backward.c -- backward: see transformer_layers.h. */
#include <string.h>
#include "transformer_layers.h"
#include "numerics/activation.h"
#include "numerics/gates.h"
#include "numerics/norm.h"
#include "numerics/simd.h"

typedef struct work { float *d_o, *dn, *da, *dqkv, *dhidden, *dp, *drx; } work;   /* gradients, [rows, ...] each */

/* Back through y = x w^T: dx is stored; that of w, at `at` in g, is added to. */
static void dense_back(const mn_layers *m, int rows, int I, int O, const float *x, const float *w, const float *dz, float *dx,
                       float *g, long at) {
  mn_gemm(m->ctx, false, false, rows, I, O, dz, O, w, I, dx, I, false);
  if (g) mn_gemm(m->ctx, true, false, O, I, rows, dz, O, x, I, g + at, I, true);
}

static void bias_back(int rows, int O, int from, int to, const float *dz, float *g, long at) {
  if (g) mn_column_sums(dz, rows, O, from, to, g + at, true);
}

static void norm_back(const mn_layers *m, int rows, const float *x, const float *w, const float *stats, const float *dy,
                      float *dx, bool add, float *g) {
  int D = m->D;
  for (long r = 0; r < rows && g; r++) mn_norm_row_params(x + r * D, stats + 2 * r, D, dy + r * D, g, g + D);
  MN_FOR(m->ctx, (long)rows * D, r, 0, rows, 1, mn_norm_row_back(x + r * D, w, stats + 2 * r, D, dy + r * D, dx + r * D, add));
}

/* The gate: dx holds the gradient of its output, and afterwards of its input x; d_o is stored. */
static void gate_back(const mn_layers *m, int rows, const mn_half *h, const float *w, float *dx, const work *k, float *g) {
  int D = m->D;
  mn_ctx *mn = m->ctx;
  const float *u = w + 3L * D * D, *ug = u + 2L * D * D;
  mn_gate_undo_mix(h->x, h->pre, dx, k->dp, dx, rows, D);
  mn_gemm(mn, false, false, rows, D, D, k->dp + 2 * D, 3 * D, ug, D, k->drx, D, false);
  mn_gate_undo_open(h->x, h->pre, k->drx, k->dp, dx, rows, D);
  mn_gemm(mn, false, false, rows, D, 2 * D, k->dp, 3 * D, u, D, dx, D, true);
  mn_gemm(mn, false, false, rows, D, 3 * D, k->dp, 3 * D, w, D, k->d_o, D, false);
  if (!g) return;
  float *du = g + 3L * D * D, *dbias = du + 3L * D * D;
  mn_gemm(mn, true, false, 3 * D, D, rows, k->dp, 3 * D, h->o, D, g, D, true);
  mn_gemm(mn, true, false, 2 * D, D, rows, k->dp, 3 * D, h->x, D, du, D, true);
  mn_gemm(mn, true, false, D, D, rows, k->dp + 2 * D, 3 * D, h->rx, D, du + 2L * D * D, D, true);
  for (long r = 0; r < rows; r++) for (int d = 0; d < D; d++) dbias[d] -= k->dp[r * 3 * D + D + d];
}

/* ---- attention ---- */

/* One head of one environment's rows: dq is stored; the gradients of keys and values are added to dkv.  s: 2*slots numbers. */
static void attend_back(const mn_layers *m, const mn_rows *p, int head, const float *qkv, const float *kv, const float *dy,
                        float *s, float *dqkv, float *dkv) {
  int A = m->A, dh = A / m->H, at = head * dh;
  float scale = 1 / __builtin_sqrtf((float)dh), *ds = s + m->slots;
  const float *k = kv + at, *v = k + A;
  for (int i = 0; i < p->n; i++) {
    int seen = mn_seen(m, p, p->slot + i);
    const float *q = qkv + (long)(p->row + i) * 3 * A + at, *g = dy + (long)(p->row + i) * A + at;
    float *dq = dqkv + (long)(p->row + i) * 3 * A + at, mean = 0;
    mn_layer_weights(dh, 2 * A, seen, q, k, s);
    for (int j = 0; j < seen; j++) ds[j] = mn_dot(dh, g, v + (long)j * 2 * A);
    for (int j = 0; j < seen; j++) mean += s[j] * ds[j];
    for (int j = 0; j < seen; j++) ds[j] = scale * s[j] * (ds[j] - mean);
    for (int d = 0; d < dh; d += MN_LANES) {
      mn_lanes sum = { 0 }, mine = mn_load_n(q + d, dh - d), came = mn_load_n(g + d, dh - d);
      for (int j = 0; j < seen; j++) {
        float *dk = dkv + (long)j * 2 * A + at + d, *dv = dk + A;
        sum += ds[j] * mn_load_n(k + (long)j * 2 * A + d, dh - d);
        mn_store_n(dk, mn_load_n(dk, dh - d) + ds[j] * mine, dh - d);
        mn_store_n(dv, mn_load_n(dv, dh - d) + s[j] * came, dh - d);
      }
      mn_store_n(dq + d, sum, dh - d);
    }
  }
}

/* Adds to db the gradients of all keys in dkv, times sign. */
static void key_sums(const mn_layers *m, int layer, const mn_rows *part, int parts, const float *dkv, float sign, float *db) {
  for (int i = 0; i < parts; i++) {
    const float *dk = dkv + mn_kv_at(m, layer, part[i].b);
    for (int slot = 0; slot < m->slots; slot++, dk += 2 * m->A) for (int d = 0; d < m->A; d++) db[d] += sign * dk[d];
  }
}

/* dbias: of the keys' bias.  What attention itself gives to a row's keys sums to 0, as softmax does not see what moves
** all scores alike; so the bias gets what came from elsewhere, less what goes to keys of other rows: no rounding. */
static void attention_back(const mn_layers *m, int layer, const mn_rows *part, int parts, const mn_acts *a, const float *kv,
                           const work *w, float *dkv, float *dbias) {
  int A = m->A, rows = 0;
  if (dbias) key_sums(m, layer, part, parts, dkv, 1, dbias);
  float *s = mn_scratch(m->ctx, 2, 2L * parts * m->H * m->slots);
  for (int i = 0; i < parts; i++) rows += part[i].n;
  MN_FOR(m->ctx, 3L * rows * m->slots * A, i, 0, parts * m->H, 1,
         attend_back(m, &part[i / m->H], (int)(i % m->H), a->qkv, kv + mn_kv_at(m, layer, part[i / m->H].b), w->da,
                     s + 2 * i * m->slots, w->dqkv, dkv + mn_kv_at(m, layer, part[i / m->H].b)));
  for (int i = 0; i < parts; i++)                 /* the rows' own keys and values */
    for (int r = 0; r < part[i].n; r++) {
      float *from = dkv + mn_kv_at(m, layer, part[i].b) + (long)(part[i].slot + r) * 2 * A;
      memcpy(w->dqkv + (long)(part[i].row + r) * 3 * A + A, from, (size_t)(2 * A) * sizeof *from);
      memset(from, 0, (size_t)(2 * A) * sizeof *from);
    }
  if (dbias) key_sums(m, layer, part, parts, dkv, -1, dbias);
}

/* ---- the stack ---- */

/* From the gradient of a half's output, in dx, to that of what is joined, in d_o; dx keeps the direct part. */
static void join_back(const mn_layers *m, int rows, int half, const mn_half *h, const float *w, const mn_layer_place *at,
                      float *dx, const work *k, float *g) {
  long n = (long)rows * m->D;
  if (m->flow == MN_GTRXL) gate_back(m, rows, h, w + at->gate[half], dx, k, g ? g + at->gate[half] : NULL);
  else {
    if (m->flow == MN_POSTNORM)
      norm_back(m, rows, h->n, w + at->norm[half], h->stats, dx, dx, false, g ? g + at->norm[half] : NULL);
    memcpy(k->d_o, dx, (size_t)n * sizeof *dx);
  }
  if (m->flow != MN_POSTNORM) mn_undo(h->o, k->d_o, k->d_o, n, MN_RELU);
}

/* The gradient of a half's function, in dn, on to its input. */
static void input_back(const mn_layers *m, int rows, int half, const mn_half *h, const float *w, const mn_layer_place *at,
                       float *dx, const work *k, float *g) {
  if (m->flow != MN_POSTNORM)
    norm_back(m, rows, h->x, w + at->norm[half], h->stats, k->dn, dx, true, g ? g + at->norm[half] : NULL);
  else for (long i = 0; i < (long)rows * m->D; i++) dx[i] += k->dn[i];
}

void mn_layers_backward(const mn_layers *m, int rows, const mn_rows *part, int parts, const float *kv, float *dkv,
                        float *acts, float *dx, float *dparams) {
  mn_layer_place at = mn_layer_places(m);
  int D = m->D, A = m->A, F = m->F;
  long n = (long)rows * D;
  float *room = mn_scratch(m->ctx, 1, rows * (6L * D + 4L * A + F));
  work k = { .d_o = room, .dn = room + n, .dp = room + 2 * n, .drx = room + 5 * n, .da = room + 6 * n };
  k.dqkv = k.da + (long)rows * A;
  k.dhidden = k.dqkv + 3L * rows * A;
  for (int l = m->L - 1; l >= 0; l--) {
    mn_acts a = mn_acts_of(m, acts, rows, l);
    const mn_half *h = a.half;
    const float *w = m->params + l * at.end;
    float *g = dparams ? dparams + l * at.end : NULL;
    join_back(m, rows, 1, &h[1], w, &at, dx, &k, g);
    dense_back(m, rows, F, D, a.hidden, w + at.ffn1, k.d_o, k.dhidden, g, at.ffn1);
    bias_back(rows, D, 0, D, k.d_o, g, at.ffn1_bias);
    mn_undo(a.hidden, k.dhidden, k.dhidden, (long)rows * F, MN_RELU);
    dense_back(m, rows, D, F, m->flow == MN_POSTNORM ? h[1].x : h[1].n, w + at.ffn0, k.dhidden, k.dn, g, at.ffn0);
    bias_back(rows, F, 0, F, k.dhidden, g, at.ffn0_bias);
    input_back(m, rows, 1, &h[1], w, &at, dx, &k, g);
    join_back(m, rows, 0, &h[0], w, &at, dx, &k, g);
    dense_back(m, rows, A, D, a.a, w + at.out, k.d_o, k.da, g, at.out);
    bias_back(rows, D, 0, D, k.d_o, g, at.out_bias);
    attention_back(m, l, part, parts, &a, kv, &k, dkv, g ? g + at.qkv_bias + A : NULL);
    dense_back(m, rows, D, 3 * A, m->flow == MN_POSTNORM ? h[0].x : h[0].n, w + at.qkv, k.dqkv, k.dn, g, at.qkv);
    bias_back(rows, 3 * A, 0, A, k.dqkv, g, at.qkv_bias);
    bias_back(rows, 3 * A, 2 * A, 3 * A, k.dqkv, g, at.qkv_bias);
    input_back(m, rows, 0, &h[0], w, &at, dx, &k, g);
  }
}
