/* transformer_layers_backward.cuh -- backward of transformer_layers.cuh, as the file of the same name in engine/attention
** on the CPU.  Gradients of parameters are added to the block's own sums. */
#pragma once
#include "transformer_layers.cuh"

struct cu_layer_work { float *d_o, *dn, *dp, *drx, *da, *dqkv, *dhidden; };    /* gradients, [rows, ...] each */

static __host__ __device__ __forceinline__ long cu_layer_work_size(const cu_layers &m) {
  return m.rows * (6L * m.D + 4L * m.A + m.F);
}

/* g[o] += the sums of n columns of dz [rows,width], from its column `from` on. */
static __device__ __forceinline__ void cu_bias_back(int rows, int width, int from, int n, const float *dz, float *g) {
  CU_SHARE(o, n) {
    float sum = 0;
    for (int r = 0; r < rows; r++) sum += dz[(long)r * width + from + o];
    g[o] += sum;
  }
}

/* Back through y = x w^T: dx is stored; that of w is added to g, where it is wanted. */
static __device__ __forceinline__ void cu_dense_back(const cu_layers &m, int rows, int I, int O, const float *x, const float *w,
                                                     const float *dz, float *dx, float *g) {
  cu_block_mix(false, rows, O, I, { dz, O }, { w, I }, m.wide, dx, false);
  if (g) cu_block_mix(true, O, rows, I, { dz, O }, { x, I }, m.wide, g, true);
}

/* dy goes to dx, stored or added, which may be the same; g: gradients of weight and bias, or NULL. */
static __device__ __noinline__ void cu_norm_back(const cu_layers &m, int rows, const float *x, const float *w,
                                                 const float *stats, const float *dy, float *dx, bool add, float *g) {
  const int lane = (int)threadIdx.x % 32, D = m.D;
  if (g) {
    CU_SHARE(d, D) {
      float dw = 0, db = 0;
      for (long r = 0; r < rows; r++) {
        dw += dy[r * D + d] * ((x[r * D + d] - stats[2 * r]) * stats[2 * r + 1]);
        db += dy[r * D + d];
      }
      g[d] += dw;
      g[D + d] += db;
    }
    __syncthreads();
  }
  for (long r = (int)threadIdx.x / 32; r < rows; r += CU_WARPS) {
    const float mean = stats[2 * r], scale = stats[2 * r + 1];
    float g_sum = 0, gn_sum = 0;
    for (int d = lane; d < D; d += 32) {
      const float gd = dy[r * D + d] * w[d];
      g_sum += gd;
      gn_sum += gd * ((x[r * D + d] - mean) * scale);
    }
    g_sum = cu_warp_sum(g_sum) / (float)D;
    gn_sum = cu_warp_sum(gn_sum) / (float)D;
    for (int d = lane; d < D; d += 32) {
      const float back = D == 1 ? 0 : scale * (dy[r * D + d] * w[d] - g_sum - (x[r * D + d] - mean) * scale * gn_sum);
      dx[r * D + d] = back + (add ? dx[r * D + d] : 0);
    }
  }
  __syncthreads();
}

/* The gate: dx holds the gradient of its output, and afterwards of its input x; d_o is stored. */
static __device__ __noinline__ void cu_gate_back(const cu_layers &m, int rows, const cu_half &h, const float *w, float *dx,
                                                 const cu_layer_work &k, float *g) {
  const int D = m.D, n = rows * D;
  const float *u = w + 3L * D * D, *ug = u + 2L * D * D;
  CU_SHARE(i, n) {
    const long at = (long)(i / D) * 3 * D + i % D;
    const float z = h.pre[at + D], t = h.pre[at + 2 * D], dy = dx[i];
    k.dp[at + D] = dy * (t - h.x[i]) * z * (1 - z);
    k.dp[at + 2 * D] = dy * z * (1 - t * t);
    dx[i] = dy * (1 - z);
  }
  __syncthreads();
  cu_block_mix(false, rows, D, D, { k.dp + 2 * D, 3 * D }, { ug, D }, m.wide, k.drx, false);
  CU_SHARE(i, n) {
    const long at = (long)(i / D) * 3 * D + i % D;
    const float r = h.pre[at];
    dx[i] += k.drx[i] * r;
    k.dp[at] = k.drx[i] * h.x[i] * r * (1 - r);
  }
  __syncthreads();
  cu_block_mix(false, rows, 2 * D, D, { k.dp, 3 * D }, { u, D }, m.wide, dx, true);
  cu_block_mix(false, rows, 3 * D, D, { k.dp, 3 * D }, { w, D }, m.wide, k.d_o, false);
  if (!g) return;
  float *du = g + 3L * D * D, *dbias = du + 3L * D * D;
  cu_block_mix(true, 3 * D, rows, D, { k.dp, 3 * D }, { h.o, D }, m.wide, g, true);
  cu_block_mix(true, 2 * D, rows, D, { k.dp, 3 * D }, { h.x, D }, m.wide, du, true);
  cu_block_mix(true, D, rows, D, { k.dp + 2 * D, 3 * D }, { h.rx, D }, m.wide, du + 2L * D * D, true);
  CU_SHARE(d, D) {
    float sum = 0;
    for (int r = 0; r < rows; r++) sum += k.dp[(long)r * 3 * D + D + d];
    dbias[d] -= sum;
  }
}

