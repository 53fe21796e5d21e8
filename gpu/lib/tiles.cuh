/* tiles.cuh -- tiles of 64 x 64 products in the registers of a block of 16 x 16 threads, the parts of attention.
** Thread (y, x) has the rows y, y + 16, y + 32, y + 48 and the same columns, so that neighbours read
** neighbouring rows of shared memory and no row must be transposed.  In a product with relative positions (r of
** the distance i - j) a thread needs only seven rows of r,
** so such a band is as cheap as a plain product.
**
** Operands come through shared memory 16 numbers of each row at a time, so rows may be of any length. */
#pragma once
#include "runtime/kernel.cuh"

#ifdef __CUDACC__
#define CU_UNROLL_BY_2 _Pragma("unroll 2")           /* more would cost registers */
#else
#define CU_UNROLL_BY_2
#endif
#define CU_INFINITY __builtin_inff()

enum { CU_TILE = 64, CU_SIDE = 16, CU_EACH = 4 };              /* CU_THREADS is CU_SIDE squared */
enum { CU_DEPTH = 16, CU_PITCH = (CU_DEPTH + 4) / 4, CU_BAND = 2 * CU_TILE - 1 };
enum { CU_WEIGHT_ROW = CU_TILE + 4, CU_WEIGHT_ROW4 = CU_WEIGHT_ROW / 4 };

/* Where things lie in shared memory, in bytes: four operands, in whose place later come 64 rows of 64 numbers;
** a tile of weights; and words for votes. */
enum { CU_AT_A = 0, CU_AT_B = CU_AT_A + CU_TILE * CU_PITCH * 16, CU_AT_W = CU_AT_B + CU_TILE * CU_PITCH * 16,
       CU_AT_R = CU_AT_W + CU_TILE * CU_PITCH * 16, CU_AT_ROWS = 0,
       CU_AT_WEIGHTS = CU_AT_R + (CU_BAND + 1) * CU_PITCH * 16,
       CU_AT_VOTES = CU_AT_WEIGHTS + CU_TILE * CU_WEIGHT_ROW * 4,
       CU_TILE_SHARED = CU_AT_VOTES + 2 * (CU_THREADS / 32) * 4 };

static __device__ __forceinline__ int cu_ty() { return (int)threadIdx.x / CU_SIDE; }
static __device__ __forceinline__ int cu_tx() { return (int)threadIdx.x % CU_SIDE; }

/* Numbers d .. d+3 of a row of D, zeros past its end; NULL is a row of zeros.  `wide`: rows are multiples of four
** and aligned.  `add`: what is added to every row. */
static __device__ __forceinline__ float4 cu_read4(const float *row, const float *add, int d, int D, bool wide) {
  float4 x = { 0, 0, 0, 0 };
  if (!row || d >= D) return x;
  if (wide) x = *(const float4 *)(row + d);
  else {
    x.x = row[d];
    if (d + 1 < D) x.y = row[d + 1];
    if (d + 2 < D) x.z = row[d + 2];
    if (d + 3 < D) x.w = row[d + 3];
  }
  if (!add) return x;
  x.x += add[d];
  if (d + 1 < D) x.y += add[d + 1];
  if (d + 2 < D) x.z += add[d + 2];
  if (d + 3 < D) x.w += add[d + 3];
  return x;
}

static __device__ __forceinline__ void cu_write4(float *row, int d, int D, bool wide, float4 x) {
  if (wide && d < D) {
    *(float4 *)(row + d) = x;
    return;
  }
  if (d < D) row[d] = x.x;
  if (d + 1 < D) row[d + 1] = x.y;
  if (d + 2 < D) row[d + 2] = x.z;
  if (d + 3 < D) row[d + 3] = x.w;
}

/* n operand rows, 16 numbers of each from d0 on; at(i) is row i. */
template <class At>
static __device__ __forceinline__ void cu_operand(int byte, int n, int d0, int D, bool wide, const float *add, At at) {
  cu_smem<float4> to = CU_SHARED(float4, byte);
  const int quarter = (int)threadIdx.x % 4;
  for (int i = (int)threadIdx.x / 4; i < n; i += CU_THREADS / 4)
    to[i * CU_PITCH + quarter] = cu_read4(at(i), add, d0 + 4 * quarter, D, wide);
}

static __device__ __forceinline__ float cu_dot4(float4 a, float4 b, float sum) {
  return fmaf(a.w, b.w, fmaf(a.z, b.z, fmaf(a.y, b.y, fmaf(a.x, b.x, sum))));
}

