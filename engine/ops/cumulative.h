/* cumulative.h -- cumsum and cumprod: s_t = f(s_{t-1}, x_t) along an axis.  An op's file defines NOTHING, the value before the first
** element, and three formulas in s, the value before, and x: the value after, and its slopes in x and in s; MN_CUMULATIVE_OP makes the
** rest.  Along axis 0, which is time in a plan, rows may come one after another: then y of the row before is what was there, and
** done[T,B] begins again.  Along another axis rows are independent.  Values are carried in double. */
#ifndef MN_CUMULATIVE_H
#define MN_CUMULATIVE_H
#include "axis.h"

#define MN_CUMULATE static inline __attribute__((always_inline))

enum { CUM_X, CUM_DONE };
enum { CUM_LANES = 128, CUM_ROWS = 8 };      /* neighbours that one job takes, across the axis: in memory, or rows of it */

typedef double mn_cumulative_f(double s, double x);

/* x[outer, size, inner] and the environment of each column. */
typedef struct mn_cumulative {
  mn_call *c;
  mn_span span;
  long t0, t1;
  long width, jobs;              /* neighbours of a job; jobs for each of outer, or in all where inner is 1 */
  const uint8_t *done;
  long B, columns;               /* columns of an environment */
  double nothing;
} mn_cumulative;

static inline int mn_cumulative_shape(mn_call *c) {
  const mn_arg *x = &c->in[CUM_X], *done = &c->in[CUM_DONE];
  const int axis = mn_axis(c, mn_call_name(c), "axis", OPT(c, 0), x);
  if (axis < 0) return -1;
  c->out[0].ndim = x->ndim;
  for (int i = 0; i < x->ndim; i++) c->out[0].shape[i] = x->shape[i];
  if (axis > 0) c->time = MN_PER_ROW;
  if (!done->data) return 0;
  if (axis > 0) return mn_fail(c->ctx, "%s: done is given with axis=%d, expected axis=0: resets are along time", mn_call_name(c), axis);
  if (x->ndim < 2) return mn_fail(c->ctx, "%s: x has 1 axis, expected at least 2 with done, [T,B,...]", mn_call_name(c));
  for (int i = 0; i < 2; i++)
    if (x->shape[i] != done->shape[i])
      return mn_fail(c->ctx, "%s: axis %d of done is %d, expected %d as in x", mn_call_name(c), i, done->shape[i], x->shape[i]);
  return 0;
}

static inline mn_cumulative mn_cumulative_of(mn_call *c, double nothing) {
  const mn_arg *x = &c->in[CUM_X];
  const int axis = mn_axis_of(x, OPT(c, 0));
  mn_cumulative m = { .c = c, .span = mn_span_of(x, axis), .done = c->in[CUM_DONE].u8, .nothing = nothing };
  const bool along = m.span.inner == 1;        /* the axis runs along memory: neighbours are rows of it */
  m.t0 = axis == 0 ? c->t0 : 0;
  m.t1 = axis == 0 ? c->t1 : m.span.size;
  m.width = along ? CUM_ROWS : CUM_LANES;
  m.jobs = ((along ? m.span.outer : m.span.inner) + m.width - 1) / m.width;
  m.B = m.done ? x->shape[1] : 1;
  m.columns = m.span.inner / m.B;
  return m;
}

/* A job: n neighbours, `apart` floats from each other, and a fixed number of floats from one element of the axis to the next. */
typedef struct mn_cumulative_job { long n, apart, step, at, first; } mn_cumulative_job;

static inline mn_cumulative_job mn_cumulative_job_of(const mn_cumulative *m, long i) {
  const mn_span s = m->span;
  const bool along = s.inner == 1;
  const long all = along ? s.outer : s.inner, first = i % m->jobs * m->width;
  const long at = along ? first * s.size : i / m->jobs * s.size * s.inner + first;
  return (mn_cumulative_job){ all - first < m->width ? all - first : m->width, along ? s.size : 1, s.inner, at, first };
}

/* Sets what belongs to an environment that begins at t. */
static inline void mn_cumulative_begin(const mn_cumulative *m, const mn_cumulative_job *j, long t, double *s, double to) {
  if (!m->done) return;
  for (long b = j->first / m->columns; b * m->columns < j->first + j->n; b++) {
    if (!m->done[t * m->B + b]) continue;
    const long from = b * m->columns - j->first, end = from + m->columns;
    for (long i = from < 0 ? 0 : from; i < end && i < j->n; i++) s[i] = to;
  }
}

