/* softmax.cuh -- softmax attention in tiles, forward and backward, for every op of that kind.
** An op defines, as a struct derived from cu_attention, which keys a row sees and how often; tiles of 64 queries and
** 64 keys that do not see each other are skipped.  The matrix of queries by keys is never stored: forward keeps a
** running maximum and sum (Dao et al. 2022, FlashAttention), backward recomputes the weights from them.
** Keys that a row does not see may hold any values, NaN included: they are never used.
**
** The struct S of an op has
**   XL, SKIPS                        are there positions (cu_positions)?  may tiles of cu_span be unseen?
**   Row row(i, b, h)                 data of a row, also of one out of range (i >= t1)
**   float sees(Row, j, b, h)         how often the row sees key j: 0, 1, or more where a key is named twice
**   bool touches(Row, j, n, h)       may it see one of the n keys from j on?
**   cu_span keys(i, n, b, h)         where the keys are that rows i .. i+n-1 see, and
**   cu_span rows(j, n)               the rows that see keys j .. j+n-1 */
#pragma once
#include "tiles.cuh"
#include "numerics/fast_math.h"

struct cu_span { int from, end; };

/* Vectors of a head in a tensor: where the i-th of environment b and head h lies, counted in vectors. */
struct cu_lines {
  long row, env, head;
  __device__ __forceinline__ long at(int i, int b, int h) const { return i * row + b * env + h * head; }
};

struct cu_keys {                 /* keys and values number 0 .. n-1 of a tensor; gradients NULL: not wanted */
  const float *k, *v;
  float *dk, *dv;
  cu_lines at;
  int n;
};

struct cu_positions {            /* score(i, j) += (q_i + w) . r[from + i - j] */
  const float *w, *r;            /* [H,K], NULL: zeros; [distances,H,K] */
  int from, distances;
};

struct cu_attention {
  enum { PARTS = 4 };
  const float *q, *u;            /* u [H,K]: added to every query, NULL: zeros */
  float *y, *stats;              /* stats [.,2]: a row's largest score and the inverse of its sum */
  const float *dy;
  float *dq, *left;              /* left [.]: what backward takes from the gradient of a row's weights */
  float *du, *dw;                /* [B * tiles,H,K]: parts of the gradients of u and w; NULL: not wanted */
  cu_lines at;                   /* of queries, and of all that is counted by them */
  cu_keys part[PARTS];           /* keys are numbered through all parts */
  cu_positions xl;
  int parts, H, heads, K, V;     /* heads: of all environments */
  int t0, t1;                    /* rows */
  float scale, most;             /* of q.k; scores are held within -most .. most */
  bool wide_k, wide_v;           /* rows of K, or V, can be read by fours */

  /* Key j's place: its part, and its number in there; false: there is no such key. */
  __device__ __forceinline__ bool find(int j, int *p, int *i) const {
    if (j < 0) return false;
    for (*p = 0; *p < parts && j >= part[*p].n; ++*p) j -= part[*p].n;
    *i = j;
    return *p < parts;
  }
  __device__ __forceinline__ const float *key(int j, int b, int h) const {
    int p, i;
    return find(j, &p, &i) ? part[p].k + part[p].at.at(i, b, h) * K : NULL;
  }
  __device__ __forceinline__ const float *value(int j, int b, int h) const {
    int p, i;
    return find(j, &p, &i) ? part[p].v + part[p].at.at(i, b, h) * V : NULL;
  }
  __device__ __forceinline__ const float *query(int i, int b, int h) const {
    return i < t1 ? q + at.at(i, b, h) * K : NULL;
  }
  __device__ __forceinline__ const float *position(int distance, int h) const {
    return distance >= 0 && distance < xl.distances ? xl.r + ((long)distance * H + h) * K : NULL;
  }
  __device__ __forceinline__ const float *of_head(const float *x, int h) const { return x ? x + (long)h * K : NULL; }
  __device__ __forceinline__ float score(float product) const {
    return mn_at_most(mn_at_least(product * scale, -most), most);
  }
};

