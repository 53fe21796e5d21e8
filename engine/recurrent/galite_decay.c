/* galite_decay.c -- features, gates and decays of the recurrent attention ops, computed from their factors.
** A feature p (x) x has E*D elements but is stored as E+D: the kernels build it one token at a time,
** so that it stays in the first-level cache, and reduce its gradient the same way. */
#include <string.h>
#include "galite_decay.h"
#include "numerics/simd.h"

static int last(const mn_call *c, int i) { return c->in[i].shape[c->in[i].ndim - 1]; }

int mn_attention_axis(const mn_call *c, const char *op, int i, const char *name, int axis,
                      int want) {
  int got = c->in[i].data ? c->in[i].shape[axis] : want;
  if (got == want) return 0;
  return mn_fail(c->ctx, "%s: axis %d of %s is %d, expected %d", op, axis, name, got, want);
}

static void pad(float *x, int from, int to, float value) {
  for (int i = from; i < to; i++) x[i] = value;
}

/* What passes read and store, token by token. */
static void find_streams(mn_attention *a) {
  const mn_arg *y = &a->c->out[0];
  for (int i = IN_Q; i < IN_STATE; i++) {
    const mn_arg *in = &a->c->in[i];
    if (i == IN_DONE || i == IN_SHRINK || (i == IN_KEEP_V && a->kept_v == MN_KEPT_HEAD)) continue;
    if (in->data) a->input[a->inputs++] = (mn_stream){ in->data, in->shape[3] };
    if (in->grad) a->grad[a->grads++] = (mn_stream){ in->grad, in->shape[3] };
  }
  a->output[a->outputs++] = (mn_stream){ y->data, a->V };
  if (y->grad) a->output[a->outputs++] = (mn_stream){ y->grad, a->V };
}

enum { LINE = 16 };              /* floats in a cache line */

#define ASK(streams, count, write, near) do { \
    for (int i = 0; i < (count); i++) \
      for (const float *p = (streams)[i].at + token * (streams)[i].n, *end = p + (streams)[i].n; p < end; p += LINE) \
        __builtin_prefetch(p, write, near); \
  } while (0)

void mn_prefetch_inputs(const mn_attention *a, int t, int bh, bool back, bool soon) {
  if (t < 0 || t >= a->T) return;
  long token = mn_token(a, t, bh);
  if (soon) {
    ASK(a->input, a->inputs, 0, 3);
    if (back) ASK(a->output, a->outputs, 0, 3);
  } else {
    ASK(a->input, a->inputs, 0, 2);
    if (back) ASK(a->output, a->outputs, 0, 2);
  }
}

void mn_expect_grads(const mn_attention *a, int t, int bh) {
  if (t < 0 || t >= a->T) return;
  long token = mn_token(a, t, bh);
  ASK(a->grad, a->grads, 1, 3);
}

void mn_expect_y(const mn_attention *a, int t, int bh) {
  long token = mn_token(a, t, bh);
  ASK(a->output, 1, 1, 3);
}

