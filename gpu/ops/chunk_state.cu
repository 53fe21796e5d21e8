/* chunk_state.cu -- the states of matrix memories from chunk to chunk, or of all chunks at once, forward and backward
** (chunk.cuh has the equations).  A warp holds a few columns of the state in registers, all keys of them: lane l has keys
** l, l + 32, ...  Warps need nothing of each other, so there is no barrier but the warp's own.  Readers and keys come
** through the first-level cache, which the warps of a head share; a lane loads 32 of them before it uses any, since a load
** takes as long as what is computed with a row of them.
**
** Per token and head 2 K V multiply-adds forward (of a pair twice as many), and as many for the gradients of the states;
** bytes: 8 K of scratch per warp's columns from the first- or second-level cache, and the state once at each end; side by side
** the state of each chunk, too (cu_chunks_scratch). */
#include "lib/chunk_tile.cuh"

/* Floats of shared memory that a warp has for each of its columns: what readers find and what is written, values and what
** each of them keeps, and what all of them keep. */
enum { SHARED_ROWS = 2 * CU_L + 2 * CU_L + 1 };

/* Rows of keys that a lane loads together, before any is used: 32 loads that wait at the same time. */
template <int KJ>
static __device__ __forceinline__ void load_keys(const CuChunks &p, int lane, const float *X, float (&x)[32 / KJ][KJ]) {
CU_UNROLL
  for (int i = 0; i < 32 / KJ; i++)
CU_UNROLL
    for (int j = 0; j < KJ; j++) x[i][j] = 32 * j < p.Kq ? X[(long)i * p.Kq + lane + 32 * j] : 0.0f;
}

/* A row of a warp's columns. */
template <int VW> static __device__ __forceinline__ void load_columns(cu_smem<float> from, float (&to)[VW]) {
  if constexpr (VW % 4 == 0) {
CU_UNROLL
    for (int v = 0; v < VW; v += 4) {
      const float4 x = cu_smem_quads(from)[v / 4];
      to[v] = x.x, to[v + 1] = x.y, to[v + 2] = x.z, to[v + 3] = x.w;
    }
  } else {
CU_UNROLL
    for (int v = 0; v < VW; v++) to[v] = from[v];
  }
}

/* out[row][v] = X[row] . S of rows from .. end-1, zeros for the other rows of the sixteen. */
template <int KJ, int VW>
static __device__ __forceinline__ void read_state(const CuChunks &p, int lane, const float *X, int from, int end,
                                                  const float (&S)[KJ][VW], cu_smem<float> out) {
  enum { N = 32 / VW, ROWS = 32 / KJ, STEP = ROWS < N ? N : ROWS };        /* the 32 sums of N rows are made together */
  for (int row = 0; row < CU_L; row += STEP) {
    float x[ROWS][KJ], sum[32];
CU_UNROLL
    for (int i = 0; i < STEP; i++) {
      if (i % ROWS == 0) load_keys<KJ>(p, lane, X + (long)(row + i) * p.Kq, x);
CU_UNROLL
      for (int v = 0; v < VW; v++) sum[v * N + i % N] = 0.0f;
      if (row + i >= from && row + i < end) {
CU_UNROLL
        for (int j = 0; j < KJ; j++) {
          if (32 * j >= p.Kq) continue;
CU_UNROLL
          for (int v = 0; v < VW; v++) sum[v * N + i % N] = fmaf(x[i % ROWS][j], S[j][v], sum[v * N + i % N]);
        }
      }
      if (i % N < N - 1) continue;
      cu_warp_sums(sum, lane);
      out[(row + i / N * N + lane % N) * VW + lane / N] = sum[0];
    }
  }
}

/* S += sum over rows from .. end-1 of X[row] by[row]. */
template <int KJ, int VW>
static __device__ __forceinline__ void write_state(const CuChunks &p, int lane, const float *X, int from, int end,
                                                   cu_smem<float> by, float (&S)[KJ][VW]) {
  enum { ROWS = 32 / KJ };
  for (int row = 0; row < CU_L; row += ROWS) {
    float x[ROWS][KJ];
    load_keys<KJ>(p, lane, X + (long)row * p.Kq, x);
CU_UNROLL
    for (int i = 0; i < ROWS; i++) {
      if (row + i < from || row + i >= end) continue;
      float y[VW];
      load_columns<VW>(by + (row + i) * VW, y);
CU_UNROLL
      for (int j = 0; j < KJ; j++) {
        if (32 * j >= p.Kq) continue;
CU_UNROLL
        for (int v = 0; v < VW; v++) S[j][v] = fmaf(x[i][j], y[v], S[j][v]);
      }
    }
  }
}

