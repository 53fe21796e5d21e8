/* chunk_tile.cuh -- a warp's columns of a state in registers: lane l has keys l, l + 32, ... of VW columns, KJ of each.
** Shared by chunk_state.cu and joint_gate_attention.cu: which columns and chunks a warp computes, and its loads and stores. */
#pragma once
#include "chunk.cuh"

enum { CU_TILE_WARPS = 4 };      /* of a block */

template <int KJ, int VW> struct CuTile {
  enum { LANES = 32 / VW, OWN = CU_L / LANES };          /* lanes of a column; tokens that each of them has */
};

/* What one warp does: columns from `column` of head bh, chunks from .. end-1; its place among the warps of the head. */
struct CuWork { int bh, column, from, end; bool any; };

template <int VW> static __device__ CuWork cu_work(const CuChunks &p, int chunks_each) {
  const int groups = (p.cols + VW - 1) / VW, parts = (p.chunks + chunks_each - 1) / chunks_each;
  const long i = (long)blockIdx.x * CU_TILE_WARPS + threadIdx.x / 32;
  CuWork w;
  w.any = i < (long)p.heads * groups * parts;
  w.column = (int)(i % groups) * VW;
  w.from = (int)(i / groups % parts) * chunks_each;
  w.end = w.from + chunks_each < p.chunks ? w.from + chunks_each : p.chunks;
  w.bh = p.head + (int)(i / groups / parts);
  return w;
}

/* Element (column i, key j) of a head's state outside. */
static __device__ __forceinline__ long cu_outside(const CuChunks &p, int bh, int i, int j) {
  return i < p.V ? (long)bh * p.V * p.K + i * p.by_col + j * p.by_key : (long)bh * p.K + j;
}

template <int KJ, int VW>
static __device__ __forceinline__ void cu_load_state(const CuChunks &p, const CuWork &w, int lane, const float *C, const float *s,
                                                         float (&S)[KJ][VW]) {
CU_UNROLL
  for (int j = 0; j < KJ; j++)
CU_UNROLL
    for (int v = 0; v < VW; v++) {
      const int key = lane + 32 * j, i = w.column + v;
      const float *from = i < p.V ? C : s;
      S[j][v] = from && i < p.cols && key < p.K ? from[cu_outside(p, w.bh, i, key)] : 0.0f;
    }
}

template <int KJ, int VW>
static __device__ __forceinline__ void cu_store(const CuChunks &p, const CuWork &w, int lane, float *C, float *s,
                                             const float (&S)[KJ][VW]) {
CU_UNROLL
  for (int j = 0; j < KJ; j++)
CU_UNROLL
    for (int v = 0; v < VW; v++) {
      const int key = lane + 32 * j, i = w.column + v;
      float *to = i < p.V ? C : s;
      if (to && i < p.cols && key < p.K) to[cu_outside(p, w.bh, i, key)] = S[j][v];
    }
}

/* The state to or from rows of `row` keys, [cols,row]. */
template <int KJ, int VW>
static __device__ __forceinline__ void cu_put_rows(const CuChunks &p, const CuWork &w, int lane, float *to, int row,
                                                const float (&S)[KJ][VW]) {
CU_UNROLL
  for (int j = 0; j < KJ; j++)
CU_UNROLL
    for (int v = 0; v < VW; v++) {
      const int key = lane + 32 * j, i = w.column + v;
      if (i < p.cols && key < row) to[(long)i * row + key] = S[j][v];
    }
}

template <int KJ, int VW>
static __device__ __forceinline__ void cu_get_rows(const CuChunks &p, const CuWork &w, int lane, const float *from, int row,
                                                   float (&S)[KJ][VW]) {
CU_UNROLL
  for (int j = 0; j < KJ; j++)
CU_UNROLL
    for (int v = 0; v < VW; v++) {
      const int key = lane + 32 * j, i = w.column + v;
      S[j][v] = i < p.cols && key < row ? from[(long)i * row + key] : 0.0f;
    }
}

/* The checkpoint before token t, the first of its span. */
static __device__ __forceinline__ float *cu_checkpoint(const CuChunks &p, int bh, int t) {
  const int each = CU_L * p.span;
  return p.saved + ((long)bh * ((p.T + each - 1) / each) + t / each) * p.saved_row;
}

template <int VW> static unsigned cu_tile_blocks(const CuChunks *p, int chunks_each) {
  const long groups = (p->cols + VW - 1) / VW, parts = (p->chunks + chunks_each - 1) / chunks_each;
  return (unsigned)((p->heads * groups * parts + CU_TILE_WARPS - 1) / CU_TILE_WARPS);
}
