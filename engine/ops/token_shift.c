/* token_shift.c -- RWKV's token shift: mixes each element with that of the step before.
**   y_t = x_t + (x_{t-1} - x_t) * m      m = mix + low_t, or 1 - mix where mix weighs the current step
** It replaces four ops by one pass; the step before the first is an input, and zero after a reset. */
#include <string.h>
#include "op.h"

enum { X, MIX, LOW, DONE, PREV };
enum { ROWS = 64 };              /* rows that one job takes, and whose gradients of mix are summed together */

typedef struct shift {           /* one call; row r = t*B + b */
  const mn_call *c;
  long B, D, N;                  /* N = T*B rows */
  long stride;                   /* from one row of low to the next */
  const float *low;              /* the first row of the part that is used; NULL: none */
  float base, sign;              /* m = base + sign * mix + low */
  const float *zeros;            /* [D] */
} shift;

static int shape(mn_call *c) {
  if (!c->in[LOW].data) return 0;
  int part = (int)OPT(c, 0), C = DIM(c, 'C');
  if (part < 0 || part >= C) return mn_fail(c->ctx, "token_shift: part is %d, expected 0 to %d, as low has %d parts", part, C - 1, C);
  return 0;
}

static shift open_call(const mn_call *c) {
  shift s = { c, DIM(c, 'B'), DIM(c, 'D'), c->in[X].n / DIM(c, 'D'), 0, NULL, 0, 1, NULL };
  if (c->in[LOW].data) {
    s.stride = (long)DIM(c, 'C') * s.D;
    s.low = c->in[LOW].data + (long)OPT(c, 0) * s.D;
  }
  if (OPT(c, 1) != 0) s.base = 1, s.sign = -1;
  float *zeros = mn_scratch(c->ctx, 0, s.D);
  memset(zeros, 0, sizeof(float) * (size_t)s.D);
  s.zeros = zeros;
  return s;
}

static bool fresh(const shift *s, long r) { return s->c->in[DONE].u8 && s->c->in[DONE].u8[r]; }

/* The row before row r; zeros where there is none. */
static const float *before(const shift *s, long r) {
  const float *prev = s->c->in[PREV].data;
  if (fresh(s, r)) return s->zeros;
  if (r >= s->B) return s->c->in[X].data + (r - s->B) * s->D;
  return prev ? prev + r * s->D : s->zeros;
}

static const float *low_row(const shift *s, long r) { return s->low ? s->low + r * s->stride : s->zeros; }

static void mix_rows(const shift *s, long from, long end) {
  const float *mix = s->c->in[MIX].data;
  for (long r = from; r < end; r++) {
    const float *x = s->c->in[X].data + r * s->D, *old = before(s, r), *low = low_row(s, r);
    float *y = s->c->out[0].data + r * s->D;
    MN_PRAGMA(omp simd)
    for (long i = 0; i < s->D; i++) y[i] = x[i] + (old[i] - x[i]) * (s->base + s->sign * mix[i] + low[i]);
  }
}

static void forward(mn_call *c) {
  shift s = open_call(c);
  long from = c->t0 * s.B, end = c->t1 * s.B, BD = s.B * s.D;
  MN_FOR(c->ctx, (end - from) * s.D, r, from, end, ROWS, mix_rows(&s, r, end - r < ROWS ? end : r + ROWS));
  memcpy(c->out[1].data, c->in[X].data + (c->t1 - 1) * BD, sizeof(float) * (size_t)BD);
}

/* What comes back to row r of y, and to the row of environment b that is handed on. */
static const float *grad_row(const shift *s, long r) {
  const float *dy = s->c->out[0].grad;
  return dy ? dy + r * s->D : s->zeros;
}

