/* chunk_state.cu -- the states of matrix memories from chunk to chunk, forward and backward (chunk.cuh has the
** equations).  A warp holds a few columns of the state in registers, all keys of them: lane l has keys l, l + 32, ...
** Warps need nothing of each other, so there is no barrier but the warp's own.  Readers and keys come through the
** first-level cache, which the warps of a head share.
**
** Per token and head 2 K V multiply-adds forward (of a pair twice as many), and as many for the gradients of the states;
** bytes: 8 K of scratch per warp's columns from the first- or second-level cache, and the state once at each end. */
#include "lib/chunk_tile.cuh"

/* Floats of shared memory that a warp has for each of its columns: what readers find and what is written, what beta keeps
** over the chunk, values and what each of them keeps. */
enum { SHARED_ROWS = 2 * CU_L + 1 + 2 * CU_L };

/* out[row][v] = X[row] . S of rows from .. end-1, zeros for the other rows of the sixteen. */
template <int KJ, int VW>
static __device__ __forceinline__ void read_state(const CuChunks &p, int lane, const float *X, int from, int end,
                                                  const float (&S)[KJ][VW], cu_smem<float> out) {
  enum { N = CuTile<KJ, VW>::AT_ONCE };
  for (int row = 0; row < CU_L; row += N) {
    float sum[N * VW];
CU_UNROLL
    for (int i = 0; i < N * VW; i++) sum[i] = 0.0f;
CU_UNROLL
    for (int i = 0; i < N; i++) {
      if (row + i < from || row + i >= end) continue;
CU_UNROLL
      for (int j = 0; j < KJ; j++) {
        if (32 * j >= p.Kq) continue;
        const float x = X[(long)(row + i) * p.Kq + lane + 32 * j];
CU_UNROLL
        for (int v = 0; v < VW; v++) sum[v * N + i] = fmaf(x, S[j][v], sum[v * N + i]);
      }
    }
    cu_warp_sums(sum, lane);
CU_UNROLL
    for (int m = 0; m < N * VW / 32; m++) {
      const int at = lane * (N * VW / 32) + m;
      out[(row + at % N) * VW + at / N] = sum[m];
    }
  }
}

/* S = S * kept (0 where a reset dropped it) + sum over rows from .. end-1 of X[row] by[row]. */
template <int KJ, int VW>
static __device__ __forceinline__ void write_state(const CuChunks &p, int lane, const float *X, int from, int end,
                                                   cu_smem<float> by, float (&S)[KJ][VW]) {
  for (int row = from; row < end; row++) {
    float y[VW];
CU_UNROLL
    for (int v = 0; v < VW; v++) y[v] = by[row * VW + v];
CU_UNROLL
    for (int j = 0; j < KJ; j++) {
      if (32 * j >= p.Kq) continue;
      const float x = X[(long)row * p.Kq + lane + 32 * j];
CU_UNROLL
      for (int v = 0; v < VW; v++) S[j][v] = fmaf(x, y[v], S[j][v]);
    }
  }
}

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

/* The values of a chunk and what they keep of the state's, [16][VW] each, for the warp. */
struct Own { cu_smem<float> value, kept; };

template <int VW>
static __device__ __forceinline__ void stage(const CuChunks &p, const CuWork &w, int lane, int begin, int n, Own own) {
  for (int m = lane; m < CU_L * VW; m += 32) {
    const int t = m / VW, i = w.column + m % VW;
    const bool real = t < n && i < p.cols;
    const long token = cu_token(p, begin + t, w.bh);
    own.value[m] = real ? cu_value(p, token, i) : 0.0f;
    own.kept[m] = real ? cu_value_kept(p, token, i) : 1.0f;
  }
}