/* ---- attention ---- */

/* Adds to db the gradients of all keys in dkv, times sign. */
static __device__ __forceinline__ void cu_key_sums(const cu_layers &m, const float *dkv, float sign, float *db) {
  CU_SHARE(d, m.A) {
    float sum = 0;
    for (int slot = 0; slot < m.slots; slot++) sum += dkv[(long)slot * 2 * m.A + d];
    db[d] += sign * sum;
  }
}

/* Weights and the gradients of scores first, of all rows and heads; then each key and value gathers from them.
** dbias: of the keys' bias.  What attention itself gives to a row's keys sums to 0, as softmax does not see what moves all
** scores alike; so the bias gets what came from elsewhere, less what goes to keys of other rows: no rounding. */
static __device__ __noinline__ void cu_attend_back(const cu_layers &m, const cu_part &p, const cu_acts &a, const float *kv,
                                                   const cu_layer_work &k, float *dkv, float *scores, float *dbias) {
  const int A = m.A, dh = A / m.H, lane = (int)threadIdx.x % 32;
  const long all = (long)p.n * m.H * m.slots;
  const float scale = 1 / sqrtf((float)dh);
  if (dbias) cu_key_sums(m, dkv, 1, dbias);
  for (int i = (int)threadIdx.x / 32; i < p.n * m.H; i += CU_WARPS) {
    const int r = i / m.H, h = i % m.H * dh, seen = m.seen(p.tokens, p.slot + r);
    const float *q = a.qkv + (long)r * 3 * A + h, *dy = k.da + (long)r * A + h;
    float *w = scores + (long)i * m.slots, *ds = w + all, mean = 0;
    cu_slot_weights(dh, 2 * A, seen, q, kv + h, w);
    for (int j = lane; j < seen; j += 32) {
      float dot = 0;
      for (int d = 0; d < dh; d++) dot = fmaf(dy[d], kv[(long)j * 2 * A + A + h + d], dot);
      ds[j] = dot;
      mean += w[j] * dot;
    }
    mean = cu_warp_sum(mean);
    for (int j = lane; j < m.slots; j += 32) {
      ds[j] = j < seen ? scale * w[j] * (ds[j] - mean) : 0;
      if (j >= seen) w[j] = 0;
    }
    __syncwarp();
    for (int d = lane; d < dh; d += 32) {
      float sum = 0;
      for (int j = 0; j < seen; j++) sum = fmaf(ds[j], kv[(long)j * 2 * A + h + d], sum);
      k.dqkv[(long)r * 3 * A + h + d] = sum;
    }
  }
  __syncthreads();
  CU_SHARE(i, m.slots * A) {
    const int j = i / A, x = i % A, slot = j - p.slot;
    float *dk = dkv + (long)j * 2 * A + x, key = dk[0], value = dk[A];
    for (int r = 0; r < p.n; r++) {
      const float *w = scores + ((long)r * m.H + x / dh) * m.slots + j;
      key = fmaf(w[all], a.qkv[(long)r * 3 * A + x], key);
      value = fmaf(w[0], k.da[(long)r * A + x], value);
    }
    const bool own = slot >= 0 && slot < p.n;           /* the rows' own keys and values */
    if (own) k.dqkv[(long)slot * 3 * A + A + x] = key, k.dqkv[(long)slot * 3 * A + 2 * A + x] = value;
    dk[0] = own ? 0 : key;
    dk[A] = own ? 0 : value;
  }
  __syncthreads();
  if (dbias) cu_key_sums(m, dkv, -1, dbias);
}

/* ---- the stack ---- */

