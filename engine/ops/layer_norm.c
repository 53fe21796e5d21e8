/* layer_norm.c -- y = (x - mean) / sqrt(variance + eps) * weight + bias along the last axis.
** Population variance (divided by D): Ba, Kiros, Hinton 2016.  `stats` keeps mean and
** 1/sqrt(variance + eps). */
#include <string.h>
#include "numerics/norm.h"

static void normalise(mn_call *c, long from, long end) {
  long D = DIM(c, 'D');
  for (long r = from; r < end; r++)
    mn_norm_row(c->in[0].data + r * D, c->in[1].data, c->in[2].data, (float)OPT(c, 0), D, c->out[0].data + r * D,
                c->out[1].data + 2 * r);
}

static void forward(mn_call *c) {
  long D = DIM(c, 'D'), rows = c->in[0].n / D;
  MN_FOR(c->ctx, rows * D, r, 0, rows, 64, normalise(c, r, rows - r < 64 ? rows : r + 64));
}

static void backward_x(mn_call *c, long from, long end) {
  const long D = DIM(c, 'D');
  const bool add = mn_accumulates(c, 0);
  for (long r = from; r < end; r++)
    mn_norm_row_back(c->in[0].data + r * D, c->in[1].data, c->out[1].data + 2 * r, D, c->out[0].grad + r * D,
                     c->in[0].grad + r * D, add);
}

enum { ROWS = 128 };             /* of a part */

static void part(const mn_call *c, long from, long rows, float *dw) {
  const long D = DIM(c, 'D');
  memset(dw, 0, (size_t)(2 * D) * sizeof *dw);
  for (long r = from; r < rows && r < from + ROWS; r++)
    mn_norm_row_params(c->in[0].data + r * D, c->out[1].data + 2 * r, D, c->out[0].grad + r * D, dw, dw + D);
}

/* dweight = sum over rows of dy n, dbias = sum over rows of dy: in fixed parts, summed in order. */
static void backward_parameters(mn_call *c) {
  long D = DIM(c, 'D'), rows = c->in[0].n / D, parts = (rows + ROWS - 1) / ROWS;
  float *all = mn_scratch(c->ctx, 0, parts * 2 * D);
  MN_FOR(c->ctx, rows * D, p, 0, parts, 1, part(c, p * ROWS, rows, all + p * 2 * D));
  for (int k = 0; k < 2; k++) {
    float *to = c->in[1 + k].grad;
    if (to && !mn_accumulates(c, 1 + k)) memset(to, 0, (size_t)D * sizeof *to);
    for (long p = 0; to && p < parts; p++)
      for (long i = 0; i < D; i++) to[i] += all[p * 2 * D + k * D + i];
  }
}

static void backward(mn_call *c) {
  if (c->in[0].grad) MN_FOR_ROWS(c->ctx, c->in[0].n, c->in[0].n / DIM(c, 'D'), r, end, backward_x(c, r, end));
  if (c->in[1].grad || c->in[2].grad) backward_parameters(c);
}

static double batch_parallel(const mn_call *c) { return c->in[1].timed || c->in[2].timed ? 0 : (double)c->in[0].n; }

const mn_op mn_op_layer_norm = {
  .sig = "x[...,D] weight[D] bias[D] -> y[...,D] ~~stats[...,2] | eps=1e-6",
  .doc = "y = (x - mean) / sqrt(var + eps) * weight + bias, along the last axis, population "
         "variance (Ba et al. 2016)",
  .time = MN_PER_ROW, .accumulates = true, .batch_parallel = batch_parallel, .forward = forward, .backward = backward,
};
