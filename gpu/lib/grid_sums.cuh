/* grid_sums.cuh -- a few sums over all rows of a kernel: each block adds up its
** threads' terms, and the consumer adds up the blocks, in order. */
#pragma once
#include "row_teams.cuh"

enum { CU_TOTALS = CU_THREADS };                    /* blocks that add up, at most */

/* The number of blocks for that many rows of some width, which is also the number of parts of each sum. */
static inline int cu_total_blocks(long rows, int width) {
  return (int)cu_min(cu_parts(rows * width, CU_THREADS), (long)CU_TOTALS);
}

/* parts[block][0..N-1] = the block's sums of x[0..N-1].  All threads must come. */
template <int N> static __device__ __forceinline__ void cu_total_part(const double *x, double *parts) {
  const cu_team block(CU_THREADS);
  CU_UNROLL
  for (int k = 0; k < N; k++) {
    const double sum = block.sum(x[k]);
    if (threadIdx.x == 0) parts[(long)blockIdx.x * N + k] = sum;
  }
}

/* Sum k of N, of all blocks.  All threads must come. */
static __device__ __forceinline__ double cu_total(const double *parts, int blocks, int N, int k) {
  const int tid = (int)threadIdx.x;
  return cu_team(CU_THREADS).sum(tid < blocks ? parts[tid * N + k] : 0.0);
}
