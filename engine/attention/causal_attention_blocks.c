/* causal_attention_blocks.c -- attention for 32 rows at a time: matrix products with packed keys, and between them one
** pass over the scores.  Keys that no row of a block sees are skipped. */
#include <math.h>
#include <omp.h>
#include "numerics/tile_products.h"
#include "numerics/fast_math.h"
#include "numerics/simd.h"
#include "causal_attention_blocks.h"

/* Columns of a block at most, and of what its products write. */
static int most_columns(const mn_softmax *s) {
  int all = mn_round32(s->E), seen = s->window < s->E ? mn_round32(s->window + SM_ROWS + 1) : all;
  return (seen < all ? seen : all) + MN_PANEL;
}

mn_sm_work mn_sm_open(const mn_softmax *s, bool back, float *memory, long *used) {
  long np = mn_round32(s->E), Kp = mn_round32(s->K), Vp = mn_round32(s->V);
  mn_sm_work w = { .ld_score = most_columns(s) + 16, .ld_place = most_columns(s) + SM_ROWS + 16 };
  w.k.across = mn_sm_cut(memory, used, (np + MN_PANEL) * Kp);
  if (back) w.k.along = mn_sm_cut(memory, used, np * Kp), w.v.across = mn_sm_cut(memory, used, (np + MN_PANEL) * Vp);
  else w.v.along = mn_sm_cut(memory, used, np * Vp);
  w.q = mn_sm_cut(memory, used, (long)SM_ROWS * s->K);
  w.score = mn_sm_cut(memory, used, (long)SM_ROWS * w.ld_score);
  w.zero = mn_sm_cut(memory, used, s->K > s->V ? s->K : s->V);
  w.rows = mn_sm_cut(memory, used, MN_PANEL * (Kp > Vp ? Kp : Vp));
  if (w.zero) memset(w.zero, 0, sizeof(float) * (size_t)(s->K > s->V ? s->K : s->V));
  if (!s->c->in[SM_R].data) return w;
  w.qw = mn_sm_cut(memory, used, (long)SM_ROWS * s->K);
  w.place = mn_sm_cut(memory, used, (long)SM_ROWS * w.ld_place);
  return w;
}

/* ---- packing ---- */

void mn_sm_along(const float *const *row, int count, int size, long depth, long at, float *panels) {
  for (int p = 0; p < mn_panels(size); p++) {
    int n = size - p * MN_PANEL < MN_PANEL ? size - p * MN_PANEL : MN_PANEL;
    float *to = panels + (p * depth + at) * MN_PANEL;
    for (int i = 0; i < count; i++, to += MN_PANEL) {
      const float *from = row[i] + p * MN_PANEL;
      for (int j = 0; j < MN_PANEL; j += MN_LANES) mn_store(to + j, mn_load_n(from + j, n > j ? n - j : 0));
    }
  }
}

void mn_sm_panels(const mn_softmax *s, const float *rows, int ld, int n, int size, float *panels) {
  for (int p = 0; p < size; p += MN_PANEL)
    (s->bf16 ? s->bf16->pack : mn_pack_panel)(rows + p, ld, n, size - p < MN_PANEL ? size - p : MN_PANEL, false, panels + p * mn_softmax_depth(s, n));
}

/* 32 keys in panels of pairs. */
static void pack_pairs(const mn_softmax *s, mn_sm_keys *keys, float *rows, const float *const *row, int c, int size) {
  const int Sp = mn_round32(size);
  for (int i = 0; i < MN_PANEL; i++) memcpy(rows + (long)i * Sp, row[i], sizeof *rows * (size_t)size);
  if (keys->across) s->bf16->pack(rows, Sp, size, MN_PANEL, true, keys->across + c * mn_bf16_depth(size));
  for (int p = 0; keys->along && p < size; p += MN_PANEL)
    s->bf16->pack(rows + p, Sp, MN_PANEL, size - p < MN_PANEL ? size - p : MN_PANEL, false,
                  keys->along + (p * mn_bf16_depth(keys->np) + mn_bf16_depth(c) * MN_PANEL));
}