/* Products of queries i0 .. and keys j0 .., 64 each; thread's rows are queries, or, where not BY_QUERY, keys. */
template <bool BY_QUERY, class S>
static __device__ __forceinline__ void cu_scores(const S &s, int i0, int j0, int b, int h, float sum[CU_EACH][CU_EACH]) {
CU_UNROLL
  for (int r = 0; r < CU_EACH; r++)
CU_UNROLL
    for (int c = 0; c < CU_EACH; c++) sum[r][c] = 0;
  const int first = s.xl.from + i0 - j0 - (CU_TILE - 1);       /* distance of the band's row 0 */
  for (int d = 0; d < s.K; d += CU_DEPTH) {
    __syncthreads();
    cu_operand(CU_AT_A, CU_TILE, d, s.K, s.wide_k, s.of_head(s.u, h), [&](int i) { return s.query(i0 + i, b, h); });
    cu_operand(CU_AT_B, CU_TILE, d, s.K, s.wide_k, NULL, [&](int j) { return s.key(j0 + j, b, h); });
    if (S::XL) {
      cu_operand(CU_AT_W, CU_TILE, d, s.K, s.wide_k, s.of_head(s.xl.w, h), [&](int i) { return s.query(i0 + i, b, h); });
      cu_operand(CU_AT_R, CU_BAND, d, s.K, s.wide_k, NULL, [&](int e) { return s.position(first + e, h); });
    }
    __syncthreads();
    if (BY_QUERY) cu_dots(CU_AT_A, CU_AT_B, sum);
    else          cu_dots(CU_AT_B, CU_AT_A, sum);
    if (S::XL) cu_band_dots<BY_QUERY>(CU_AT_W, CU_AT_R, sum);
  }
}

/* Products of the gradients of rows i0 .. and the values j0 .., likewise. */
template <bool BY_QUERY, class S>
static __device__ __forceinline__ void cu_value_dots(const S &s, int i0, int j0, int b, int h, float sum[CU_EACH][CU_EACH]) {
CU_UNROLL
  for (int r = 0; r < CU_EACH; r++)
CU_UNROLL
    for (int c = 0; c < CU_EACH; c++) sum[r][c] = 0;
  for (int d = 0; d < s.V; d += CU_DEPTH) {
    __syncthreads();
    cu_operand(CU_AT_A, CU_TILE, d, s.V, s.wide_v, NULL,
               [&](int i) { return i0 + i < s.t1 ? s.dy + s.at.at(i0 + i, b, h) * s.V : NULL; });
    cu_operand(CU_AT_B, CU_TILE, d, s.V, s.wide_v, NULL, [&](int j) { return s.value(j0 + j, b, h); });
    __syncthreads();
    if (BY_QUERY) cu_dots(CU_AT_A, CU_AT_B, sum);
    else          cu_dots(CU_AT_B, CU_AT_A, sum);
  }
}

/* Which tile of which head a block has; the longest rows, the last, begin first. */
struct cu_task {
  int b, h, first;               /* first: of its 64 rows, or keys */
  template <class S> __device__ __forceinline__ cu_task(const S &s, int from) {
    const int tiles = (int)(gridDim.x / (unsigned)s.heads), z = (int)blockIdx.x / tiles;
    b = z / s.H;
    h = z % s.H;
    first = from + (tiles - 1 - (int)blockIdx.x % tiles) * CU_TILE;
  }
};

/* ---- forward: y and stats, or stats alone where y is NULL ---- */

/* Two blocks on a multiprocessor are worth the few registers that go to memory once a tile. */
template <class S> CU_KERNEL cu_softmax_forward(const S &s) {
  const cu_task x(s, s.t0);
  const int d0 = (int)blockIdx.y * CU_TILE;
  int turn = 0;
  typename S::Row row[CU_EACH], mine = s.row(x.first + (int)threadIdx.x % CU_TILE, x.b, x.h);
  float top[CU_EACH], sum[CU_EACH], w[CU_EACH][CU_EACH];
  float4 out[CU_EACH];
CU_UNROLL
  for (int r = 0; r < CU_EACH; r++) {
    row[r] = s.row(x.first + cu_ty() + r * CU_SIDE, x.b, x.h);
    top[r] = -CU_INFINITY, sum[r] = 0, out[r] = { 0, 0, 0, 0 };
  }
  const cu_span keys = s.keys(x.first, CU_TILE, x.b, x.h);
  for (int j0 = keys.from; j0 < keys.end; j0 += CU_TILE) {
    if (S::SKIPS && !cu_any(s.touches(mine, j0, CU_TILE, x.h), &turn)) continue;
    cu_scores<true>(s, x.first, j0, x.b, x.h, w);
CU_UNROLL
    for (int r = 0; r < CU_EACH; r++) {
      float times[CU_EACH], most = -CU_INFINITY;
CU_UNROLL
      for (int c = 0; c < CU_EACH; c++) {
        times[c] = s.sees(row[r], j0 + cu_tx() + c * CU_SIDE, x.b, x.h);
        w[r][c] = s.score(w[r][c]);
        if (times[c] > 0 && w[r][c] > most) most = w[r][c];
      }
      const float now = cu_max(top[r], cu_side_max(most)), by = top[r] == now ? 1 : mn_expf(top[r] - now);
      top[r] = now;
      sum[r] *= by;
      out[r] = { out[r].x * by, out[r].y * by, out[r].z * by, out[r].w * by };
CU_UNROLL
      for (int c = 0; c < CU_EACH; c++) {
        w[r][c] = times[c] > 0 ? times[c] * mn_expf(w[r][c] - now) : 0;
        sum[r] += w[r][c];
      }
    }
    if (!s.y) continue;
    cu_put_weights(w);
    __syncthreads();
    const bool odd = cu_rows(d0, s.V, s.wide_v, NULL, [&](int j) { return s.value(j0 + j, x.b, x.h); });
    cu_mix(cu_any(odd, &turn), out);
  }
CU_UNROLL
  for (int r = 0; r < CU_EACH; r++) {
    const int i = x.first + cu_ty() + r * CU_SIDE;
    const float all = cu_side_sum(sum[r]), by = all == 0 ? 0 : 1 / all;
    if (i >= s.t1) continue;
    const long at = s.at.at(i, x.b, x.h);
    if (s.stats && d0 == 0 && cu_tx() == 0) s.stats[2 * at] = top[r], s.stats[2 * at + 1] = by;
    if (s.y) cu_write4(s.y + at * s.V, d0 + 4 * cu_tx(), s.V, s.wide_v, { out[r].x * by, out[r].y * by, out[r].z * by, out[r].w * by });
  }
}

