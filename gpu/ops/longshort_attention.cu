/* longshort_attention.cu -- longshort_attention, forward and backward, and longshort_weights: compresses full chunks;
** the attention to them and to the window is in episode_attention.cuh.
** Two ends of chunks are at least a chunk apart, so the rows u*c .. u*c + c-1 have at most one: chunk u of this call.
** A token belongs to one chunk only, so no two blocks write to the same place. */
#include "lib/column_sums.cuh"
#include "runtime/strided_copy.cuh"
#include "lib/episode_attention.cuh"
#include "lib/row_teams.cuh"
extern "C" {
#include "attention/episode_attention.h"
}

namespace {

enum { LS_P = EP_POS + 1, LS_MK, LS_MV, LS_MP, LS_SHORT, LS_WEIGHT, LS_BIAS, LS_INPUTS };
enum { CHUNKS = 1 };

struct Tokens { const float *rows, *slots; float *drows, *dslots; int n_slots, n; };       /* n numbers each */

struct Chunks {
  const int32_t *pos;
  Tokens kv[2], p;
  const float *weight, *bias;
  float *chunks, *dchunks;       /* [B,2,C,H,D] */
  float *work, *dweight, *dbias; /* backward: of each chunk and environment */
  int B, H, D, E, R, C, chunk, t0, t1, first;            /* first: the first chunk of these rows */
  float eps;