static void pack(const mn_softmax *s, mn_sm_keys *keys, const mn_sm_work *w, int b, int h, int carried, int rows, int size) {
  bool holes = mn_softmax_holes(s, b);
  int Sp = mn_round32(size);
  for (int c = 0; c < keys->np; c += MN_PANEL) {
    const float *row[MN_PANEL];
    for (int i = 0; i < MN_PANEL; i++) {
      int j = keys->base + c + i;
      bool none = c + i >= keys->n || (holes && j < s->M && mn_softmax_blocked(s, j, b));
      row[i] = none ? w->zero : mn_softmax_key(s, carried, rows, j, b, h, size);
    }
    if (s->bf16) {
      pack_pairs(s, keys, w->rows, row, c, size);
      continue;
    }
    float *along = keys->along ? keys->along + (long)c * MN_PANEL : keys->across + (long)keys->np * Sp;
    long depth = keys->along ? keys->np : MN_PANEL;
    mn_sm_along(row, MN_PANEL, size, depth, 0, along);
    for (int p = 0; keys->across && p < Sp; p += MN_PANEL)
      mn_tile_transpose(MN_PANEL, MN_PANEL, along + p * depth, MN_PANEL, keys->across + (long)c * Sp + p * MN_PANEL, MN_PANEL);
  }
}

void mn_sm_pack(const mn_softmax *s, mn_sm_work *w, int b, int h) {
  const mn_call *c = s->c;
  w->k.base = w->v.base = mn_softmax_low(s, c->t0, b);
  w->k.n = w->v.n = s->M + c->t1 - w->k.base;
  w->k.np = w->v.np = mn_round32(w->k.n);
  pack(s, &w->k, w, b, h, SM_MK, SM_K, s->K);
  pack(s, &w->v, w, b, h, SM_MV, SM_V, s->V);
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
  const long depth = s->bf16 ? mn_bf16_depth(size) : mn_round32(size);
  for (int c = 0; c < k->width; c += MN_PANEL)
    mn_softmax_product(s, first_group(c - own), k->n, MN_PANEL, size, rows, size, false, keys->across + (k->c0 + c) * depth, out + c, w->ld_score,
                       false);
}

/* Scores of positions: columns are aligned at their end, distance 0. */
static void score_places(const mn_softmax *s, const mn_sm_work *w, const mn_sm_block *k) {
  const float *panels = s->c->out[SM_PACKED].data + k->h * mn_panels(s->E) * mn_softmax_depth(s, s->K) * MN_PANEL;
  int first = s->T - 1 - k->t + k->low;                  /* the first column that row 0 needs; row 1: one before */
  for (int e = k->e0; e < s->E; e += MN_PANEL)
    mn_softmax_product(s, first_group(first - e - MN_PANEL + 1), k->n, MN_PANEL, s->K, w->qw, s->K, false,
                       panels + e * mn_softmax_depth(s, s->K), w->place + e - k->e0, w->ld_place, false);
}

static void queries(const mn_softmax *s, const mn_sm_block *k, int with, float *out) {
  const float *add = s->c->in[with].data ? s->c->in[with].data + (long)k->h * s->K : NULL;
  for (int i = 0; i < k->n; i++, out += s->K) {
    const float *q = s->c->in[SM_Q].data + mn_softmax_at(s, k->t + i, k->b, k->h, s->K);
    for (int d = 0; d < s->K; d += MN_LANES) {
      mn_lanes x = mn_load_n(q + d, s->K - d);
      mn_store_n(out + d, (add ? x + mn_load_n(add + d, s->K - d) : x) * s->scale, s->K - d);
    }
  }
}

/* A row's scores of keys, with those of positions and no infinities, which would leave NaN; around its columns, to the
** ends of whole vectors, minus infinity (what is read there of other rows, or of qw, is not used). */
static void settle(float *score, const float *place, int from, int to) {
  int first = mn_sm_first(from), end = mn_sm_end(to);
  if (place) for (int c = first; c < end; c++) score[c] += place[c];
  MN_PRAGMA(omp simd)
  for (int c = first; c < end; c++) {
    float x = mn_at_most(mn_at_least(score[c], -MN_SCORE_MOST), MN_SCORE_MOST);
    score[c] = c < from || c >= to ? -INFINITY : x;
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
    settle(score, w->place ? w->place + (long)i * w->ld_place + mn_sm_shift(s, w, k, i) : NULL, from, to);
    for (int c = from; holes && c < end; c++)
      if (mn_softmax_blocked(s, w->k.base + k->c0 + c, k->b)) score[c] = -INFINITY;
  }
}