MN_CUMULATE void mn_cumulative_walk(const mn_cumulative *m, const mn_cumulative_job *j, long apart, mn_cumulative_f value) {
  const float *x = m->c->in[CUM_X].data + j->at;
  float *y = m->c->out[0].data + j->at;
  double s[CUM_LANES];
  for (long i = 0; i < j->n; i++) s[i] = m->t0 > 0 ? (double)y[i * apart + (m->t0 - 1) * j->step] : m->nothing;
  for (long t = m->t0; t < m->t1; t++) {
    mn_cumulative_begin(m, j, t, s, m->nothing);
    MN_PRAGMA(omp simd)
    for (long i = 0; i < j->n; i++) {
      const long at = i * apart + t * j->step;
      s[i] = value(s[i], (double)x[at]);
      y[at] = (float)s[i];
    }
  }
}

MN_CUMULATE void mn_cumulative_walk_back(const mn_cumulative *m, const mn_cumulative_job *j, long apart, mn_cumulative_f slope_x,
                                     mn_cumulative_f slope_s) {
  const mn_arg *in = &m->c->in[CUM_X], *out = &m->c->out[0];
  const float *x = in->data + j->at, *y = out->data + j->at, *dy = out->grad + j->at;
  float *dx = in->grad + j->at;
  double carry[CUM_LANES] = { 0 }, before[CUM_LANES];
  for (long t = m->span.size - 1; t >= 0; t--) {
    for (long i = 0; i < j->n; i++) before[i] = t > 0 ? (double)y[i * apart + (t - 1) * j->step] : m->nothing;
    mn_cumulative_begin(m, j, t, before, m->nothing);
    MN_PRAGMA(omp simd)
    for (long i = 0; i < j->n; i++) {
      const long at = i * apart + t * j->step;
      const double g = carry[i] + (double)dy[at];
      dx[at] = (float)(g * slope_x(before[i], (double)x[at]));
      carry[i] = g * slope_s(before[i], (double)x[at]);
    }
    mn_cumulative_begin(m, j, t, carry, 0);
  }
}

static inline long mn_cumulative_jobs(const mn_cumulative *m) { return m->span.inner == 1 ? m->jobs : m->span.outer * m->jobs; }

#define MN_CUMULATIVE_OP(value, slope_x, slope_s) \
  MN_CUMULATE double value_of(double s, double x) { return value; } \
  MN_CUMULATE double slope_of_x(double s, double x) { (void)s, (void)x; return slope_x; } \
  MN_CUMULATE double slope_of_s(double s, double x) { (void)s, (void)x; return slope_s; } \
  static void walk(const mn_cumulative *m, long i) { \
    const mn_cumulative_job j = mn_cumulative_job_of(m, i); \
    if (j.apart == 1) mn_cumulative_walk(m, &j, 1, value_of); \
    else mn_cumulative_walk(m, &j, j.apart, value_of); \
  } \
  static void walk_back(const mn_cumulative *m, long i) { \
    const mn_cumulative_job j = mn_cumulative_job_of(m, i); \
    if (j.apart == 1) mn_cumulative_walk_back(m, &j, 1, slope_of_x, slope_of_s); \
    else mn_cumulative_walk_back(m, &j, j.apart, slope_of_x, slope_of_s); \
  } \
  static void forward(mn_call *c) { \
    const mn_cumulative m = mn_cumulative_of(c, NOTHING); \
    MN_FOR(c->ctx, (m.t1 - m.t0) * m.span.outer * m.span.inner, i, 0, mn_cumulative_jobs(&m), 1, walk(&m, i)); \
  } \
  static void backward(mn_call *c) { \
    const mn_cumulative m = mn_cumulative_of(c, NOTHING); \
    MN_FOR(c->ctx, 2 * c->in[CUM_X].n, i, 0, mn_cumulative_jobs(&m), 1, walk_back(&m, i)); \
  }

#define MN_CUMULATIVE_SIG "x[*] done?[T,B]:bit -> y[*] | axis=0"

#endif