  __device__ __forceinline__ float *row(float *of, int b, int kv_, int u, int r) const {
    return of + (((long)b * 2 + kv_) * C + (long)u * R + r) * E;
  }
};

/* A chunk: it ends in row t at position P. */
struct Chunk {
  int b, u, t, P;                /* t < 0: none ends here */
  __device__ __forceinline__ Chunk(const Chunks &s) {
    b = (int)blockIdx.x % s.B, u = s.first + (int)blockIdx.x / s.B, t = -1, P = -1;
    for (int i = cu_max(u * s.chunk, s.t0); i < cu_min((u + 1) * s.chunk, s.t1); i++) {
      const int at = s.pos[(long)i * s.B + b];
      if (at >= 0 && at % s.chunk == s.chunk - 1) t = i, P = at;
    }
  }
  /* Where token i of the chunk is, in numbers; in its row, or in a slot. */
  __device__ __forceinline__ bool find(const Chunks &s, const Tokens &x, int i, long *at) const {
    const int back = s.chunk - 1 - i, row = t - back;
    *at = row >= 0 ? ((long)row * s.B + b) * x.n : ((long)b * x.n_slots + (P - back) % x.n_slots) * x.n;
    return row >= 0;
  }
  __device__ __forceinline__ float read(const Chunks &s, const Tokens &x, int i, int e) const {
    long at;
    return (find(s, x, i, &at) ? x.rows : x.slots)[at + e];
  }
  __device__ __forceinline__ void write(const Chunks &s, const Tokens &x, int i, int e, float value, bool add) const {
    long at;
    float *to = find(s, x, i, &at) ? x.drows : x.dslots;
    if (to) to[at + e] = value + (add ? to[at + e] : 0);
  }
};

/* The largest logit of head and key n over the chunk, and the sum of exponentials: stats [2][n]. */
static __device__ void chunk_stats(const Chunks &s, const Chunk &x, cu_smem<float> stats) {
  for (int n = (int)threadIdx.x; n < s.p.n; n += CU_THREADS) {
    float top = x.read(s, s.p, 0, n), sum = 0;
    for (int i = 1; i < s.chunk; i++) top = mn_at_least(x.read(s, s.p, i, n), top);
    for (int i = 0; i < s.chunk; i++) sum += mn_expf(x.read(s, s.p, i, n) - top);
    stats[n] = top;
    stats[s.p.n + n] = sum;
  }
  __syncthreads();
}

static __device__ __forceinline__ float chunk_weight(const Chunks &s, const Chunk &x, cu_smem<float> stats, int i, int n) {
  return mn_expf(x.read(s, s.p, i, n) - stats[n]) / stats[s.p.n + n];
}

/* Number e of key r before it is normalised. */
static __device__ __forceinline__ float mixed(const Chunks &s, const Chunk &x, cu_smem<float> stats, int kv, int r, int e) {
  const int n = e / s.D * s.R + r;
  float sum = 0;
  for (int i = 0; i < s.chunk; i++) sum += chunk_weight(s, x, stats, i, n) * x.read(s, s.kv[kv], i, e);
  return sum;
}

/* From a row of E numbers, each thread having its own e, to its mean and scale: see engine/numerics/norm.h. */
static __device__ void row_stats(const Chunks &s, const cu_team &team, const float *x, float *mean, float *scale) {
  float sum = 0, squares = 0;
  for (int e = team.lane; e < s.E; e += CU_THREADS) sum += x[e];
  *mean = team.sum(sum) / (float)s.E;
  for (int e = team.lane; e < s.E; e += CU_THREADS) squares += (x[e] - *mean) * (x[e] - *mean);
  *scale = 1 / sqrtf(team.sum(squares) / (float)s.E + s.eps);
}

static size_t shared_bytes(const Chunks &s) { return CU_TEAM_SHARED + sizeof(float) * 2 * (size_t)s.p.n; }

/* A block for each chunk of an environment, and for each of its keys and values. */
CU_KERNEL compress(const Chunks &s) {
  const Chunk x(s);
  const int kv = (int)blockIdx.y / s.R, r = (int)blockIdx.y % s.R;
  cu_smem<float> stats = CU_SHARED(float, CU_TEAM_SHARED);
  const cu_team team(CU_THREADS);
  float mean, scale, *y = s.row(s.chunks, x.b, kv, x.u, r);
  if (x.t < 0) return;
  chunk_stats(s, x, stats);
  for (int e = team.lane; e < s.E; e += CU_THREADS) y[e] = mixed(s, x, stats, kv, r, e);
  row_stats(s, team, y, &mean, &scale);
  for (int e = team.lane; e < s.E; e += CU_THREADS) y[e] = (y[e] - mean) * scale * s.weight[e] + s.bias[e];
}

/* A block for each chunk of an environment.  work: gradients of keys and values before they were normalised, [2,R,E], and of the
** weights, [chunk, H*R]. */
CU_KERNEL compress_back(const Chunks &s) {
  const Chunk x(s);
  const cu_team team(CU_THREADS);
  cu_smem<float> stats = CU_SHARED(float, CU_TEAM_SHARED);
  const int HR = s.p.n;
  float *dx = s.work + (long)blockIdx.x * (2 * (long)s.R * s.E + (long)s.chunk * HR), *dw = dx + 2 * (long)s.R * s.E;
  float *dweight = s.dweight + (long)blockIdx.x * s.E, *dbias = s.dbias + (long)blockIdx.x * s.E;
  for (int e = team.lane; e < s.E; e += CU_THREADS) dweight[e] = dbias[e] = 0;
  if (x.t < 0) return;
  chunk_stats(s, x, stats);
  for (int k = 0; k < 2 * s.R; k++) {
    const float *dy = s.row(s.dchunks, x.b, k / s.R, x.u, k % s.R);
    float *to = dx + (long)k * s.E, mean, scale, g_sum = 0, gn_sum = 0;
    for (int e = team.lane; e < s.E; e += CU_THREADS) to[e] = mixed(s, x, stats, k / s.R, k % s.R, e);
    row_stats(s, team, to, &mean, &scale);
    for (int e = team.lane; e < s.E; e += CU_THREADS) {
      const float normal = (to[e] - mean) * scale, g = dy[e] * s.weight[e];
      dweight[e] += dy[e] * normal;
      dbias[e] += dy[e];
      g_sum += g;
      gn_sum += g * normal;
    }
    g_sum = team.sum(g_sum) / (float)s.E;
    gn_sum = team.sum(gn_sum) / (float)s.E;
    for (int e = team.lane; e < s.E; e += CU_THREADS)
      to[e] = s.E == 1 ? 0 : scale * (dy[e] * s.weight[e] - g_sum - (to[e] - mean) * scale * gn_sum);
  }
  __syncthreads();
  for (int j = team.lane; j < s.chunk * HR; j += CU_THREADS) {
    const int i = j / HR, h = j % HR / s.R, r = j % s.R;
    float sum = 0;
    for (int kv = 0; kv < 2; kv++)
      for (int d = h * s.D; d < (h + 1) * s.D; d++)
        sum += dx[((long)kv * s.R + r) * s.E + d] * x.read(s, s.kv[kv], i, d);
    dw[j] = sum;
  }
  for (int kv = 0; kv < 2; kv++)
    for (int j = team.lane; j < s.chunk * s.E; j += CU_THREADS) {
      const int i = j / s.E, e = j % s.E;
      float sum = 0;
      for (int r = 0; r < s.R; r++)
        sum += chunk_weight(s, x, stats, i, e / s.D * s.R + r) * dx[((long)kv * s.R + r) * s.E + e];
      x.write(s, s.kv[kv], i, e, sum, true);
    }
  __syncthreads();
  for (int n = team.lane; n < HR; n += CU_THREADS) {
    float dot = 0;
    for (int i = 0; i < s.chunk; i++) dot += chunk_weight(s, x, stats, i, n) * dw[i * HR + n];
    for (int i = 0; i < s.chunk; i++) {
      const float w = chunk_weight(s, x, stats, i, n);
      x.write(s, s.p, i, n, w * (dw[i * HR + n] - dot), false);
    }
  }
}

/* ---- the ops ---- */

static Tokens tokens(const mn_call *c, int rows, int slots, int n) {
  return { c->in[rows].data, c->in[slots].data, c->in[rows].grad, c->in[slots].grad, c->in[slots].shape[1], n };
}

static Chunks chunks_of(mn_call *c) {
  Chunks s = {};
  s.B = DIM(c, 'B'), s.H = DIM(c, 'H'), s.D = DIM(c, 'D'), s.E = s.H * s.D, s.R = DIM(c, 'R'), s.chunk = DIM(c, 'J');
  s.C = (int)cu_parts(DIM(c, 'T'), s.chunk) * s.R;
  s.pos = c->in[EP_POS].i32;
  s.kv[0] = tokens(c, EP_K, LS_MK, s.E), s.kv[1] = tokens(c, EP_V, LS_MV, s.E), s.p = tokens(c, LS_P, LS_MP, s.H * s.R);
  s.weight = c->in[LS_WEIGHT].data, s.bias = c->in[LS_BIAS].data;
  s.chunks = c->out[CHUNKS].data;
  s.t0 = c->t0, s.t1 = c->t1, s.first = c->t0 / s.chunk, s.eps = (float)OPT(c, 1);
  return s;
}

static unsigned blocks_of(const Chunks &s) { return (unsigned)(((s.t1 - 1) / s.chunk + 1 - s.first) * s.B); }

/* Compressed keys are set 1 of what rows see; `chunks` and their gradients are [B,2,C,H,D]. */
static cu_episode episode_of(const mn_call *c, const float *chunks, float *dchunks) {
  cu_episode e = cu_episode_of(c, LS_MK);
  const mn_arg *old = &c->in[LS_SHORT];
  const int H = e.H, R = DIM(c, 'R'), chunk = DIM(c, 'J'), W = DIM(c, 'W'), C = (int)cu_parts(DIM(c, 'T'), chunk) * R;
  const long HD = (long)H * e.K, values = C * HD, old_values = W * HD;
  e.part[3] = e.part[1], e.part[2] = e.part[0];
  e.part[0] = { old->data, old->data + old_values, old->grad, old->grad ? old->grad + old_values : NULL,
                { H, 2L * W * H, 1 }, W };
  e.part[1] = { chunks, chunks + values, dchunks, dchunks ? dchunks + values : NULL, { H, 2L * C * H, 1 }, C };
  e.parts = 4, e.kind = CU_LONGSHORT, e.n_ranges = 2;
  e.W = W, e.C = C, e.window = (int)OPT(c, 0), e.chunk = chunk, e.per_chunk = R;
  cu_episode_finish(&e);
  return e;
}

static void forward(mn_call *c) {
  const Chunks s = chunks_of(c);
  if (c->t0 == 0) cu_zero(s.chunks, sizeof(float) * (size_t)c->out[CHUNKS].n);
  CU_LAUNCH(compress, dim3(blocks_of(s), 2 * (unsigned)s.R), CU_THREADS, shared_bytes(s), s);
  cu_episode_forward(episode_of(c, s.chunks, NULL));
}

static void backward(mn_call *c) {
  Chunks s = chunks_of(c);
  const unsigned blocks = blocks_of(s);
  const long n = c->out[CHUNKS].n, room = 2 * (long)s.R * s.E + (long)s.chunk * s.p.n;
  s.dchunks = mn_scratch(c->ctx, 1, n + blocks * (room + 2 * s.E));
  s.work = s.dchunks + n, s.dweight = s.work + blocks * room, s.dbias = s.dweight + blocks * (long)s.E;
  if (c->out[0].grad) cu_episode_backward(c, episode_of(c, s.chunks, s.dchunks));
  else {                         /* only the chunks led to the loss */
    cu_zero(s.dchunks, sizeof(float) * (size_t)n);
    for (int i = 0; i <= LS_SHORT; i++) cu_zero_grad(&c->in[i]);
  }
  if (c->out[CHUNKS].grad) cu_copy_rows(s.dchunks, n, c->out[CHUNKS].grad, n, 1, n, true);
  cu_zero_grad(&c->in[LS_P]);
  cu_zero_grad(&c->in[LS_MP]);
  CU_LAUNCH(compress_back, blocks, CU_THREADS, shared_bytes(s), s);
  float *dweight = c->in[LS_WEIGHT].grad, *dbias = c->in[LS_BIAS].grad;
  if (dweight) cu_column_sums(c, 2, cu_given_rows{ s.dweight, dweight, s.E }, blocks, s.E);
  if (dbias) cu_column_sums(c, 2, cu_given_rows{ s.dbias, dbias, s.E }, blocks, s.E);
}

static void weigh(mn_call *c) { cu_episode_weights(c, episode_of(c, c->in[LS_INPUTS].data, NULL)); }

}  // namespace

MN_KERNEL(longshort_attention, forward, backward)
MN_KERNEL(longshort_weights, weigh, NULL)
