/* causal_attention_backward.c -- gradients of attention, 32 rows at a time.  The weights are recomputed from the scores,
** and from each row's largest score and inverse sum, which forward saved.  With D of a row the sum of
** weight (dy . v)
**   dscore = weight (dy . v - D)     dv += weights^T dy     dk += dscore^T q     dq = dscore k
** (Dao et al. 2022, FlashAttention, algorithm 4, where D is dy . y: but y would have to come from far memory).  Heads are
** independent but for r, u and w, which all environments share: their gradients are summed over a fixed number of groups
** of environments, so that the bits do not depend on threads. */
#include <omp.h>
#include <string.h>
#include "numerics/simd.h"
#include "causal_attention_blocks.h"

enum { GROUPS = 8 };             /* of environments, at most */

typedef struct gradients {       /* work space of one head's backward pass */
  mn_sm_work w;
  float *dk, *dv;                /* [keys,size rounded up to 32], summed over blocks */
  float *dy, *dscore;            /* [32,V], [32,keys] */
  float *q, *qw, *g;             /* w.q, w.qw and dy in panels, as mn_sm_along makes them */
  float *dq, *dqw;               /* [32,K rounded up to 32] */
} gradients;

typedef struct shared {          /* of a group of environments and a head: sums over them */
  float *dr;                     /* [E,K rounded up to 32], by columns of positions */
  float *du, *dw;                /* [K] */
} shared;

static gradients open_gradients(const mn_softmax *s, float *memory, long *used) {
  long np = mn_round32(s->E), Kp = mn_round32(s->K), Vp = mn_round32(s->V);
  gradients g = { .w = mn_sm_open(s, true, memory, used) };
  g.dk = mn_sm_cut(memory, used, np * Kp);
  g.dv = mn_sm_cut(memory, used, np * Vp);
  g.dy = mn_sm_cut(memory, used, SM_ROWS * s->V);
  g.dscore = mn_sm_cut(memory, used, (long)SM_ROWS * g.w.ld_score);
  g.q = mn_sm_cut(memory, used, SM_ROWS * Kp);
  g.qw = mn_sm_cut(memory, used, SM_ROWS * Kp);
  g.g = mn_sm_cut(memory, used, SM_ROWS * Vp);
  g.dq = mn_sm_cut(memory, used, SM_ROWS * Kp);
  g.dqw = mn_sm_cut(memory, used, SM_ROWS * Kp);
  return g;
}

/* out[columns, size] += of[n, columns]^T rows[n, size], the rows in panels.  The last n columns are the rows' own
** keys, which only later rows see. */
static void add_columns(const mn_softmax *s, const mn_sm_block *k, const float *of, int ld, int columns, const float *panels, int size, float *out) {
  int Sp = mn_round32(size), before = columns - k->n;
  mn_softmax_product(s, 0, before, Sp, k->n, of, ld, true, panels, out, Sp, true);
  for (int i = 0; i < k->n; i += SM_GROUP)
    for (int p = 0; p < Sp; p += MN_PANEL) {
      int end = before + (i + SM_GROUP < k->n ? i + SM_GROUP : k->n);
      mn_softmax_product(s, before + i, end, MN_PANEL, k->n - i, of + (long)i * ld, ld, true,
                         panels + p * mn_softmax_depth(s, k->n) + mn_softmax_depth(s, i) * MN_PANEL, out + p, Sp, true);
    }
}

/* Weights in place of a row's scores, and the gradient of the scores in place of that of the weights.  D is divided by
** the sum of the weights, which is 1 but for rounding: a row's gradients sum to zero, and biases of keys and positions,
** whose gradients are zero, would show what is left. */
static void undo_row(float *score, float *dscore, int from, int to, const float *stats) {
  int first = mn_sm_first(from), n = mn_sm_end(to) - first;
  float top = stats[0], by = stats[1], *x = score + first, *dx = dscore + first;
  mn_lanes D = { 0 }, one = { 0 };
  MN_PRAGMA(omp simd)
  for (int c = 0; c < n; c++) {
    x[c] = mn_sm_weight(x[c] - top) * by;
    dx[c] = x[c] > 0 ? x[c] * dx[c] : 0;
  }
  for (int c = 0; c < n; c += MN_LANES) D += mn_load(dx + c), one += mn_load(x + c);
  float mean = mn_sum(D) / mn_sum(one);
  for (int c = 0; c < n; c += MN_LANES) mn_store(dx + c, mn_load(dx + c) - mn_load(x + c) * mean);
  mn_sm_unseen(score, from, to);
  mn_sm_unseen(dscore, from, to);
}