/* One chunk among its own tokens, for the column and tokens of a lane: y, and what the state is written with.  m: what
** the readers found in the state, [rows][VW]; becomes the values of the writers.  kept_v: what is kept of fading values, [VW]. */
template <int KJ, int VW>
static __device__ __forceinline__ void mix(const CuChunks &p, const CuWork &w, int lane, int c, int begin, int n,
                                           unsigned resets, Own own, cu_smem<float> m, cu_smem<float> kept_v) {
  typedef CuTile<KJ, VW> X;
  const int v = lane % VW, i = w.column + v, mine = lane / VW, seeing = cu_seeing(resets, n);
  const long place = cu_place(p, w.bh, c);
  const float *A = p.scores + place * p.tables * CU_PAIRS;
  const bool real = i < p.cols;
  float y[X::OWN], left[X::OWN], all = 1.0f;
CU_UNROLL
  for (int o = 0; o < X::OWN; o++) {
    const int t = mine + o * X::LANES, first = cu_first(resets, t);
    const float found = t < seeing ? (float)m[t * VW + v] : 0.0f;
    float sum = 0.0f, through = 1.0f;
    for (int s = t; t < n && s >= first; s--) {
      sum = fmaf(A[t * CU_L + s], own.value[s * VW + v] * through, sum);
      through *= own.kept[s * VW + v];
    }
    y[o] = t < seeing ? fmaf(through, found, sum) : sum;
    left[o] = own.value[t * VW + v];
    for (int s = t + 1; s < n; s++) left[o] *= own.kept[s * VW + v];
    if (p.read && real) p.read[(place * CU_L + t) * p.cols + i] = found;
  }
  for (int s = 0; s < n; s++) all *= own.kept[s * VW + v];
  __syncwarp();
  if (mine == 0) kept_v[v] = all;
  if (mine == 0 && p.kept_v && real) p.kept_v[place * p.cols + i] = all;
CU_UNROLL
  for (int o = 0; o < X::OWN; o++) {
    const int t = mine + o * X::LANES;
    m[t * VW + v] = left[o];
    if (p.y && t < n && i < p.V) p.y[cu_token(p, begin + t, w.bh) * p.V + i] = y[o];
    if (t < n && i == p.V && real) p.z[cu_token(p, begin + t, w.bh)] = y[o];
  }
}

