/* scan.h -- recurrences h_t = f(a_t, h_{t-1}, x_t) of channels that do not mix: gated_scan, log_scan, complex_scan.  An op's file
** defines one step over a run of channels, forward (step) and backward (step_back), and MN_SCAN_OP makes its functions; this file
** walks time, resets, and divides channels among threads.  Inputs, in this order: x[T,B,...] a[*] done?[T,B] h?[B,...]; outputs y, h'.
** a has the shape of x, or of one row of it without the batch, [...]: then it is the same at every step, and its gradient a sum.
**
** Where an episode begins, or before anything was seen, y = x.  Rows are walked in their order, all channels of a row at once, so
** memory is read as it lies: large scans take as long as x * a.  A chunked form (chunks of time side by side, each continued from
** what the one before left) was measured and is not here: on one core, with T = 256 to 4096, it takes as long with 1 channel,
** B*D = 1, and 2 to 3 times as long from 64 on, because it reads and multiplies twice and a step already waits for only 3 ns. */
#ifndef MN_SCAN_H
#define MN_SCAN_H
#include <string.h>
#include "op.h"

#define MN_STEP static inline __attribute__((always_inline))

enum { SCAN_X, SCAN_A, SCAN_DONE, SCAN_H };
enum { SCAN_Y, SCAN_LAST };
enum { SCAN_BLOCK = 256 };       /* channels of a run at most: what all its arrays hold stays in the first cache */

/* A channel has `parts` floats, 1 or 2; the second lies `im` floats after the first. */
typedef struct mn_scan {
  mn_call *c;
  long T, B, D, n;               /* D floats of n channels for each environment */
  long runs;                     /* of an environment's channels */
  long im, a_row, a_env;         /* floats from one row of a to the next, and from one environment to the next */
  float *carry, *da, *unused;    /* backward: [B,D] each; da: sums for a constant a */
} mn_scan;

static inline int mn_scan_shape(mn_call *c) {
  const mn_arg *x = &c->in[SCAN_X], *a = &c->in[SCAN_A];
  const int missing = x->ndim - a->ndim;
  bool fits = missing == 0 || (missing == 2 && a->ndim);
  for (int i = 0; fits && i < a->ndim; i++) fits = a->shape[i] == x->shape[i + missing];
  if (fits) return 0;
  return mn_fail(c->ctx, "%s: a has other sizes than x: expected those of x, [T,B,...], or without T and B if a is constant",
                 mn_call_name(c));
}

/* Without resets the environments are one long row. */
static inline mn_scan mn_scan_of(mn_call *c, int parts) {
  mn_scan s = { .c = c, .T = DIM(c, 'T'), .B = DIM(c, 'B') };
  const bool constant = c->in[SCAN_A].ndim < c->in[SCAN_X].ndim;
  s.D = c->in[SCAN_X].n / (s.T * s.B);
  if (parts == 1 && !constant && !c->in[SCAN_DONE].data && !c->b1) s.D *= s.B, s.B = 1;
  s.n = s.D / parts;
  s.im = s.n;
  s.runs = (s.n + SCAN_BLOCK - 1) / SCAN_BLOCK;
  s.a_env = constant ? 0 : s.D;
  s.a_row = s.a_env * s.B;
  return s;
}

/* A run of channels in row t of one environment: n channels from in_env on; in_row and at: where in [B,D] and in [T,B,D]. */
typedef struct mn_scan_run { long b, n, in_env, in_row, at; const float *h; } mn_scan_run;

static inline mn_scan_run mn_scan_first(const mn_scan *s, long run) { return (mn_scan_run){ .b = run / s->runs, .in_env = run % s->runs * SCAN_BLOCK }; }

static inline void mn_scan_enter(const mn_scan *s, long t, mn_scan_run *r) {
  const mn_arg *done = &s->c->in[SCAN_DONE], *h = &s->c->in[SCAN_H];
  r->n = s->n - r->in_env < SCAN_BLOCK ? s->n - r->in_env : SCAN_BLOCK;
  r->in_row = r->b * s->D + r->in_env;
  r->at = t * s->B * s->D + r->in_row;
  if (done->data && done->u8[t * s->B + r->b]) r->h = NULL;
  else r->h = t > 0 ? s->c->out[SCAN_Y].data + r->at - s->B * s->D : MN_AT(h->data, r->in_row);
}

