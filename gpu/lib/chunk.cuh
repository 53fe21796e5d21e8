/* chunk.cuh -- matrix memories, sixteen tokens at a time: linear_attention, delta_rule, wkv6, wkv7.
** All have one common form.  The state is S[cols,K], a row of keys for every column of values; the sum of keys for
** a normaliser is one more column, of value 1.  A chunk reads and writes it by matrix products,
**   M_t = R_t . S      y_t = M_t + sum_{s<=t} A_ts v_s      S' = kept * S + sum_s v_s W_s
** with R_t the readers times every decay from the chunk's beginning, W_s the keys times every decay to its end, A_ts
** the readers times the keys times the decays between.  Decays are products over forward intervals: 0 and 1 are exact
** and nothing is divided.  A delta rule (`pair`) writes two keys per token, the second with value u_t, which an
** early reader reads: u_t = M'_t + sum_{s<t} (B_ts v_s + B'_ts u_s), by substitution.
** A step of a delta rule may have several keys: T, t0 and t1 then count tokens, keys of them a step; the first forgets, y is read at the last.
** A reset is handled by its position, not by a decay of 0: nothing before it is read, whatever it holds.
**
** The keys' side is computed first, for all chunks at once (chunk_keys.cuh); then warps carry a few columns of the state
** in registers from chunk to chunk (chunk_state.cu).  Where heads are too few to fill a GPU so, and one key is written,
** chunks are computed side by side instead: what each adds to the state; from that the states before all chunks, an element
** a thread; then y.  That reads and writes the states, which else stay in registers, but waits for no other chunk.
** Backward recomputes the states from checkpoints for all spans at once, then the gradients of the states from the last
** chunk to the first, in the same two ways, then everything else for all chunks at once.
** Arrays between these passes are scratch, for a slice of the heads (cu_chunks_scratch). */
#pragma once
#include "runtime/kernel.cuh"
#include "value_decay.cuh"
extern "C" {
#include "op.h"
#include "recurrent/chunk_length.h"
}

enum { CU_L = MN_CHUNK, CU_PAIRS = CU_L * CU_L };
enum { CU_TAKE_K, CU_TAKE_B, CU_READ_K, CU_READ_B };     /* tables of scores of a pair; else the first alone */
enum { CU_WIDE = 1024 };                                 /* the most keys that registers hold */

/* What a warp computes: CU_WALK all chunks, one after the other; or chunks side by side, CU_ENDS what each makes of a state of
** zeros, CU_READ the rest, from the state that a scan made of that; CU_AGAIN what forward computed, from checkpoints. */
enum CuPass { CU_WALK, CU_ENDS, CU_READ, CU_AGAIN };

struct CuChunks {
  int T, B, H, K, V;
  int Kq;                        /* K rounded up to a warp: rows of keys in scratch, padded with zeros */
  int cols;                      /* V, and one more where there is a sum of keys */
  int rows, tables;              /* readers of a chunk and tables of scores: 16 and 1, of a pair 32 and 4 */
  int keys;                      /* tokens of a step, each with a key: [T,B,keys*H,...] */
  int t0, t1, chunks;            /* rows of time asked for, and the chunks they lie in */
  int head, heads;               /* the slice: first head, how many */
  int span;                      /* chunks from one checkpoint to the next */
  bool side_by_side;             /* chunks, not one after the other */
  long saved_row;                /* floats of a checkpoint, [cols,K] */
  const uint8_t *done;
  const float *v, *gate_v;       /* values [T,B,H,V]; they are written gate_v*v, or as they are (NULL) */
  const float *keep_v;           /* kept by that; NULL: by 1-gate_v, or if they do not fade, entirely */
  bool fades;

  /* Scratch, a block a chunk of a head. */
  float *R, *W;                  /* [rows,Kq] */
  float *kept;                   /* [Kq] */
  float *scores;                 /* [tables,16,16] */
  float *values;                 /* [rows,cols]: what W_s is written with; NULL forward */
  float *read;                   /* [16,cols]: M_t, times nothing; NULL where not wanted */
  float *z;                      /* [T,B,H]: the last column of y, s.q; of all heads */
  float *states, *dstates;       /* [cols,Kq]: S before the chunk, and the gradient of that after it */
  float *dy;                     /* [16,cols]: gradient of y before its division, and of z */
  float *dread;                  /* [rows,cols]: gradients of M_t and M'_t */
  float *dvalues;                /* [16,cols]: gradient of the values at the chunk's end; of a pair, of the values */
  float *dscores;                /* as scores */
  float *kept_v, *dkept_v;       /* [cols]: what is kept of fading values over the chunk, and its gradient */

