/* reduce.h -- ops that reduce an axis: their shape, and sums that do not depend on the number of threads.
** Two options of all of them, side by side: axis (-100: all axes) and keepdim.  They are the first two unless a file defines
** MN_AXIS_OPTION before it includes this one. */
#ifndef MN_REDUCE_H
#define MN_REDUCE_H
#include <string.h>
#include "axis.h"

enum { SUM_CHUNK = 4096, SUM_COLUMNS = 256 };

#define MN_FOLD static inline __attribute__((always_inline, unused))

/* Sets every output to x without the axis; no output has fewer than one axis. */
static inline int mn_reduce_shape(mn_call *c) {
  const mn_arg *x = &c->in[0];
  bool all = OPT(c, MN_AXIS_OPTION) == MN_ALL_AXES, keep = OPT(c, MN_AXIS_OPTION + 1) != 0;
  int axis = all ? 0 : mn_axis(c, mn_call_name(c), "axis", OPT(c, MN_AXIS_OPTION), x);
  if (axis < 0) return -1;
  if (axis == 0) c->time = MN_WHOLE;
  for (int k = 0; k < c->n_out; k++) {
    mn_arg *y = &c->out[k];
    y->ndim = 0;
    for (int i = 0; i < x->ndim; i++) {
      bool gone = all || i == axis;
      if (!gone || keep) y->shape[y->ndim++] = gone ? 1 : x->shape[i];
    }
    if (!y->ndim) y->shape[y->ndim++] = 1;
  }
  return 0;
}

/* A term of a sum, given an element and its sum's centre (0 if there is none); and what becomes of the sum. */
typedef double (*mn_term)(double x, double centre, double p);
typedef double (*mn_of_sum)(double sum, double p);

/* A sum along memory: o, in chunks of fixed size. */
MN_FOLD void mn_fold_chunk(const float *x, long n, double centre, double *part, mn_term term, double p) {
  double sum = 0;
  MN_PRAGMA(omp simd reduction(+:sum))
  for (long i = 0; i < n; i++) sum += term((double)x[i], centre, p);
  *part = sum;
}

/* Sums across memory: n of them, side by side. */
MN_FOLD void mn_fold_columns(const float *x, long size, long inner, long n, const float *centre, float *y, mn_term term,
                             mn_of_sum finish, double p) {
  double sum[SUM_COLUMNS];
  for (long i = 0; i < n; i++) sum[i] = 0;
  for (long r = 0; r < size; r++)
    for (long i = 0; i < n; i++) sum[i] += term((double)x[r * inner + i], centre ? (double)centre[i] : 0, p);
  for (long i = 0; i < n; i++) y[i] = (float)finish(sum[i], p);
}

/* y = finish(sum of term) over the span's middle axis, in double, in chunks of fixed size. */
MN_FOLD void mn_fold(mn_call *c, float *y, const float *centre, mn_term term, mn_of_sum finish, double p) {
  const mn_span s = mn_reduced_span(c);
  const float *x = c->in[0].data;
  if (s.inner == 1) {
    const long chunks = (s.size + SUM_CHUNK - 1) / SUM_CHUNK;
    double *part = (double *)mn_scratch(c->ctx, 0, 2 * s.outer * chunks);
    MN_FOR(c->ctx, s.outer * s.size, k, 0, s.outer * chunks, 1,
           mn_fold_chunk(x + k / chunks * s.size + k % chunks * SUM_CHUNK,
                         k % chunks < chunks - 1 ? SUM_CHUNK : s.size - (chunks - 1) * SUM_CHUNK,
                         centre ? (double)centre[k / chunks] : 0, part + k, term, p));
    for (long o = 0; o < s.outer; o++) {
      double sum = 0;
      for (long k = 0; k < chunks; k++) sum += part[o * chunks + k];
      y[o] = (float)finish(sum, p);
    }
    return;
  }
  const long blocks = (s.inner + SUM_COLUMNS - 1) / SUM_COLUMNS;
  MN_FOR(c->ctx, c->in[0].n, k, 0, s.outer * blocks, 1,
         mn_fold_columns(x + k / blocks * s.size * s.inner + k % blocks * SUM_COLUMNS, s.size, s.inner,
                         k % blocks < blocks - 1 ? SUM_COLUMNS : s.inner - (blocks - 1) * SUM_COLUMNS,
                         MN_AT(centre, k / blocks * s.inner + k % blocks * SUM_COLUMNS),
                         y + k / blocks * s.inner + k % blocks * SUM_COLUMNS, term, finish, p));
}

MN_FOLD double mn_itself(double x, double centre, double p) { (void)centre, (void)p; return x; }
MN_FOLD double mn_scaled(double sum, double p) { return p * sum; }

/* y = scale * sum of x. */
static inline void mn_sum_axis(mn_call *c, float *y, double scale) { mn_fold(c, y, NULL, mn_itself, mn_scaled, scale); }

MN_FOLD void mn_spread_row(float *to, const float *from, float a, long n) { for (long i = 0; i < n; i++) to[i] = a * from[i]; }
MN_FOLD void mn_spread_one(float *to, float g, long n) { for (long i = 0; i < n; i++) to[i] = g; }

/* dx = scale * dy, repeated along the axis. */
static inline void mn_spread_axis(mn_call *c, double scale) {
  mn_span s = mn_reduced_span(c);
  const float *dy = c->out[0].grad;
  float *dx = c->in[0].grad, a = (float)scale;
  if (s.inner == 1) {
    long chunks = (s.size + SUM_CHUNK - 1) / SUM_CHUNK;
    MN_FOR(c->ctx, c->in[0].n, k, 0, s.outer * chunks, 1,
           mn_spread_one(dx + k / chunks * s.size + k % chunks * SUM_CHUNK, a * dy[k / chunks],
                         k % chunks < chunks - 1 ? SUM_CHUNK : s.size - (chunks - 1) * SUM_CHUNK));
    return;
  }
  MN_FOR(c->ctx, c->in[0].n, r, 0, s.outer * s.size, 1, mn_spread_row(dx + r * s.inner, dy + r / s.size * s.inner, a, s.inner));
}

/* Where the elements that become output k lie in x: the first, and from there `inner` apart. */
static inline long mn_lane(const mn_span *s, long k) { return k / s->inner * s->size * s->inner + k % s->inner; }

/* f(c, span, k) for every output k. */
MN_FOLD void mn_each_lane(mn_call *c, void (*f)(mn_call *c, const mn_span *s, long k)) {
  const mn_span s = mn_reduced_span(c);
  const long n = s.outer * s.inner, step = mn_rows_at_a_time(c->in[0].n, n);
  MN_FOR(c->ctx, c->in[0].n, from, 0, n, step,
         for (long k = from; k < n && k < from + step; k++) f(c, &s, k));
}

#endif