/* The gradient of the scores is that of the positions, moved to their columns. */
static void place_rows(const mn_softmax *s, gradients *g, const mn_sm_block *k) {
  for (int i = 0; i < k->n; i++) {
    int shift = mn_sm_shift(s, &g->w, k, i), from = mn_sm_from(s, &g->w, k, i), to = mn_sm_to(s, &g->w, k, i);
    float *place = g->w.place + (long)i * g->w.ld_place;
    memset(place, 0, sizeof *place * (size_t)(from + shift));
    memcpy(place + from + shift, g->dscore + (long)i * g->w.ld_score + from, sizeof *place * (size_t)(to - from));
  }
}

/* sum[n] += x[n], and x = x * scale before. */
static void add_scaled(int n, float *x, float scale, float *sum) {
  for (int d = 0; d < n; d += MN_LANES) {
    mn_lanes now = mn_load(x + d) * scale;
    mn_store(x + d, now);
    mn_store(sum + d, mn_load(sum + d) + now);
  }
}

/* Gradients of q, u and w from those of the scaled queries. */
static void finish_queries(const mn_softmax *s, const gradients *g, const mn_sm_block *k, shared *sum) {
  int K = s->K, Kp = mn_round32(K);
  float *dq = s->c->in[SM_Q].grad;
  for (int i = 0; i < k->n; i++) {
    float *a = g->dq + (long)i * Kp, *b = g->w.place ? g->dqw + (long)i * Kp : NULL;
    add_scaled(Kp, a, s->scale, sum->du);
    if (b) add_scaled(Kp, b, s->scale, sum->dw);
    float *to = dq ? dq + mn_softmax_at(s, k->t + i, k->b, k->h, K) : NULL;
    for (int d = 0; to && d < K; d += MN_LANES) mn_store_n(to + d, b ? mn_load(a + d) + mn_load(b + d) : mn_load(a + d), K - d);
  }
}

static void block_back(const mn_softmax *s, gradients *g, const mn_sm_block *k, const float *places, shared *sum) {
  const mn_call *c = s->c;
  mn_sm_work *w = &g->w;
  int Kp = mn_round32(s->K), Vp = mn_round32(s->V);
  mn_sm_fetch(s, k, c->out[SM_Y].grad, s->V);
  mn_sm_fetch(s, k, c->in[SM_Q].grad, s->K);
  mn_sm_fetch(s, k, c->in[SM_K].grad, s->K);
  mn_sm_fetch(s, k, c->in[SM_V].grad, s->V);
  mn_sm_score(s, w, k);
  for (int i = 0; i < k->n; i++)
    memcpy(g->dy + (long)i * s->V, c->out[SM_Y].grad + mn_softmax_at(s, k->t + i, k->b, k->h, s->V), sizeof(float) * (size_t)s->V);
  mn_sm_scores(s, w, k, &w->v, s->V, g->dy, g->dscore);
  for (int i = 0; i < k->n; i++)
    undo_row(w->score + (long)i * w->ld_score, g->dscore + (long)i * w->ld_score, mn_sm_from(s, w, k, i), mn_sm_to(s, w, k, i),
             c->out[SM_STATS].data + mn_softmax_at(s, k->t + i, k->b, k->h, 2));
  mn_sm_panels(s, g->dy, s->V, k->n, s->V, g->g);
  mn_sm_panels(s, w->q, s->K, k->n, s->K, g->q);
  add_columns(s, k, w->score, w->ld_score, k->width, g->g, s->V, g->dv + (long)k->c0 * Vp);
  add_columns(s, k, g->dscore, w->ld_score, k->width, g->q, s->K, g->dk + (long)k->c0 * Kp);
  mn_sm_mix(s, w, k, s->K, g->dscore, w->ld_score, w->k.along + mn_softmax_depth(s, k->c0) * MN_PANEL, w->k.np, false, g->dq);
  if (w->place) {
    place_rows(s, g, k);
    mn_sm_panels(s, w->qw, s->K, k->n, s->K, g->qw);
    mn_softmax_product(s, 0, s->E - k->e0, Kp, k->n, w->place, w->ld_place, true, g->qw, sum->dr + (long)k->e0 * Kp, Kp, true);
    mn_sm_mix(s, w, k, s->K, w->place, w->ld_place, places + mn_softmax_depth(s, k->e0) * MN_PANEL, s->E, true, g->dqw);
  }
  finish_queries(s, g, k, sum);
}