/* S = S * kept, 0 where a reset dropped it. */
template <int KJ, int VW>
static __device__ __forceinline__ void keep_state(const CuChunks &p, int lane, const float *kept, bool drop,
                                                  cu_smem<float> kept_v, float (&S)[KJ][VW]) {
  float by[VW];
CU_UNROLL
  for (int v = 0; v < VW; v++) by[v] = kept_v[v];
CU_UNROLL
  for (int j = 0; j < KJ; j++) {
    const float k = 32 * j < p.Kq ? kept[lane + 32 * j] : 0.0f;
CU_UNROLL
    for (int v = 0; v < VW; v++) S[j][v] = drop ? 0.0f : S[j][v] * (k * by[v]);
  }
}

template <int KJ, int VW> static __device__ __forceinline__ void clear_state(float (&S)[KJ][VW]) {
CU_UNROLL
  for (int j = 0; j < KJ; j++)
CU_UNROLL
    for (int v = 0; v < VW; v++) S[j][v] = 0.0f;
}

/* What a warp has in shared memory. */
template <int VW> struct Shared {
  cu_smem<float> scores;         /* [16,16]; a pair does not use it */
  cu_smem<float> m;              /* [32,VW]: what readers found, then what is written */
  cu_smem<float> value, kept;    /* [16,VW]: of the chunk, and what they keep of the state's */
  cu_smem<float> kept_v;         /* [VW]: what all of them keep */
};

template <int VW> static __device__ __forceinline__ Shared<VW> shared_of_warp() {
  const int warp = (int)threadIdx.x / 32;
  Shared<VW> own;
  own.scores = CU_SHARED(float, 0) + warp * CU_PAIRS;
  own.m = CU_SHARED(float, 0) + CU_TILE_WARPS * CU_PAIRS + warp * SHARED_ROWS * VW;
  own.value = own.m + 2 * CU_L * VW, own.kept = own.value + CU_L * VW, own.kept_v = own.kept + CU_L * VW;
  return own;
}

template <int VW>
static __device__ __forceinline__ void stage(const CuChunks &p, const CuWork &w, int lane, int begin, int n,
                                             const Shared<VW> &own) {
  enum { N = CU_L * VW / 32 };
  float v[N], gate[N], keep[N];            /* cu_value and cu_value_kept, with all loads before any of them is used */
CU_UNROLL
  for (int k = 0; k < N; k++) {
    const int t = (lane + 32 * k) / VW, i = w.column + lane % VW;
    const bool real = t < n && i < p.V;
    const long at = cu_token(p, begin + t, w.bh) * p.V + i;
    v[k] = real ? p.v[at] : 1.0f;
    gate[k] = real && p.gate_v ? p.gate_v[at] : 1.0f;
    keep[k] = real && p.keep_v ? p.keep_v[at] : 1.0f;
  }
CU_UNROLL
  for (int k = 0; k < N; k++) {
    const int m = lane + 32 * k, t = m / VW, i = w.column + lane % VW;
    own.value[m] = t < n && i < p.cols ? v[k] * gate[k] : 0.0f;
    own.kept[m] = !p.fades || t >= n || i >= p.V ? 1.0f : p.keep_v ? keep[k] : 1.0f - gate[k];
  }
}