  /* Outside: element (column i, key j) of head bh at C[bh*V*K + i*by_col + j*by_key]; s[bh*K + j]. */
  long by_col, by_key;
  const float *first_C, *first_s;            /* NULL: zeros */
  float *last_C, *last_s;                    /* NULL: not wanted */
  float *saved, *y;                          /* y NULL: not wanted */
};

template <class T> static inline T cu_round_up(T n, int to) { return (n + to - 1) / to * to; }

/* Rows t0 .. t1-1 in chunks: sizes of everything but the slice.  sum: there is a sum of keys, for a normaliser. */
static inline void cu_chunks_set(CuChunks *p, const mn_call *c, bool pair, bool sum, int t0, int t1, int keys = 1) {
  p->keys = keys, t0 *= keys, t1 *= keys;
  p->T = DIM(c, 'T') * keys, p->B = DIM(c, 'B'), p->H = DIM(c, 'H'), p->V = DIM(c, 'V');
  p->Kq = cu_round_up(p->K, 32);
  p->cols = p->V + (sum ? 1 : 0);
  p->rows = pair ? 2 * CU_L : CU_L;
  p->tables = pair ? 4 : 1;
  p->t0 = t0, p->t1 = t1;
  p->chunks = (t1 - 1) / CU_L - t0 / CU_L + 1;
}

/* Tokens of chunk c: where they begin, how many.  Its place among the slice's chunks. */
static __device__ __forceinline__ int cu_begin(const CuChunks &p, int c) { return c ? (p.t0 / CU_L + c) * CU_L : p.t0; }
static __device__ __forceinline__ int cu_tokens(const CuChunks &p, int c) {
  const int end = (p.t0 / CU_L + c + 1) * CU_L;
  return (end < p.t1 ? end : p.t1) - cu_begin(p, c);
}
static __device__ __forceinline__ long cu_place(const CuChunks &p, int bh, int c) {
  return (long)(bh - p.head) * p.chunks + c;
}
static __device__ __forceinline__ long cu_token(const CuChunks &p, int t, int bh) {
  if (p.keys == 1) return (long)t * p.B * p.H + bh;
  return (((long)(t / p.keys) * p.B + bh / p.H) * p.keys + t % p.keys) * p.H + bh % p.H;
}

/* The row of a token's step, and whether it is the step's first, its last. */
static __device__ __forceinline__ long cu_step(const CuChunks &p, int t, int bh) { return (long)(t / p.keys) * p.B * p.H + bh; }
static __device__ __forceinline__ bool cu_forgets(const CuChunks &p, int t) { return p.keys == 1 || t % p.keys == 0; }
static __device__ __forceinline__ bool cu_reads(const CuChunks &p, int t) { return p.keys == 1 || t % p.keys == p.keys - 1; }

/* Bit i: token i of the chunk resets.  All 32 lanes must come, each loads one. */
static __device__ __forceinline__ unsigned cu_resets(const CuChunks &p, int bh, int begin, int n) {
  const int lane = (int)threadIdx.x % 32;
  return p.done ? __ballot_sync(0xffffffffu, lane < n && cu_forgets(p, begin + lane) &&
                                                 p.done[(long)((begin + lane) / p.keys) * p.B + bh / p.H]) : 0;
}

/* The first token of t's episode in this chunk; and how many tokens still see the state before it. */
static __device__ __forceinline__ int cu_first(unsigned resets, int t) {
  const unsigned upto = resets & ((2u << t) - 1u);
  return upto ? 31 - __clz((int)upto) : 0;
}
static __device__ __forceinline__ int cu_seeing(unsigned resets, int n) { return resets ? __ffs((int)resets) - 1 : n; }

/* Column i of a token's values, and what it keeps of the state's. */
static __device__ __forceinline__ float cu_value(const CuChunks &p, long token, int i) {
  if (i >= p.V) return 1.0f;
  return cu_written(p.v, p.gate_v, token * p.V + i);
}
static __device__ __forceinline__ float cu_value_kept(const CuChunks &p, long token, int i) {
  return cu_kept(p.fades && i < p.V, p.keep_v, p.gate_v, token * p.V + i);
}

/* x[i] summed over a warp, each sum in one lane: lane l gets those of i = l*N/32 .. in x[0 .. N/32-1].
** Half of what is left crosses over at every step, so it takes about N shuffles in all and not 5 N.  A step is a function of
** its own, so that x stays in registers: how many numbers it has is known before anything is unrolled. */
template <int BY, int N, int ALL> static __device__ __forceinline__ void cu_cross(float (&x)[ALL], int lane) {
  const bool upper = lane & BY;
CU_UNROLL
  for (int i = 0; i < N; i++) {
    const float give = upper ? x[i] : x[i + N], stay = upper ? x[i + N] : x[i];
    x[i] = stay + __shfl_xor_sync(0xffffffffu, give, BY);
  }
}