/* sum[r][c] += row . column, of the operands that are there: rows A, columns B. */
static __device__ __forceinline__ void cu_dots(int A, int B, float sum[CU_EACH][CU_EACH]) {
  cu_smem<float4> rows = CU_SHARED(float4, A) + cu_ty() * CU_PITCH, columns = CU_SHARED(float4, B) + cu_tx() * CU_PITCH;
CU_UNROLL_BY_2
  for (int d = 0; d < CU_DEPTH / 4; d++) {
    float4 a[CU_EACH], b[CU_EACH];
CU_UNROLL
    for (int i = 0; i < CU_EACH; i++) {
      a[i] = rows[i * CU_SIDE * CU_PITCH + d];
      b[i] = columns[i * CU_SIDE * CU_PITCH + d];
    }
CU_UNROLL
    for (int r = 0; r < CU_EACH; r++)
CU_UNROLL
      for (int c = 0; c < CU_EACH; c++) sum[r][c] = cu_dot4(a[r], b[c], sum[r][c]);
  }
}

/* The same where what meets row i of W is row 63 + i - j of the band R, i being the tile's row and j its column,
** or, where not OF_ROWS, the other way round. */
template <bool OF_ROWS> static __device__ __forceinline__ void cu_band_dots(int W, int R, float sum[CU_EACH][CU_EACH]) {
  const int mine = OF_ROWS ? cu_ty() : cu_tx(), other = OF_ROWS ? cu_tx() : cu_ty();
  cu_smem<float4> w = CU_SHARED(float4, W) + mine * CU_PITCH;
  cu_smem<float4> band = CU_SHARED(float4, R) + (CU_TILE - 1 + mine - other - 3 * CU_SIDE) * CU_PITCH;
CU_UNROLL_BY_2
  for (int d = 0; d < CU_DEPTH / 4; d++) {
    float4 a[CU_EACH], x[2 * CU_EACH - 1];
CU_UNROLL
    for (int i = 0; i < CU_EACH; i++) a[i] = w[i * CU_SIDE * CU_PITCH + d];
CU_UNROLL
    for (int m = 0; m < 2 * CU_EACH - 1; m++) x[m] = band[m * CU_SIDE * CU_PITCH + d];
CU_UNROLL
    for (int r = 0; r < CU_EACH; r++)
CU_UNROLL
      for (int c = 0; c < CU_EACH; c++) {
        const int i = OF_ROWS ? r : c, j = OF_ROWS ? c : r;
        sum[r][c] = cu_dot4(a[i], x[i - j + 3], sum[r][c]);
      }
  }
}

/* ---- weights times rows ---- */

static __device__ __forceinline__ void cu_put_weights(const float w[CU_EACH][CU_EACH]) {
  cu_smem<float> to = CU_SHARED(float, CU_AT_WEIGHTS) + cu_ty() * CU_WEIGHT_ROW + cu_tx();
CU_UNROLL
  for (int r = 0; r < CU_EACH; r++)
CU_UNROLL
    for (int c = 0; c < CU_EACH; c++) to[r * CU_SIDE * CU_WEIGHT_ROW + c * CU_SIDE] = w[r][c];
}

/* 64 rows, 64 numbers of each from d0 on; true if this thread met one that is not finite. */
template <class At>
static __device__ __forceinline__ bool cu_rows(int d0, int D, bool wide, const float *add, At at) {
  cu_smem<float4> to = CU_SHARED(float4, CU_AT_ROWS);
  bool odd = false;
  for (int i = cu_ty(); i < CU_TILE; i += CU_SIDE) {
    const float4 x = cu_read4(at(i), add, d0 + 4 * cu_tx(), D, wide);
    odd |= !(fabsf(x.x) < CU_INFINITY && fabsf(x.y) < CU_INFINITY && fabsf(x.z) < CU_INFINITY && fabsf(x.w) < CU_INFINITY);
    to[i * CU_SIDE + cu_tx()] = x;
  }
  return odd;
}

static __device__ __forceinline__ float4 cu_axpy(float a, float4 x, float4 y) {
  return { fmaf(a, x.x, y.x), fmaf(a, x.y, y.y), fmaf(a, x.z, y.z), fmaf(a, x.w, y.w) };
}