/* Sums over blocks, [keys, size rounded up], to the gradients of the inputs that held them. */
static void scatter(const mn_softmax *s, const float *from, int base, int b, int h, int size, float *carried, float *rows) {
  int Sp = mn_round32(size);
  for (int j = carried ? 0 : s->M; j < s->E; j++) {
    float *to = j < s->M ? carried + mn_softmax_at(s, j, b, h, size) : rows ? rows + mn_softmax_at(s, j - s->M, b, h, size) : NULL;
    if (to && j >= base) memcpy(to, from + (long)(j - base) * Sp, sizeof *to * (size_t)size);
    else if (to) memset(to, 0, sizeof *to * (size_t)size);
  }
}

static void head_back(const mn_softmax *s, gradients *g, int b, int h, const float *places, shared *sum) {
  const mn_call *c = s->c;
  mn_sm_pack(s, &g->w, b, h);
  memset(g->dk, 0, sizeof(float) * (size_t)g->w.k.n * (size_t)mn_round32(s->K));
  memset(g->dv, 0, sizeof(float) * (size_t)g->w.v.n * (size_t)mn_round32(s->V));
  for (int t = 0; t < s->T; ) {
    mn_sm_block k = mn_sm_next(s, &g->w, b, h, t);
    block_back(s, g, &k, places, sum);
    t += k.n;
  }
  scatter(s, g->dk, g->w.k.base, b, h, s->K, c->in[SM_MK].grad, c->in[SM_K].grad);
  scatter(s, g->dv, g->w.v.base, b, h, s->V, c->in[SM_MV].grad, c->in[SM_V].grad);
}

/* ---- what all environments share ---- */

/* Head h's positions below each other in panels, in the order of their columns. */
static void pack_places(const mn_softmax *s, int h, float *panels) {
  mn_sm_panels(s, s->c->in[SM_R].data + ((long)(s->E - 1) * s->H + h) * s->K, -s->H * s->K, s->E, s->K, panels);
}

static shared part(const mn_softmax *s, float *parts, int i) {
  long Kp = mn_round32(s->K), rows = s->c->in[SM_R].data ? s->E : 0;
  float *at = parts + i * (rows + 2) * Kp;
  return (shared){ at + 2 * Kp, at, at + Kp };
}

/* Sums over the groups, in order. */
static void add_parts(const mn_softmax *s, float *parts, int groups) {
  const mn_call *c = s->c;
  float *du = c->in[SM_U].grad, *dw = c->in[SM_W].grad, *dr = c->in[SM_R].grad;
  long Kp = mn_round32(s->K), HK = (long)s->H * s->K;
  for (int h = 0; h < s->H; h++)
    for (int d = 0; d < s->K; d++) {
      float u = 0, w = 0;
      for (int g = 0; g < groups; g++) u += part(s, parts, g * s->H + h).du[d], w += part(s, parts, g * s->H + h).dw[d];
      if (du) du[(long)h * s->K + d] = u;
      if (dw) dw[(long)h * s->K + d] = w;
    }
  for (int e = 0; dr && e < s->E; e++)
    for (int h = 0; h < s->H; h++) {
      float *to = dr + (s->E - 1 - e) * HK + (long)h * s->K;
      memset(to, 0, sizeof *to * (size_t)s->K);
      for (int g = 0; g < groups; g++) {
        const float *from = part(s, parts, g * s->H + h).dr + e * Kp;
        for (int d = 0; d < s->K; d++) to[d] += from[d];
      }
    }
}

void mn_softmax_backward(const mn_softmax *s) {
  const mn_call *c = s->c;
  int groups = s->B < GROUPS ? s->B : GROUPS, Kp = mn_round32(s->K);
  bool xl = c->in[SM_R].data != NULL;
  long size = 0, place = xl ? (long)Kp * s->E : 0, one = ((xl ? s->E : 0) + 2L) * Kp, n = (long)groups * s->H;
  open_gradients(s, NULL, &size);
  float *memory = mn_scratch(c->ctx, 0, size * mn_threads(c->ctx));
  float *parts = mn_scratch(c->ctx, 1, one * n), *places = mn_scratch(c->ctx, 2, place * s->H + 1);
  memset(parts, 0, sizeof(float) * (size_t)(one * n));
  for (int h = 0; xl && h < s->H; h++) pack_places(s, h, places + h * place);
  double work = (double)s->B * s->H * s->T * s->E * s->K;
  MN_PARALLEL(c->ctx, work)
  for (int i = 0; i < n; i++) {
    long used = 0;
    gradients g = open_gradients(s, memory + omp_get_thread_num() * size, &used);
    shared sum = part(s, parts, i);
    int group = i / s->H, h = i % s->H;
    for (int b = group * s->B / groups; b < (group + 1) * s->B / groups; b++) head_back(s, &g, b, h, places + h * place, &sum);
  }
  add_parts(s, parts, groups);
}
