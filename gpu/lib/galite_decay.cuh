/* galite_decay.cuh -- the inputs of the recurrent attention kernels, as engine/recurrent/galite_decay.h has them: features and gates
** given as factors, whose outer products are computed element by element where they are used. */
#pragma once
#include "runtime/kernel.cuh"
extern "C" {
#include "recurrent/galite_decay.h"
}

struct CuGatedInputs {
  const float *q, *k, *v, *beta, *gamma, *p_q, *p_k, *p_gamma, *shrink;
  const uint8_t *done;
  int T, B, H, V, K, D, E, Dg, Eg;         /* as in mn_attention */
  bool scalar, raw, normalise;
  float eps, den_clamp, scale;
};

/* Which factors feature j is made of. */
struct CuFeature { int j, d, e, dg, eg; };

/* Feature j of a token: the query, the write (g*k), the decay (keep*(1-g)). */
struct CuKey { float q, write, decay; };

static inline CuGatedInputs cu_attention(const mn_attention *g) {
  const mn_arg *in = g->c->in;
  CuGatedInputs a = {};
  a.q = in[IN_Q].data, a.k = in[IN_K].data, a.v = in[IN_V].data;
  a.beta = in[IN_BETA].data, a.gamma = in[IN_GAMMA].data;
  a.p_q = in[IN_P_Q].data, a.p_k = in[IN_P_K].data, a.p_gamma = in[IN_P_GAMMA].data;
  a.shrink = in[IN_SHRINK].data, a.done = in[IN_DONE].u8;
  a.T = g->T, a.B = g->B, a.H = g->H, a.V = g->V, a.K = g->K, a.D = g->D, a.E = g->E, a.Dg = g->Dg, a.Eg = g->Eg;
  a.scalar = g->scalar, a.raw = g->raw, a.normalise = g->normalise;
  a.eps = g->eps, a.den_clamp = g->den_clamp, a.scale = g->scale;
  return a;
}

static __device__ __forceinline__ CuFeature cu_feature(const CuGatedInputs &a, int j) {
  CuFeature f = { j, j, 0, j, 0 };
  if (a.E > 1) f.e = j / a.D, f.d = j - f.e * a.D;
  if (a.Eg > 1) f.eg = j / a.Dg, f.dg = j - f.eg * a.Dg;
  return f;
}

/* The gate of a feature's keys; 0 where there is none. */
static __device__ __forceinline__ float cu_gate(const CuGatedInputs &a, const CuFeature &f, long token) {
  if (a.scalar) return a.beta[token];
  if (!a.gamma) return 0.0f;
  const float g = a.gamma[token * a.Dg + f.dg];
  return a.p_gamma ? g * a.p_gamma[token * a.Eg + f.eg] : g;
}

/* keep: 0 at a reset, else 1, times shrink. */
static __device__ __forceinline__ CuKey cu_key(const CuGatedInputs &a, const CuFeature &f, long token, float keep) {
  CuKey x = { a.q[token * a.D + f.d], a.k[token * a.D + f.d], keep };
  if (a.p_q) {
    x.q *= a.p_q[token * a.E + f.e];
    x.write *= a.p_k[token * a.E + f.e];
  }
  if (a.gamma || a.scalar) {
    const float g = cu_gate(a, f, token);
    if (!a.raw) x.write *= g;
    x.decay = keep - keep * g;
  }
  return x;
}

/* What token t of row b of the batch keeps of the state, gates aside. */
static __device__ __forceinline__ float cu_keep(const CuGatedInputs &a, int t, int b, long token) {
  const float keep = a.done && a.done[(long)t * a.B + b] ? 0.0f : 1.0f;
  return a.shrink ? keep * a.shrink[token] : keep;
}

/* The denominator for s.q = z, and its derivative (mn_den). */
struct CuDenominator { float value, slope; };

static __device__ __forceinline__ CuDenominator cu_den(bool normalise, float scale, float eps, float clamp, float z) {
  if (!normalise) return { scale, 0.0f };
  const float den = fmaf(scale, z, eps);
  if (clamp > 0 && den > -clamp && den < clamp) return { den < 0 ? -clamp : clamp, 0.0f };
  if (den == 0) return { INFINITY, 0.0f };
  return { den, scale };
}
