/* low_rank.cuh -- what forward and backward of low_rank_attention share (engine/ops/low_rank_attention.c has the equations):
** a block computes a head, token by token; threads divide the columns of the factors, warps the products of rows. */
#pragma once
#include "galite_decay.cuh"
#include "chunk.cuh"

enum { IN_U = IN_STATE, IN_W, IN_S };
enum { OUT_Y, OUT_U, OUT_W, OUT_S, OUT_CUTS, OUT_SAVED };
enum { LOW_THREADS = 128, LOW_WARPS = LOW_THREADS / 32 };

struct LowRank {
  CuGatedInputs a;
  CuChunks p;                    /* the slice of heads */
  int r, n, Kp, Vp;              /* columns kept, and with the new one; rows of state are padded */
  float *cuts, *saved;           /* of a token: A and B [r,n], 1/sqrt(sigma) [r] */
};

/* A state: U as r rows of Vp, W as r rows of Kp, s [Kp]. */
struct LowState { float *U, *W, *s; };

static __host__ __device__ inline long low_size(const LowRank &g) { return (long)g.r * (g.Vp + g.Kp) + g.Kp; }
static __device__ __forceinline__ LowState low_state(const LowRank &g, float *at) {
  return { at, at + (long)g.r * g.Vp, at + (long)g.r * (g.Vp + g.Kp) };
}

struct LowCut { float *A, *B, *root; };

static __device__ __forceinline__ LowCut low_cut(const LowRank &g, long token) {
  float *at = g.cuts + token * g.r * (2L * g.n + 1);
  return { at, at + g.r * g.n, at + 2L * g.r * g.n };
}

/* A token: q, decays of keys and values, the factors before the cut (the new key and value are their last rows), and
** kappa_i = W'_i . q. */
struct LowToken { float *q, *kd, *vd, *U, *W, *kappa; };

static __host__ __device__ inline long low_token_size(const LowRank &g) {
  return (long)(g.n + 2) * g.Kp + (long)(g.n + 1) * g.Vp + (g.r + 15) / 16 * 16;
}
static __device__ __forceinline__ LowToken low_token(const LowRank &g, float *at) {
  LowToken x;
  x.q = at, x.kd = at + g.Kp, x.W = at + 2 * g.Kp;
  x.U = x.W + (long)g.n * g.Kp, x.vd = x.U + (long)g.n * g.Vp, x.kappa = x.vd + g.Vp;
  return x;
}

static __device__ __forceinline__ float *low_saved(const LowRank &g, int bh, int t) {
  return g.saved + ((long)bh * ((g.a.T + CU_L - 1) / CU_L) + t / CU_L) * low_size(g);
}

/* A product of rows; every lane of the warp gets it. */
static __device__ __forceinline__ float low_dot(int n, const float *x, const float *y) {
  float sum = 0.0f;
  for (int i = (int)threadIdx.x % 32; i < n; i += 32) sum = fmaf(x[i], y[i], sum);
  return cu_warp_sum(sum);
}

static __device__ __forceinline__ bool low_reset(const LowRank &g, int t, int bh) {
  return g.a.done && g.a.done[(long)t * g.a.B + bh / g.a.H];
}

/* The token's numbers, and the state scaled by its decays: before -> x, and the sum of keys to `sum`.  Returns z = s.q. */
static __device__ __forceinline__ float low_enter(const LowRank &g, int bh, int t, const LowState &before, const LowToken &x,
                                                  float *sum, cu_smem<float> part) {
  const long token = cu_token(g.p, t, bh);
  const bool reset = low_reset(g, t, bh);
  const float keep = cu_keep(g.a, t, bh / g.a.H, token);
  float z = 0.0f;
  for (int j = (int)threadIdx.x; j < g.a.K; j += LOW_THREADS) {
    const CuKey key = cu_key(g.a, cu_feature(g.a, j), token, keep);
    const float s = reset ? key.write : fmaf(key.decay, before.s[j], key.write);
    x.q[j] = key.q, x.kd[j] = key.decay, x.W[(long)g.r * g.Kp + j] = key.write;
    for (int c = 0; c < g.r; c++) x.W[(long)c * g.Kp + j] = reset ? 0.0f : before.W[(long)c * g.Kp + j] * key.decay;
    sum[j] = s;
    z = fmaf(s, key.q, z);
  }
  for (int i = (int)threadIdx.x; i < g.a.V; i += LOW_THREADS) {
    const float decay = reset ? 0.0f : cu_kept_v(g.a, token, i);
    x.vd[i] = decay, x.U[(long)g.r * g.Vp + i] = cu_written_v(g.a, token, i);
    for (int c = 0; c < g.r; c++) x.U[(long)c * g.Vp + i] = reset ? 0.0f : before.U[(long)c * g.Vp + i] * decay;
  }
  return cu_block_sum(z, part);
}

