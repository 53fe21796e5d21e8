/* skinny_gemm.cuh -- products of a few rows with a matrix, the main work of acting: every row of the matrix is read once, or
** once per 16 rows.
** A warp takes OUTS rows w_j of the matrix, with elements along its lanes, and ROWS rows x_n; each lane keeps
** its part of all their products in registers.  At the end the 32 lanes exchange halves until each holds one whole
** sum, that of j = lane / ROWS and n = lane % ROWS: 31 shuffles instead of the 160 of one sum after the other.
** A BLAS would use tiles of 64 rows or more, mostly empty. */
#pragma once
#include "runtime/kernel.cuh"

enum { CU_FEW = 64, CU_FEW_THREADS = 128, CU_FEW_WARPS = CU_FEW_THREADS / 32 };   /* at most that many rows use these kernels: up to 16
                                    meet a weight together, more go by tiles of 16, side by side */

/* May rows of K numbers, `ld` apart, be read four at a time? */
static inline bool cu_fours(const void *p, long ld, int K) { return K % 4 == 0 && ld % 4 == 0 && (uintptr_t)p % 16 == 0; }

/* sum[j*ROWS + n] += this lane's part of x_n . w_j; x_n = x + n*ld for n < rows.  fours: see cu_fours. */
template <int ROWS, int OUTS>
static __device__ __forceinline__ void cu_few_dots(const float *x, long ld, int rows, const float *const (&w)[OUTS],
                                                   int K, bool fours, float (&sum)[32]) {
  static_assert(ROWS * OUTS <= 32, "a sum for each lane");
  const int lane = (int)threadIdx.x % 32;
  if (!fours) {
    for (int k = lane; k < K; k += 32)
      CU_UNROLL
      for (int n = 0; n < ROWS; n++) {
        const float a = x[cu_min(n, rows - 1) * ld + k];
        CU_UNROLL
        for (int j = 0; j < OUTS; j++) sum[j * ROWS + n] = fmaf(a, w[j][k], sum[j * ROWS + n]);
      }
    return;
  }
  for (int k = 4 * lane; k < K; k += 128) {
    float4 b[OUTS];
    CU_UNROLL
    for (int j = 0; j < OUTS; j++) b[j] = *(const float4 *)(w[j] + k);
    CU_UNROLL
    for (int n = 0; n < ROWS; n++) {
      const float4 a = *(const float4 *)(x + cu_min(n, rows - 1) * ld + k);
      CU_UNROLL
      for (int j = 0; j < OUTS; j++) {
        float s = sum[j * ROWS + n];
        s = fmaf(a.x, b[j].x, s);
        s = fmaf(a.y, b[j].y, s);
        s = fmaf(a.z, b[j].z, s);
        sum[j * ROWS + n] = fmaf(a.w, b[j].w, s);
      }
    }
  }
}

/* Each half of the lanes gives the other its sums of what that keeps, HALF of them.  Sizes are constants, so that
** the sums stay in registers. */
template <int HALF> static __device__ __forceinline__ void cu_few_fold(float (&sum)[32]) {
  const bool upper = threadIdx.x & HALF;
  CU_UNROLL
  for (int i = 0; i < HALF; i++) {
    const float give = upper ? sum[i] : sum[i + HALF], keep = upper ? sum[i + HALF] : sum[i];
    sum[i] = keep + __shfl_xor_sync(0xffffffffu, give, HALF);
  }
  if constexpr (HALF > 1) cu_few_fold<HALF / 2>(sum);
}

/* The whole of sum[lane].  All 32 lanes must come. */
static __device__ __forceinline__ float cu_few_sum(float (&sum)[32]) {
  cu_few_fold<16>(sum);
  return sum[0];
}
