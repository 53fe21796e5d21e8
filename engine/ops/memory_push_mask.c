/* memory_push_mask.c -- which slots of a memory of the last M rows belong to the current episode.
** A slot is blocked (1) if it was before, or if an episode began after it; see memory_push. */
#include "op.h"

/* The first row of x that belongs to environment b's last episode; -1: the one that the memory is of. */
static int episode(const mn_call *c, int b) {
  int t = c->t1 - 1;
  while (t >= 0 && !(c->in[2].data && c->in[2].u8[(long)t * DIM(c, 'B') + b])) t--;
  return t;
}

static void forward(mn_call *c) {
  int M = DIM(c, 'M'), B = DIM(c, 'B');
  const float *mask = c->in[1].data;
  for (int b = 0; b < B; b++) {
    int from = episode(c, b);
    for (int m = 0; m < M; m++) {
      int row = m + c->t1 - M;
      c->out[0].data[(long)m * B + b] = row >= 0 ? row < from : from >= 0 ? 1 : mask[(long)(m + c->t1) * B + b];
    }
  }
}

const mn_op mn_op_memory_push_mask = {
  .sig = "x[T,B,...] ~mask[M,B] done?[T,B]:bit -> ~mask'[M,B]",
  .doc = "mask of a Transformer-XL memory after appending. 1 where a slot of the last M rows is from an earlier episode, or was blocked in mask; only "
      "the number of rows of x is used",
  .time = MN_FINAL, .over = 2, .forward = forward,
};