/* Row r of x is used by row r and by the row after it, of which x is the step before. */
static void x_row_back(const shift *s, long r) {
  const mn_call *c = s->c;
  const float *mix = c->in[MIX].data, *g = grad_row(s, r), *low = low_row(s, r);
  bool last = r + s->B >= s->N, used = !last && !fresh(s, r + s->B), add = mn_accumulates(c, X);
  const float *next = used ? grad_row(s, r + s->B) : s->zeros, *low_next = used ? low_row(s, r + s->B) : s->zeros;
  if (last && c->out[1].grad) next = c->out[1].grad + (r + s->B - s->N) * s->D;
  float *dx = c->in[X].grad + r * s->D, base = last ? 1 : s->base, sign = last ? 0 : s->sign;
  MN_PRAGMA(omp simd)
  for (long i = 0; i < s->D; i++) {
    float d = g[i] * (1 - s->base - s->sign * mix[i] - low[i]) + next[i] * (base + sign * mix[i] + low_next[i]);
    dx[i] = add ? dx[i] + d : d;
  }
}

/* Gradient of m of row r: to low, and added to dmix [D]. */
static void m_row_back(const shift *s, long r, float *dmix) {
  const mn_call *c = s->c;
  const float *x = c->in[X].data + r * s->D, *old = before(s, r), *g = grad_row(s, r);
  MN_PRAGMA(omp simd)
  for (long i = 0; i < s->D; i++) dmix[i] += s->sign * (g[i] * (old[i] - x[i]));
  float *dlow = c->in[LOW].grad;
  if (!dlow) return;
  dlow += r * s->stride;
  if (!mn_accumulates(c, LOW)) memset(dlow, 0, sizeof(float) * (size_t)s->stride);
  dlow += (long)OPT(c, 0) * s->D;
  MN_PRAGMA(omp simd)
  for (long i = 0; i < s->D; i++) dlow[i] += g[i] * (old[i] - x[i]);
}

static void some_rows_back(const shift *s, long from, float *dmix) {
  long end = s->N - from < ROWS ? s->N : from + ROWS;
  dmix += from / ROWS * s->D;
  memset(dmix, 0, sizeof(float) * (size_t)s->D);
  for (long r = from; r < end; r++) {
    if (s->c->in[X].grad) x_row_back(s, r);
    m_row_back(s, r, dmix);
  }
}

static void backward(mn_call *c) {
  shift s = open_call(c);
  const float *mix = c->in[MIX].data;
  float *dmix = c->in[MIX].grad, *dprev = c->in[PREV].grad;
  long parts = (s.N + ROWS - 1) / ROWS;
  float *sums = mn_scratch(c->ctx, 1, parts * s.D);
  MN_FOR(c->ctx, s.N * s.D, r, 0, s.N, ROWS, some_rows_back(&s, r, sums));
  if (dmix && !mn_accumulates(c, MIX)) memset(dmix, 0, sizeof(float) * (size_t)s.D);
  for (long p = 0; dmix && p < parts; p++)
    for (long i = 0; i < s.D; i++) dmix[i] += sums[p * s.D + i];
  for (long b = 0; dprev && b < s.B; b++) {
    const float *g = fresh(&s, b) ? s.zeros : grad_row(&s, b), *low = low_row(&s, b);
    for (long i = 0; i < s.D; i++) {
      float d = g[i] * (s.base + s.sign * mix[i] + low[i]), *to = dprev + b * s.D + i;
      *to = mn_accumulates(c, PREV) ? *to + d : d;
    }
  }
}

const mn_op mn_op_token_shift = {
  .sig = "x[T,B,D] mix[D] low?[T,B,C,D] done?[T,B]:bit prev?[B,D] -> y[T,B,D] last'[B,D] | part=0 weighs=previous|current",
  .doc = "RWKV's token shift (Peng et al. 2023, eq. 11; 2024, eq. 14). y_t = x_t + (x_{t-1} - x_t) * m, m = mix + low[part] (or 1 - mix: "
      "weighs=current); x_{-1} = prev",
  .time = MN_SCAN, .accumulates = true, .shape = shape, .forward = forward, .backward = backward,
};
