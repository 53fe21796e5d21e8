/* memory_read.c -- one level of a memory, with zeros where a slot is blocked or an episode begins at row 0.
** So forgotten values never enter the arithmetic: zero times NaN would be NaN. */
#include <string.h>
#include "op.h"

static int shape(mn_call *c) {
  double level = OPT(c, 0);
  int L = DIM(c, 'L');
  if (!(level >= 0 && level < L) || level != (int)level)
    return mn_fail(c->ctx, "memory_read: level is %g, expected 0 to %d", level, L - 1);
  return 0;
}

static bool open_slot(const mn_call *c, int m, int b) {
  const uint8_t *done = c->in[0].u8;
  return c->in[2].data[(long)m * DIM(c, 'B') + b] == 0 && !(done && done[b]);
}

static void forward(mn_call *c) {
  int M = DIM(c, 'M'), B = DIM(c, 'B');
  size_t D = (size_t)DIM(c, 'D');
  const float *from = c->in[1].data + (long)OPT(c, 0) * c->out[0].n;
  float *y = c->out[0].data;
  for (int m = 0; m < M; m++)
    for (int b = 0; b < B; b++, from += D, y += D)
      if (open_slot(c, m, b)) memcpy(y, from, sizeof *y * D);
      else memset(y, 0, sizeof *y * D);
}

static void backward(mn_call *c) {
  int M = DIM(c, 'M'), B = DIM(c, 'B'), D = DIM(c, 'D');
  float *to = c->in[1].grad;
  const float *dy = c->out[0].grad;
  if (!to) return;
  if (!mn_accumulates(c, 1)) memset(to, 0, sizeof *to * (size_t)c->in[1].n);
  to += (long)OPT(c, 0) * c->out[0].n;
  for (int m = 0; m < M; m++)
    for (int b = 0; b < B; b++, to += D, dy += D)
      if (open_slot(c, m, b)) for (int d = 0; d < D; d++) to[d] += dy[d];
}

const mn_op mn_op_memory_read = {
  .sig = "done?[T,B]:bit memory[L,M,B,D] ~mask[M,B] -> y[M,B,D] | level=0",
  .doc = "one level of a Transformer-XL memory. Zeros where a slot is blocked or an episode begins at row 0 (see memory_push)",
  .time = MN_FIRST, .accumulates = true, .shape = shape, .forward = forward, .backward = backward,
};
