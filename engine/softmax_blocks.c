/* softmax_blocks.c -- attention for 32 rows at a time: matrix products against packed keys, and between them one
** pass over the scores.  What no row of a block sees is not computed. */
#include <math.h>
#include <omp.h>
#include <string.h>
#include "maths.h"
#include "simd.h"
#include "softmax_blocks.h"

/* Columns of a block at most, and of what its products write. */
static int most_columns(const mn_softmax *s) {
  int all = mn_round32(s->E), seen = s->window < s->E ? mn_round32(s->window + SM_ROWS + 1) : all;
  return (seen < all ? seen : all) + MN_PANEL;
}

mn_sm_work mn_sm_open(const mn_softmax *s, bool back, float *memory, long *used) {
  int np = mn_round32(s->E), Kp = mn_round32(s->K), Vp = mn_round32(s->V);
  mn_sm_work w = { .ld_score = most_columns(s) + 16, .ld_place = most_columns(s) + SM_ROWS + 16 };
  w.k.across = mn_sm_cut(memory, used, (long)np * s->K);
  if (back) w.k.along = mn_sm_cut(memory, used, (long)np * Kp), w.v.across = mn_sm_cut(memory, used, (long)np * s->V);
  else w.v.along = mn_sm_cut(memory, used, (long)np * Vp);
  w.q = mn_sm_cut(memory, used, (long)SM_ROWS * s->K);
  w.score = mn_sm_cut(memory, used, (long)SM_ROWS * w.ld_score);
  w.zero = mn_sm_cut(memory, used, s->K > s->V ? s->K : s->V);
  if (w.zero) memset(w.zero, 0, sizeof(float) * (size_t)(s->K > s->V ? s->K : s->V));
  if (!s->c->in[SM_R].data) return w;
  w.qw = mn_sm_cut(memory, used, (long)SM_ROWS * s->K);
  w.place = mn_sm_cut(memory, used, (long)SM_ROWS * w.ld_place);
  return w;
}

/* ---- packing ---- */

/* 32 rows of `size` numbers become columns; past `count`, zeros. */
static void pack_across(const float *const *row, int count, int size, float *panel) {
  for (int d0 = 0; d0 < size; d0 += 16)
    for (int i = 0; i < MN_PANEL; i++)
      for (int d = d0; d < size && d < d0 + 16; d++) panel[(long)d * MN_PANEL + i] = i < count ? row[i][d] : 0;
}

void mn_sm_along(const float *const *row, int count, int size, long depth, long at, float *panels) {
  for (int p = 0; p < mn_panels(size); p++) {
    int n = size - p * MN_PANEL < MN_PANEL ? size - p * MN_PANEL : MN_PANEL;
    for (int i = 0; i < count; i++) {
      float *to = panels + (p * depth + at + i) * MN_PANEL;
      if (n < MN_PANEL) memset(to, 0, sizeof(float) * MN_PANEL);
      memcpy(to, row[i] + p * MN_PANEL, sizeof(float) * (size_t)n);
    }
  }
}

static void pack(const mn_softmax *s, mn_sm_keys *keys, const float *zero, int b, int h, int carried, int rows, int size) {
  bool holes = mn_softmax_holes(s, b);
  for (int c = 0; c < keys->n; c += MN_PANEL) {
    const float *row[MN_PANEL];
    int count = keys->n - c < MN_PANEL ? keys->n - c : MN_PANEL;
    for (int i = 0; i < count; i++) {
      int j = keys->base + c + i;
      row[i] = holes && j < s->M && mn_softmax_blocked(s, j, b) ? zero : mn_softmax_key(s, carried, rows, j, b, h, size);
    }
    if (keys->across) pack_across(row, count, size, keys->across + (long)c * size);
    if (keys->along) mn_sm_along(row, count, size, keys->np, c, keys->along);
  }
}