/* Which inputs gate what is written, and what is kept: beta and gamma, or those of their own. */
static int find_gates(mn_attention *a, const char *op) {
  const mn_call *c = a->c;
  const mn_arg *in = c->in;
  const bool keys_apart = in[IN_WRITE_K].data || in[IN_KEEP_K].data;
  if (in[IN_BETA].data && (in[IN_WRITE_V].data || in[IN_KEEP_V].data))
    return mn_fail(c->ctx, "%s: beta and %s are given, but beta is write_v = beta with keep_v = 1 - beta", op,
                   in[IN_WRITE_V].data ? "write_v" : "keep_v");
  if (in[IN_GAMMA].data && keys_apart)
    return mn_fail(c->ctx, "%s: gamma and %s are given, but gamma is write_k = gamma with keep_k = 1 - gamma", op,
                   in[IN_WRITE_K].data ? "write_k" : "keep_k");
  a->gate_v = in[IN_BETA].data ? IN_BETA : IN_WRITE_V;
  a->gate_k = in[IN_GAMMA].data ? IN_GAMMA : IN_WRITE_K;
  a->p_gate_k = in[IN_GAMMA].data ? IN_P_GAMMA : IN_P_WRITE_K;
  a->kept_v = in[IN_BETA].data ? MN_KEPT_REST : !in[IN_KEEP_V].data ? MN_KEPT_ALL : last(c, IN_KEEP_V) == 1 && a->V > 1 ? MN_KEPT_HEAD : MN_KEPT_EACH;
  a->kept_k = in[IN_GAMMA].data ? MN_KEPT_REST : !in[IN_KEEP_K].data ? MN_KEPT_ALL : last(c, IN_KEEP_K) == 1 ? MN_KEPT_HEAD : MN_KEPT_EACH;
  if (in[IN_P_GAMMA].data && !in[IN_GAMMA].data) return mn_fail(c->ctx, "%s: p_gamma is given without gamma", op);
  if (in[IN_P_WRITE_K].data && !in[IN_WRITE_K].data) return mn_fail(c->ctx, "%s: p_write_k is given without write_k", op);

  if (in[a->gate_k].data) {
    const int D = last(c, a->gate_k), E = in[a->p_gate_k].data ? last(c, a->p_gate_k) : 1;
    const bool apart = a->gate_k == IN_WRITE_K;
    a->scalar = apart && D == 1 && a->K > 1 && !in[IN_P_WRITE_K].data;
    if (!a->scalar) a->Dg = D, a->Eg = E;
    if (!a->scalar && (double)D * E != a->K)
      return mn_fail(c->ctx, "%s: %s%s makes %d gates per head, expected %d as in the features of k%s", op, mn_input_name(c, a->gate_k),
                     E > 1 ? apart ? " times p_write_k" : " times p_gamma" : "", D * E, a->K, apart ? ", or 1" : "");
  }
  if (a->kept_k == MN_KEPT_EACH && last(c, IN_KEEP_K) != a->K)
    return mn_fail(c->ctx, "%s: axis 3 of keep_k is %d, expected %d as in the features of k, or 1 for one value per head", op,
                   last(c, IN_KEEP_K), a->K);
  if (in[IN_BETA].data && last(c, IN_BETA) == 1 && !in[IN_GAMMA].data && !keys_apart) {
    a->scalar = true;
    a->gate_k = IN_BETA, a->kept_k = MN_KEPT_REST;
    a->gate_v = IN_WRITE_V, a->kept_v = MN_KEPT_ALL;
  } else if (in[IN_BETA].data && last(c, IN_BETA) != a->V) {
    return mn_fail(c->ctx, "%s: axis 3 of beta is %d, expected %d as in v%s", op, last(c, IN_BETA), a->V,
                   a->Dg || keys_apart ? "" : ", or 1 for one gate per head");
  }
  if (a->kept_v == MN_KEPT_HEAD && !mn_on_cpu(c->ctx))
    return mn_fail(c->ctx, "%s: keep_v of one value per head is computed with device=cpu alone: keep_v:expand(T, B, H, %d)", op, a->V);
  if (a->kept_v == MN_KEPT_EACH && last(c, IN_KEEP_V) != a->V)
    return mn_fail(c->ctx, "%s: axis 3 of keep_v is %d, expected %d as in v, or 1 for one value per head", op, last(c, IN_KEEP_V), a->V);
  return mn_attention_axis(c, op, IN_WRITE_V, "write_v", 3, a->V);
}

