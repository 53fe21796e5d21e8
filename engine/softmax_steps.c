/* softmax_steps.c -- attention one row at a time, as acting asks for it: reading the keys and values where they
** lie is all the work there is, so the aim is to keep that stream going. */
#include <math.h>
#include <string.h>
#include "maths.h"
#include "simd.h"
#include "softmax.h"
#include "team.h"

typedef struct step {
  const mn_softmax *s;
  int t, e0;                     /* the row; the first column of `position` */
  float *q, *position;           /* [H,B,K] queries of positions; [H,B,width] their scores */
  float *work;                   /* of a worker: a query, scores */
  long width, size;
} step;

/* out[j] = q . (row j of n rows that lie `stride` apart); q is padded with zeros to whole vectors. */
static void dots(int n, int K, const float *q, const float *row, long stride, float *out) {
  int j = 0;
  for (; j + MN_LANES <= n; j += MN_LANES, row += MN_LANES * stride) {
    mn_lanes sum[MN_LANES] = { { 0 } };
    int d = 0;
    for (; d + MN_LANES <= K; d += MN_LANES) {
      mn_lanes x = mn_load(q + d);
#pragma GCC unroll 16
      for (int i = 0; i < MN_LANES; i++) {
        __builtin_prefetch(row + (i + MN_LANES) * stride + d);
        sum[i] += x * mn_load(row + i * stride + d);
      }
    }
    for (int i = 0; d < K && i < MN_LANES; i++) sum[i] += mn_load(q + d) * mn_load_n(row + i * stride + d, K - d);
    mn_store(out + j, mn_sums(sum));
  }
  for (; j < n; j++, row += stride) out[j] = mn_dot(K, q, row);
}

/* Up to four vectors of y += p[j] times row j, for all of n rows; those of weight 0 are not looked at. */
MN_INLINE void mix_columns(const int vectors, int n, const float *p, const float *row, long stride, float *y, long left) {
  mn_lanes sum[4];
#pragma GCC unroll 4
  for (int i = 0; i < vectors; i++) sum[i] = mn_load_n(y + i * MN_LANES, left - i * MN_LANES);
  for (int j = 0; j < n; j++, row += stride) {
    __builtin_prefetch(row + 8 * stride);
    __builtin_prefetch(row + 8 * stride + (vectors - 1) * MN_LANES);
    if (p[j] == 0) continue;
#pragma GCC unroll 4
    for (int i = 0; i < vectors; i++) sum[i] += p[j] * mn_load_n(row + i * MN_LANES, left - i * MN_LANES);
  }
#pragma GCC unroll 4
  for (int i = 0; i < vectors; i++) mn_store_n(y + i * MN_LANES, sum[i], left - i * MN_LANES);
}

static void mix(int n, int V, const float *p, const float *row, long stride, float *y) {
  int v = 0;
  for (; v + 4 * MN_LANES <= V; v += 4 * MN_LANES) mix_columns(4, n, p, row + v, stride, y + v, 4 * MN_LANES);
  for (; v < V; v += MN_LANES) mix_columns(1, n, p, row + v, stride, y + v, V - v);
}

/* What a row of q, and of u or w, gives as a query. */
static void query(const mn_softmax *s, int t, int b, int h, int with, float *out) {
  const float *q = s->c->in[SM_Q].data + mn_softmax_at(s, t, b, h, s->K), *add = s->c->in[with].data;
  for (int d = 0; d < s->K; d++) out[d] = (q[d] + (add ? add[(long)h * s->K + d] : 0)) * s->scale;
}

/* Scores of the positions for head h of all copies. */
static void some_positions(void *arg, int h, int worker) {
  (void)worker;
  const step *j = arg;
  const mn_softmax *s = j->s;
  float *q = j->q + (long)h * s->B * s->K, *out = j->position + (long)h * s->B * j->width;
  for (int b = 0; b < s->B; b++) query(s, j->t, b, h, SM_W, q + (long)b * s->K);
  const float *panels = s->c->out[SM_PACKED].data + (long)h * mn_panels(s->E) * s->K * MN_PANEL;
  for (int e = j->e0; e < s->E; e += 2 * MN_PANEL)
    mn_few_columns(s->B, s->E - e, s->K, q, s->K, panels + (long)e * s->K, out + e - j->e0, (int)j->width, false);
}

