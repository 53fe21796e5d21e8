/* embedding.c -- looks rows up: y[...] = w[index[...]].
** A replayed plan does not check its indices: one out of range gives NaN. */
#include <string.h>
#include "op.h"

static void forward(mn_call *c) {
  long V = DIM(c, 'V'), D = DIM(c, 'D'), rows = c->in[1].n;
  MN_PARALLEL_ROWS(c->ctx, rows * D, rows)
  for (long r = 0; r < rows; r++) {
    int32_t i = c->in[1].i32[r];
    float *y = c->out[0].data + r * D;
    if (i >= 0 && i < V) memcpy(y, c->in[0].data + i * D, (size_t)D * sizeof *y);
    else for (long d = 0; d < D; d++) y[d] = __builtin_nanf("");
  }
}

static void backward(mn_call *c) {
  long V = DIM(c, 'V'), D = DIM(c, 'D');
  float *dw = c->in[0].grad;
  if (!mn_accumulates(c, 0)) memset(dw, 0, (size_t)(V * D) * sizeof *dw);
  for (long r = 0; r < c->in[1].n; r++) {
    int32_t i = c->in[1].i32[r];
    if (i < 0 || i >= V) continue;
    const float *dy = c->out[0].grad + r * D;
    for (long d = 0; d < D; d++) dw[i * D + d] += dy[d];
  }
}

const mn_op mn_op_embedding = {
  .sig = "w[V,D] index[...]:<V -> y[...,D]",
  .doc = "y[...] = w[index[...]]: a table of vectors",
  .time = MN_PER_ROW, .accumulates = true, .forward = forward, .backward = backward,
};
