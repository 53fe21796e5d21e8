/* chunk_backward.cuh -- backward of a chunk once the states before it and the gradients of those after it are known
** (chunk.cuh): for all chunks at once.  The ops of chunk_keys.cuh, and of the keys' side also
**   give(p, column, t, bh, CuSide grad, CuSums &sums)     the gradients of `at`'s values; adds to the sums over columns
**   finish(p, t, bh, sum0, sum1)                          stores these sums, per token; if SUMS */
#pragma once
#include "chunk_keys.cuh"

enum { CU_VALUE_TILE = 32 };     /* columns of values whose rows lie in shared memory at a time */

struct CuSums { float x[2]; };

/* A row of the values' side, read as float4: that many floats, for each column of a tile. */
static __host__ __device__ constexpr int cu_tile_row(int rows) { return rows + 4; }

/* The gradients that the keys' side gets from the states, in column j: to_read = dread . S, to_write = values . dS. */
template <int ROWS>
static __device__ __forceinline__ void cu_products(const CuChunks &p, long place, int j, cu_smem<float> tile,
                                                   float (&to_read)[ROWS], float (&to_write)[ROWS], float &dkept) {
  const int tid = (int)threadIdx.x, wide = cu_tile_row(ROWS);
  cu_smem<float> kept_v = tile + 2 * CU_VALUE_TILE * wide;
  const float *S = p.states + place * p.cols * p.Kq + j, *dS = p.dstates + place * p.cols * p.Kq + j;
CU_UNROLL
  for (int i = 0; i < ROWS; i++) to_read[i] = to_write[i] = 0.0f;
  dkept = 0.0f;
  for (int from = 0; from < p.cols; from += CU_VALUE_TILE) {
    const int n = cu_min((int)CU_VALUE_TILE, p.cols - from);
    __syncthreads();
    for (int i = tid; i < CU_VALUE_TILE * ROWS; i += (int)blockDim.x) {
      const int column = i % CU_VALUE_TILE, row = i / CU_VALUE_TILE;
      const long at = (place * ROWS + row) * p.cols + from + column;
      tile[column * wide + row] = column < n ? p.dread[at] : 0.0f;
      tile[(CU_VALUE_TILE + column) * wide + row] = column < n ? p.values[at] : 0.0f;
    }
    if (tid < CU_VALUE_TILE) kept_v[tid] = p.kept_v && tid < n ? p.kept_v[place * p.cols + from + tid] : 1.0f;
    __syncthreads();
    if (j >= p.Kq) continue;
    cu_smem<float4> D = cu_smem_quads(tile), U = cu_smem_quads(tile + CU_VALUE_TILE * wide);
    for (int i = 0; i < n; i++) {
      const float s = S[(long)(from + i) * p.Kq], ds = dS[(long)(from + i) * p.Kq];
      dkept = fmaf(s * ds, kept_v[i], dkept);
CU_UNROLL
      for (int r = 0; r < ROWS / 4; r++) {
        const float4 d = D[i * (wide / 4) + r], u = U[i * (wide / 4) + r];
        to_read[4 * r] = fmaf(d.x, s, to_read[4 * r]), to_read[4 * r + 1] = fmaf(d.y, s, to_read[4 * r + 1]);
        to_read[4 * r + 2] = fmaf(d.z, s, to_read[4 * r + 2]), to_read[4 * r + 3] = fmaf(d.w, s, to_read[4 * r + 3]);
        to_write[4 * r] = fmaf(u.x, ds, to_write[4 * r]), to_write[4 * r + 1] = fmaf(u.y, ds, to_write[4 * r + 1]);
        to_write[4 * r + 2] = fmaf(u.z, ds, to_write[4 * r + 2]), to_write[4 * r + 3] = fmaf(u.w, ds, to_write[4 * r + 3]);
      }
    }
  }
}

