/* with_past.c -- hands a state on, with the gradient that its past has: what a loss asks of the state in which a window begins goes,
** through its sensitivities, to the parameters that made it.  Used for credit=exact: see learn/exact_credit.lua. */
#include <string.h>
#include "numerics/simd.h"
#include "op.h"

enum { IN_STATE, IN_S, IN_W, IN_BIAS, IN_ROWS };
enum { MOST = 4 };               /* vectors of a row that is summed in registers */

static int shape(mn_call *c) {
  const mn_arg *w = &c->in[IN_W], *bias = &c->in[IN_BIAS];
  const int R = DIM(c, 'R'), D = w->data ? DIM(c, 'D') : 0, from = (int)OPT(c, 0);
  if (R != D + (bias->data ? 1 : 0)) return mn_fail(c->ctx, "with_past: S has rows of %d, expected %d", R, D + (bias->data ? 1 : 0));
  if (from < 0 || (long)DIM(c, 'B') * (from + DIM(c, 'N')) > c->in[IN_STATE].n)
    return mn_fail(c->ctx, "with_past: elements %d to %d of a state of %ld", from, from + DIM(c, 'N') - 1, c->in[IN_STATE].n / DIM(c, 'B'));
  return 0;
}

static void forward(mn_call *c) { memcpy(c->out[0].data, c->in[IN_STATE].data, sizeof(float) * (size_t)c->in[IN_STATE].n); }

/* The same for rows of `vectors` whole vectors, a constant: a row's sums stay in registers while the elements that it feeds follow each other. */
MN_INLINE void back_in_registers(mn_call *c, const float *dy, int r0, int r1, const int vectors) {
  const int B = DIM(c, 'B'), N = DIM(c, 'N'), R = DIM(c, 'R'), D = vectors * MN_LANES;
  const long all = c->in[IN_STATE].n / B, from = (long)OPT(c, 0);
  float *dw = c->in[IN_W].grad, *db = c->in[IN_BIAS].grad, sum_of_bias = 0;
  mn_lanes sum[MOST] = { { 0 } };
  for (int i = 0, at = -1; i <= N; i++) {
    const int r = i < N ? c->in[IN_ROWS].i32[i] : -1;
    if (at >= 0 && r != at) {
      for (int v = 0; v < vectors; v++) mn_store(dw + (long)at * D + v * MN_LANES, sum[v]);
      if (db) db[at] = sum_of_bias;
    }
    if (r != at && r >= r0 && r < r1) {
      for (int v = 0; v < vectors; v++) sum[v] = mn_load(dw + (long)r * D + v * MN_LANES);
      sum_of_bias = db ? db[r] : 0;
    }
    at = r >= r0 && r < r1 ? r : -1;
    for (int b = 0; at >= 0 && b < B; b++) {
      const float g = dy[b * all + from + i], *S = c->in[IN_S].data + ((long)b * N + i) * R;
      if (g == 0) continue;
      for (int v = 0; v < vectors; v++) sum[v] += g * mn_load(S + v * MN_LANES);
      if (db) sum_of_bias += g * S[D];
    }
  }
}

/* The gradient of rows r0 .. r1-1 of the parameters. */
static void back(mn_call *c, const float *dy, int r0, int r1) {
  const int B = DIM(c, 'B'), N = DIM(c, 'N'), R = DIM(c, 'R');
  const long all = c->in[IN_STATE].n / B, from = (long)OPT(c, 0);
  float *dw = c->in[IN_W].grad, *db = c->in[IN_BIAS].grad;
  const int D = c->in[IN_W].data ? DIM(c, 'D') : 0;
  if (dw) memset(dw + (long)r0 * D, 0, sizeof(float) * (size_t)(r1 - r0) * (size_t)D);
  if (db) memset(db + r0, 0, sizeof(float) * (size_t)(r1 - r0));
  if (dw && D == MN_LANES) back_in_registers(c, dy, r0, r1, 1);
  else if (dw && D == 2 * MN_LANES) back_in_registers(c, dy, r0, r1, 2);
  else if (dw && D == MOST * MN_LANES) back_in_registers(c, dy, r0, r1, MOST);
  else for (int i = 0; i < N; i++) {
    const int r = c->in[IN_ROWS].i32[i];
    if (r < r0 || r >= r1) continue;
    for (int b = 0; b < B; b++) {
      const float g = dy[b * all + from + i], *S = c->in[IN_S].data + ((long)b * N + i) * R;
      if (g == 0) continue;
      if (dw) MN_PRAGMA(omp simd) for (int j = 0; j < D; j++) dw[(long)r * D + j] += g * S[j];
      if (db) db[r] += g * S[D];
    }
  }
}

static void backward(mn_call *c) {
  const mn_arg *w = &c->in[IN_W], *bias = &c->in[IN_BIAS];
  const float *dy = c->out[0].grad;
  const int rows = w->data ? w->shape[0] : bias->data ? bias->shape[0] : 0;
  if (c->in[IN_STATE].grad) memcpy(c->in[IN_STATE].grad, dy, sizeof(float) * (size_t)c->in[IN_STATE].n);
  if (w->grad || bias->grad) MN_FOR(c->ctx, (double)c->in[IN_S].n, r, 0, rows, 64, back(c, dy, (int)r, r + 64 < rows ? (int)r + 64 : rows));
}

const mn_op mn_op_with_past = {
  .sig = "state[B,...] ~S[B,N,R] w?[O,D] bias?[O] rows[N]:<O -> y[B,...] | from=0",
  .doc = "y = state; the gradient of row rows[i] of [w, bias] is that of element from + i of the state times S[i], its sensitivities (exact "
         "real-time credit: Williams and Zipser 1989)",
  .time = MN_WHOLE, .shape = shape, .forward = forward, .backward = backward,
};
