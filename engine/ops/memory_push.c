/* memory_push.c -- a memory of the last M rows, oldest first, like a KV cache: shifts it and appends x.
** One memory can hold several layers as levels.  A memory [B,M,...] whose first axis is the batch
** is one of B levels, [B,M,1,D], with x as [T,1,B*D]. */
#include <string.h>
#include "op.h"

static int shape(mn_call *c) {
  int L = DIM(c, 'L'), D = DIM(c, 'D'), C = DIM(c, 'C');
  if (C != L * D)
    return mn_fail(c->ctx, "memory_push: axis 2 (C) of x is %d, expected %d levels of %d as in memory", C, L, D);
  return 0;
}

/* Slot m after rows 0 .. t1-1: row m + t1 - M of x, or, where that is before the first, slot m + t1. */
static void forward(mn_call *c) {
  int L = DIM(c, 'L'), M = DIM(c, 'M'), B = DIM(c, 'B'), D = DIM(c, 'D'), kept = M > c->t1 ? M - c->t1 : 0;
  const float *x = c->in[0].data, *memory = c->in[1].data;
  long slot = (long)B * D;
  MN_PARALLEL(c->ctx, c->out[0].n)
  for (int l = 0; l < L; l++) {
    float *to = c->out[0].data + (long)l * M * slot;
    if (kept) memmove(to, memory + ((long)l * M + c->t1) * slot, sizeof(float) * (size_t)(kept * slot));
    for (int m = kept; m < M; m++)
      for (int b = 0; b < B; b++)
        memcpy(to + m * slot + (long)b * D, x + (((long)(m + c->t1 - M) * B + b) * L + l) * D, sizeof(float) * (size_t)D);
  }
}

static void backward(mn_call *c) {
  int L = DIM(c, 'L'), M = DIM(c, 'M'), B = DIM(c, 'B'), D = DIM(c, 'D'), T = DIM(c, 'T'), kept = M > T ? M - T : 0;
  float *dx = c->in[0].grad, *dmemory = c->in[1].grad;
  long slot = (long)B * D;
  bool stop = OPT(c, 0) != 0;
  if (dx && (stop || T > M)) memset(dx, 0, sizeof *dx * (size_t)c->in[0].n);
  if (dmemory) memset(dmemory, 0, sizeof *dmemory * (size_t)c->in[1].n);
  for (int l = 0; l < L && !stop; l++) {
    const float *from = c->out[0].grad + (long)l * M * slot;
    if (kept && dmemory) memcpy(dmemory + ((long)l * M + T) * slot, from, sizeof(float) * (size_t)(kept * slot));
    for (int m = kept; dx && m < M; m++)
      for (int b = 0; b < B; b++)
        memcpy(dx + (((long)(m + T - M) * B + b) * L + l) * D, from + m * slot + (long)b * D, sizeof(float) * (size_t)D);
  }
}

const mn_op mn_op_memory_push = {
  .sig = "x[T,B,C] memory[L,M,B,D] -> memory'[L,M,B,D] | stop=0",
  .doc = "append rows to a Transformer-XL memory: the last M rows of memory and x. x's last axis is cut into levels; stop=1: no gradient flows through",
  .time = MN_FINAL, .over = 2, .shape = shape, .forward = forward, .backward = backward,
};