/* Scores with those of the positions, and no infinities, which would leave NaN. */
static void settle(float *score, const float *position, int n) {
  if (position) for (int j = 0; j < n; j++) score[j] += position[j];
  for (int j = 0; j < n; j++) score[j] = mn_at_most(mn_at_least(score[j], -MN_SCORE_MOST), MN_SCORE_MOST);
}

/* Scores to weights that are not yet divided by their sum, which is returned. */
static float weigh(float *score, int n, float *top) {
  float most = mn_vmax(score, n), sum = 0;
  MN_PRAGMA(omp simd reduction(+:sum))
  for (int j = 0; j < n; j++) {
    score[j] = mn_expf(score[j] - most);
    sum += score[j];
  }
  *top = most;
  return sum;
}

static void some_head(void *arg, int i, int worker) {
  const step *j = arg;
  const mn_softmax *s = j->s;
  const mn_call *c = s->c;
  int b = i / s->H, h = i % s->H, low = mn_softmax_low(s, j->t, b), end = s->M + j->t + 1, n = end - low;
  int carried = low < s->M ? s->M - low : 0, first = low > s->M ? low - s->M : 0;
  float *q = j->work + worker * j->size, *score = q + (s->K + 15) / 16 * 16;
  float *y = c->out[SM_Y].data + mn_softmax_at(s, j->t, b, h, s->V);
  float *stats = c->out[SM_STATS].data + mn_softmax_at(s, j->t, b, h, 2);
  long HK = (long)s->B * s->H * s->K, HV = (long)s->B * s->H * s->V;
  query(s, j->t, b, h, SM_U, q);
  for (int d = s->K; d % 16; d++) q[d] = 0;
  if (carried) dots(carried, s->K, q, mn_softmax_key(s, SM_MK, SM_K, low, b, h, s->K), HK, score);
  dots(n - carried, s->K, q, c->in[SM_K].data + mn_softmax_at(s, first, b, h, s->K), HK, score + carried);
  const float *position = NULL;
  if (c->in[SM_R].data) position = j->position + ((long)h * s->B + b) * j->width + s->T - 1 - j->t + low - j->e0;
  settle(score, position, n);
  if (carried && mn_softmax_holes(s, b))
    for (int k = 0; k < carried; k++) if (mn_softmax_blocked(s, low + k, b)) score[k] = -INFINITY;
  stats[1] = 1 / weigh(score, n, &stats[0]);
  memset(y, 0, sizeof *y * (size_t)s->V);
  if (carried) mix(carried, s->V, score, mn_softmax_key(s, SM_MV, SM_V, low, b, h, s->V), HV, y);
  mix(n - carried, s->V, score + carried, c->in[SM_V].data + mn_softmax_at(s, first, b, h, s->V), HV, y);
  for (int v = 0; v < s->V; v++) y[v] *= stats[1];
}

/* Entering the team costs more than little work. */
static void share(const mn_softmax *s, int n, mn_job *f, step *j, double work) {
  if (work < MN_SMALL) for (int i = 0; i < n; i++) f(j, i, 0);
  else mn_team_run(s->c->ctx, n, f, j);
}

void mn_softmax_steps(const mn_softmax *s) {
  const mn_call *c = s->c;
  long heads = (long)s->B * s->H;
  step j = { .s = s, .width = mn_round32(s->E) + MN_PANEL };
  j.size = (s->K + 15) / 16 * 16 + j.width;
  j.work = mn_scratch(c->ctx, 0, j.size * mn_threads(c->ctx));
  if (c->in[SM_R].data) {
    j.q = mn_scratch(c->ctx, 1, heads * s->K);
    j.position = mn_scratch(c->ctx, 2, heads * j.width);
  }
  for (j.t = c->t0; j.t < c->t1; j.t++) {
    int low = s->E;
    for (int b = 0; b < s->B; b++) low = mn_softmax_low(s, j.t, b) < low ? mn_softmax_low(s, j.t, b) : low;
    double work = (double)heads * (s->M + j.t + 1 - low) * s->K;
    j.e0 = (s->T - 1 - j.t + low) / MN_PANEL * MN_PANEL;
    if (c->in[SM_R].data) share(s, s->H, some_positions, &j, work);
    share(s, (int)heads, some_head, &j, work);
  }
}
