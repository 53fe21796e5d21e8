/* transformer_layers.cuh -- a stack of transformer layers over the rows of one environment's segment, forward, by one block of
** threads, as engine/attention/transformer_layers.c on the CPU.  A segment needs the top layer of the last one, so the op
** loops over segments in one launch for a whole call, whatever the resets, and can be a node of a graph.  All threads call
** every function, which ends with a barrier. */
#pragma once
#include "block_products.cuh"
#include "numerics/fast_math.h"
extern "C" {
#include "attention/rmt_segments.h"
}

enum { CU_WARPS = CU_THREADS / 32 };

struct cu_layers {
  int L, D, H, A, F, flow, reads, slots, rows;         /* rows: room for that many */
  float eps;
  bool wide;                     /* rows of D, A and F numbers can be read by fours */
  const float *params;
  mn_layer_place at;

  /* How many slots a row sees, of a segment with that many tokens. */
  __device__ __forceinline__ int seen(int tokens, int slot) const {
    if (slot < reads) return reads;
    return slot < reads + tokens ? slot + 1 : reads + tokens + reads;
  }
  __host__ __device__ long half_width() const { return 3L * D + (flow == MN_GTRXL ? 4L * D : 0); }
  __host__ __device__ long width() const { return 2 * half_width() + 4L * A + F + 4; }
  /* Floats for activations of that many layers at once, and the input of the next. */
  __host__ __device__ long acts(int layers) const { return (layers * width() + D) * rows; }
  /* Floats for the weights of one piece: of each warp forward, of all rows backward. */
  __host__ __device__ long scores() const { return (long)cu_max(CU_WARPS * slots, 2 * rows * H * slots); }
};

/* Keys and values of an environment: those of a layer begin `layer` numbers after those of the layer before. */
struct cu_kv { float *at; long layer; };

/* Rows in consecutive slots: the first one's slot, and the tokens of the segment so far. */
struct cu_part { int n, slot, tokens; };

struct cu_half { float *x, *n, *o, *pre, *rx, *stats; };       /* as struct mn_half */
struct cu_acts { cu_half half[2]; float *qkv, *a, *hidden; };

static __device__ __forceinline__ cu_acts cu_acts_of(const cu_layers &m, float *acts, int layer) {
  const long D = (long)m.rows * m.D;
  float *at = acts + (long)m.rows * m.width() * layer;
  cu_acts a;
  for (int i = 0; i < 2; i++) {
    cu_half *h = &a.half[i];
    h->x = at;                   /* first, so that the output is the next layer's input */
    h->n = h->x + D;
    h->o = h->n + D;
    h->pre = h->o + D;
    h->rx = h->pre + 3 * D;
    at += (long)m.rows * m.half_width();
  }
  a.qkv = at;
  a.a = a.qkv + 3L * m.rows * m.A;
  a.hidden = a.a + (long)m.rows * m.A;
  a.half[0].stats = a.hidden + (long)m.rows * m.F;
  a.half[1].stats = a.half[0].stats + 2L * m.rows;
  return a;
}

/* ---- rows ---- */

/* A warp for each row. */
static __device__ __forceinline__ void cu_norm_rows(const cu_layers &m, int rows, const float *w, const float *x, float *y,
                                                    float *stats) {
  const int lane = (int)threadIdx.x % 32, D = m.D;
  for (long r = (int)threadIdx.x / 32; r < rows; r += CU_WARPS) {
    float sum = 0, squares = 0;
    for (int d = lane; d < D; d += 32) sum += x[r * D + d];
    const float mean = cu_warp_sum(sum) / (float)D;
    for (int d = lane; d < D; d += 32) squares += (x[r * D + d] - mean) * (x[r * D + d] - mean);
    const float scale = 1 / sqrtf(cu_warp_sum(squares) / (float)D + m.eps);
    for (int d = lane; d < D; d += 32) y[r * D + d] = (x[r * D + d] - mean) * scale * w[d] + w[D + d];
    if (lane == 0) stats[2 * r] = mean, stats[2 * r + 1] = scale;
  }
  __syncthreads();
}

/* y = x w^T + b, through relu if asked. */
static __device__ __noinline__ void cu_dense(const cu_layers &m, int rows, int I, int O, const float *x, const float *w,
                                             const float *b, bool relu, float *y) {
  cu_block_dots(rows, O, I, { x, I }, w, m.wide, [&](int r, int o, float sum) {
    const float z = sum + b[o];
    y[(long)r * O + o] = relu && z < 0 ? 0 : z;
  });
}

/* to[:, 0..O-1] (+)= x w^T, rows of `to` being 3 D apart. */
static __device__ __noinline__ void cu_gate_product(const cu_layers &m, int rows, int O, const float *x, const float *w, float *to,
                                                    bool add) {
  cu_block_dots(rows, O, m.D, { x, m.D }, w, m.wide, [&](int r, int o, float sum) {
    float *at = to + (long)r * 3 * m.D + o;
    *at = sum + (add ? *at : 0);
  });
}

