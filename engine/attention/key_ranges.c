/* key_ranges.c -- softmax attention of a few rows of one head over runs of keys.  Four rows share each
** load of a key or value; rows see different keys only at the ends of a run, which go row by row. */
#include <limits.h>
#include <string.h>
#include "numerics/fast_math.h"
#include "op.h"
#include "key_ranges.h"
#include "numerics/simd.h"

/* Vectors of each row that are held in registers while rows meet keys. */
enum { WIDE = MN_LANES == 16 ? 4 : 2 };

/* Runs begin at a multiple of 16 floats in a row of scores. */
static long row_size(const mn_tile *t) {
  long n = 0;
  for (int i = 0; i < t->n_runs; i++) n += mn_padded(t->run[i].n);
  return n;
}

long mn_tile_work(long keys, int n_runs, int D) { return MN_TILE * mn_padded(2 * (keys + 16L * n_runs) + D); }

bool mn_unite(int rows, const mn_range *a, mn_range *all, int *lo, int *hi) {
  int last = 0;
  *all = (mn_range){ 0, 0, 1 };
  for (int r = 0; r < rows; r++) {
    if (!a[r].n) continue;
    int end = a[r].from + (a[r].n - 1) * a[r].step;
    if (!all->n) *all = a[r], last = end;
    if (a[r].step != all->step || (a[r].from - all->from) % a[r].step) return false;
    if (a[r].from < all->from) all->from = a[r].from;
    if (end > last) last = end;
  }
  if (all->n) all->n = (last - all->from) / all->step + 1;
  for (int r = 0; r < rows; r++) {
    lo[r] = a[r].n ? (a[r].from - all->from) / all->step : 0;
    hi[r] = lo[r] + a[r].n;
  }
  return true;
}

/* ---- rows times keys ---- */

long mn_turned_size(int D, long n) { return D * mn_turned_row(n); }

void mn_turn(int D, long n, const float *k, long step, float *kt) {
  long ld = mn_turned_row(n);
  for (int d = 0; d < D; d++) {
    for (long j = 0; j < n; j++) kt[d * ld + j] = k[j * step + d];
    for (long j = n; j < ld; j++) kt[d * ld + j] = 0;
  }
}

/* to[r*ld + j] = scale q_r . k_j for R rows, `ldq` apart, with C vectors of keys that lie turned. */
MN_INLINE void turned_part(const int R, const int C, int D, float scale, const float *q, long ldq,
                           const float *kt, long ldt, float *to, long ld) {
  mn_lanes sum[MN_TILE][4] = { { { 0 } } };
  for (int d = 0; d < D; d++) {
    mn_lanes x[4];
#pragma GCC unroll 4
    for (int c = 0; c < C; c++) x[c] = mn_load(kt + d * ldt + c * MN_LANES);
#pragma GCC unroll 4
    for (int r = 0; r < R; r++)
#pragma GCC unroll 4
      for (int c = 0; c < C; c++) sum[r][c] += x[c] * q[r * ldq + d];
  }
#pragma GCC unroll 4
  for (int r = 0; r < R; r++)
#pragma GCC unroll 4
    for (int c = 0; c < C; c++) mn_store(to + r * ld + c * MN_LANES, sum[r][c] * scale);
}

MN_INLINE void turned_dots(const int R, int n, int D, float scale, const float *q, long ldq, const float *kt,
                           long ldt, float *to, long ld) {
  int j = 0;
  for (; j + WIDE * MN_LANES <= mn_padded(n); j += WIDE * MN_LANES)
    turned_part(R, WIDE, D, scale, q, ldq, kt + j, ldt, to + j, ld);
  for (; j < n; j += MN_LANES) turned_part(R, 1, D, scale, q, ldq, kt + j, ldt, to + j, ld);
}

/* The same for keys as they are: one row, or more, with one key after another. */
static void plain_dots(int R, int n, int D, float scale, const float *q, long ldq, const float *k, long step,
                       float *to, long ld) {
  for (int r = 0; r < R; r++)
    for (int j = 0; j < n; j++) to[r * ld + j] = mn_dot(D, q + r * ldq, k + j * step) * scale;
}

/* Scores of every row with every key of every run, those that a row does not see included. */
static void scores(const mn_tile *t, float scale, const float *const *rows, bool of_values, float *S) {
  long ld = row_size(t), at = 0, D = t->D;
  float *q = t->work + 2 * MN_TILE * ld;               /* the rows side by side */
  for (int r = 0; r < t->rows; r++) memcpy(q + r * D, rows[r], sizeof(float) * (size_t)D);
  for (int i = 0; i < t->n_runs; at += mn_padded(t->run[i++].n)) {
    const mn_run *run = &t->run[i];
    const float *k = of_values ? run->v : run->k, *kt = of_values ? run->vt : run->kt;
    if (!kt) plain_dots(t->rows, run->n, t->D, scale, q, D, k, run->step, S + at, ld);
    else if (t->rows == MN_TILE) turned_dots(MN_TILE, run->n, t->D, scale, q, D, kt, run->turned, S + at, ld);
    else for (int r = 0; r < t->rows; r++)
      turned_dots(1, run->n, t->D, scale, q + r * D, D, kt, run->turned, S + r * ld + at, ld);
  }
}