int mn_attention_open(mn_attention *a, const mn_call *c, const char *op, int eps) {
  *a = (mn_attention){ .c = c, .T = DIM(c, 'T'), .B = DIM(c, 'B'), .H = DIM(c, 'H'),
                       .V = DIM(c, 'V'), .D = DIM(c, 'D'), .E = 1, .scale = 1,
                       .eps = (float)OPT(c, eps), .den_clamp = (float)OPT(c, eps + 1),
                       .normalise = OPT(c, eps + 2) != 0 };
  if (!c->in[IN_P_Q].data != !c->in[IN_P_K].data)
    return mn_fail(c->ctx, "%s: %s is given without %s", op, c->in[IN_P_Q].data ? "p_q" : "p_k",
                   c->in[IN_P_Q].data ? "p_k" : "p_q");
  if (c->in[IN_P_Q].data) a->E = DIM(c, 'E');
  if ((double)a->D * a->E > 1 << 24)
    return mn_fail(c->ctx, "%s: a feature of %d times %d values is too large", op, a->E, a->D);
  a->K = a->D * a->E;
  a->Kp = mn_padded(a->K);
  a->Vp = mn_padded(a->V);
  if (find_gates(a, op)) return -1;
  find_streams(a);
  return 0;
}

/* A feature: n values and E factors, the one factor 1 where it has none.  And its gradients. */
typedef struct feature { const float *x, *p; float *dx, *dp; } feature;

static feature feature_at(const mn_attention *a, int x, int p, long token, int D, int E) {
  static const float one = 1;
  const float *factors = mn_input_at(a, p, token, E);
  return (feature){ mn_input_at(a, x, token, D), factors ? factors : &one, mn_grad_at(a, x, token, D), mn_grad_at(a, p, token, E) };
}

/* out[e*D + d] = p[e] * x[d]. */
static void outer(int D, int E, feature f, float *out) {
  for (int e = 0; e < E; e++, out += D)
    for (int d = 0; d < D; d += MN_LANES)
      mn_store_n(out + d, mn_load_n(f.x + d, D - d) * f.p[e], D - d);
}

static void outer_back(int D, int E, feature f, const float *dout) {
  for (int d = 0; f.dx && d < D; d += MN_LANES) {
    mn_lanes sum = { 0 };
    for (int e = 0; e < E; e++) sum += mn_load_n(dout + (long)e * D + d, D - d) * f.p[e];
    mn_store_n(f.dx + d, sum, D - d);
  }
  for (int e = 0; f.dp && e < E; e++) f.dp[e] = mn_dot(D, f.x, dout + (long)e * D);
}

/* The gate of keys: a feature, or one number as a feature that is the same everywhere.
** The usual case, a gate with the factors of k, has a pass of its own: nothing is stored between. */
typedef enum gate_kind { NO_GATE, SCALAR_GATE, SAME_FACTORS, OTHER_FACTORS } gate_kind;

enum { MOST_E = 16 };            /* factors whose gradients are summed in one pass */

static gate_kind kind_of(const mn_attention *a) {
  if (a->scalar) return SCALAR_GATE;
  if (!a->Dg) return NO_GATE;
  return a->Dg == a->D && a->E <= MOST_E ? SAME_FACTORS : OTHER_FACTORS;
}

static feature gate_at(const mn_attention *a, long token) {
  return feature_at(a, a->gate_k, a->p_gate_k, token, a->Dg, a->Eg);
}

/* What is kept of a token's keys where that is no gate's rest: keep*each[i], or where each is NULL the same for all. */
typedef struct kept { const float *each; float keep; } kept;

static kept kept_at(const mn_attention *a, long token, float keep) {
  if (a->kept_k == MN_KEPT_EACH) return (kept){ mn_input_at(a, IN_KEEP_K, token, a->K), keep };
  return (kept){ NULL, a->kept_k == MN_KEPT_HEAD ? keep * *mn_input_at(a, IN_KEEP_K, token, 1) : keep };
}

MN_INLINE mn_lanes kept_of(kept x, long i, long n) { return x.each ? mn_load_n(x.each + i, n) * x.keep : mn_splat(x.keep); }