template <int N> static __device__ __forceinline__ void cu_warp_sums(float (&x)[N], int lane) {
  cu_cross<16, N / 2>(x, lane);
  cu_cross<8, N / 4>(x, lane);
  cu_cross<4, N / 8>(x, lane);
  cu_cross<2, N / 16>(x, lane);
  cu_cross<1, N / 32>(x, lane);
}

/* ---- scratch ---- */

/* Floats of scratch for a slice of heads: what a second-level cache holds.  Tests under emulation make it small. */
#ifdef __CUDACC__
enum { CU_SLICE = 12 << 20 };
#else
#define CU_SLICE (emu::gpu().slice)
#endif
enum { CU_FILL = 1024 };         /* warps that fill a GPU: 8 on each of 128 multiprocessors, of 255 registers a lane */

/* Columns of a head that a warp has. */
static inline int cu_warp_columns(int Kq) { return Kq <= 256 ? 8 : 2; }

/* Heads of a slice of `floats`, slices being of equal size. */
static inline int cu_heads_of_slice(const CuChunks *p, long head, long floats) {
  const long all = (long)p->B * p->H, fits = cu_max(1L, floats / head);
  return (int)cu_parts(all, cu_parts(all, fits));
}

/* Scratch of mn_scratch's buffer 0 for as many heads as a slice may have, and z in buffer 1.  Gives p->heads.
**
** A slice whose heads' warps would not fill a GPU has its chunks side by side, where the state's recurrence is elementwise:
** of a pair it is not.  Forward then keeps the states too.  Such a slice may be twice as large: three passes read or write
** the states, 16 bytes an element, and memory is hardly slower than the second-level cache, but each slice is four launches
** more, whose last blocks leave the GPU idle.  32 heads of 256 keys and 64 values over 256 tokens are one slice. */
static inline void cu_chunks_scratch(CuChunks *p, mn_ctx *mn, bool back) {
  struct Part { float **at; long each; };
  const long keys = (long)p->rows * p->Kq, values = (long)p->rows * p->cols, state = (long)p->cols * p->Kq;
  const long scores = (long)p->tables * CU_PAIRS, tokens = (long)CU_L * p->cols;
  const Part parts[] = {
    { &p->R, keys }, { &p->W, keys }, { &p->kept, p->Kq }, { &p->scores, scores },
    { &p->states, state }, { &p->kept_v, p->fades ? p->cols : 0 },
    { &p->dstates, state }, { &p->values, values }, { &p->dread, values }, { &p->dy, tokens },
    { &p->dvalues, tokens }, { &p->dscores, scores },
    { &p->read, p->fades ? tokens : 0 }, { &p->dkept_v, p->fades ? p->cols : 0 },
  };
  enum { FORWARD = 4, SIDE_BY_SIDE = 6, ALL = sizeof parts / sizeof *parts };
  int n = back ? ALL : FORWARD;
  long head = 0;
  for (int i = 0; i < n; i++) head += cu_round_up(parts[i].each * p->chunks, 4);
  p->heads = cu_heads_of_slice(p, head, CU_SLICE);
  p->side_by_side = p->tables == 1 && p->chunks > 1 && p->heads * cu_parts(p->cols, cu_warp_columns(p->Kq)) < CU_FILL;
  if (p->side_by_side) {
    for (; n < SIDE_BY_SIDE; n++) head += cu_round_up(parts[n].each * p->chunks, 4);
    p->heads = cu_heads_of_slice(p, head, 2L * CU_SLICE);
  }
  float *at = mn_scratch(mn, 0, head * p->heads);
  for (int i = 0; i < n; i++) {
    *parts[i].at = parts[i].each ? at : NULL;
    at += cu_round_up(parts[i].each * p->chunks, 4) * p->heads;
  }
  if (p->cols > p->V) p->z = mn_scratch(mn, 1, (long)p->T * p->B * p->H);
}

/* for each slice of the heads */
#define CU_SLICES(p) \
  for (int most_ = (p).heads, all_ = (p).B * (p).H, at_ = (p).head = 0; \
       at_ < all_ && ((p).head = at_, (p).heads = cu_min(most_, all_ - at_), true); at_ += most_)

/* chunk_state.cu.  Forward over the chunks, from the first state to the last: y, z, the last state, checkpoints.
** Or, `again`, from the checkpoints: values, read, states, z.  And gradients of the states, back over the chunks. */
void cu_chunk_forward(const CuChunks *p, bool again);
void cu_chunk_backward(const CuChunks *p);