/* y of a chunk, for the column and tokens of a lane, from what the readers found in the state.  All that a lane needs is
** loaded at once, and the loops are unrolled with conditions for bounds: a load waits longer than a row computes. */
template <int KJ, int VW>
static __device__ __forceinline__ void mix(const CuChunks &p, const CuWork &w, int lane, int c, int begin, int n,
                                           unsigned resets, const Shared<VW> &own) {
  typedef CuTile<KJ, VW> X;
  const int v = lane % VW, i = w.column + v, mine = lane / VW, seeing = cu_seeing(resets, n);
  cu_smem<float4> A = cu_smem_quads(own.scores);
  float value[CU_L], kept[CU_L];
CU_UNROLL
  for (int s = 0; s < CU_L; s++) value[s] = own.value[s * VW + v], kept[s] = own.kept[s * VW + v];
CU_UNROLL
  for (int o = 0; o < X::OWN; o++) {
    const int t = mine + o * X::LANES, first = cu_first(resets, t);
    const float found = t < seeing ? (float)own.m[t * VW + v] : 0.0f;
    float sum = 0.0f, through = 1.0f;
CU_UNROLL
    for (int back = 0; back < CU_L; back += 4) {
      const int s = CU_L - 4 - back;
      const float4 four = A[(t * CU_L + s) / 4];
      const float score[4] = { four.x, four.y, four.z, four.w };
CU_UNROLL
      for (int m = 3; m >= 0; m--) {
        if (s + m > t || s + m < first) continue;
        sum = fmaf(score[m], value[s + m] * through, sum);
        through *= kept[s + m];
      }
    }
    const float y = t < seeing ? fmaf(through, found, sum) : sum;
    const long token = cu_token(p, begin + t, w.bh);
    if (p.read && i < p.cols) p.read[(cu_place(p, w.bh, c) * CU_L + t) * p.cols + i] = found;
    if (t >= n) continue;
    if (p.y && i < p.V) p.y[token * p.V + i] = y;
    if (i == p.V && i < p.cols) p.z[token] = y;
  }
}

/* The values as the chunk's end has them, each decayed from its own step to there; and how much of the old state is kept until then. */
template <int KJ, int VW>
static __device__ __forceinline__ void values_at_end(const CuChunks &p, const CuWork &w, int lane, int c, const Shared<VW> &own) {
  typedef CuTile<KJ, VW> X;
  const int v = lane % VW, i = w.column + v, mine = lane / VW;
  float all = 1.0f;
CU_UNROLL
  for (int back = 0; back < CU_L; back++) {
    const int s = CU_L - 1 - back;
    if (s % X::LANES == mine) own.m[s * VW + v] = own.value[s * VW + v] * all;
    all *= own.kept[s * VW + v];
  }
  if (mine == 0) own.kept_v[v] = all;
  if (mine == 0 && p.kept_v && i < p.cols) p.kept_v[cu_place(p, w.bh, c) * p.cols + i] = all;
}

/* mix and values_at_end for a pair: u by substitution, one token after the other; beta is not there. */
template <int KJ, int VW>
static __device__ __forceinline__ void mix_pair(const CuChunks &p, const CuWork &w, int lane, int c, int begin, int n,
                                                unsigned resets, const Shared<VW> &own) {
  typedef CuTile<KJ, VW> X;
  const int v = lane % VW, i = w.column + v, mine = lane / VW;
  cu_smem<float> m = own.m;
  const float *A = p.scores + cu_place(p, w.bh, c) * p.tables * CU_PAIRS;
  const bool value = i < p.V, real = i < p.cols;       /* the normaliser's column erases nothing: u is 0 */
  float y[X::OWN], u[X::OWN];
CU_UNROLL
  for (int o = 0; o < X::OWN; o++) {
    const int t = mine + o * X::LANES, first = cu_first(resets, t);
    const bool sees = t < cu_seeing(resets, n);
    y[o] = sees ? (float)m[t * VW + v] : 0.0f;
    u[o] = sees && value ? (float)m[(CU_L + t) * VW + v] : 0.0f;
    for (int s = first; t < n && s <= t; s++) {
      const float x = own.value[s * VW + v];
      y[o] = fmaf(A[CU_READ_K * CU_PAIRS + t * CU_L + s], x, y[o]);
      if (s < t && value) u[o] = fmaf(A[CU_TAKE_K * CU_PAIRS + t * CU_L + s], x, u[o]);
    }
  }
CU_UNROLL
  for (int s = 0; s < CU_L; s++) {
    const float found = __shfl_sync(0xffffffffu, u[s / X::LANES], s % X::LANES * VW + v);
CU_UNROLL
    for (int o = 0; o < X::OWN; o++) {
      const int t = mine + o * X::LANES;
      if (!value || t >= n || t < s || s < cu_first(resets, t)) continue;
      y[o] = fmaf(A[CU_READ_B * CU_PAIRS + t * CU_L + s], found, y[o]);
      if (t > s) u[o] = fmaf(A[CU_TAKE_B * CU_PAIRS + t * CU_L + s], found, u[o]);
    }
  }
  __syncwarp();
  if (mine == 0) own.kept_v[v] = 1.0f;
CU_UNROLL
  for (int o = 0; o < X::OWN; o++) {
    const int t = mine + o * X::LANES;
    m[t * VW + v] = (float)own.value[t * VW + v];
    m[(CU_L + t) * VW + v] = u[o];
    if (t >= n || !cu_reads(p, begin + t)) continue;
    if (p.y && value) p.y[cu_step(p, begin + t, w.bh) * p.V + i] = y[o];
    if (i == p.V && real) p.z[cu_step(p, begin + t, w.bh)] = y[o];
  }
}

