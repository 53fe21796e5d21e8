/* chunk_keys.cuh -- the sides of a chunk (chunk.cuh): how its tokens affect each other, forward and backward.
** A side is a set of columns, of keys or of values; each thread computes one column for the sixteen tokens.  An op
** defines a column's values at a token:
**   enum { PAIR, EARLY, KEYS }   two keys a token; the only reader comes before the token's decay; R, W, kept are wanted
**   int width(p)                 how many columns
**   Column column(p, j, bh)      values that do not depend on the token
**   CuSide at(p, column, t, bh)  the values of one token */
#pragma once
#include "chunk.cuh"

/* A key decays from the token after it; `early` reads before a token's decay, `late` after it and after its key.
** own: what an early reader takes of its own token. */
struct CuSide { float decay, key, back, early, late, own; };

/* Nothing is loaded, nor its address made, before its turn: sixteen tokens at once would not fit the registers.  t: an int
** that the addresses depend on. */
#ifdef __CUDACC__
#define CU_IN_ORDER(t) asm volatile("" : "+r"(t) : : "memory")
#else
#define CU_IN_ORDER(t) ((void)(t))
#endif

enum { CU_TRIANGLE = CU_L * (CU_L + 1) / 2, CU_TRIANGLE_PAD = (CU_TRIANGLE + 31) / 32 * 32, CU_SIDE_THREADS = 128 };

static __device__ __forceinline__ constexpr int cu_pair_at(int t, int s) { return t * (t + 1) / 2 + s; }

/* One column through a chunk: its part of table `which` of the scores, and of R, W and kept. */
template <class Op>
static __device__ __forceinline__ void cu_side_column(const Op &op, const CuChunks &p, int j, int bh, int c, int which,
                                                      float (&sum)[CU_TRIANGLE_PAD]) {
  const int n = cu_tokens(p, c), width = op.width(p);
  int begin = cu_begin(p, c);
  const long place = cu_place(p, bh, c);
  const bool second = Op::PAIR && which % 2, early = Op::PAIR ? which < CU_READ_K : Op::EARLY != 0;
  const bool writes = Op::KEYS && (!Op::PAIR || which == CU_TAKE_K || which == CU_READ_B);
  const long row = place * p.rows + (Op::PAIR && which == CU_TAKE_K ? CU_L : 0);
  float *R = writes ? p.R + row * p.Kq + j : NULL, run[CU_L], P = 1.0f;
  if (j >= width) {                        /* the padding of keys */
    for (int t = 0; t < CU_L && writes; t++) R[(long)t * p.Kq] = 0.0f;
    for (int s = 0; s < CU_L && Op::KEYS && which < 2; s++)
      p.W[(place * p.rows + which * CU_L + s) * p.Kq + j] = 0.0f;
    if (Op::KEYS && which == 0) p.kept[place * p.Kq + j] = 0.0f;
    return;
  }
  const auto column = op.column(p, j, bh);
CU_UNROLL
  for (int t = 0; t < CU_L; t++) {
    CuSide x = { 1.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f };
    if (t < n) x = op.at(p, column, begin + t, bh);
    const float reader = early ? x.early : x.late;
    CU_IN_ORDER(begin);
    if (early) {
CU_UNROLL
      for (int s = 0; s < t; s++) sum[cu_pair_at(t, s)] = fmaf(reader, run[s], sum[cu_pair_at(t, s)]);
      sum[cu_pair_at(t, t)] += x.own;
      if (writes) R[(long)t * p.Kq] = P * reader;
    }
CU_UNROLL
    for (int s = 0; s < t; s++) run[s] *= x.decay;
    run[t] = second ? x.back : x.key;
    P *= x.decay;
    if (!early) {
CU_UNROLL
      for (int s = 0; s <= t; s++) sum[cu_pair_at(t, s)] = fmaf(reader, run[s], sum[cu_pair_at(t, s)]);
      if (writes) R[(long)t * p.Kq] = P * reader;
    }
  }
  if (Op::KEYS && which == 0) p.kept[place * p.Kq + j] = P;
  if (Op::KEYS && which < 2) {
    float *W = p.W + (place * p.rows + which * CU_L) * p.Kq + j;
CU_UNROLL
    for (int s = 0; s < CU_L; s++) W[(long)s * p.Kq] = run[s];
  }
}