/* whole: D is a multiple of the lanes.  apart: what is kept is `rest`, not what the gate leaves. */
MN_INLINE void keys_in_one(const gate_kind kind, const bool apart, const bool whole, int D, int E, float keep, kept rest, feature fq,
                           feature fk, feature fg, float scalar, float *q, float *write, float *decay) {
  for (int d = 0; d < D; d += MN_LANES) {
    long n = whole ? MN_LANES : D - d;
    mn_lanes xq = mn_load_n(fq.x + d, n), xk = mn_load_n(fk.x + d, n), xg = mn_splat(scalar);
    if (kind == SAME_FACTORS) xg = mn_load_n(fg.x + d, n);
    for (int e = 0; e < E; e++) {
      long at_e = (long)e * D + d;
      mn_lanes k = xk * fk.p[e], g = kind == SAME_FACTORS ? xg * fg.p[e] : xg;
      mn_store_n(q + at_e, xq * fq.p[e], n);
      mn_store_n(write + at_e, kind == NO_GATE ? k : g * k, n);
      mn_store_n(decay + at_e, apart ? kept_of(rest, at_e, n) : keep - keep * g, n);
    }
  }
}

/* A gate of the factors of k, the usual one, without branches. */
MN_INLINE void keys_of_same_factors(const bool apart, const mn_attention *a, long token, float keep, kept rest, feature fq, feature fk,
                                    float *q, float *write, float *decay) {
  feature fg = gate_at(a, token);
  if (a->D % MN_LANES == 0) keys_in_one(SAME_FACTORS, apart, true, a->D, a->E, keep, rest, fq, fk, fg, 0, q, write, decay);
  else                      keys_in_one(SAME_FACTORS, apart, false, a->D, a->E, keep, rest, fq, fk, fg, 0, q, write, decay);
}

void mn_keys(const mn_attention *a, long token, float keep, float *q, float *write, float *decay) {
  const int D = a->D, E = a->E, K = a->K;
  const bool apart = mn_keys_apart(a);
  feature fq = feature_at(a, IN_Q, IN_P_Q, token, D, E);
  feature fk = feature_at(a, IN_K, IN_P_K, token, D, E);
  gate_kind kind = kind_of(a);
  keep *= mn_shrink(a, token);
  kept rest = kept_at(a, token, keep);
  if (kind == SAME_FACTORS) {
    if (apart) keys_of_same_factors(true, a, token, keep, rest, fq, fk, q, write, decay);
    else       keys_of_same_factors(false, a, token, keep, rest, fq, fk, q, write, decay);
  } else if (kind == OTHER_FACTORS) {
    outer(D, E, fq, q);
    outer(D, E, fk, write);
    outer(a->Dg, a->Eg, gate_at(a, token), decay);
    for (int i = 0; i < K; i++) {
      write[i] *= decay[i];
      decay[i] = !apart ? keep - keep * decay[i] : rest.each ? rest.keep * rest.each[i] : rest.keep;
    }
  } else if (kind == SCALAR_GATE) {
    float g = *mn_input_at(a, a->gate_k, token, 1);
    if (!apart) rest = (kept){ NULL, keep - keep * g };
    keys_in_one(SCALAR_GATE, true, false, D, E, keep, rest, fq, fk, fk, g, q, write, decay);
  } else {
    keys_in_one(NO_GATE, true, false, D, E, keep, rest, fq, fk, fk, 0, q, write, decay);
  }
  pad(q, K, a->Kp, 0);
  pad(write, K, a->Kp, 0);
  pad(decay, K, a->Kp, 1);
}

void mn_features(const mn_attention *a, long token, float *q, float *k) {
  outer(a->D, a->E, feature_at(a, IN_Q, IN_P_Q, token, a->D, a->E), q);
  outer(a->D, a->E, feature_at(a, IN_K, IN_P_K, token, a->D, a->E), k);
  pad(q, a->K, a->Kp, 0);
  pad(k, a->K, a->Kp, 0);
}