/* sum[r] += of weights and rows, columns 4x .. 4x+3.  CAREFUL: what has weight 0 is not touched: it may be NaN. */
template <bool CAREFUL> static __device__ __forceinline__ void cu_mix_rows(float4 sum[CU_EACH]) {
  cu_smem<float4> w = CU_SHARED(float4, CU_AT_WEIGHTS) + cu_ty() * CU_WEIGHT_ROW4, x = CU_SHARED(float4, CU_AT_ROWS) + cu_tx();
  CU_UNROLL_BY_2
  for (int j = 0; j < CU_TILE / 4; j++) {
    float4 a[CU_EACH];
CU_UNROLL
    for (int r = 0; r < CU_EACH; r++) a[r] = w[r * CU_SIDE * CU_WEIGHT_ROW4 + j];
CU_UNROLL
    for (int i = 0; i < 4; i++) {
      const float4 row = x[(4 * j + i) * CU_SIDE];
CU_UNROLL
      for (int r = 0; r < CU_EACH; r++) {
        const float by = i == 0 ? a[r].x : i == 1 ? a[r].y : i == 2 ? a[r].z : a[r].w;
        if (!CAREFUL || by != 0) sum[r] = cu_axpy(by, row, sum[r]);
      }
    }
  }
}

static __device__ __forceinline__ void cu_mix(bool careful, float4 sum[CU_EACH]) {
  if (careful) cu_mix_rows<true>(sum);
  else cu_mix_rows<false>(sum);
}

/* The same where weight (i, j) meets row 63 + i - j of a band, of which rows from .. from+63 are there. */
static __device__ __forceinline__ void cu_mix_band(int from, float4 sum[CU_EACH]) {
  cu_smem<float> w = CU_SHARED(float, CU_AT_WEIGHTS) + cu_ty() * CU_WEIGHT_ROW;
  cu_smem<float4> x = CU_SHARED(float4, CU_AT_ROWS) + cu_tx();
  CU_UNROLL_BY_2
  for (int e = 0; e < CU_TILE; e++) {
    const float4 row = x[e * CU_SIDE];
CU_UNROLL
    for (int r = 0; r < CU_EACH; r++) {
      const int j = cu_ty() + r * CU_SIDE + CU_TILE - 1 - from - e;
      if (j >= 0 && j < CU_TILE) sum[r] = cu_axpy(w[r * CU_SIDE * CU_WEIGHT_ROW + j], row, sum[r]);
    }
  }
}

/* ---- votes, and sums over the 16 threads of a row ---- */

/* Is it true of any thread of the block?  A barrier, too.  `turn` counts votes, so that the words of one are free again
** when the one after the next comes. */
static __device__ __forceinline__ bool cu_any(bool mine, int *turn) {
  cu_smem<int> votes = CU_SHARED(int, CU_AT_VOTES) + (*turn & 1) * (CU_THREADS / 32);
  const bool ours = __any_sync(0xffffffffu, mine);
  if (threadIdx.x % 32 == 0) votes[(int)threadIdx.x / 32] = ours;
  ++*turn;
  __syncthreads();
  bool any = false;
  for (int i = 0; i < CU_THREADS / 32; i++) any |= votes[i] != 0;
  return any;
}

static __device__ __forceinline__ float cu_side_sum(float x) {
  for (int by = CU_SIDE / 2; by > 0; by >>= 1) x += __shfl_xor_sync(0xffffffffu, x, by);
  return x;
}

/* The largest; NaNs are passed over. */
static __device__ __forceinline__ float cu_side_max(float x) {
  for (int by = CU_SIDE / 2; by > 0; by >>= 1) {
    const float other = __shfl_xor_sync(0xffffffffu, x, by);
    x = other > x ? other : x;
  }
  return x;
}

/* Sums over the tile's 64 rows, columns d0 .. d0+63 of `to`, which has D numbers. */
static __device__ __forceinline__ void cu_column_part(const float4 x[CU_EACH], float *to, int d0, int D) {
  cu_smem<float> part = CU_SHARED(float, CU_AT_ROWS);
  __syncthreads();
  CU_SHARED(float4, CU_AT_ROWS)[(int)threadIdx.x] = {
    x[0].x + x[1].x + x[2].x + x[3].x, x[0].y + x[1].y + x[2].y + x[3].y,
    x[0].z + x[1].z + x[2].z + x[3].z, x[0].w + x[1].w + x[2].w + x[3].w };
  __syncthreads();
  const int d = (int)threadIdx.x;
  if (d >= CU_TILE || d0 + d >= D) return;
  float sum = 0;
  for (int i = 0; i < CU_SIDE; i++) sum += part[i * CU_TILE + d];
  to[d0 + d] = sum;
}
