/* parameter_table.cuh -- a table of a model's parameters (leaves) for launches over all of them: a model has dozens, mostly
** small.  Blocks are distributed over all leaves; each block looks up its leaf. */
#pragma once
#include "kernel.cuh"

enum { TABLE = 48, SHARE = 16 * CU_THREADS };       /* leaves of a launch; numbers of a block */

struct Leaf {
  float *w, *m, *v, *g;
  long n, before;                                   /* numbers; those of the leaves before it in the table */
  int first;                                        /* its first block */
};

struct Leaves {
  Leaf at[TABLE];
  int n = 0, blocks = 0;
  long numbers = 0;

  void add(const mn_call *c) {
    Leaf l = { c->in[0].data, NULL, NULL, c->in[0].grad, c->in[0].n, numbers, blocks };
    if (c->n_in > 4) l.m = c->in[1].data, l.v = c->in[2].data;
    blocks += (int)cu_parts(l.n, SHARE);
    numbers += l.n;
    at[n++] = l;
  }
};

/* The leaf of a block; the numbers from .. end-1 of it are the block's. */
static __device__ __forceinline__ Leaf leaf_of(const Leaves &all, int block, long *from, long *end, int *number) {
  int i = 0;
  while (i + 1 < all.n && all.at[i + 1].first <= block) i++;
  *from = (long)(block - all.at[i].first) * SHARE;
  *end = cu_min(*from + SHARE, all.at[i].n);
  *number = i;
  return all.at[i];
}