/* From the gradient of a half's output, in dx, to that of what is joined, in d_o; dx keeps the direct part. */
static __device__ __forceinline__ void cu_join_back(const cu_layers &m, int rows, int half, const cu_half &h, const float *w,
                                                    float *dx, const cu_layer_work &k, float *g) {
  const int n = rows * m.D;
  if (m.flow == MN_GTRXL) cu_gate_back(m, rows, h, w + m.at.gate[half], dx, k, g ? g + m.at.gate[half] : NULL);
  else {
    if (m.flow == MN_POSTNORM)
      cu_norm_back(m, rows, h.n, w + m.at.norm[half], h.stats, dx, dx, false, g ? g + m.at.norm[half] : NULL);
    CU_SHARE(i, n) k.d_o[i] = dx[i];
  }
  __syncthreads();
  if (m.flow != MN_POSTNORM) CU_SHARE(i, n) if (!(h.o[i] > 0)) k.d_o[i] = 0;
  __syncthreads();
}

/* The gradient of a half's function, in dn, on to its input. */
static __device__ __forceinline__ void cu_input_back(const cu_layers &m, int rows, int half, const cu_half &h, const float *w,
                                                     float *dx, const cu_layer_work &k, float *g) {
  if (m.flow != MN_POSTNORM)
    cu_norm_back(m, rows, h.x, w + m.at.norm[half], h.stats, k.dn, dx, true, g ? g + m.at.norm[half] : NULL);
  else CU_SHARE(i, rows * m.D) dx[i] += k.dn[i];
  __syncthreads();
}

/* dx: in, the gradient of the output; out, of the input.  dkv: in, gradients of the environment's keys and values from elsewhere;
** out, of the slots that are not among the rows (the rows' own become 0).  dparams: added to, unless NULL. */
static __device__ __noinline__ void cu_layers_backward(const cu_layers &m, cu_part p, cu_kv kv, cu_kv dkv, float *acts, float *dx,
                                                       float *room, float *scores, float *dparams) {
  const int D = m.D, A = m.A, F = m.F, rows = p.n;
  const long n = (long)m.rows * D;
  const bool before = m.flow != MN_POSTNORM;
  cu_layer_work k = { room, room + n, room + 2 * n, room + 5 * n, room + 6 * n, NULL, NULL };
  k.dqkv = k.da + (long)m.rows * A;
  k.dhidden = k.dqkv + 3L * m.rows * A;
  for (int l = m.L - 1; l >= 0; l--) {
    const cu_acts a = cu_acts_of(m, acts, l);
    const cu_half *h = a.half;
    const float *w = m.params + l * m.at.end;
    float *g = dparams ? dparams + l * m.at.end : NULL;
    cu_join_back(m, rows, 1, h[1], w, dx, k, g);
    cu_dense_back(m, rows, F, D, a.hidden, w + m.at.ffn1, k.d_o, k.dhidden, g ? g + m.at.ffn1 : NULL);
    if (g) cu_bias_back(rows, D, 0, D, k.d_o, g + m.at.ffn1_bias);
    CU_SHARE(i, rows * F) if (!(a.hidden[i] > 0)) k.dhidden[i] = 0;
    __syncthreads();
    cu_dense_back(m, rows, D, F, before ? h[1].n : h[1].x, w + m.at.ffn0, k.dhidden, k.dn, g ? g + m.at.ffn0 : NULL);
    if (g) cu_bias_back(rows, F, 0, F, k.dhidden, g + m.at.ffn0_bias);
    cu_input_back(m, rows, 1, h[1], w, dx, k, g);
    cu_join_back(m, rows, 0, h[0], w, dx, k, g);
    cu_dense_back(m, rows, A, D, a.a, w + m.at.out, k.d_o, k.da, g ? g + m.at.out : NULL);
    if (g) cu_bias_back(rows, D, 0, D, k.d_o, g + m.at.out_bias);
    cu_attend_back(m, p, a, kv.at + l * kv.layer, k, dkv.at + l * dkv.layer, scores, g ? g + m.at.qkv_bias + A : NULL);
    cu_dense_back(m, rows, D, 3 * A, before ? h[0].n : h[0].x, w + m.at.qkv, k.dqkv, k.dn, g ? g + m.at.qkv : NULL);
    if (g) cu_bias_back(rows, 3 * A, 0, A, k.dqkv, g + m.at.qkv_bias);
    if (g) cu_bias_back(rows, 3 * A, 2 * A, A, k.dqkv, g + m.at.qkv_bias + 2 * A);
    cu_input_back(m, rows, 0, h[0], w, dx, k, g);
  }
}