/* One column of keys, from those products: the gradients of its sixteen tokens. */
template <class Op>
static __device__ __forceinline__ void cu_key_column(const Op &op, const CuChunks &p, int j, int bh, int begin, int n,
                                                     unsigned resets, cu_smem<float> tables,
                                                     float (&to_read)[Op::PAIR ? 2 * CU_L : CU_L],
                                                     float (&to_write)[Op::PAIR ? 2 * CU_L : CU_L], float dkept,
                                                     float (&sums)[2 * CU_L]) {
  enum { EARLY = Op::PAIR || Op::EARLY, LATE = Op::PAIR || !Op::EARLY, OTHER = Op::PAIR ? CU_L : 0 };
  const int last = resets ? cu_first(resets, CU_L - 1) : 0, seeing = cu_seeing(resets, n);
  const auto column = op.column(p, j, bh);
  float decay[CU_L], key[CU_L], back[CU_L], early[CU_L], late[CU_L], own[CU_L];
  float dkey[CU_L], dback[CU_L], dearly[CU_L], dlate[CU_L], ddecay[CU_L];
CU_UNROLL
  for (int t = 0; t < CU_L; t++) {
    CuSide x = { 1.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f };
    if (t < n) x = op.at(p, column, begin + t, bh);
    decay[t] = x.decay, key[t] = x.key, back[t] = x.back, early[t] = x.early, late[t] = x.late, own[t] = 0.0f;
    const bool sees = t < seeing, stays = t >= last && t < n;
    dlate[t] = sees && LATE ? to_read[t] : 0.0f;
    dearly[t] = sees && EARLY ? to_read[OTHER + t] : 0.0f;
    dkey[t] = stays ? to_write[t] : 0.0f;
    dback[t] = stays && Op::PAIR ? to_write[OTHER + t] : 0.0f;
    ddecay[t] = 0.0f;
  }
  cu_prefix_back<EARLY, LATE>(decay, early, late, resets ? 0.0f : dkept, dearly, dlate, ddecay);
  if (Op::PAIR) {
    cu_key_back<true, true>(resets, decay, key, early, late, tables + CU_TAKE_K * CU_PAIRS, tables + CU_READ_K * CU_PAIRS,
                            dkey, dearly, dlate, ddecay);
    cu_key_back<true, true>(resets, decay, back, early, late, tables + CU_TAKE_B * CU_PAIRS, tables + CU_READ_B * CU_PAIRS,
                            dback, dearly, dlate, ddecay);
  } else {
    cu_key_back<EARLY, LATE>(resets, decay, key, early, late, tables, tables, dkey, dearly, dlate, ddecay);
    if (EARLY)
      for (int t = 0; t < CU_L; t++) own[t] = tables[t * CU_L + t];
  }
CU_UNROLL
  for (int t = 0; t < CU_L; t++) {
    if (t >= n) continue;
    CuSums s = { { 0.0f, 0.0f } };
    const CuSide grad = { ddecay[t], dkey[t], dback[t], dearly[t], dlate[t], own[t] };
    op.give(p, column, begin + t, bh, grad, s);
    sums[2 * t] += s.x[0];
    sums[2 * t + 1] += s.x[1];
  }
}

/* A block is a chunk of a head.  2 V multiply-adds a token and key (of a pair 4 V) for the products and some 8 L for the
** rest; reads the state and its gradient, 8 K V / 16 bytes a token, once. */
template <class Op>
CU_KERNEL cu_keys_back(const Op &op, const CuChunks &p) {
  enum { ROWS = Op::PAIR ? 2 * CU_L : CU_L, TABLES = Op::PAIR ? 4 : 1 };
  const int c = (int)(blockIdx.x % (unsigned)p.chunks), bh = p.head + (int)(blockIdx.x / (unsigned)p.chunks);
  const int tid = (int)threadIdx.x, lane = tid % 32, begin = cu_begin(p, c), n = cu_tokens(p, c);
  const long place = cu_place(p, bh, c);
  const unsigned resets = cu_resets(p, bh, begin, n);
  cu_smem<float> tables = CU_SHARED(float, 0), tile = tables + TABLES * CU_PAIRS;
  for (int i = tid; i < TABLES * CU_PAIRS; i += (int)blockDim.x) tables[i] = p.dscores[place * TABLES * CU_PAIRS + i];
  float sums[2 * CU_L];
CU_UNROLL
  for (int i = 0; i < 2 * CU_L; i++) sums[i] = 0.0f;
  for (int from = 0; from < p.K; from += (int)blockDim.x) {
    float to_read[ROWS], to_write[ROWS], dkept;
    const int j = from + tid;
    cu_products<ROWS>(p, place, j, tile, to_read, to_write, dkept);
    if (j < p.K) cu_key_column(op, p, j, bh, begin, n, resets, tables, to_read, to_write, dkept, sums);
  }
  if (!Op::SUMS) return;
  cu_warp_sums(sums, lane);
  __syncthreads();
  tile[tid] = sums[0];
  __syncthreads();
  for (int t = tid; t < n; t += (int)blockDim.x) {
    float a = 0.0f, b = 0.0f;
    for (int w = 0; w < (int)blockDim.x; w += 32) a += tile[w + 2 * t], b += tile[w + 2 * t + 1];
    op.finish(p, begin + t, bh, a, b);
  }
}

