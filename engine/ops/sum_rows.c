/* sum_rows.c -- sums rows of a table: y[...] = sum over k of w[index[...,k]].  A linear layer of one-hots without products with zeros.
** An index out of range, such as -1, counts for nothing.  Columns are taken 64 at a time, which stay in registers; in the gradient they are
** what threads divide, so its bits do not depend on how many threads there are. */
#include <string.h>
#include "op.h"

enum { COLUMNS = 64 };

static inline int width(const mn_call *c, long from) { return DIM(c, 'D') - from < COLUMNS ? (int)(DIM(c, 'D') - from) : COLUMNS; }

static inline void sum_all(const float *w, const int32_t *index, int K, int V, int D, float *y) {
  float sum[COLUMNS] = { 0 };
  for (int k = 0; k < K; k++) {
    if (index[k] < 0 || index[k] >= V) continue;
    const float *row = w + (long)index[k] * D;
    for (int d = 0; d < COLUMNS; d++) sum[d] += row[d];
  }
  memcpy(y, sum, sizeof sum);
}

static void forward(mn_call *c) {
  int V = DIM(c, 'V'), D = DIM(c, 'D'), K = DIM(c, 'K');
  long rows = c->in[1].n / K;
  MN_PARALLEL_ROWS(c->ctx, rows * D * K, rows)
  for (long r = 0; r < rows; r++) {
    const int32_t *index = c->in[1].i32 + r * K;
    float *y = c->out[0].data + r * D;
    int at = 0;
    for (; at + COLUMNS <= D; at += COLUMNS) sum_all(c->in[0].data + at, index, K, V, D, y + at);
    for (int d = at; d < D; d++) y[d] = 0;
    for (int k = 0; k < K && at < D; k++) {
      if (index[k] < 0 || index[k] >= V) continue;
      for (int d = at; d < D; d++) y[d] += c->in[0].data[(long)index[k] * D + d];
    }
  }
}

static void columns_gradient(const mn_call *c, long from) {
  int V = DIM(c, 'V'), D = DIM(c, 'D'), K = DIM(c, 'K'), n = width(c, from);
  long rows = c->in[1].n / K;
  float *dw = c->in[0].grad + from;
  if (!mn_accumulates(c, 0))
    for (int v = 0; v < V; v++) memset(dw + (long)v * D, 0, (size_t)n * sizeof *dw);
  for (long r = 0; r < rows; r++) {
    const int32_t *index = c->in[1].i32 + r * K;
    const float *dy = c->out[0].grad + r * D + from;
    for (int k = 0; k < K; k++) {
      if (index[k] < 0 || index[k] >= V) continue;
      float *to = dw + (long)index[k] * D;
      if (n == COLUMNS) for (int d = 0; d < COLUMNS; d++) to[d] += dy[d];
      else for (int d = 0; d < n; d++) to[d] += dy[d];
    }
  }
}

static void backward(mn_call *c) {
  long D = DIM(c, 'D');
  MN_FOR(c->ctx, D * c->in[1].n, from, 0, D, COLUMNS, columns_gradient(c, from));
}

const mn_op mn_op_sum_rows = {
  .sig = "w[V,D] index[...,K]:i32 -> y[...,D]",
  .doc = "y[...] = sum over k of w[index[...,k]]; an index out of range, such as -1, counts for nothing: a linear layer of one-hots",
  .time = MN_PER_ROW, .accumulates = true, .forward = forward, .backward = backward,
};