/* To p.values or p.dread, [rows,cols], from what a warp has in shared memory, [rows][VW]. */
template <int VW>
static __device__ __forceinline__ void publish(const CuChunks &p, const CuWork &w, int lane, int c, cu_smem<float> m,
                                               float *to) {
  for (int i = lane; to && i < p.rows * VW; i += 32) {
    const int row = i / VW, column = w.column + i % VW;
    if (column < p.cols) to[(cu_place(p, w.bh, c) * p.rows + row) * p.cols + column] = m[i];
  }
}

template <int KJ, int VW, bool PAIR, CuPass PASS>
CU_KERNEL chunk_forward(const CuChunks &p, int chunks_each, bool again) {
  const CuWork w = cu_work<VW>(p, chunks_each);
  const int lane = (int)threadIdx.x % 32;
  if (!w.any) return;
  const Shared<VW> own = shared_of_warp<VW>();
  float S[KJ][VW];
  if (PASS == CU_ENDS) clear_state<KJ, VW>(S);
  else if (PASS == CU_READ) cu_get_rows<KJ, VW>(p, w, lane, p.states + cu_place(p, w.bh, w.from) * p.cols * p.Kq, p.Kq, S);
  else if (again) cu_get_rows<KJ, VW>(p, w, lane, cu_checkpoint(p, w.bh, w.from * CU_L), p.K, S);
  else cu_load_state<KJ, VW>(p, w, lane, p.first_C, p.first_s, S);

  for (int c = w.from; c < w.end; c++) {
    const int begin = cu_begin(p, c), n = cu_tokens(p, c);
    const long place = cu_place(p, w.bh, c);
    const unsigned resets = cu_resets(p, w.bh, begin, n);
    const int last = resets ? cu_first(resets, CU_L - 1) : 0, seeing = cu_seeing(resets, n);
    float *const states = p.states ? p.states + place * p.cols * p.Kq : NULL;
    if (PASS != CU_ENDS && p.saved && !again && begin % (CU_L * p.span) == 0)
      cu_put_rows<KJ, VW>(p, w, lane, cu_checkpoint(p, w.bh, begin), p.K, S);
    if (PASS == CU_WALK && states) cu_put_rows<KJ, VW>(p, w, lane, states, p.Kq, S);
    stage<VW>(p, w, lane, begin, n, own);
    if (PASS != CU_ENDS) {
      if (!PAIR) {
CU_UNROLL
        for (int i = 0; i < CU_PAIRS; i += 32) own.scores[lane + i] = p.scores[place * CU_PAIRS + lane + i];
      }
      read_state<KJ, VW>(p, lane, p.R + place * p.rows * p.Kq, 0, seeing, S, own.m);
      if (PAIR) read_state<KJ, VW>(p, lane, p.R + (place * p.rows + CU_L) * p.Kq, 0, seeing, S, own.m + CU_L * VW);
    }
    __syncwarp();
    if (PAIR) mix_pair<KJ, VW>(p, w, lane, c, begin, n, resets, own);
    else if (PASS != CU_ENDS) mix<KJ, VW>(p, w, lane, c, begin, n, resets, own);
    if (PASS == CU_READ) return;
    if (!PAIR) values_at_end<KJ, VW>(p, w, lane, c, own);
    __syncwarp();
    publish<VW>(p, w, lane, c, own.m, p.values);
    if (PASS == CU_WALK) keep_state<KJ, VW>(p, lane, p.kept + place * p.Kq, resets != 0, own.kept_v, S);
    write_state<KJ, VW>(p, lane, p.W + place * p.rows * p.Kq, last, n, own.m, S);
    if (PAIR) write_state<KJ, VW>(p, lane, p.W + (place * p.rows + CU_L) * p.Kq, last, n, own.m + CU_L * VW, S);
    if (PASS == CU_ENDS) cu_put_rows<KJ, VW>(p, w, lane, states, p.Kq, S);
    __syncwarp();
  }
  if (PASS == CU_WALK && !again) cu_store<KJ, VW>(p, w, lane, p.last_C, p.last_s, S);
}