void mn_features_back(const mn_attention *a, long token, const float *dq, const float *dk) {
  outer_back(a->D, a->E, feature_at(a, IN_Q, IN_P_Q, token, a->D, a->E), dq);
  outer_back(a->D, a->E, feature_at(a, IN_K, IN_P_K, token, a->D, a->E), dk);
}

/* Gradients of q, k and their gate with the same factors: every number is read once.  Where D is a multiple of the lanes and
** E a small constant, the sums stay in registers.  apart: what is kept does not depend on the gate. */
MN_INLINE void same_factors_back(const bool apart, const bool whole, const int E, int D, float keep, feature fq, feature fk, feature fg,
                                 const float *dq, const float *dwrite, const float *ddecay, float *deach) {
  mn_lanes sum[3 * MOST_E + MN_LANES];                   /* to the factors of q, k and gamma; whole vectors of sums */
  for (int i = 0; i < 3 * E + MN_LANES; i++) sum[i] = (mn_lanes){ 0 };
  for (int d = 0; d < D; d += MN_LANES) {
    long n = whole ? MN_LANES : D - d;
    mn_lanes xq = mn_load_n(fq.x + d, n), xk = mn_load_n(fk.x + d, n), xg = mn_load_n(fg.x + d, n);
    mn_lanes gq = { 0 }, gk = { 0 }, gg = { 0 };
#pragma GCC unroll 4
    for (int e = 0; e < E; e++) {
      long at_e = (long)e * D + d;
      mn_lanes to_q = mn_load_n(dq + at_e, n), to_w = mn_load_n(dwrite + at_e, n);
      mn_lanes to_k = to_w * (xg * fg.p[e]);
      mn_lanes to_g = to_w * (xk * fk.p[e]);
      if (!apart) to_g -= keep * mn_load_n(ddecay + at_e, n);
      else if (deach) mn_store_n(deach + at_e, mn_load_n(ddecay + at_e, n) * keep, n);
      gq += to_q * fq.p[e];
      gk += to_k * fk.p[e];
      gg += to_g * fg.p[e];
      sum[e] += to_q * xq;
      sum[E + e] += to_k * xk;
      sum[2 * E + e] += to_g * xg;
    }
    if (fq.dx) mn_store_n(fq.dx + d, gq, n);
    if (fk.dx) mn_store_n(fk.dx + d, gk, n);
    if (fg.dx) mn_store_n(fg.dx + d, gg, n);
  }
  float sums[3 * MOST_E + MN_LANES];
#pragma GCC unroll 4
  for (int i = 0; i < 3 * E; i += MN_LANES) mn_store(sums + i, mn_sums(sum + i));
#pragma GCC unroll 4
  for (int e = 0; e < E; e++) {
    if (fq.dp) fq.dp[e] = sums[e];
    if (fk.dp) fk.dp[e] = sums[E + e];
    if (fg.dp) fg.dp[e] = sums[2 * E + e];
  }
}

/* The gradient of keep_k. */
static void kept_back(const mn_attention *a, long token, float keep, const float *ddecay) {
  if (!a->c->in[IN_KEEP_K].grad) return;
  if (a->kept_k == MN_KEPT_EACH) {
    float *to = mn_grad_at(a, IN_KEEP_K, token, a->K);
    for (int i = 0; i < a->K; i += MN_LANES) mn_store_n(to + i, mn_load_n(ddecay + i, a->K - i) * keep, a->K - i);
  } else {
    mn_lanes sum = { 0 };
    for (int i = 0; i < a->K; i += MN_LANES) sum += mn_load_n(ddecay + i, a->K - i);
    *mn_grad_at(a, IN_KEEP_K, token, 1) = keep * mn_sum(sum);
  }
}