/* ---- weights times keys, and back ---- */

/* Which keys of a run all rows see, if those are worth a loop of their own. */
static void joint(const mn_tile *t, const mn_run *run, int *lo, int *hi) {
  *lo = 0, *hi = run->n;
  for (int r = 0; r < t->rows; r++) {
    if (run->lo[r] > *lo) *lo = run->lo[r];
    if (run->hi[r] < *hi) *hi = run->hi[r];
  }
  if (t->rows < MN_TILE || *lo >= *hi) *lo = *hi = INT_MAX;
}

/* y_r += sum over n keys of p_rj v_j, C vectors of it from number d on */
MN_INLINE void mix_part(const int R, const int C, int n, const float *p, long ld, const float *v,
                        long step, float *const *y, int d) {
  mn_lanes sum[MN_TILE][4];
#pragma GCC unroll 4
  for (int r = 0; r < R; r++)
#pragma GCC unroll 4
    for (int c = 0; c < C; c++) sum[r][c] = mn_load(y[r] + d + c * MN_LANES);
  for (int j = 0; j < n; j++) {
    mn_lanes x[4];
#pragma GCC unroll 4
    for (int c = 0; c < C; c++) x[c] = mn_load(v + j * step + d + c * MN_LANES);
#pragma GCC unroll 4
    for (int r = 0; r < R; r++)
#pragma GCC unroll 4
      for (int c = 0; c < C; c++) sum[r][c] += x[c] * p[r * ld + j];
  }
#pragma GCC unroll 4
  for (int r = 0; r < R; r++)
#pragma GCC unroll 4
    for (int c = 0; c < C; c++) mn_store(y[r] + d + c * MN_LANES, sum[r][c]);
}

MN_INLINE void mix_rows(const int R, int D, int n, const float *p, long ld, const float *v, long step,
                        float *const *y) {
  int d = 0;
  if (n <= 0) return;
  for (; d + WIDE * MN_LANES <= D; d += WIDE * MN_LANES)
    mix_part(R, WIDE, n, p, ld, v, step, y, d);
  for (; d + MN_LANES <= D; d += MN_LANES) mix_part(R, 1, n, p, ld, v, step, y, d);
  for (; d < D; d++)
    for (int r = 0; r < R; r++) {
      float sum = y[r][d];
      for (int j = 0; j < n; j++) sum = MN_FMA(p[r * ld + j], v[j * step + d], sum);
      y[r][d] = sum;
    }
}

/* dv_j += sum over rows of p_rj g_r, C vectors of it from number d on */
MN_INLINE void spread_part(const int R, const int C, int n, const float *p, long ld,
                           const float *const *g, int d, float *dv, long step) {
  mn_lanes x[MN_TILE][4];
#pragma GCC unroll 4
  for (int r = 0; r < R; r++)
#pragma GCC unroll 4
    for (int c = 0; c < C; c++) x[r][c] = mn_load(g[r] + d + c * MN_LANES);
  for (int j = 0; j < n; j++)
#pragma GCC unroll 4
    for (int c = 0; c < C; c++) {
      float *at = dv + j * step + d + c * MN_LANES;
      mn_lanes sum = mn_load(at);
#pragma GCC unroll 4
      for (int r = 0; r < R; r++) sum += x[r][c] * p[r * ld + j];
      mn_store(at, sum);
    }
}

MN_INLINE void spread_rows(const int R, int D, int n, const float *p, long ld, const float *const *g,
                           float *dv, long step) {
  int d = 0;
  if (n <= 0) return;
  for (; d + WIDE * MN_LANES <= D; d += WIDE * MN_LANES)
    spread_part(R, WIDE, n, p, ld, g, d, dv, step);
  for (; d + MN_LANES <= D; d += MN_LANES) spread_part(R, 1, n, p, ld, g, d, dv, step);
  for (; d < D; d++)
    for (int j = 0; j < n; j++)
      for (int r = 0; r < R; r++) dv[j * step + d] = MN_FMA(p[r * ld + j], g[r][d], dv[j * step + d]);
}

static int smaller(int a, int b) { return a < b ? a : b; }
static int larger(int a, int b) { return a > b ? a : b; }

/* y_r += sum of p_rj times the keys, or values, that row r sees, in their order. */
static void mix(const mn_tile *t, const float *p, bool of_values, float *const *y) {
  long ld = row_size(t);
  for (int i = 0; i < t->n_runs; p += mn_padded(t->run[i++].n)) {
    const mn_run *run = &t->run[i];
    const float *v = of_values ? run->v : run->k;
    long step = run->step;
    int lo, hi;
    joint(t, run, &lo, &hi);
    for (int r = 0; r < t->rows; r++)
      for (long j = run->lo[r], end = smaller(lo, run->hi[r]); j < end; j = end)
        mix_rows(1, t->D, (int)(end - j), p + r * ld + j, ld, v + j * step, step, y + r);
    if (lo < hi) mix_rows(MN_TILE, t->D, hi - lo, p + lo, ld, v + lo * step, step, y);
    for (int r = 0; r < t->rows; r++)
      for (long j = larger(hi, run->lo[r]), end = run->hi[r]; j < end; j = end)
        mix_rows(1, t->D, (int)(end - j), p + r * ld + j, ld, v + j * step, step, y + r);
  }
}