/* What follows a half: its input and its result, joined as the flow says. */
static __device__ __forceinline__ void cu_join(const cu_layers &m, const float *w, int half, const cu_half &h, float *y, int rows) {
  const int D = m.D, n = rows * D;
  if (m.flow != MN_GTRXL) {
    float *to = m.flow == MN_RESIDUAL ? y : h.n;
    CU_SHARE(i, n) to[i] = h.x[i] + h.o[i];
    __syncthreads();
    if (m.flow == MN_POSTNORM) cu_norm_rows(m, rows, w + m.at.norm[half], h.n, y, h.stats);
    return;
  }
  const float *gate = w + m.at.gate[half], *u = gate + 3L * D * D, *bias = u + 3L * D * D;
  cu_gate_product(m, rows, 3 * D, h.o, gate, h.pre, false);
  cu_gate_product(m, rows, 2 * D, h.x, u, h.pre, true);
  CU_SHARE(i, n) {
    const int d = i % D;
    float *pre = h.pre + (long)(i / D) * 3 * D + d;
    pre[0] = mn_sigmoidf(pre[0]);
    pre[D] = mn_sigmoidf(pre[D] - bias[d]);
    h.rx[i] = pre[0] * h.x[i];
  }
  __syncthreads();
  cu_gate_product(m, rows, D, h.rx, u + 2L * D * D, h.pre + 2 * D, true);
  CU_SHARE(i, n) {
    float *pre = h.pre + (long)(i / D) * 3 * D + i % D;
    const float g = mn_tanhf(pre[2 * D]), z = pre[D];
    pre[2 * D] = g;
    y[i] = (1 - z) * h.x[i] + z * g;
  }
  __syncthreads();
}

/* ---- attention ---- */

/* The warp's row: w = softmax of q.k over the slots seen, a lane for each slot; all lanes may read w afterwards. */
static __device__ __forceinline__ void cu_slot_weights(int dh, long stride, int seen, const float *q, const float *k, float *w) {
  const int lane = (int)threadIdx.x % 32;
  const float scale = 1 / sqrtf((float)dh);
  float top = -CU_INFINITY, sum = 0;
  for (int j = lane; j < seen; j += 32) {
    float dot = 0;
    for (int d = 0; d < dh; d++) dot = fmaf(q[d], k[j * stride + d], dot);
    w[j] = scale * dot;
    top = w[j] > top ? w[j] : top;
  }
  for (int by = 16; by > 0; by >>= 1) top = cu_max(top, __shfl_xor_sync(0xffffffffu, top, by));
  for (int j = lane; j < seen; j += 32) sum += w[j] = mn_expf(w[j] - top);
  sum = cu_warp_sum(sum);
  for (int j = lane; j < seen; j += 32) w[j] /= sum;
  __syncwarp();
}

static __device__ __forceinline__ void cu_attend(const cu_layers &m, const cu_part &p, const cu_acts &a, float *kv, float *scores) {
  const int A = m.A, dh = A / m.H, lane = (int)threadIdx.x % 32;
  float *w = scores + (long)((int)threadIdx.x / 32) * m.slots;
  CU_SHARE(i, p.n * 2 * A) {
    const int r = i / (2 * A), x = i % (2 * A);
    kv[(long)(p.slot + r) * 2 * A + x] = a.qkv[(long)r * 3 * A + A + x];
  }
  __syncthreads();
  for (int i = (int)threadIdx.x / 32; i < p.n * m.H; i += CU_WARPS) {
    const int r = i / m.H, h = i % m.H * dh, seen = m.seen(p.tokens, p.slot + r);
    cu_slot_weights(dh, 2 * A, seen, a.qkv + (long)r * 3 * A + h, kv + h, w);
    for (int d = lane; d < dh; d += 32) {
      float sum = 0;
      for (int j = 0; j < seen; j++) sum = fmaf(w[j], kv[(long)j * 2 * A + A + h + d], sum);
      a.a[(long)r * A + h + d] = sum;
    }
    __syncwarp();
  }
  __syncthreads();
}

/* ---- the stack ---- */

/* The input is in the first rows of acts, which has room for `layers` layers at once: all, for backward, or two, which
** are then used in turn.  Returns the output [rows,D]. */
static __device__ __noinline__ float *cu_layers_forward(const cu_layers &m, cu_part p, cu_kv kv, float *acts, int layers,
                                                        float *scores) {
  const bool before = m.flow != MN_POSTNORM;
  float *y = acts;
  for (int l = 0; l < m.L; l++) {
    const cu_acts a = cu_acts_of(m, acts, l % layers);
    const cu_half *h = a.half;
    const float *w = m.params + l * m.at.end;
    y = acts + (long)m.rows * m.width() * ((l + 1) % layers);
    if (layers == m.L) y = acts + (long)m.rows * m.width() * (l + 1);
    if (before) cu_norm_rows(m, p.n, w + m.at.norm[0], h[0].x, h[0].n, h[0].stats);
    cu_dense(m, p.n, m.D, 3 * m.A, before ? h[0].n : h[0].x, w + m.at.qkv, w + m.at.qkv_bias, false, a.qkv);
    cu_attend(m, p, a, kv.at + l * kv.layer, scores);
    cu_dense(m, p.n, m.A, m.D, a.a, w + m.at.out, w + m.at.out_bias, before, h[0].o);
    cu_join(m, w, 0, h[0], h[1].x, p.n);
    if (before) cu_norm_rows(m, p.n, w + m.at.norm[1], h[1].x, h[1].n, h[1].stats);
    cu_dense(m, p.n, m.D, m.F, before ? h[1].n : h[1].x, w + m.at.ffn0, w + m.at.ffn0_bias, true, a.hidden);
    cu_dense(m, p.n, m.F, m.D, a.hidden, w + m.at.ffn1, w + m.at.ffn1_bias, before, h[1].o);
    cu_join(m, w, 1, h[1], y, p.n);
  }
  return y;
}
