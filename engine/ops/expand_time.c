/* expand_time.c -- repeats a tensor over time and batch: for gates that are parameters and do not depend on
** the input. */
#include <string.h>
#include "numerics/strided.h"

static void forward(mn_call *c) {
  const long bytes = c->in[0].n * mn_item(c->in[0].dtype);
  mn_copy_rows(c->ctx, c->out[0].data, bytes, c->in[0].data, 0, c->out[0].n / c->in[0].n, bytes);
}

enum { BLOCK = 64 };             /* numbers to a job */

static void sums(const mn_call *c, long from) {
  long n = c->in[0].n, rows = c->out[0].n / n, end = n - from < BLOCK ? n : from + BLOCK;
  double sum[BLOCK] = { 0 };
  for (long r = 0; r < rows; r++)
    for (long i = from; i < end; i++) sum[i - from] += (double)c->out[0].grad[r * n + i];
  for (long i = from; i < end; i++) c->in[0].grad[i] = (float)sum[i - from];
}

static void backward(mn_call *c) {
  if (c->in[0].grad) MN_FOR(c->ctx, c->out[0].n, i, 0, c->in[0].n, BLOCK, sums(c, i));
  if (c->in[1].grad) memset(c->in[1].grad, 0, sizeof(float) * (size_t)c->in[1].n);
}

const mn_op mn_op_expand_time = {
  .sig = "x[H,K]:any like[T,B,...] -> y[T,B,H,K]:any",
  .doc = "y[t,b] = x: broadcast x over time and batch; only the shape of `like` is used",
  .time = MN_PER_ROW, .forward = forward, .backward = backward,
};