static inline void mn_scan_leave(const mn_scan *s, mn_scan_run *r) {
  r->in_env += SCAN_BLOCK;
  if (r->in_env >= s->n) r->in_env = 0, r->b++;
}

/* One environment's row of a. */
static inline const float *mn_scan_a(const mn_scan *s, long t, const mn_scan_run *r) {
  return s->c->in[SCAN_A].data + t * s->a_row + r->b * s->a_env + r->in_env;
}

static inline void mn_scan_copy(const mn_scan *s, const mn_scan_run *r, const float *from, float *to) {
  memcpy(to, from, sizeof(float) * (size_t)r->n);
  if (s->n < s->D) memcpy(to + s->im, from + s->im, sizeof(float) * (size_t)r->n);
}

static inline void mn_scan_zero(const mn_scan *s, const mn_scan_run *r, float *to) {
  memset(to, 0, sizeof(float) * (size_t)r->n);
  if (s->n < s->D) memset(to + s->im, 0, sizeof(float) * (size_t)r->n);
}

static inline void mn_scan_add(const mn_scan *s, const mn_scan_run *r, const float *from, float *to) {
  MN_PRAGMA(omp simd)
  for (long i = 0; i < r->n; i++) to[i] += from[i];
  if (s->n == s->D) return;
  MN_PRAGMA(omp simd)
  for (long i = s->im; i < s->im + r->n; i++) to[i] += from[i];
}

/* Into how many shares the runs are divided. */
static inline long mn_scan_shares(const mn_scan *s, double work) {
  const long runs = s->B * s->runs, most = 4 * mn_threads(s->c->ctx);
  return !mn_parallel_pays(s->c->ctx, work) ? 1 : runs < most ? runs : most;
}

/* The step's functions: n channels; y is h_t, g the gradient of y_t, which becomes that of h_{t-1}.  sums: add to da. */
typedef void mn_scan_step(long n, long im, const float *a, const float *h, const float *x, float *y);
typedef void mn_scan_step_back(long n, long im, const float *a, const float *h, const float *x, const float *y, float *g, float *da,
                               float *dx, bool sums);

MN_STEP void mn_scan_walk(const mn_scan *s, long from, long end, mn_scan_step step) {
  mn_call *c = s->c;
  const float *x = c->in[SCAN_X].data;
  float *y = c->out[SCAN_Y].data;
  for (long t = c->t0; t < c->t1; t++) {
    mn_scan_run r = mn_scan_first(s, from);
    for (long run = from; run < end; run++, mn_scan_leave(s, &r)) {
      mn_scan_enter(s, t, &r);
      if (r.h) step(r.n, s->im, mn_scan_a(s, t, &r), r.h, x + r.at, y + r.at);
      else mn_scan_copy(s, &r, x + r.at, y + r.at);
      if (t == c->t1 - 1) mn_scan_copy(s, &r, y + r.at, c->out[SCAN_LAST].data + r.in_row);
    }
  }
}