/* S' = kept S + end over the chunks of a head, a thread an element: ends become the states before the chunks.  Of
** gradients (`back`), from the last chunk to the first: they become those after the chunks.  The elements of a head and
** chunk are read and written once, 8 bytes; a few chunks' are loaded together. */
CU_KERNEL scan(const CuChunks &p, bool back) {
  enum { AHEAD = 8 };
  const int e = (int)(blockIdx.x * blockDim.x + threadIdx.x), size = p.cols * p.Kq, bh = p.head + (int)blockIdx.y;
  const int lane = (int)threadIdx.x % 32, i = e / p.Kq, j = e % p.Kq;
  if (e >= size) return;                                                      /* a whole warp: Kq is a multiple of 32 */
  const float *first = i < p.V ? p.first_C : p.first_s;
  float *to = i < p.V ? p.last_C : p.last_s, *at = (back ? p.dstates : p.states) + e;
  float S = first && j < p.K ? first[cu_outside(p, bh, i, j)] : 0.0f;
  for (int from = 0; from < p.chunks; from += AHEAD) {
    float end[AHEAD], kept[AHEAD], kept_v[AHEAD];
    uint8_t reset[AHEAD];                  /* of the lane's token */
CU_UNROLL
    for (int m = 0; m < AHEAD; m++) {
      const int n = cu_min(from + m, p.chunks - 1), c = back ? p.chunks - 1 - n : n;
      const long place = cu_place(p, bh, c);
      end[m] = at[place * size];
      kept[m] = p.kept[place * p.Kq + j];
      kept_v[m] = p.kept_v ? p.kept_v[place * p.cols + i] : 1.0f;
      reset[m] = p.done && lane < cu_tokens(p, c) ? p.done[(long)(cu_begin(p, c) + lane) * p.B + bh / p.H] : 0;
    }
CU_UNROLL
    for (int m = 0; m < AHEAD; m++) {
      if (from + m >= p.chunks) continue;
      at[cu_place(p, bh, back ? p.chunks - 1 - from - m : from + m) * size] = S;
      S = __any_sync(0xffffffffu, reset[m] != 0) ? end[m] : fmaf(S, kept[m] * kept_v[m], end[m]);
    }
  }
  if (to && j < p.K) to[cu_outside(p, bh, i, j)] = S;
}

/* Backward among the tokens of a chunk, for a pair: from the gradients of the written values N (in m), those of u and v. */
template <int KJ, int VW>
static __device__ __forceinline__ void unmix_pair(const CuChunks &p, const CuWork &w, int lane, int c, int n, unsigned resets,
                                                  cu_smem<float> m) {
  typedef CuTile<KJ, VW> X;
  const int v = lane % VW, i = w.column + v, mine = lane / VW;
  const long place = cu_place(p, w.bh, c);
  const float *A = p.scores + place * p.tables * CU_PAIRS, *dy = p.dy + place * CU_L * p.cols + i;
  const bool value = i < p.V, real = i < p.cols;
  float du[X::OWN], dv[X::OWN], g[X::OWN];
CU_UNROLL
  for (int o = 0; o < X::OWN; o++) {
    const int s = mine + o * X::LANES;
    g[o] = real ? dy[(long)s * p.cols] : 0.0f;
    dv[o] = m[s * VW + v];
    du[o] = value ? (float)m[(CU_L + s) * VW + v] : 0.0f;
  }
  for (int t = 0; t < n; t++) {
    const float to_y = real ? dy[(long)t * p.cols] : 0.0f;
CU_UNROLL
    for (int o = 0; o < X::OWN; o++) {
      const int s = mine + o * X::LANES;
      if (s > t || s < cu_first(resets, t)) continue;
      dv[o] = fmaf(A[CU_READ_K * CU_PAIRS + t * CU_L + s], to_y, dv[o]);
      if (value) du[o] = fmaf(A[CU_READ_B * CU_PAIRS + t * CU_L + s], to_y, du[o]);
    }
  }
CU_UNROLL
  for (int back = 0; back < CU_L; back++) {
    const int t = CU_L - 1 - back;
    const float to_u = __shfl_sync(0xffffffffu, du[t / X::LANES], t % X::LANES * VW + v);
CU_UNROLL
    for (int o = 0; o < X::OWN; o++) {
      const int s = mine + o * X::LANES;
      if (!value || t >= n || s >= t || s < cu_first(resets, t)) continue;
      du[o] = fmaf(A[CU_TAKE_B * CU_PAIRS + t * CU_L + s], to_u, du[o]);
      dv[o] = fmaf(A[CU_TAKE_K * CU_PAIRS + t * CU_L + s], to_u, dv[o]);
    }
  }
  __syncwarp();
CU_UNROLL
  for (int o = 0; o < X::OWN; o++) {
    const int s = mine + o * X::LANES;
    if (real) p.dvalues[(place * CU_L + s) * p.cols + i] = dv[o];
    m[s * VW + v] = g[o];
    m[(CU_L + s) * VW + v] = du[o];
  }
}