/* The gradient of shrink: along what is kept besides it.  work: Kp numbers. */
static void shrink_back(const mn_attention *a, long token, float keep, const float *ddecay, float *work) {
  if (!a->c->in[IN_SHRINK].grad) return;
  const kept all = kept_at(a, token, 1);
  const bool rest = !mn_keys_apart(a) && (a->Dg || a->scalar);
  if (rest && a->scalar) pad(work, 0, a->K, *mn_input_at(a, a->gate_k, token, 1));
  else if (rest) outer(a->Dg, a->Eg, gate_at(a, token), work);
  mn_lanes sum = { 0 };
  for (long i = 0; i < a->K; i += MN_LANES) {
    const long n = a->K - i;
    sum += mn_load_n(ddecay + i, n) * (rest ? 1 - mn_load_n(work + i, n) : kept_of(all, i, n));
  }
  *mn_grad_at(a, IN_SHRINK, token, 1) = keep * mn_sum(sum);
}

void mn_keys_back(const mn_attention *a, long token, float keep, const float *dq,
                  const float *dwrite, const float *ddecay, float *work) {
  int K = a->K, D = a->D, E = a->E;
  const bool apart = mn_keys_apart(a);
  feature fq = feature_at(a, IN_Q, IN_P_Q, token, D, E);
  feature fk = feature_at(a, IN_K, IN_P_K, token, D, E);
  gate_kind kind = kind_of(a);
  shrink_back(a, token, keep, ddecay, work);
  keep *= mn_shrink(a, token);
  if (kind == SAME_FACTORS) {
    feature fg = gate_at(a, token);
    float *deach = a->kept_k == MN_KEPT_EACH ? mn_grad_at(a, IN_KEEP_K, token, K) : NULL;
    const bool whole = E == 4 && D % MN_LANES == 0;
    if (whole && apart) same_factors_back(true, true, 4, D, keep, fq, fk, fg, dq, dwrite, ddecay, deach);
    else if (whole)     same_factors_back(false, true, 4, D, keep, fq, fk, fg, dq, dwrite, ddecay, deach);
    else if (apart)     same_factors_back(true, false, E, D, keep, fq, fk, fg, dq, dwrite, ddecay, deach);
    else                same_factors_back(false, false, E, D, keep, fq, fk, fg, dq, dwrite, ddecay, deach);
    if (a->kept_k == MN_KEPT_HEAD) kept_back(a, token, keep, ddecay);
    return;
  }
  kept_back(a, token, keep, ddecay);
  outer_back(D, E, fq, dq);
  if (kind == NO_GATE) {
    outer_back(D, E, fk, dwrite);
    return;
  }
  float *g = work, *k = work + a->Kp;
  if (kind == SCALAR_GATE) pad(g, 0, K, *mn_input_at(a, a->gate_k, token, 1));
  else outer(a->Dg, a->Eg, gate_at(a, token), g);
  outer(D, E, fk, k);
  mn_lanes total = { 0 };
  for (int i = 0; i < K; i += MN_LANES) {    /* k becomes the gradient of g, g that of k */
    long n = K - i;
    mn_lanes to_w = mn_load_n(dwrite + i, n), to_g = { 0 };
    if (!apart) to_g = -keep * mn_load_n(ddecay + i, n);
    to_g += mn_load_n(k + i, n) * to_w;
    mn_store_n(k + i, to_g, n);
    mn_store_n(g + i, to_w * mn_load_n(g + i, n), n);
    total += to_g;
  }
  outer_back(D, E, fk, g);
  if (kind == OTHER_FACTORS) outer_back(a->Dg, a->Eg, gate_at(a, token), k);
  else if (a->c->in[a->gate_k].grad) *mn_grad_at(a, a->gate_k, token, 1) = mn_sum(total);
}

