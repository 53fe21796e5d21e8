/* block_products.cuh -- matrix products by one block of threads, for kernels that loop over a sequence themselves and
** cannot call a library: large ones in the tiles of tiles.cuh; those of acting's few rows with a warp per column; small ones,
** which would leave most of a tile idle, with a thread per element.
** All threads of the block call every function, which ends with a barrier. */
#pragma once
#include "tiles.cuh"

enum { CU_FEW_ROWS = 16, CU_ROWS_AT_ONCE = 8 };
enum { CU_SMALL = 4 * CU_THREADS, CU_SMALL_DEPTH = 64 };       /* numbers of a product that threads do one by one */

/* i = the thread's share of 0 .. n-1. */
#define CU_SHARE(i, n) for (int i = (int)threadIdx.x; i < (n); i += CU_THREADS)

struct cu_matrix { const float *x; long row; };        /* rows that lie `row` numbers apart */

/* 64 x 64 numbers of a matrix as weights, from row r0 and column c0 on; zeros past its end. */
static __device__ __forceinline__ void cu_take_weights(cu_matrix a, int rows, int columns, int r0, int c0, bool turned) {
  cu_smem<float> to = CU_SHARED(float, CU_AT_WEIGHTS);
  for (int i = (int)threadIdx.x; i < CU_TILE * CU_TILE; i += CU_THREADS) {
    const int r = i / CU_TILE, c = i % CU_TILE;
    const float x = r0 + r < rows && c0 + c < columns ? a.x[(r0 + r) * a.row + c0 + c] : 0;
    to[turned ? c * CU_WEIGHT_ROW + r : r * CU_WEIGHT_ROW + c] = x;
  }
}

/* put(r, o, sum) of x [rows,I] and w [O,I], row by row. */
template <class Put>
static __device__ __forceinline__ void cu_block_dots(int rows, int O, int I, cu_matrix x, const float *w, bool wide, Put put) {
  if (rows * O <= CU_SMALL && I <= CU_SMALL_DEPTH) {
    CU_SHARE(i, rows * O) {
      const int r = i / O, o = i % O;
      float sum = 0;
      for (int d = 0; d < I; d++) sum = fmaf(w[(long)o * I + d], x.x[r * x.row + d], sum);
      put(r, o, sum);
    }
    __syncthreads();
    return;
  }
  if (rows <= CU_FEW_ROWS) {
    const int lane = (int)threadIdx.x % 32;
    for (int o = (int)threadIdx.x / 32; o < O; o += CU_THREADS / 32)
      for (int r0 = 0; r0 < rows; r0 += CU_ROWS_AT_ONCE) {
        float sum[CU_ROWS_AT_ONCE] = {};
        for (int i = lane; i < I; i += 32) {
          const float by = w[(long)o * I + i];
CU_UNROLL
          for (int r = 0; r < CU_ROWS_AT_ONCE; r++) if (r0 + r < rows) sum[r] = fmaf(by, x.x[(r0 + r) * x.row + i], sum[r]);
        }
CU_UNROLL
        for (int r = 0; r < CU_ROWS_AT_ONCE; r++) {
          const float all = cu_warp_sum(sum[r]);
          if (lane == r && r0 + r < rows) put(r0 + r, o, all);
        }
      }
    __syncthreads();
    return;
  }
  for (int r0 = 0; r0 < rows; r0 += CU_TILE)
    for (int o0 = 0; o0 < O; o0 += CU_TILE) {
      float sum[CU_EACH][CU_EACH] = {};
      for (int d = 0; d < I; d += CU_DEPTH) {
        cu_operand(CU_AT_A, CU_TILE, d, I, wide, NULL, [&](int r) { return r0 + r < rows ? x.x + (r0 + r) * x.row : NULL; });
        cu_operand(CU_AT_B, CU_TILE, d, I, wide, NULL, [&](int o) { return o0 + o < O ? w + (long)(o0 + o) * I : NULL; });
        __syncthreads();
        cu_dots(CU_AT_A, CU_AT_B, sum);
        __syncthreads();
      }
CU_UNROLL
      for (int r = 0; r < CU_EACH; r++)
CU_UNROLL
        for (int c = 0; c < CU_EACH; c++) {
          const int row = r0 + cu_ty() + r * CU_SIDE, o = o0 + cu_tx() + c * CU_SIDE;
          if (row < rows && o < O) put(row, o, sum[r][c]);
        }
    }
  __syncthreads();
}

/* out[rows,N] (+)= a[rows,depth] x[depth,N], or of a turned, stored as [depth,rows]. */
static __device__ __noinline__ void cu_block_mix(bool turned, int rows, int depth, int N, cu_matrix a, cu_matrix x, bool wide,
                                                 float *out, bool add) {
  if (rows * N <= CU_SMALL) {
    CU_SHARE(i, rows * N) {
      const int r = i / N, n = i % N;
      float sum = 0;
      for (int d = 0; d < depth; d++) sum = fmaf(turned ? a.x[d * a.row + r] : a.x[r * a.row + d], x.x[d * x.row + n], sum);
      out[i] = sum + (add ? out[i] : 0);
    }
    __syncthreads();
    return;
  }
  for (int r0 = 0; r0 < rows; r0 += CU_TILE)
    for (int n0 = 0; n0 < N; n0 += CU_TILE) {
      float4 sum[CU_EACH];
CU_UNROLL
      for (int r = 0; r < CU_EACH; r++) sum[r] = { 0, 0, 0, 0 };
      for (int d = 0; d < depth; d += CU_TILE) {
        if (turned) cu_take_weights(a, depth, rows, d, r0, true);
        else        cu_take_weights(a, rows, depth, r0, d, false);
        cu_rows(n0, N, wide, NULL, [&](int i) { return d + i < depth ? x.x + (d + i) * x.row : NULL; });
        __syncthreads();
        cu_mix(false, sum);
        __syncthreads();
      }
CU_UNROLL
      for (int r = 0; r < CU_EACH; r++) {
        const int row = r0 + cu_ty() + r * CU_SIDE, n = n0 + 4 * cu_tx();
        if (row >= rows) continue;
        float *to = out + (long)row * N;
        const float4 old = add ? cu_read4(to, NULL, n, N, wide) : float4{ 0, 0, 0, 0 };
        cu_write4(to, n, N, wide, { old.x + sum[r].x, old.y + sum[r].y, old.z + sum[r].z, old.w + sum[r].w });
      }
    }
  __syncthreads();
}