/* m: what y's gradient gives back to the state, dy times what beta keeps from the chunk's beginning. */
template <int KJ, int VW>
static __device__ __forceinline__ void unmix(const CuChunks &p, const CuWork &w, int lane, int c, const Shared<VW> &own) {
  typedef CuTile<KJ, VW> X;
  const int v = lane % VW, i = w.column + v, mine = lane / VW;
  const long place = cu_place(p, w.bh, c);
  float dy[X::OWN], all = 1.0f;
CU_UNROLL
  for (int o = 0; o < X::OWN; o++) dy[o] = i < p.cols ? p.dy[(place * CU_L + mine + o * X::LANES) * p.cols + i] : 0.0f;
CU_UNROLL
  for (int t = 0; t < CU_L; t++) {
    all *= own.kept[t * VW + v];
    if (t % X::LANES == mine) own.m[t * VW + v] = dy[t / X::LANES] * all;
  }
  if (mine == 0) own.kept_v[v] = all;
}

/* The gradient of kept_v: sum over keys of kept * S * dS. */
template <int KJ, int VW>
static __device__ __forceinline__ void kept_v_back(const CuChunks &p, const CuWork &w, int lane, int c, bool drop,
                                                   const float (&dS)[KJ][VW]) {
  const long place = cu_place(p, w.bh, c);
  const float *S = p.states + (place * p.cols + w.column) * p.Kq + lane, *kept = p.kept + place * p.Kq + lane;
  enum { N = KJ < 32 / VW ? KJ : 32 / VW };            /* keys loaded together, of every column */
  float sum[VW];
CU_UNROLL
  for (int v = 0; v < VW; v++) sum[v] = 0.0f;
CU_UNROLL
  for (int from = 0; from < KJ; from += N) {
    float k[N], x[N][VW];
CU_UNROLL
    for (int j = 0; j < N; j++) {
      const bool real = 32 * (from + j) < p.Kq;
      k[j] = real ? kept[32 * (from + j)] : 0.0f;
CU_UNROLL
      for (int v = 0; v < VW; v++) x[j][v] = real && w.column + v < p.cols ? S[(long)v * p.Kq + 32 * (from + j)] : 0.0f;
    }
CU_UNROLL
    for (int j = 0; j < N; j++)
CU_UNROLL
      for (int v = 0; v < VW; v++) sum[v] = fmaf(k[j] * dS[from + j][v], x[j][v], sum[v]);
  }
CU_UNROLL
  for (int v = 0; v < VW; v++) {
    sum[v] = cu_warp_sum(sum[v]);
    if (lane == 0 && w.column + v < p.cols) p.dkept_v[place * p.cols + w.column + v] = drop ? 0.0f : sum[v];
  }
}