void mn_values(const mn_attention *a, long token, float keep, float *write, float *decay) {
  const float *v = mn_input_at(a, IN_V, token, a->V), *b = mn_input_at(a, a->gate_v, token, a->V);
  const float *each = a->kept_v == MN_KEPT_EACH ? mn_input_at(a, IN_KEEP_V, token, a->V) : NULL;
  if (a->kept_v == MN_KEPT_HEAD) keep *= *mn_input_at(a, IN_KEEP_V, token, 1);
  for (int i = 0; i < a->V; i += MN_LANES) {
    long n = a->V - i;
    mn_lanes x = mn_load_n(v + i, n), g = b ? mn_load_n(b + i, n) : (mn_lanes){ 0 };
    mn_store_n(write + i, b ? g * x : x, n);
    mn_store_n(decay + i, each ? keep * mn_load_n(each + i, n) : a->kept_v == MN_KEPT_REST ? keep - keep * g : mn_splat(keep), n);
  }
  pad(write, a->V, a->Vp, 0);
  pad(decay, a->V, a->Vp, 1);
}

void mn_values_back(const mn_attention *a, long token, float keep, const float *dwrite,
                    const float *ddecay) {
  const float *v = mn_input_at(a, IN_V, token, a->V), *b = mn_input_at(a, a->gate_v, token, a->V);
  float *dv = mn_grad_at(a, IN_V, token, a->V), *db = mn_grad_at(a, a->gate_v, token, a->V);
  float *deach = a->kept_v == MN_KEPT_EACH ? mn_grad_at(a, IN_KEEP_V, token, a->V) : NULL;
  const bool rest = a->kept_v == MN_KEPT_REST;
  if (a->kept_v == MN_KEPT_HEAD && a->c->in[IN_KEEP_V].grad) {
    mn_lanes sum = { 0 };
    for (int i = 0; i < a->V; i += MN_LANES) sum += mn_load_n(ddecay + i, a->V - i);
    *mn_grad_at(a, IN_KEEP_V, token, 1) = keep * mn_sum(sum);
  }
  for (int i = 0; i < a->V; i += MN_LANES) {
    long n = a->V - i;
    mn_lanes to_w = mn_load_n(dwrite + i, n);
    if (dv) mn_store_n(dv + i, b ? to_w * mn_load_n(b + i, n) : to_w, n);
    if (db && rest) mn_store_n(db + i, to_w * mn_load_n(v + i, n) - keep * mn_load_n(ddecay + i, n), n);
    else if (db)    mn_store_n(db + i, to_w * mn_load_n(v + i, n), n);
    if (deach)      mn_store_n(deach + i, keep * mn_load_n(ddecay + i, n), n);
  }
}

/* out = x / den, n numbers; x is padded to whole vectors.  By the reciprocal where that is an ordinary number. */
static void divide(int n, const float *x, float den, float *out) {
  float by = 1 / den;
  if (fabsf(den) > 1e-30f && fabsf(den) < 1e30f) for (int i = 0; i < n; i += MN_LANES) mn_store_n(out + i, mn_load_n(x + i, n - i) * by, n - i);
  else for (int i = 0; i < n; i += MN_LANES) mn_store_n(out + i, mn_load_n(x + i, n - i) / den, n - i);
}

void mn_divide(const mn_attention *a, long token, const float *num, float z) {
  float slope, den = mn_den(a, z, &slope);
  divide(a->V, num, den, a->c->out[0].data + token * a->V);
}

void mn_dnum(const mn_attention *a, long token, float z, float *dnum) {
  const float *dy = a->c->out[0].grad;
  for (int i = dy ? a->V : 0; i < a->Vp; i++) dnum[i] = 0;
  if (!dy) return;
  dy += token * a->V;
  float slope, den = mn_den(a, z, &slope);
  divide(a->V, dy, den, dnum);
}

float mn_dz(const mn_attention *a, long token, float z) {
  const float *y = a->c->out[0].data + token * a->V, *dy = a->c->out[0].grad;
  if (!dy || !a->normalise) return 0;
  dy += token * a->V;
  mn_lanes along = { 0 };
  for (int i = 0; i < a->V; i += MN_LANES) along += mn_load_n(dy + i, a->V - i) * mn_load_n(y + i, a->V - i);
  return mn_den_back(a, z, mn_sum(along));
}