void mn_sm_pack(const mn_softmax *s, mn_sm_work *w, int b, int h) {
  const mn_call *c = s->c;
  w->k.base = w->v.base = mn_softmax_low(s, c->t0, b);
  w->k.n = w->v.n = s->M + c->t1 - w->k.base;
  w->k.np = w->v.np = mn_round32(w->k.n);
  pack(s, &w->k, w->zero, b, h, SM_MK, SM_K, s->K);
  pack(s, &w->v, w->zero, b, h, SM_MV, SM_V, s->V);
}

/* ---- blocks ---- */

mn_sm_block mn_sm_next(const mn_softmax *s, const mn_sm_work *w, int b, int h, int t) {
  mn_sm_block k = { .b = b, .h = h, .t = t, .n = 1, .low = mn_softmax_low(s, t, b) };
  while (k.n < SM_ROWS && t + k.n < s->c->t1 && mn_softmax_start(s, t + k.n, b) == mn_softmax_start(s, t, b)) k.n++;
  k.c0 = (k.low - w->k.base) / MN_PANEL * MN_PANEL;
  k.width = s->M + t + k.n - w->k.base - k.c0;
  k.e0 = (s->T - t - k.n + k.low) / MN_PANEL * MN_PANEL;
  return k;
}

/* The group of rows in which the first that reaches a column is. */
static int first_group(int row) { return row < 0 ? 0 : row / SM_GROUP * SM_GROUP; }

void mn_sm_scores(const mn_softmax *s, const mn_sm_work *w, const mn_sm_block *k, const mn_sm_keys *keys, int size,
                  const float *rows, float *out) {
  int own = s->M + k->t - keys->base - k->c0;            /* the column of the first row's own key */
  for (int c = 0; c < k->width; c += MN_PANEL)
    mn_panels_rows(first_group(c - own), k->n, MN_PANEL, size, rows, size, false, keys->across + (long)(k->c0 + c) * size,
                   out + c, w->ld_score, false);
}

/* Scores of positions: columns are aligned at their end, distance 0. */
static void score_places(const mn_softmax *s, const mn_sm_work *w, const mn_sm_block *k) {
  const float *panels = s->c->out[SM_PACKED].data + (long)k->h * mn_panels(s->E) * s->K * MN_PANEL;
  int first = s->T - 1 - k->t + k->low;                  /* the first column that row 0 needs; row 1: one before */
  for (int e = k->e0; e < s->E; e += MN_PANEL)
    mn_panels_rows(first_group(first - e - MN_PANEL + 1), k->n, MN_PANEL, s->K, w->qw, s->K, false, panels + (long)e * s->K,
                   w->place + e - k->e0, w->ld_place, false);
}

static void queries(const mn_softmax *s, const mn_sm_block *k, int with, float *out) {
  const float *add = s->c->in[with].data ? s->c->in[with].data + (long)k->h * s->K : NULL;
  for (int i = 0; i < k->n; i++, out += s->K) {
    const float *q = s->c->in[SM_Q].data + mn_softmax_at(s, k->t + i, k->b, k->h, s->K);
    for (int d = 0; d < s->K; d++) out[d] = (q[d] + (add ? add[d] : 0)) * s->scale;
  }
}

void mn_sm_score(const mn_softmax *s, mn_sm_work *w, const mn_sm_block *k) {
  queries(s, k, SM_U, w->q);
  mn_sm_scores(s, w, k, &w->k, s->K, w->q, w->score);
  if (w->place) {
    queries(s, k, SM_W, w->qw);
    score_places(s, w, k);
  }
  bool holes = k->low < s->M && mn_softmax_holes(s, k->b);
  for (int i = 0; i < k->n; i++) {
    int from = mn_sm_from(s, w, k, i), to = mn_sm_to(s, w, k, i), end = s->M - w->k.base - k->c0;
    float *score = w->score + (long)i * w->ld_score;
    const float *place = w->place ? w->place + (long)i * w->ld_place + mn_sm_shift(s, w, k, i) : NULL;
    if (place) for (int c = from; c < to; c++) score[c] += place[c];
    for (int c = from; c < to; c++) score[c] = mn_at_most(mn_at_least(score[c], -MN_SCORE_MOST), MN_SCORE_MOST);
    for (int c = from; holes && c < end; c++)
      if (mn_softmax_blocked(s, w->k.base + k->c0 + c, k->b)) score[c] = -INFINITY;
  }
}