template <class Op> static void cu_keys_back_run(const Op &op, const CuChunks &p) {
  const int rows = Op::PAIR ? 2 * CU_L : CU_L, threads = cu_min((int)CU_SIDE_THREADS, cu_round_up(p.K, 32));
  const size_t shared = sizeof(float) * (size_t)((Op::PAIR ? 4 : 1) * CU_PAIRS + 2 * CU_VALUE_TILE * cu_tile_row(rows) + CU_VALUE_TILE);
  CU_LAUNCH(cu_keys_back<Op>, (unsigned)(p.heads * p.chunks), (unsigned)threads, shared, op, p);
}

/* ---- the side of values ---- */

struct CuNoColumn { int i; };

/* Scores' gradients where one key is written: values that may fade, against y's gradient. */
struct CuFadingValues {
  enum { PAIR = 0, EARLY = 0, KEYS = 0 };
  __host__ __device__ int width(const CuChunks &p) const { return p.cols; }
  __device__ __forceinline__ CuNoColumn column(const CuChunks &, int i, int) const { return { i }; }
  __device__ __forceinline__ CuSide at(const CuChunks &p, CuNoColumn x, int t, int bh) const {
    const long token = cu_token(p, t, bh);
    const int c = t / CU_L - p.t0 / CU_L;
    const float dy = p.dy[(cu_place(p, bh, c) * CU_L + t - cu_begin(p, c)) * p.cols + x.i];
    return { cu_value_kept(p, token, x.i), cu_value(p, token, x.i), 0.0f, 0.0f, dy, 0.0f };
  }
};

/* Of a pair: v and u against the gradients of u (early) and of y (late). */
struct CuPairValues {
  enum { PAIR = 1, EARLY = 0, KEYS = 0 };
  __host__ __device__ int width(const CuChunks &p) const { return p.cols; }
  __device__ __forceinline__ CuNoColumn column(const CuChunks &, int i, int) const { return { i }; }
  __device__ __forceinline__ CuSide at(const CuChunks &p, CuNoColumn x, int t, int bh) const {
    const int c = t / CU_L - p.t0 / CU_L;
    const long at = (cu_place(p, bh, c) * p.rows + t - cu_begin(p, c)) * p.cols + x.i, second = (long)CU_L * p.cols;
    return { 1.0f, p.values[at], p.values[at + second], p.dread[at + second], p.dread[at], 0.0f };
  }
};

/* chunk_values.cu */

/* dy: the gradient of y before its division by s.q (of which den has eps, clamp and scale), and that of s.q. */
struct CuDivision { bool normalise; float eps, clamp, scale; };
void cu_chunk_dy(const CuChunks *p, const CuDivision *den, const float *y, const float *dy);

/* y, which holds numerators, over its denominators, in rows t0 .. t1-1 of all heads. */
void cu_chunk_divide(const CuChunks *p, const CuDivision *den);

/* Gradients of v and beta (NULL: not wanted), from dvalues; `pair`: they are v's. */
void cu_chunk_values_back(const CuChunks *p, float *dv, float *dgate, float *dkeep);