/* A row of pairs with zeros in place of the first numbers. */
static void second_of_pairs(const float *pairs, float *to) {
  memcpy(to, pairs, sizeof *to * MN_PANEL);
  for (int j = 0; j < MN_PANEL; j++) ((uint16_t *)to)[2 * j] = 0;
}

void mn_sm_mix(const mn_softmax *s, const mn_sm_work *w, const mn_sm_block *k, int size, const float *rows, int ld,
               const float *panels, long depth, bool places, float *out) {
  int width = mn_round32(size);
  for (int i = 0; i < k->n; i += SM_GROUP) {
    int end = i + SM_GROUP < k->n ? i + SM_GROUP : k->n;
    const int from = places ? 0 : mn_sm_from(s, w, k, i);                /* what no row of the group sees may hold any numbers */
    const int columns = (places ? s->E - k->e0 : mn_sm_to(s, w, k, end - 1)) - from;
    const bool odd = s->bf16 && from % 2;
    for (int p = 0; odd && p < width; p += MN_PANEL) {                /* the first of a pair that is half seen */
      float pair[MN_PANEL];
      second_of_pairs(panels + p * mn_softmax_depth(s, depth) + mn_softmax_depth(s, from - 1) * MN_PANEL, pair);
      mn_softmax_product(s, i, end, MN_PANEL, 2, rows + from - 1, ld, false, pair, out + p, width, false);
    }
    for (int p = 0; p < width && odd < columns; p += MN_PANEL)
      mn_softmax_product(s, i, end, MN_PANEL, columns - odd, rows + from + odd, ld, false,
                         panels + p * mn_softmax_depth(s, depth) + mn_softmax_depth(s, from + odd) * MN_PANEL, out + p, width, odd);
  }
}

/* ---- forward ---- */

/* Scores to weights; returns what to divide by. */
static float weigh(float *score, int from, int to, float *top) {
  int first = mn_sm_first(from), n = mn_sm_end(to) - first;
  float most = mn_vmax(score + first, n), *x = score + first;
  mn_lanes sum = { 0 };
  MN_PRAGMA(omp simd)
  for (int c = 0; c < n; c++) x[c] = mn_sm_weight(x[c] - most);
  for (int c = 0; c < n; c += MN_LANES) sum += mn_load(x + c);
  mn_sm_unseen(score, from, to);
  *top = most;
  return mn_sum(sum);
}

static void head(const mn_softmax *s, mn_sm_work *w, int b, int h, float *mixed) {
  const mn_call *c = s->c;
  int Vp = mn_round32(s->V);
  mn_sm_pack(s, w, b, h);
  for (int t = c->t0; t < c->t1; ) {
    mn_sm_block k = mn_sm_next(s, w, b, h, t);
    mn_sm_fetch(s, &k, c->out[SM_Y].data, s->V);
    mn_sm_score(s, w, &k);
    for (int i = 0; i < k.n; i++) {
      float *stats = c->out[SM_STATS].data + mn_softmax_at(s, t + i, b, h, 2);
      stats[1] = 1 / weigh(w->score + (long)i * w->ld_score, mn_sm_from(s, w, &k, i), mn_sm_to(s, w, &k, i), &stats[0]);
    }
    mn_sm_mix(s, w, &k, s->V, w->score, w->ld_score, w->v.along + mn_softmax_depth(s, k.c0) * MN_PANEL, w->v.np, false, mixed);
    for (int i = 0; i < k.n; i++) {
      float *y = c->out[SM_Y].data + mn_softmax_at(s, t + i, b, h, s->V);
      float by = c->out[SM_STATS].data[mn_softmax_at(s, t + i, b, h, 2) + 1];
      for (int v = 0; v < s->V; v += MN_LANES) mn_store_n(y + v, mn_load(mixed + (long)i * Vp + v) * by, s->V - v);
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
