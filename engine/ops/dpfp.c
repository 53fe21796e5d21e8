/* dpfp.c -- deterministic parameter-free projection: products of a vector's halves with their neighbours.
** u = [relu(x); relu(-x)],  y = [u * roll(u, 1), ..., u * roll(u, nu)], rolled to the right.  x_i and
** -x_i are never both positive, so few products are nonzero, and distant keys share none (Schlag et al. 2021, eq. 37). */
#include "numerics/fast_math.h"
#include "op.h"

static int shape(mn_call *c) {
  double nu = OPT(c, 0), n = 2 * nu * DIM(c, 'D');
  if (!(nu >= 1 && nu < 1 << 30) || nu != (int)nu)
    return mn_fail(c->ctx, "dpfp: nu is %g, expected a whole number from 1 to 2^30 - 1", nu);
  if (n > 1e9) return mn_fail(c->ctx, "dpfp: y would have %g values per row, expected at most 1e9", n);
  c->out[0].shape[c->in[0].ndim - 1] = (int)n;
  return 0;
}

/* u twice over: u[i - j] is u2[2D + i - j]. */
static void halves(const float *x, long D, float *u2) {
  for (long i = 0; i < D; i++) {
    u2[i] = u2[2 * D + i] = mn_at_least(x[i], 0);
    u2[D + i] = u2[3 * D + i] = mn_at_least(-x[i], 0);
  }
}

static void row_forward(const mn_call *c, long r, float *u2) {
  long D = DIM(c, 'D'), n = 2 * D, nu = (long)OPT(c, 0);
  float *y = c->out[0].data + r * n * nu;
  halves(c->in[0].data + r * D, D, u2);
  for (long j = 1; j <= nu; j++, y += n) {
    const float *back = u2 + n - j % n;
    for (long i = 0; i < n; i++) y[i] = u2[i] * back[i];
  }
}

/* u_i meets u_i-j in y_i and u_i+j in y_i+j. */
static void row_backward(const mn_call *c, long r, float *u2) {
  long D = DIM(c, 'D'), n = 2 * D, nu = (long)OPT(c, 0);
  const float *x = c->in[0].data + r * D, *dy = c->out[0].grad + r * n * nu;
  float *dx = c->in[0].grad + r * D, *du = u2 + 2 * n;
  halves(x, D, u2);
  for (long i = 0; i < n; i++) du[i] = 0;
  for (long j = 1; j <= nu; j++, dy += n) {
    long shift = j % n;
    const float *back = u2 + n - shift, *ahead = u2 + shift;
    for (long i = 0; i < n; i++) du[i] += dy[i] * back[i];
    for (long i = 0; i < n - shift; i++) du[i] += dy[i + shift] * ahead[i];
    for (long i = n - shift; i < n; i++) du[i] += dy[i + shift - n] * ahead[i];
  }
  for (long i = 0; i < D; i++) dx[i] = x[i] > 0 ? du[i] : x[i] < 0 ? -du[D + i] : 0;
}

enum { ROWS = 64 };              /* to a job */

static void each_row(mn_call *c, void (*row)(const mn_call *, long, float *)) {
  long D = DIM(c, 'D'), rows = c->in[0].n / D, size = 6 * D;
  float *work = mn_scratch(c->ctx, 0, (rows + ROWS - 1) / ROWS * size);
  MN_FOR(c->ctx, rows * D * OPT(c, 0), i, 0, rows, ROWS,
         for (long r = i; r < rows && r < i + ROWS; r++) row(c, r, work + i / ROWS * size));
}

static void forward(mn_call *c) { each_row(c, row_forward); }
static void backward(mn_call *c) { each_row(c, row_backward); }

const mn_op mn_op_dpfp = {
  .sig = "x[...,D] -> y[...,?] | nu=1",
  .doc = "u = [relu(x), relu(-x)], y = [u * roll(u, j) for j = 1..nu]: 2 nu D numbers "
         "(DPFP: Schlag et al. 2021, eq. 37)",
  .time = MN_PER_ROW, .shape = shape, .forward = forward, .backward = backward,
};