/* The factors after the cut, and kappa. */
static __device__ __forceinline__ void low_apply(const LowRank &g, const LowToken &x, const LowCut &by, const LowState &to) {
  __syncthreads();
  for (int j = (int)threadIdx.x; j < g.a.K + g.a.V; j += LOW_THREADS) {
    const bool key = j < g.a.K;
    const int at = key ? j : j - g.a.K, row = key ? g.Kp : g.Vp;
    const float *from = key ? x.W : x.U, *A = key ? by.B : by.A;
    float *out = key ? to.W : to.U;
    for (int i = 0; i < g.r; i++) {
      float sum = 0.0f;
      for (int c = 0; c < g.n; c++) sum = fmaf(A[i * g.n + c], from[(long)c * row + at], sum);
      out[(long)i * row + at] = sum;
    }
  }
  __syncthreads();
  for (int i = (int)threadIdx.x / 32; i < g.r; i += LOW_WARPS) {
    const float kappa = low_dot(g.a.K, to.W + (long)i * g.Kp, x.q);
    if (threadIdx.x % 32 == 0) x.kappa[i] = kappa;
  }
  __syncthreads();
}

/* A state between rows and the tensors U [B,H,V,r], W [B,H,K,r], s [B,H,K] (NULL: zeros, or not wanted). */
struct LowTensors { float *U, *W, *s; };

static __device__ __forceinline__ void low_take(const LowRank &g, int bh, const LowTensors &from, const LowState &to) {
  for (int m = (int)threadIdx.x; m < g.a.V * g.r; m += LOW_THREADS)
    to.U[(long)(m % g.r) * g.Vp + m / g.r] = from.U ? from.U[(long)bh * g.a.V * g.r + m] : 0.0f;
  for (int m = (int)threadIdx.x; m < g.a.K * g.r; m += LOW_THREADS)
    to.W[(long)(m % g.r) * g.Kp + m / g.r] = from.W ? from.W[(long)bh * g.a.K * g.r + m] : 0.0f;
  for (int j = (int)threadIdx.x; j < g.a.K; j += LOW_THREADS) to.s[j] = from.s ? from.s[(long)bh * g.a.K + j] : 0.0f;
  __syncthreads();
}

static __device__ __forceinline__ void low_give(const LowRank &g, int bh, const LowState &from, const LowTensors &to) {
  __syncthreads();
  for (int m = (int)threadIdx.x; to.U && m < g.a.V * g.r; m += LOW_THREADS)
    to.U[(long)bh * g.a.V * g.r + m] = from.U[(long)(m % g.r) * g.Vp + m / g.r];
  for (int m = (int)threadIdx.x; to.W && m < g.a.K * g.r; m += LOW_THREADS)
    to.W[(long)bh * g.a.K * g.r + m] = from.W[(long)(m % g.r) * g.Kp + m / g.r];
  for (int j = (int)threadIdx.x; to.s && j < g.a.K; j += LOW_THREADS) to.s[(long)bh * g.a.K + j] = from.s[j];
}

/* low_rank_attention.cu */
LowRank cu_low_rank(const mn_call *c, int t0, int t1, mn_attention *of);

/* low_rank_backward.cu */
void cu_low_rank_backward(mn_call *c);