/* The other way: dv_j += sum over the rows that see it of p_rj g_r. */
static void spread(const mn_tile *t, const float *p, const float *const *g, bool to_values) {
  long ld = row_size(t);
  for (int i = 0; i < t->n_runs; p += mn_padded(t->run[i++].n)) {
    const mn_run *run = &t->run[i];
    float *dv = to_values ? run->dv : run->dk;
    long step = run->dstep;
    int lo, hi;
    if (!dv) continue;
    joint(t, run, &lo, &hi);
    for (int r = 0; r < t->rows; r++) {
      for (long j = run->lo[r], end = smaller(lo, run->hi[r]); j < end; j = end)
        spread_rows(1, t->D, (int)(end - j), p + r * ld + j, ld, g + r, dv + j * step, step);
      for (long j = larger(hi, run->lo[r]), end = run->hi[r]; j < end; j = end)
        spread_rows(1, t->D, (int)(end - j), p + r * ld + j, ld, g + r, dv + j * step, step);
    }
    if (lo < hi) spread_rows(MN_TILE, t->D, hi - lo, p + lo, ld, g, dv + lo * step, step);
  }
}

/* ---- softmax ---- */

/* e^(x - top) in place over what row r sees; the sum of it, 0 if it sees nothing.  Scores beyond the
** range of floats count as the largest float. */
static float exponentials(const mn_tile *t, int r, float *S) {
  const float most = 0x1.fffffep127f;
  float top = -__builtin_inff(), sum = 0, *at = S;
  for (int i = 0; i < t->n_runs; at += mn_padded(t->run[i++].n)) {
    const mn_run *run = &t->run[i];
    float *x = at + run->lo[r];
    int n = run->hi[r] - run->lo[r];
    for (int j = 0; j < n; j++) x[j] = mn_at_least(mn_at_most(x[j], most), -most);
    if (n > 0) top = mn_at_least(mn_vmax(x, n), top);
  }
  at = S;
  for (int i = 0; i < t->n_runs; at += mn_padded(t->run[i++].n)) {
    const mn_run *run = &t->run[i];
    float *x = at + run->lo[r];
    int n = run->hi[r] - run->lo[r];
    mn_lanes part = { 0 };
    MN_PRAGMA(omp simd)
    for (int j = 0; j < n; j++) x[j] = mn_expf(x[j] - top);
    for (int j = 0; j < n; j += MN_LANES) part += mn_load_n(x + j, n - j);
    sum += mn_sum(part);
  }
  return sum;
}

static void clear(const mn_tile *t, float *const *y) {
  for (int r = 0; r < t->rows; r++) memset(y[r], 0, sizeof(float) * (size_t)t->D);
}

void mn_tile_forward(const mn_tile *t) {
  float *S = t->work, scale[MN_TILE];
  long ld = row_size(t);
  scores(t, t->scale, t->q, false, S);
  for (int r = 0; r < t->rows; r++) {
    float sum = exponentials(t, r, S + r * ld);
    scale[r] = sum == 0 ? 0 : 1 / sum;
  }
  clear(t, t->y);
  mix(t, S, true, t->y);
  for (int r = 0; r < t->rows; r++)
    for (int d = 0; d < t->D; d++) t->y[r][d] *= scale[r];
}

/* p = softmax, dp_j = dy.v_j, and from there ds = scale p (dp - sum of p dp) in place of dp. */
static void softmax_back(const mn_tile *t, int r, float *p, float *dp) {
  float sum = exponentials(t, r, p), scale = sum == 0 ? 0 : 1 / sum, dot = 0, *at = p, *g = dp;
  for (int i = 0; i < t->n_runs; at += mn_padded(t->run[i].n), g += mn_padded(t->run[i++].n))
    for (int j = t->run[i].lo[r]; j < t->run[i].hi[r]; j++) {
      at[j] *= scale;
      dot += at[j] * g[j];
    }
  at = p, g = dp;
  for (int i = 0; i < t->n_runs; at += mn_padded(t->run[i].n), g += mn_padded(t->run[i++].n))
    for (int j = t->run[i].lo[r]; j < t->run[i].hi[r]; j++) g[j] = t->scale * at[j] * (g[j] - dot);
}

void mn_tile_backward(const mn_tile *t) {
  long ld = row_size(t);
  float *P = t->work, *dS = P + MN_TILE * ld;
  scores(t, t->scale, t->q, false, P);
  scores(t, 1, t->dy, true, dS);
  for (int r = 0; r < t->rows; r++) softmax_back(t, r, P + r * ld, dS + r * ld);
  if (t->dq[0]) {
    clear(t, t->dq);
    mix(t, dS, false, t->dq);
  }
  spread(t, dS, t->q, false);
  spread(t, P, t->dy, true);
}
