/* softmax_step.cuh -- softmax attention of a few rows, for acting: a block for each row of a head, which
** reads its keys and values once; and the launches of the kernels of softmax.cuh.  Eight lanes share a key, so a warp
** reads four keys side by side; four warps divide the keys of a piece, each with its own sums of values. */
#pragma once
#include "softmax.cuh"

enum { CU_STEP = 128, CU_STEP_WARPS = CU_STEP / 32, CU_STEP_KEYS = CU_STEP / 8, CU_STEPWISE = 8 };

/* Shared memory in floats: queries, those of positions, weights, how often, sums of warps, sums of values. */
struct cu_step_places {
  int q, place, weight, times, warp, out, end;
  __host__ __device__ cu_step_places(int K, int V) {
    const int row = (K + 3) / 4 * 4;
    q = 0, place = row, weight = 2 * row, times = weight + CU_STEP, warp = times + CU_STEP;
    out = warp + CU_STEP_WARPS, end = out + CU_STEP_WARPS * V;
  }
};

/* The eight lanes' part of q.k */
static __device__ __forceinline__ float cu_step_dot(int q, const float *key, int K, bool wide) {
  float sum = 0;
  for (int d = (int)threadIdx.x % 8 * 4; d < K; d += 32)
    sum = cu_dot4((float4)CU_SHARED(float4, 4 * q)[d / 4], cu_read4(key, NULL, d, K, wide), sum);
  return sum;
}

template <class S> CU_KERNEL cu_softmax_step(const S &s) {
  const int t = s.t0 + (int)blockIdx.x / s.heads, z = (int)blockIdx.x % s.heads, b = z / s.H, h = z % s.H;
  const int tid = (int)threadIdx.x, lane = tid % 32, warp = tid / 32;
  const cu_step_places at(s.K, s.V);
  cu_smem<float> q = CU_SHARED(float, 4 * at.q), place = CU_SHARED(float, 4 * at.place), weight = CU_SHARED(float, 4 * at.weight);
  cu_smem<float> times = CU_SHARED(float, 4 * at.times), tops = CU_SHARED(float, 4 * at.warp);
  cu_smem<float> out = CU_SHARED(float, 4 * at.out) + warp * s.V;
  const float *query = s.query(t, b, h), *u = s.of_head(s.u, h), *w = s.of_head(S::XL ? s.xl.w : NULL, h);
  for (int d = tid; d < at.place; d += CU_STEP) {
    const float x = d < s.K ? query[d] : 0;
    q[d] = x + (u && d < s.K ? u[d] : 0);
    if (S::XL) place[d] = x + (w && d < s.K ? w[d] : 0);
  }
  for (int v = lane; v < s.V; v += 32) out[v] = 0;
  __syncthreads();

  const typename S::Row row = s.row(t, b, h);
  const cu_span keys = s.keys(t, 1, b, h);
  float top = -CU_INFINITY, sum = 0;
  for (int j0 = keys.from; j0 < keys.end; j0 += CU_STEP) {
    if (S::SKIPS && !s.touches(row, j0, CU_STEP, h)) continue;
    for (int k = tid / 8; k < CU_STEP; k += CU_STEP_KEYS) {
      const int j = j0 + k;
      const float n = j < keys.end ? s.sees(row, j, b, h) : 0;
      float dot = 0;
      if (n > 0) dot = cu_step_dot(at.q, s.key(j, b, h), s.K, s.wide_k);
      if (S::XL && n > 0) dot += cu_step_dot(at.place, s.position(s.xl.from + t - j, h), s.K, s.wide_k);
      for (int by = 4; by > 0; by >>= 1) dot += __shfl_xor_sync(0xffffffffu, dot, by);
      if (tid % 8 == 0) weight[k] = s.score(dot), times[k] = n;
    }
    __syncthreads();
    const float mine = weight[tid], n = times[tid];
    float most = n > 0 && mine > -CU_INFINITY ? mine : -CU_INFINITY;
    for (int by = 16; by > 0; by >>= 1) most = cu_max(most, __shfl_xor_sync(0xffffffffu, most, by));
    if (lane == 0) tops[warp] = most;
    __syncthreads();
    float now = top;
    for (int i = 0; i < CU_STEP_WARPS; i++) now = cu_max(now, (float)tops[i]);
    const float by = top == now ? 1 : mn_expf(top - now), p = n > 0 ? n * mn_expf(mine - now) : 0;
    top = now;
    sum = sum * by + p;
    weight[tid] = p;
    __syncthreads();
    for (int v0 = lane; v0 < s.V; v0 += 4 * 32) {
      float add[4] = { 0, 0, 0, 0 };
      for (int k = warp; k < CU_STEP; k += CU_STEP_WARPS) {
        const float by_key = weight[k];
        if (by_key == 0) continue;
        const float *value = s.value(j0 + k, b, h);
CU_UNROLL
        for (int i = 0; i < 4; i++) if (v0 + 32 * i < s.V) add[i] = fmaf(by_key, value[v0 + 32 * i], add[i]);
      }
CU_UNROLL
      for (int i = 0; i < 4; i++) if (v0 + 32 * i < s.V) out[v0 + 32 * i] = fmaf(out[v0 + 32 * i], by, add[i]);
    }
    __syncthreads();
  }
  sum = cu_warp_sum(sum);
  if (lane == 0) tops[warp] = sum;
  __syncthreads();
  float all = 0;
  for (int i = 0; i < CU_STEP_WARPS; i++) all += tops[i];
  const float by = all == 0 ? 0 : 1 / all;
  const long line = s.at.at(t, b, h);
  if (s.stats && tid == 0) s.stats[2 * line] = top, s.stats[2 * line + 1] = by;
  for (int v = tid; v < s.V; v += CU_STEP) {
    float y = 0;
    for (int i = 0; i < CU_STEP_WARPS; i++) y += CU_SHARED(float, 4 * at.out)[i * s.V + v];
    s.y[line * s.V + v] = y * by;
  }
}

