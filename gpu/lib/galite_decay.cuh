/* galite_decay.cuh -- the inputs of the recurrent attention kernels, as engine/recurrent/galite_decay.h has them: features and gates
** given as factors, whose outer products are computed element by element where they are used. */
#pragma once
#include "runtime/kernel.cuh"
#include "value_decay.cuh"
extern "C" {
#include "recurrent/galite_decay.h"
}

struct CuGatedInputs {
  const float *q, *k, *v, *p_q, *p_k, *shrink;
  const float *gate_v, *gate_k, *p_gate_k; /* beta or write_v; gamma or write_k; NULL: there is none */
  const float *keep_v, *keep_k;            /* NULL: what the gate leaves, or all */
  const uint8_t *done;
  int T, B, H, V, K, D, E, Dg, Eg;         /* as in mn_attention */
  mn_kept kept_v, kept_k;
  bool scalar, normalise;
  float eps, den_clamp, scale;
};

/* Which factors feature j is made of. */
struct CuFeature { int j, d, e, dg, eg; };

/* Feature j of a token: the query, the write (gate*k), the decay (keep*(1-gate), or keep*keep_k). */
struct CuKey { float q, write, decay; };

static inline CuGatedInputs cu_gated_inputs(const mn_attention *g) {
  const mn_arg *in = g->c->in;
  CuGatedInputs a = {};
  a.q = in[IN_Q].data, a.k = in[IN_K].data, a.v = in[IN_V].data;
  a.gate_v = in[g->gate_v].data, a.gate_k = in[g->gate_k].data, a.p_gate_k = in[g->p_gate_k].data;
  a.keep_v = in[IN_KEEP_V].data, a.keep_k = in[IN_KEEP_K].data;
  a.kept_v = g->kept_v, a.kept_k = g->kept_k;
  a.p_q = in[IN_P_Q].data, a.p_k = in[IN_P_K].data;
  a.shrink = in[IN_SHRINK].data, a.done = in[IN_DONE].u8;
  a.T = g->T, a.B = g->B, a.H = g->H, a.V = g->V, a.K = g->K, a.D = g->D, a.E = g->E, a.Dg = g->Dg, a.Eg = g->Eg;
  a.scalar = g->scalar, a.normalise = g->normalise;
  a.eps = g->eps, a.den_clamp = g->den_clamp, a.scale = g->scale;
  return a;
}

static __device__ __forceinline__ CuFeature cu_feature(const CuGatedInputs &a, int j) {
  CuFeature f = { j, j, 0, j, 0 };
  if (a.E > 1) f.e = j / a.D, f.d = j - f.e * a.D;
  if (a.Eg > 1) f.eg = j / a.Dg, f.dg = j - f.eg * a.Dg;
  return f;
}

/* The gate of a feature's keys, where there is one. */
static __device__ __forceinline__ float cu_gate(const CuGatedInputs &a, const CuFeature &f, long token) {
  if (a.scalar) return a.gate_k[token];
  const float g = a.gate_k[token * a.Dg + f.dg];
  return a.p_gate_k ? g * a.p_gate_k[token * a.Eg + f.eg] : g;
}

/* What is kept of a feature's old keys where that is not what its gate leaves. */
static __device__ __forceinline__ float cu_kept_k(const CuGatedInputs &a, const CuFeature &f, long token) {
  return a.kept_k == MN_KEPT_EACH ? a.keep_k[token * a.K + f.j] : a.kept_k == MN_KEPT_HEAD ? a.keep_k[token] : 1.0f;
}

/* Value i of a token: what is written of it, and what is kept of the old one. */
static __device__ __forceinline__ float cu_written_v(const CuGatedInputs &a, long token, int i) {
  return cu_written(a.v, a.gate_v, token * a.V + i);
}
static __device__ __forceinline__ float cu_kept_v(const CuGatedInputs &a, long token, int i) {
  return cu_kept(a.kept_v != MN_KEPT_ALL, a.kept_v == MN_KEPT_REST ? NULL : a.keep_v, a.gate_v, token * a.V + i);
}

/* From the gradients of both, those of a value, its gate and keep_v; first: they are stored, else added to. */
struct CuValueGrads { float *v, *gate, *keep; };

static inline CuValueGrads cu_value_grads(const mn_attention *a) {
  const mn_arg *in = a->c->in;
  return { in[IN_V].grad, in[a->gate_v].grad, in[IN_KEEP_V].grad };
}

static __device__ __forceinline__ void cu_value_back(const CuGatedInputs &a, const CuValueGrads &to, long token, int i, float dwrite,
                                                     float ddecay, bool first) {
  const long at = token * a.V + i;
  if (to.v) to.v[at] = (a.gate_v ? dwrite * a.gate_v[at] : dwrite) + (first ? 0.0f : to.v[at]);
  if (to.gate) to.gate[at] = fmaf(dwrite, a.v[at], a.kept_v == MN_KEPT_REST ? -ddecay : 0.0f) + (first ? 0.0f : to.gate[at]);
  if (to.keep) to.keep[at] = ddecay + (first ? 0.0f : to.keep[at]);
}

/* keep: 0 at a reset, else 1, times shrink. */
static __device__ __forceinline__ CuKey cu_key(const CuGatedInputs &a, const CuFeature &f, long token, float keep) {
  CuKey x = { a.q[token * a.D + f.d], a.k[token * a.D + f.d], keep };
  if (a.p_q) {
    x.q *= a.p_q[token * a.E + f.e];
    x.write *= a.p_k[token * a.E + f.e];
  }
  if (a.gate_k) {
    const float g = cu_gate(a, f, token);
    x.write *= g;
    x.decay = keep - keep * g;
  }
  if (a.kept_k != MN_KEPT_REST) x.decay = keep * cu_kept_k(a, f, token);
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