/* ---- backward ---- */

/* From scores to weights, in place, and from products with values to the gradients of the scores. */
static __device__ __forceinline__ float cu_undo(float weight, float product, float D) {
  return weight > 0 ? weight * (product - D) : 0;
}

/* Gradients of queries, and of u and w by tiles of rows.  A row's gradients of scores sum to zero; what rounding leaves of
** that is put into `left` with D = dy . y, so that keys and positions, whose biases would show it, are free of it. */
template <class S> CU_KERNEL cu_softmax_queries(const S &s) {
  const cu_task x(s, 0);
  const int d0 = (int)blockIdx.y * CU_TILE;
  int turn = 0;
  typename S::Row row[CU_EACH], mine = s.row(x.first + (int)threadIdx.x % CU_TILE, x.b, x.h);
  float top[CU_EACH], by[CU_EACH], D[CU_EACH], rest[CU_EACH], w[CU_EACH][CU_EACH], g[CU_EACH][CU_EACH];
  float4 out[CU_EACH], places[CU_EACH];
CU_UNROLL
  for (int r = 0; r < CU_EACH; r++) {
    const int i = x.first + cu_ty() + r * CU_SIDE;
    const long at = s.at.at(cu_min(i, s.t1 - 1), x.b, x.h);
    D[r] = 0;                    /* in the order of cu_dots: a row that sees one key has gradients of exactly zero */
    for (int d = 0; d < s.V; d++) D[r] = fmaf(s.dy[at * s.V + d], s.y[at * s.V + d], D[r]);
    row[r] = s.row(i, x.b, x.h);
    top[r] = s.stats[2 * at], by[r] = s.stats[2 * at + 1], rest[r] = 0;
    out[r] = places[r] = { 0, 0, 0, 0 };
  }
  const cu_span keys = s.keys(x.first, CU_TILE, x.b, x.h);
  for (int j0 = keys.from; j0 < keys.end; j0 += CU_TILE) {
    if (S::SKIPS && !cu_any(s.touches(mine, j0, CU_TILE, x.h), &turn)) continue;
    cu_scores<true>(s, x.first, j0, x.b, x.h, w);
    cu_value_dots<true>(s, x.first, j0, x.b, x.h, g);
CU_UNROLL
    for (int r = 0; r < CU_EACH; r++)
CU_UNROLL
      for (int c = 0; c < CU_EACH; c++) {
        const float times = s.sees(row[r], j0 + cu_tx() + c * CU_SIDE, x.b, x.h);
        const float weight = times > 0 ? times * mn_expf(s.score(w[r][c]) - top[r]) * by[r] : 0;
        w[r][c] = cu_undo(weight, g[r][c], D[r]);
        rest[r] += w[r][c];
      }
    cu_put_weights(w);
    __syncthreads();
    const bool odd = cu_rows(d0, s.K, s.wide_k, NULL, [&](int j) { return s.key(j0 + j, x.b, x.h); });
    cu_mix(cu_any(odd, &turn), out);
    if (S::XL)
      for (int e = 0; e < CU_BAND; e += CU_TILE) {
        const int first = s.xl.from + x.first - j0 - (CU_TILE - 1) + e;
        __syncthreads();
        cu_rows(d0, s.K, s.wide_k, NULL, [&](int i) { return s.position(first + i, x.h); });
        __syncthreads();
        cu_mix_band(e, places);
      }
  }
CU_UNROLL
  for (int r = 0; r < CU_EACH; r++) {
    const int i = x.first + cu_ty() + r * CU_SIDE;
    const float all = cu_side_sum(rest[r]);
    out[r] = { out[r].x * s.scale, out[r].y * s.scale, out[r].z * s.scale, out[r].w * s.scale };
    places[r] = { places[r].x * s.scale, places[r].y * s.scale, places[r].z * s.scale, places[r].w * s.scale };
    if (i >= s.t1) continue;
    const long at = s.at.at(i, x.b, x.h);
    const float4 both = { out[r].x + places[r].x, out[r].y + places[r].y, out[r].z + places[r].z, out[r].w + places[r].w };
    if (d0 == 0 && cu_tx() == 0) s.left[at] = D[r] + all;
    if (s.dq) cu_write4(s.dq + at * s.K, d0 + 4 * cu_tx(), s.K, s.wide_k, both);
  }
  const long part = ((long)x.b * (gridDim.x / (unsigned)s.heads) + x.first / CU_TILE) * s.H + x.h;
  if (s.du) cu_column_part(out, s.du + part * s.K, d0, s.K);
  if (s.dw) cu_column_part(places, s.dw + part * s.K, d0, s.K);
}