void mn_sm_mix(const mn_softmax *s, const mn_sm_work *w, const mn_sm_block *k, int size, const float *rows, int ld,
               const float *panels, long depth, bool places, float *out) {
  int width = mn_round32(size);
  for (int i = 0; i < k->n; i += SM_GROUP) {
    int end = i + SM_GROUP < k->n ? i + SM_GROUP : k->n;
    int columns = places ? s->E - k->e0 : mn_sm_to(s, w, k, end - 1);
    for (int p = 0; p < width; p += MN_PANEL)
      mn_panels_rows(i, end, MN_PANEL, columns, rows, ld, false, panels + p * depth, out + p, width, false);
  }
}

/* ---- forward ---- */

/* Scores to weights, zeros where the group's product reads and a row does not see; returns what to divide by. */
static float weigh(float *score, int from, int to, int end, float *top) {
  float sum = 0, most = mn_vmax(score + from, to - from);
  memset(score, 0, sizeof *score * (size_t)from);
  MN_PRAGMA(omp simd reduction(+:sum))
  for (int c = from; c < to; c++) {
    score[c] = mn_expf(score[c] - most);
    sum += score[c];
  }
  if (end > to) memset(score + to, 0, sizeof *score * (size_t)(end - to));
  *top = most;
  return sum;
}

static void head(const mn_softmax *s, mn_sm_work *w, int b, int h, float *mixed) {
  const mn_call *c = s->c;
  int Vp = mn_round32(s->V);
  mn_sm_pack(s, w, b, h);
  for (int t = c->t0; t < c->t1; ) {
    mn_sm_block k = mn_sm_next(s, w, b, h, t);
    mn_sm_score(s, w, &k);
    for (int i = 0; i < k.n; i++) {
      int last = (i / SM_GROUP + 1) * SM_GROUP < k.n ? (i / SM_GROUP + 1) * SM_GROUP - 1 : k.n - 1;
      float *stats = c->out[SM_STATS].data + mn_softmax_at(s, t + i, b, h, 2);
      stats[1] = 1 / weigh(w->score + (long)i * w->ld_score, mn_sm_from(s, w, &k, i), mn_sm_to(s, w, &k, i),
                           mn_sm_to(s, w, &k, last), &stats[0]);
    }
    mn_sm_mix(s, w, &k, s->V, w->score, w->ld_score, w->v.along + (long)k.c0 * MN_PANEL, w->v.np, false, mixed);
    for (int i = 0; i < k.n; i++) {
      float *y = c->out[SM_Y].data + mn_softmax_at(s, t + i, b, h, s->V);
      float by = c->out[SM_STATS].data[mn_softmax_at(s, t + i, b, h, 2) + 1];
      for (int v = 0; v < s->V; v++) y[v] = mixed[(long)i * Vp + v] * by;
    }
    t += k.n;
  }
}

void mn_softmax_blocks(const mn_softmax *s) {
  const mn_call *c = s->c;
  long mixed = (long)SM_ROWS * mn_round32(s->V), size = mixed;
  mn_sm_open(s, false, NULL, &size);
  float *memory = mn_scratch(c->ctx, 0, size * mn_threads(c->ctx));
  double work = (double)s->B * s->H * (c->t1 - c->t0) * (s->M + c->t1) * s->K;
  MN_PARALLEL(c->ctx, work)
  for (int i = 0; i < s->B * s->H; i++) {
    float *mine = memory + omp_get_thread_num() * size;
    long used = mixed;
    mn_sm_work w = mn_sm_open(s, false, mine, &used);
    head(s, &w, i / s->H, i % s->H, mine);
  }
}