/* ---- launches ---- */

static inline unsigned cu_tiles(long n) { return (unsigned)cu_parts(n, CU_TILE); }

static inline int cu_all_keys(const cu_attention &s) {
  int n = 0;
  for (int p = 0; p < s.parts; p++) n += s.part[p].n;
  return n;
}

/* May rows be read and written by fours?  To be called when all pointers are set. */
static inline void cu_attention_widths(cu_attention *s, const float *w = NULL, const float *r = NULL) {
  bool k = s->K % 4 == 0 && cu_quads(4, s->q, s->dq, s->u, w, r), v = s->V % 4 == 0 && cu_quads(4, s->y, s->dy);
  for (int p = 0; p < s->parts; p++) {
    k = k && cu_quads(4, s->part[p].k, s->part[p].dk);
    v = v && cu_quads(4, s->part[p].v, s->part[p].dv);
  }
  s->wide_k = k, s->wide_v = v;
}

template <class S> static void cu_attention_tiles(const S &s) {
  const dim3 grid(cu_tiles(s.t1 - s.t0) * (unsigned)s.heads, s.y ? cu_tiles(s.V) : 1);
  CU_LAUNCH_BY(2, cu_softmax_forward<S>, grid, CU_THREADS, CU_TILE_SHARED, s);
}

template <class S> static void cu_attention_forward(const S &s) {
  const int bytes = 4 * cu_step_places(s.K, s.V).end;
  if (s.t1 - s.t0 >= CU_STEPWISE || bytes > 48 << 10) cu_attention_tiles(s);
  else CU_LAUNCH(cu_softmax_step<S>, (unsigned)((s.t1 - s.t0) * s.heads), CU_STEP, bytes, s);
}

/* dq, and what queries give to u and w; then dk and dv of all parts.  stats must be there, left is filled. */
template <class S> static void cu_attention_backward(const S &s) {
  const unsigned chunks = cu_tiles(s.K), both = cu_max(chunks, cu_tiles(s.V)), heads = (unsigned)s.heads;
  CU_LAUNCH(cu_softmax_queries<S>, dim3(cu_tiles(s.t1) * heads, chunks), CU_THREADS, CU_TILE_SHARED, s);
  const unsigned keys = cu_tiles(cu_all_keys(s)) * heads;
  if (keys) CU_LAUNCH(cu_softmax_keys<S>, dim3(keys, both), CU_THREADS, CU_TILE_SHARED, s);
}