/* A block is a chunk of a head, the grid [chunks of the slice, tables].  About L/2 multiply-adds and as many products a
** token and column, for each table; it reads the inputs once a table and writes 2 rows of K a token. */
template <class Op>
CU_KERNEL cu_side(const Op &op, const CuChunks &p, float *scores) {
  const int c = (int)(blockIdx.x % (unsigned)p.chunks), bh = p.head + (int)(blockIdx.x / (unsigned)p.chunks);
  const int tid = (int)threadIdx.x, lane = tid % 32, which = (int)blockIdx.y;
  cu_smem<float> part = CU_SHARED(float, 0);           /* [warps][CU_TRIANGLE_PAD] */
  float sum[CU_TRIANGLE_PAD];
CU_UNROLL
  for (int i = 0; i < CU_TRIANGLE_PAD; i++) sum[i] = 0.0f;
  for (int j = tid; j < (Op::KEYS ? p.Kq : op.width(p)); j += (int)blockDim.x)
    cu_side_column(op, p, j, bh, c, which, sum);
  cu_warp_sums(sum, lane);
CU_UNROLL
  for (int i = 0; i < CU_TRIANGLE_PAD / 32; i++) part[tid / 32 * CU_TRIANGLE_PAD + lane * (CU_TRIANGLE_PAD / 32) + i] = sum[i];
  __syncthreads();
  float *to = scores + (cu_place(p, bh, c) * p.tables + which) * CU_PAIRS;
  for (int i = tid; i < CU_PAIRS; i += (int)blockDim.x) {
    const int t = i / CU_L, s = i % CU_L;
    float total = 0.0f;
    for (int w = 0; s <= t && w < (int)blockDim.x / 32; w++) total += part[w * CU_TRIANGLE_PAD + cu_pair_at(t, s)];
    to[i] = total;
  }
}

template <class Op> static void cu_side_run(const Op &op, const CuChunks &p, float *scores) {
  const int width = Op::KEYS ? p.Kq : op.width(p);
  const int threads = width < CU_SIDE_THREADS ? cu_round_up(width, 32) : CU_SIDE_THREADS;
  const dim3 grid((unsigned)(p.heads * p.chunks), (unsigned)(Op::PAIR ? 4 : 1));
  CU_LAUNCH(cu_side<Op>, grid, (unsigned)threads, sizeof(float) * (size_t)(threads / 32 * CU_TRIANGLE_PAD), op, p,
            scores);
}

/* Backward of one key and its readers, in a column (engine: mn_wkv_keys_back).  dkey: in, the gradient of what is left of
** it at the chunk's end, out, its own; the others are added to.  early and late: gradients of the tables of scores,
** [16][16] in shared memory, or not there (a type without them: EARLY, LATE). */
template <bool EARLY, bool LATE>
static __device__ __forceinline__ void cu_key_back(unsigned resets, const float (&decay)[CU_L], const float (&key)[CU_L],
                                                   const float *early, const float *late, cu_smem<float> dearly_scores,
                                                   cu_smem<float> dlate_scores, float (&dkey)[CU_L], float *dearly,
                                                   float *dlate, float (&ddecay)[CU_L]) {
CU_UNROLL
  for (int i = 0; i < CU_L; i++) {
    const int t = CU_L - 1 - i, first = cu_first(resets, t);
    float through = 1.0f;
    if (LATE) {
      const float score = dlate_scores[t * CU_L + t];
      dkey[t] = fmaf(score, late[t], dkey[t]);
      dlate[t] = fmaf(score, key[t], dlate[t]);
    }
CU_UNROLL
    for (int m = 1; m <= t; m++) {
      const int s = t - m;
      if (s < first) {                     /* before the episode: what it held must not come back as 0 * NaN */
        dkey[s] = 0.0f;
        continue;
      }
      const float was = key[s] * through;
      if (LATE) {
        const float score = dlate_scores[t * CU_L + s];
        dkey[s] = fmaf(score, late[t], dkey[s]);
        dlate[t] = fmaf(score * was, decay[t], dlate[t]);
      }
      ddecay[t] = fmaf(dkey[s], was, ddecay[t]);
      dkey[s] *= decay[t];
      if (EARLY) {
        const float score = dearly_scores[t * CU_L + s];
        dkey[s] = fmaf(score, early[t], dkey[s]);
        dearly[t] = fmaf(score, was, dearly[t]);
      }
      through *= decay[s];
    }
  }
}

/* Backward of the readers times the decays from the beginning: dearly and dlate are gradients of the products, and
** become the readers'; dkept: of the product of all decays.  Rows that do not see the old state have gradient 0. */
template <bool EARLY, bool LATE>
static __device__ __forceinline__ void cu_prefix_back(const float (&decay)[CU_L], const float *early, const float *late,
                                                      float dkept, float *dearly, float *dlate, float (&ddecay)[CU_L]) {
  float P[CU_L + 1], dP = dkept;
  P[0] = 1.0f;
CU_UNROLL
  for (int t = 0; t < CU_L; t++) P[t + 1] = P[t] * decay[t];
CU_UNROLL
  for (int i = 0; i < CU_L; i++) {
    const int t = CU_L - 1 - i;
    if (LATE) {
      dP = fmaf(late[t], dlate[t], dP);
      dlate[t] *= P[t + 1];
    }
    ddecay[t] = fmaf(P[t], dP, ddecay[t]);
    dP *= decay[t];
    if (EARLY) {
      dP = fmaf(early[t], dearly[t], dP);
      dearly[t] *= P[t];
    }
  }
}