MN_STEP void mn_scan_walk_back(const mn_scan *s, long from, long end, mn_scan_step_back step_back) {
  mn_call *c = s->c;
  const float *x = c->in[SCAN_X].data, *y = c->out[SCAN_Y].data;
  const float *dy = c->out[SCAN_Y].grad, *dlast = c->out[SCAN_LAST].grad;
  float *dx = c->in[SCAN_X].grad, *da = c->in[SCAN_A].grad, *dh = c->in[SCAN_H].grad;
  for (long t = s->T - 1; t >= 0; t--) {
    mn_scan_run r = mn_scan_first(s, from);
    for (long run = from; run < end; run++, mn_scan_leave(s, &r)) {
      mn_scan_enter(s, t, &r);
      float *g = s->carry + r.in_row, *to_x = dx ? dx + r.at : s->unused + r.in_row;
      float *to_a = s->da ? s->da + r.in_row : da ? da + r.at : s->unused + r.in_row;
      if (t == s->T - 1 && dlast) mn_scan_copy(s, &r, dlast + r.in_row, g);
      else if (t == s->T - 1) mn_scan_zero(s, &r, g);
      if (t == s->T - 1 && s->da) mn_scan_zero(s, &r, to_a);
      if (dy) mn_scan_add(s, &r, dy + r.at, g);
      if (r.h) {
        if (s->da) step_back(r.n, s->im, mn_scan_a(s, t, &r), r.h, x + r.at, y + r.at, g, to_a, to_x, true);
        else step_back(r.n, s->im, mn_scan_a(s, t, &r), r.h, x + r.at, y + r.at, g, to_a, to_x, false);
      } else {
        mn_scan_copy(s, &r, g, to_x);
        if (!s->da) mn_scan_zero(s, &r, to_a);
        mn_scan_zero(s, &r, g);
      }
      if (t == 0 && dh) mn_scan_copy(s, &r, g, dh + r.in_row);
    }
  }
}

/* Backward's scratch. */
static inline void mn_scan_make_room(mn_scan *s) {
  const mn_call *c = s->c;
  const bool constant = s->a_env == 0;
  s->carry = mn_scratch(c->ctx, 0, s->B * s->D);
  if (constant && c->in[SCAN_A].grad) s->da = mn_scratch(c->ctx, 1, s->B * s->D);
  if (!c->in[SCAN_X].grad || !c->in[SCAN_A].grad) s->unused = mn_scratch(c->ctx, 2, s->B * s->D);
}

/* The gradient of a constant a, from each environment's sum over time. */
static inline void mn_scan_sum_da(const mn_scan *s) {
  float *to = s->c->in[SCAN_A].grad;
  if (!s->da) return;
  memcpy(to, s->da, sizeof(float) * (size_t)s->D);
  for (long b = 1; b < s->B; b++)
    for (long i = 0; i < s->D; i++) to[i] += s->da[b * s->D + i];
}

/* forward, backward and batch_parallel of an op: channels of `parts` floats, `cost` multiplications a step. */
#define MN_SCAN_OP(parts, cost) \
  static void walk_share(const mn_scan *s, long i, long shares) { \
    const long runs = s->B * s->runs; \
    mn_scan_walk(s, runs * i / shares, runs * (i + 1) / shares, step); \
  } \
  static void walk_share_back(const mn_scan *s, long i, long shares) { \
    const long runs = s->B * s->runs; \
    mn_scan_walk_back(s, runs * i / shares, runs * (i + 1) / shares, step_back); \
  } \
  static void forward(mn_call *c) { \
    const mn_scan s = mn_scan_of(c, parts); \
    if (c->b1) { \
      mn_scan_walk(&s, c->b0 * s.runs, c->b1 * s.runs, step); \
      return; \
    } \
    const double work = (double)(cost) * (double)(c->t1 - c->t0) * (double)(s.B * s.n); \
    const long shares = mn_scan_shares(&s, work); \
    MN_FOR(c->ctx, work, i, 0, shares, 1, walk_share(&s, i, shares)); \
  } \
  static void backward(mn_call *c) { \
    mn_scan s = mn_scan_of(c, parts); \
    mn_scan_make_room(&s); \
    const double work = 3.0 * (cost) * (double)s.T * (double)(s.B * s.n); \
    const long shares = mn_scan_shares(&s, work); \
    MN_FOR(c->ctx, work, i, 0, shares, 1, walk_share_back(&s, i, shares)); \
    mn_scan_sum_da(&s); \
  } \
  static double batch_parallel(const mn_call *c) { return (double)(cost) * (double)c->in[SCAN_X].n / DIM(c, 'T'); }

#define MN_SCAN_SIG(axes) "x[T,B," axes "] a[*] done?[T,B]:bit h?[B," axes "] -> y[T,B," axes "] h'[B," axes "]"

#endif