template <int KJ, int VW, bool PAIR, CuPass PASS>
CU_KERNEL chunk_backward(const CuChunks &p, int chunks_each) {
  const CuWork w = cu_work<VW>(p, chunks_each);
  const int lane = (int)threadIdx.x % 32;
  if (!w.any) return;
  const Shared<VW> own = shared_of_warp<VW>();
  float dS[KJ][VW];
  if (PASS == CU_ENDS) clear_state<KJ, VW>(dS);
  else if (PASS == CU_READ) cu_get_rows<KJ, VW>(p, w, lane, p.dstates + cu_place(p, w.bh, w.from) * p.cols * p.Kq, p.Kq, dS);
  else cu_load_state<KJ, VW>(p, w, lane, p.first_C, p.first_s, dS);

  for (int c = w.end - 1; c >= w.from; c--) {
    const int begin = cu_begin(p, c), n = cu_tokens(p, c);
    const long place = cu_place(p, w.bh, c);
    const unsigned resets = cu_resets(p, w.bh, begin, n);
    const int last = resets ? cu_first(resets, CU_L - 1) : 0, seeing = cu_seeing(resets, n);
    float *const dstates = p.dstates + place * p.cols * p.Kq;
    if (PASS == CU_WALK) cu_put_rows<KJ, VW>(p, w, lane, dstates, p.Kq, dS);
    if (PASS != CU_ENDS) {
      if (p.dkept_v) kept_v_back<KJ, VW>(p, w, lane, c, resets != 0, dS);
      read_state<KJ, VW>(p, lane, p.W + place * p.rows * p.Kq, last, n, dS, own.m);
      if (PAIR) read_state<KJ, VW>(p, lane, p.W + (place * p.rows + CU_L) * p.Kq, last, n, dS, own.m + CU_L * VW);
      __syncwarp();
      if (!PAIR) publish<VW>(p, w, lane, c, own.m, p.dvalues);
    }
    if (PASS == CU_READ) return;
    if (PAIR) {
      unmix_pair<KJ, VW>(p, w, lane, c, n, resets, own.m);
      if (lane < VW) own.kept_v[lane] = 1.0f;
    } else {
      stage<VW>(p, w, lane, begin, n, own);
      __syncwarp();
      unmix<KJ, VW>(p, w, lane, c, own);
    }
    __syncwarp();
    publish<VW>(p, w, lane, c, own.m, p.dread);
    if (PASS == CU_WALK) keep_state<KJ, VW>(p, lane, p.kept + place * p.Kq, resets != 0, own.kept_v, dS);
    write_state<KJ, VW>(p, lane, p.R + place * p.rows * p.Kq, 0, seeing, own.m, dS);
    if (PAIR) write_state<KJ, VW>(p, lane, p.R + (place * p.rows + CU_L) * p.Kq, 0, seeing, own.m + CU_L * VW, dS);
    if (PASS == CU_ENDS) cu_put_rows<KJ, VW>(p, w, lane, dstates, p.Kq, dS);
    __syncwarp();
  }
  if (PASS == CU_WALK) cu_store<KJ, VW>(p, w, lane, p.last_C, p.last_s, dS);
}

/* ---- host ---- */

template <int KJ, int VW, bool PAIR, CuPass PASS> static void launch(const CuChunks *p, bool back, bool again, int each) {
  const size_t shared = sizeof(float) * CU_TILE_WARPS * (CU_PAIRS + SHARED_ROWS * VW);
  const unsigned blocks = cu_tile_blocks<VW>(p, each), threads = 32 * CU_TILE_WARPS;
  enum { RESIDENT = PASS == CU_WALK || KJ > 8 ? 1 : 2 };     /* 2: 128 registers, since side by side there are many warps */
  if (back) CU_LAUNCH_BY(RESIDENT, (chunk_backward<KJ, VW, PAIR, PASS>), blocks, threads, shared, *p, each);
  else      CU_LAUNCH_BY(RESIDENT, (chunk_forward<KJ, VW, PAIR, PASS>), blocks, threads, shared, *p, each, again);
}

template <int KJ, int VW> static void run(const CuChunks *p, bool back, bool again) {
  const int each = again ? p->span : p->chunks;
  if (p->tables > 1) return launch<KJ, VW, true, CU_WALK>(p, back, again, each);
  if (!p->side_by_side || again) return launch<KJ, VW, false, CU_WALK>(p, back, again, each);
  launch<KJ, VW, false, CU_ENDS>(p, back, false, 1);
  CU_LAUNCH(scan, dim3((unsigned)cu_parts((long)p->cols * p->Kq, CU_THREADS), (unsigned)p->heads), CU_THREADS, 0, *p, back);
  launch<KJ, VW, false, CU_READ>(p, back, false, 1);
}

static void run_by_width(const CuChunks *p, bool back, bool again) {
  if (p->K > CU_WIDE) return cu_fail("a matrix memory", "there is no kernel for heads of more than 1024 keys");
  if (p->Kq <= 64)       run<2, 8>(p, back, again);
  else if (p->Kq <= 256) run<8, 8>(p, back, again);
  else                   run<32, 2>(p, back, again);
}

void cu_chunk_forward(const CuChunks *p, bool again) { run_by_width(p, false, again); }
void cu_chunk_backward(const CuChunks *p) { run_by_width(p, true, false); }
