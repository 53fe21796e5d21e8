/* slstm_gate.c -- one step of sLSTM's cell from its gates: exponential input gate, normalised cell (Beck et al. 2024, xLSTM, equations 8
** to 17).  All that a step computes but its products, so a recurrence of any products takes few calls a step.  Backward works the gates
** out again: they are cheaper than their memory. */
#include <omp.h>
#include <string.h>
#include "numerics/gates.h"

enum { X, R, C, N, M };          /* inputs */
enum { Y, CELL, NORM, TOP };     /* outputs */

static int shape(mn_call *c) {
  const int D = DIM(c, 'D'), G = DIM(c, 'G');
  if (G != 4 * D) return mn_fail(c->ctx, "slstm_gate: the last axis (G) of x is %d, expected 4 x %d as in c", G, D);
  return 0;
}

/* What row `at` reads. */
#define READ(d) { x[d] + r[d], x[D + d] + r[D + d], x[2 * D + d] + r[2 * D + d], x[3 * D + d] + r[3 * D + d], cell[d], n[d], m[d] }
#define ROWS(c, at, D) \
  const float *x = (c)->in[X].data + (at) * 4 * D, *r = (c)->in[R].data + (at) * 4 * D; \
  const float *cell = (c)->in[C].data + (at) * D, *n = (c)->in[N].data + (at) * D, *m = (c)->in[M].data + (at) * D

static void step_row(mn_call *c, long at, long D) {
  ROWS(c, at, D);
  float *y = c->out[Y].data + at * D, *cell_ = c->out[CELL].data + at * D, *n_ = c->out[NORM].data + at * D, *m_ = c->out[TOP].data + at * D;
  MN_PRAGMA(omp simd)
  for (long d = 0; d < D; d++) {
    const mn_slstm now = READ(d);
    const mn_slstm_next next = mn_slstm_step(now);
    y[d] = next.y, cell_[d] = next.c, n_[d] = next.n, m_[d] = next.m;
  }
}

static void forward(mn_call *c) {
  const long D = DIM(c, 'D'), rows = c->in[C].n / D;
  MN_FOR(c->ctx, 32.0 * (double)c->in[C].n, at, 0, rows, 1, step_row(c, at, D));
}

/* none: a row of zeros, for gradients that did not arrive; away: 7 rows for those that nobody wants. */
static void back_row(mn_call *c, long at, long D, const float *none, float *away) {
  ROWS(c, at, D);
  const float *of[4], *y = c->out[Y].data + at * D, *cell_ = c->out[CELL].data + at * D, *n_ = c->out[NORM].data + at * D;
  for (int k = Y; k <= TOP; k++) of[k] = c->out[k].grad ? c->out[k].grad + at * D : none;
  const float *gy = of[Y], *gc = of[CELL], *gn = of[NORM], *gm = of[TOP];
  float *to[5];
  for (int k = X; k <= M; k++) {
    const long wide = k <= R ? 4 * D : D;
    to[k] = c->in[k].grad ? c->in[k].grad + at * wide : away + (k <= R ? 0 : (k + 2) * D);
  }
  float *dx = c->in[X].grad ? to[X] : to[R], *dc = to[C], *dn = to[N], *dm = to[M];
  MN_PRAGMA(omp simd)
  for (long d = 0; d < D; d++) {
    const mn_slstm now = READ(d);
    const mn_slstm_next arrived = { gy[d], gc[d], gn[d], gm[d] };
    const mn_slstm g = mn_slstm_back(now, y[d], cell_[d], n_[d], arrived);
    dx[d] = g.i, dx[D + d] = g.f, dx[2 * D + d] = g.z, dx[3 * D + d] = g.o;
    dc[d] = g.c, dn[d] = g.n, dm[d] = g.m;
  }
  if (c->in[X].grad && c->in[R].grad) memcpy(to[R], dx, sizeof(float) * 4 * (size_t)D);
}

static void backward(mn_call *c) {
  const long D = DIM(c, 'D'), rows = c->in[C].n / D;
  float *none = mn_scratch(c->ctx, 0, D), *away = mn_scratch(c->ctx, 1, 7 * D * mn_threads(c->ctx));
  memset(none, 0, sizeof(float) * (size_t)D);
  MN_FOR(c->ctx, 64.0 * (double)c->in[C].n, at, 0, rows, 1, back_row(c, at, D, none, away + 7 * D * omp_get_thread_num()));
}

const mn_op mn_op_slstm_gate = {
  .sig = "x[...,G] r[...,G] c[...,D] n[...,D] m[...,D] -> y[...,D] c2[...,D] n2[...,D] m2[...,D]",
  .doc = "i, f, z, o = x + r; m2 = max(log sigma(f) + m, i), a = exp(log sigma(f) + m - m2), b = exp(i - m2); c2 = a c + b tanh(z), n2 = a n + b, "
         "y = sigma(o) c2 / n2: a step of sLSTM (Beck et al. 2024)",
  .time = MN_PER_ROW, .shape = shape, .forward = forward, .backward = backward,
};