/* Gradients of keys and values: 64 of them against all rows that see one. */
template <class S> CU_KERNEL cu_softmax_keys(const S &s) {
  const cu_task x(s, 0);
  const int d0 = (int)blockIdx.y * CU_TILE;
  int turn = 0;
  float w[CU_EACH][CU_EACH], g[CU_EACH][CU_EACH];
  float4 dk[CU_EACH], dv[CU_EACH];
CU_UNROLL
  for (int r = 0; r < CU_EACH; r++) dk[r] = dv[r] = { 0, 0, 0, 0 };
  const cu_span rows = s.rows(x.first, CU_TILE);
  for (int i0 = rows.from; i0 < rows.end; i0 += CU_TILE) {
    const typename S::Row mine = s.row(i0 + (int)threadIdx.x % CU_TILE, x.b, x.h);
    if (!cu_any(s.touches(mine, x.first, CU_TILE, x.h), &turn)) continue;
    cu_scores<false>(s, i0, x.first, x.b, x.h, w);
    cu_value_dots<false>(s, i0, x.first, x.b, x.h, g);
CU_UNROLL
    for (int c = 0; c < CU_EACH; c++) {
      const int i = i0 + cu_tx() + c * CU_SIDE;
      const typename S::Row row = s.row(i, x.b, x.h);
      const long at = s.at.at(cu_min(i, s.t1 - 1), x.b, x.h);
      const float top = s.stats[2 * at], by = s.stats[2 * at + 1], left = s.left[at];
CU_UNROLL
      for (int r = 0; r < CU_EACH; r++) {
        const float times = s.sees(row, x.first + cu_ty() + r * CU_SIDE, x.b, x.h);
        w[r][c] = times > 0 ? times * mn_expf(s.score(w[r][c]) - top) * by : 0;
        g[r][c] = cu_undo(w[r][c], g[r][c], left);
      }
    }
    if (d0 < s.V) {
      cu_put_weights(w);
      __syncthreads();
      cu_rows(d0, s.V, s.wide_v, NULL, [&](int i) { return i0 + i < s.t1 ? s.dy + s.at.at(i0 + i, x.b, x.h) * s.V : NULL; });
      __syncthreads();
      cu_mix(false, dv);
    }
    if (d0 < s.K) {
      __syncthreads();
      cu_put_weights(g);
      cu_rows(d0, s.K, s.wide_k, s.of_head(s.u, x.h), [&](int i) { return s.query(i0 + i, x.b, x.h); });
      __syncthreads();
      cu_mix(false, dk);
    }
  }
CU_UNROLL
  for (int r = 0; r < CU_EACH; r++) {
    int p, i;
    if (!s.find(x.first + cu_ty() + r * CU_SIDE, &p, &i)) continue;
    const long at = s.part[p].at.at(i, x.b, x.h);
    const float4 key = { dk[r].x * s.scale, dk[r].y * s.scale, dk[r].z * s.scale, dk[r].w * s.scale };
    if (s.part[p].dv) cu_write4(s.part[p].dv + at * s.V, d0 + 4 * cu_tx(), s.V, s.wide_v, dv[r]);
    if (s.part[p].dk) cu_write4(s.part[p].dk + at * s.K, d0 + 4 * cu_tx(), s.K, s.wide_k, key);
  }
}