/* The same for a pair: u by substitution, one token after the other; beta is not there. */
template <int KJ, int VW>
static __device__ __forceinline__ void mix_pair(const CuChunks &p, const CuWork &w, int lane, int c, int begin, int n,
                                                unsigned resets, Own own, cu_smem<float> m, cu_smem<float> kept_v) {
  typedef CuTile<KJ, VW> X;
  const int v = lane % VW, i = w.column + v, mine = lane / VW;
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
  if (mine == 0) kept_v[v] = 1.0f;
CU_UNROLL
  for (int o = 0; o < X::OWN; o++) {
    const int t = mine + o * X::LANES;
    m[t * VW + v] = (float)own.value[t * VW + v];
    m[(CU_L + t) * VW + v] = u[o];
    if (p.y && t < n && value) p.y[cu_token(p, begin + t, w.bh) * p.V + i] = y[o];
    if (t < n && i == p.V && real) p.z[cu_token(p, begin + t, w.bh)] = y[o];
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

template <int KJ, int VW, bool PAIR>
CU_KERNEL chunk_forward(const CuChunks &p, int chunks_each, bool again) {
  const CuWork w = cu_work<VW>(p, chunks_each);
  const int lane = (int)threadIdx.x % 32;
  if (!w.any) return;
  cu_smem<float> m = CU_SHARED(float, 0) + (int)threadIdx.x / 32 * SHARED_ROWS * VW, kept_v = m + 2 * CU_L * VW;
  const Own own = { kept_v + VW, kept_v + (CU_L + 1) * VW };
  float S[KJ][VW];
  if (again) {
    cu_get_rows<KJ, VW>(p, w, lane, cu_checkpoint(p, w.bh, w.from * CU_L), S);
  } else cu_load_state<KJ, VW>(p, w, lane, p.first_C, p.first_s, S);

  for (int c = w.from; c < w.end; c++) {
    const int begin = cu_begin(p, c), n = cu_tokens(p, c);
    const long place = cu_place(p, w.bh, c);
    const unsigned resets = cu_resets(p, w.bh, begin, n);
    const int last = resets ? cu_first(resets, CU_L - 1) : 0, seeing = cu_seeing(resets, n);
    if (p.saved && !again && begin % (CU_L * p.span) == 0)
      cu_put_rows<KJ, VW>(p, w, lane, cu_checkpoint(p, w.bh, begin), p.K, S);
    if (p.states) cu_put_rows<KJ, VW>(p, w, lane, p.states + place * p.cols * p.Kq, p.Kq, S);
    stage<VW>(p, w, lane, begin, n, own);
    read_state<KJ, VW>(p, lane, p.R + place * p.rows * p.Kq, 0, seeing, S, m);
    if (PAIR) read_state<KJ, VW>(p, lane, p.R + (place * p.rows + CU_L) * p.Kq, 0, seeing, S, m + CU_L * VW);
    __syncwarp();
    if (PAIR) mix_pair<KJ, VW>(p, w, lane, c, begin, n, resets, own, m, kept_v);
    else      mix<KJ, VW>(p, w, lane, c, begin, n, resets, own, m, kept_v);
    __syncwarp();
    publish<VW>(p, w, lane, c, m, p.values);
    keep_state<KJ, VW>(p, lane, p.kept + place * p.Kq, resets != 0, kept_v, S);
    write_state<KJ, VW>(p, lane, p.W + place * p.rows * p.Kq, last, n, m, S);
    if (PAIR) write_state<KJ, VW>(p, lane, p.W + (place * p.rows + CU_L) * p.Kq, last, n, m + CU_L * VW, S);
    __syncwarp();
  }
  if (!again) cu_store<KJ, VW>(p, w, lane, p.last_C, p.last_s, S);
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

/* The same with beta: m becomes what it takes of y's gradient back to the state; dvalues stay those at the chunk's end. */
template <int KJ, int VW>
static __device__ __forceinline__ void unmix(const CuChunks &p, const CuWork &w, int lane, int c, int n, Own own,
                                             cu_smem<float> m, cu_smem<float> kept_v) {
  typedef CuTile<KJ, VW> X;
  const int v = lane % VW, i = w.column + v, mine = lane / VW;
  const long place = cu_place(p, w.bh, c);
  const bool real = i < p.cols;
  if (mine == 0) kept_v[v] = real && p.kept_v ? p.kept_v[place * p.cols + i] : 1.0f;
CU_UNROLL
  for (int o = 0; o < X::OWN; o++) {
    const int t = mine + o * X::LANES;
    if (real) p.dvalues[(place * CU_L + t) * p.cols + i] = m[t * VW + v];
    float g = real ? p.dy[(place * CU_L + t) * p.cols + i] : 0.0f;
    for (int s = 0; s <= t && s < n; s++) g *= own.kept[s * VW + v];
    m[t * VW + v] = g;
  }
}

/* The gradient of kept_v: sum over keys of kept * S * dS. */
template <int KJ, int VW>
static __device__ __forceinline__ void kept_v_back(const CuChunks &p, const CuWork &w, int lane, int c, bool drop,
                                                   const float (&dS)[KJ][VW]) {
  const long place = cu_place(p, w.bh, c);
  const float *S = p.states + place * p.cols * p.Kq, *kept = p.kept + place * p.Kq;
CU_UNROLL
  for (int v = 0; v < VW; v++) {
    const int i = w.column + v;
    float sum = 0.0f;
CU_UNROLL
    for (int j = 0; j < KJ; j++)
      if (32 * j < p.Kq && i < p.cols && !drop)
        sum = fmaf(kept[lane + 32 * j] * dS[j][v], S[(long)i * p.Kq + lane + 32 * j], sum);
    sum = cu_warp_sum(sum);
    if (lane == 0 && i < p.cols) p.dkept_v[place * p.cols + i] = sum;
  }
}

template <int KJ, int VW, bool PAIR>
CU_KERNEL chunk_backward(const CuChunks &p) {
  const CuWork w = cu_work<VW>(p, p.chunks);
  const int lane = (int)threadIdx.x % 32;
  if (!w.any) return;
  cu_smem<float> m = CU_SHARED(float, 0) + (int)threadIdx.x / 32 * SHARED_ROWS * VW, kept_v = m + 2 * CU_L * VW;
  const Own own = { kept_v + VW, kept_v + (CU_L + 1) * VW };
  float dS[KJ][VW];
  cu_load_state<KJ, VW>(p, w, lane, p.first_C, p.first_s, dS);
  for (int c = p.chunks - 1; c >= 0; c--) {
    const int begin = cu_begin(p, c), n = cu_tokens(p, c);
    const long place = cu_place(p, w.bh, c);
    const unsigned resets = cu_resets(p, w.bh, begin, n);
    const int last = resets ? cu_first(resets, CU_L - 1) : 0, seeing = cu_seeing(resets, n);
    cu_put_rows<KJ, VW>(p, w, lane, p.dstates + place * p.cols * p.Kq, p.Kq, dS);
    if (p.dkept_v) kept_v_back<KJ, VW>(p, w, lane, c, resets != 0, dS);
    if (!PAIR) stage<VW>(p, w, lane, begin, n, own);
    read_state<KJ, VW>(p, lane, p.W + place * p.rows * p.Kq, last, n, dS, m);
    if (PAIR) read_state<KJ, VW>(p, lane, p.W + (place * p.rows + CU_L) * p.Kq, last, n, dS, m + CU_L * VW);
    __syncwarp();
    if (PAIR) unmix_pair<KJ, VW>(p, w, lane, c, n, resets, m);
    else      unmix<KJ, VW>(p, w, lane, c, n, own, m, kept_v);
    if (PAIR && lane < VW) kept_v[lane] = 1.0f;
    __syncwarp();
    publish<VW>(p, w, lane, c, m, p.dread);
    keep_state<KJ, VW>(p, lane, p.kept + place * p.Kq, resets != 0, kept_v, dS);
    write_state<KJ, VW>(p, lane, p.R + place * p.rows * p.Kq, 0, seeing, m, dS);
    if (PAIR) write_state<KJ, VW>(p, lane, p.R + (place * p.rows + CU_L) * p.Kq, 0, seeing, m + CU_L * VW, dS);
    __syncwarp();
  }
  cu_store<KJ, VW>(p, w, lane, p.last_C, p.last_s, dS);
}

template <int KJ, int VW> static void run_forward(const CuChunks *p, bool again) {
  const int each = again ? p->span : p->chunks;
  const size_t shared = sizeof(float) * CU_TILE_WARPS * SHARED_ROWS * VW;
  if (p->tables > 1)
    CU_LAUNCH((chunk_forward<KJ, VW, true>), cu_tile_blocks<VW>(p, each), 32 * CU_TILE_WARPS, shared, *p, each, again);
  else
    CU_LAUNCH((chunk_forward<KJ, VW, false>), cu_tile_blocks<VW>(p, each), 32 * CU_TILE_WARPS, shared, *p, each, again);
}

template <int KJ, int VW> static void run_backward(const CuChunks *p) {
  const size_t shared = sizeof(float) * CU_TILE_WARPS * SHARED_ROWS * VW;
  if (p->tables > 1)
    CU_LAUNCH((chunk_backward<KJ, VW, true>), cu_tile_blocks<VW>(p, p->chunks), 32 * CU_TILE_WARPS, shared, *p);
  else
    CU_LAUNCH((chunk_backward<KJ, VW, false>), cu_tile_blocks<VW>(p, p->chunks), 32 * CU_TILE_WARPS, shared, *p);
}

/* There are registers for that many keys. */
static bool too_wide(const CuChunks *p) {
  if (p->K > CU_WIDE) cu_fail("a matrix memory", "there is no kernel for heads of more than 1024 keys");
  return p->K > CU_WIDE;
}

void cu_chunk_forward(const CuChunks *p, bool again) {
  if (too_wide(p)) return;
  if (p->Kq <= 64)       run_forward<2, 8>(p, again);
  else if (p->Kq <= 256) run_forward<8, 8>(p, again);
  else                   run_forward<32, 2>(p, again);
}

void cu_chunk_backward(const CuChunks *p) {
  if (too_wide(p)) return;
  if (p->Kq <= 64)       run_backward<2, 8>(p);
  else if (p->Kq <= 256) run_backward<8, 8>(p);
  else                   run_backward<32, 2>(p);
}
