/* logsumexp.c -- y = ln(sum of e^x) along the last axis; the largest x is subtracted first.
** As in torch a row of -inf alone has y = -inf, and one with +inf has +inf (with a NaN: NaN).  The gradient of the first is 0, where
** torch's is NaN; of the second it is NaN at each +inf and 0 elsewhere, as torch's. */
#include <math.h>
#include "numerics/fast_math.h"
#include "numerics/simd.h"
#include "op.h"

static void forward(mn_call *c) {
  long D = DIM(c, 'D'), rows = c->in[0].n / D;
  MN_PARALLEL_ROWS(c->ctx, rows * D, rows)
  for (long r = 0; r < rows; r++) {
    const float *x = c->in[0].data + r * D;
    float top = mn_vmax(x, D), sum = 0;
    if (isinf(top)) top = 0;
    MN_PRAGMA(omp simd reduction(+:sum))
    for (long i = 0; i < D; i++) sum += mn_expf(x[i] - top);
    c->out[0].data[r] = top + mn_logf(sum);
  }
}

static void backward(mn_call *c) {
  long D = DIM(c, 'D'), rows = c->in[0].n / D;
  MN_PARALLEL_ROWS(c->ctx, rows * D, rows)
  for (long r = 0; r < rows; r++) {
    const float *x = c->in[0].data + r * D;
    float *dx = c->in[0].grad + r * D, y = c->out[0].data[r], dy = c->out[0].grad[r];
    if (y == -INFINITY) y = 0;
    MN_PRAGMA(omp simd)
    for (long i = 0; i < D; i++) dx[i] = dy * mn_expf(x[i] - y);
  }
}

const mn_op mn_op_logsumexp = {
  .sig = "x[...,D] -> y[...]",
  .doc = "y = ln(sum of e^x), along the last axis",
  .time = MN_PER_ROW, .forward = forward, .backward = backward,
};
