/* softmax.c -- y = e^x / sum of e^x along the last axis; the largest x is subtracted first. */
#include "numerics/fast_math.h"
#include "numerics/simd.h"
#include "op.h"

static void forward_rows(mn_call *c, long from, long end) {
  const long D = DIM(c, 'D');
  for (long r = from; r < end; r++) {
    const float *x = c->in[0].data + r * D;
    float *y = c->out[0].data + r * D, top = mn_vmax(x, D), sum = 0;
    MN_PRAGMA(omp simd reduction(+:sum))
    for (long i = 0; i < D; i++) sum += y[i] = mn_expf(x[i] - top);
    float scale = 1 / sum;
    for (long i = 0; i < D; i++) y[i] *= scale;
  }
}

static void forward(mn_call *c) { MN_FOR_ROWS(c->ctx, c->in[0].n, c->in[0].n / DIM(c, 'D'), r, end, forward_rows(c, r, end)); }

/* dx = y (dy - sum of y dy) */
static void backward_rows(mn_call *c, long from, long end) {
  const long D = DIM(c, 'D');
  for (long r = from; r < end; r++) {
    const float *y = c->out[0].data + r * D, *dy = c->out[0].grad + r * D;
    float *dx = c->in[0].grad + r * D, dot = 0;
    MN_PRAGMA(omp simd reduction(+:dot))
    for (long i = 0; i < D; i++) dot += y[i] * dy[i];
    for (long i = 0; i < D; i++) dx[i] = y[i] * (dy[i] - dot);
  }
}

static void backward(mn_call *c) { MN_FOR_ROWS(c->ctx, c->in[0].n, c->in[0].n / DIM(c, 'D'), r, end, backward_rows(c, r, end)); }

const mn_op mn_op_softmax = {
  .sig = "x[...,D] -> y[...,D]",
  .doc = "y = e^x / sum of e^x, along the last axis",
  .time = MN_PER_ROW, .forward = forward, .backward = backward,
};
