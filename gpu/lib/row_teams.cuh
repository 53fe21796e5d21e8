/* row_teams.cuh -- threads that share a row of numbers.  A block of CU_THREADS threads is cut into teams of
** one width, a power of two: short rows take a few lanes each, so that no lane idles, long ones a warp
** or the whole block.  Sums have a fixed order.
**
**   cu_team team(width);
**   for (long row = team.first(); team.any(row, rows); row = team.next(row)) {
**     float sum = 0;
**     if (row < rows) for (int i = team.lane; i < D; i += team.width) sum += x[row * D + i];
**     sum = team.sum(sum);                   all threads of the block come here
**     ...
**   }
** with CU_LAUNCH(kernel, cu_team_blocks(rows, width), CU_THREADS, CU_TEAM_SHARED, ...). */
#pragma once
#include "runtime/kernel.cuh"

enum { CU_TEAM_SHARED = CU_THREADS / 32 * 8 };

/* The width for rows of D numbers: some four numbers to a thread, while the block has threads. */
static inline int cu_team_width(long D) {
  int width = 1;
  while (width < CU_THREADS && (long)width * 4 < D) width *= 2;
  return width;
}

static inline unsigned cu_team_blocks(long rows, int width) { return cu_blocks(rows * width); }

struct cu_team {
  int width, lane, id;                      /* threads; place among them; which team of the block */
  int shared;                               /* byte at which its CU_TEAM_SHARED bytes begin */
  __device__ __forceinline__ explicit cu_team(int width_, int shared_ = 0)
    : width(width_), lane((int)threadIdx.x & (width_ - 1)), id((int)threadIdx.x / width_), shared(shared_) {}

  __device__ __forceinline__ int teams() const { return (int)blockDim.x / width; }
  __device__ __forceinline__ long first() const { return (long)blockIdx.x * teams() + id; }
  __device__ __forceinline__ long next(long row) const { return row + (long)gridDim.x * teams(); }
  /* Does any team of this block still have a row?  The same for all its threads. */
  __device__ __forceinline__ bool any(long row, long rows) const { return row - id < rows; }

  /* `combine` over the team: within warps first, then over warps in their order. */
  template <class T, class F> __device__ __forceinline__ T all(T x, F combine) const {
    for (int by = cu_min(width, 32) / 2; by > 0; by >>= 1) x = combine(x, __shfl_xor_sync(0xffffffffu, x, by));
    if (width <= 32) return x;
    cu_smem<T> part = CU_SHARED(T, shared);
    const int from = id * width / 32;
    if (threadIdx.x % 32 == 0) part[(int)threadIdx.x / 32] = x;
    __syncthreads();
    x = part[from];
    for (int w = 1; w < width / 32; w++) x = combine(x, (T)part[from + w]);
    __syncthreads();                        /* the words are free for the next */
    return x;
  }
  template <class T> __device__ __forceinline__ T sum(T x) const {
    return all(x, [](T a, T b) { return a + b; });
  }
  /* The largest; NaNs are passed over. */
  template <class T> __device__ __forceinline__ T max(T x) const {
    return all(x, [](T a, T b) { return b > a || a != a ? b : a; });
  }
};
