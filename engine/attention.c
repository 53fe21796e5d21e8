/* attention.c -- features and gates of the recurrent attention ops, made from their factors.
** A feature p (x) x has E*D numbers but is stored as E+D: the kernels build it one token at a time,
** where it stays in the first-level cache, and fold its gradient back the same way. */
#include "attention.h"
#include "simd.h"

static int round_up(int n) { return (n + 15) / 16 * 16; }

static int last(const mn_call *c, int i) { return c->in[i].shape[c->in[i].ndim - 1]; }

int mn_attention_axis(const mn_call *c, const char *op, int i, const char *name, int axis, int want) {
  int got = c->in[i].data ? c->in[i].shape[axis] : want;
  if (got == want) return 0;
  return mn_fail(c->ctx, "%s: axis %d of %s is %d, expected %d", op, axis, name, got, want);
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
    return mn_fail(c->ctx, "%s: a feature of %d times %d numbers is too large", op, a->E, a->D);
  a->K = a->D * a->E;
  a->Kp = round_up(a->K);
  a->Vp = round_up(a->V);
  if (c->in[IN_GAMMA].data) {
    a->Dg = last(c, IN_GAMMA);
    a->Eg = c->in[IN_P_GAMMA].data ? last(c, IN_P_GAMMA) : 1;
    if ((double)a->Dg * a->Eg != a->K)
      return mn_fail(c->ctx, "%s: gamma%s makes %d gates a head, expected %d as in the features of k",
                     op, a->Eg > 1 ? " times p_gamma" : "", a->Dg * a->Eg, a->K);
  } else if (c->in[IN_P_GAMMA].data) {
    return mn_fail(c->ctx, "%s: p_gamma is given without gamma", op);
  }
  if (c->in[IN_BETA].data) {
    a->scalar = !a->Dg && last(c, IN_BETA) == 1;
    if (!a->scalar && last(c, IN_BETA) != a->V)
      return mn_fail(c->ctx, "%s: axis 3 of beta is %d, expected %d as in v%s", op,
                     last(c, IN_BETA), a->V, a->Dg ? "" : ", or 1 for one gate a head");
  }
  return 0;
}

/* out[e*D + d] = p[e] * x[d]; p NULL: a copy. */
static void outer(int D, const float *restrict x, int E, const float *restrict p,
                  float *restrict out) {
  for (int e = 0; e < E; e++, out += D) {
    float f = p ? p[e] : 1.0f;
    for (int d = 0; d < D; d++) out[d] = f * x[d];
  }
}

/* Gradients of both factors; dx and dp may be NULL. */
static void outer_back(int D, const float *restrict x, int E, const float *restrict p,
                       const float *restrict dout, float *restrict dx, float *restrict dp) {
  for (int e = 0; dx && e < E; e++) {
    float f = p ? p[e] : 1.0f;
    const float *from = dout + (long)e * D;
    if (e) for (int d = 0; d < D; d++) dx[d] += f * from[d];
    else   for (int d = 0; d < D; d++) dx[d] = f * from[d];
  }
  for (int e = 0; dp && e < E; e++, dout += D) {
    mn_lanes sum = { 0 };
    int d = 0;
    for (; d + MN_LANES <= D; d += MN_LANES) sum += mn_load(x + d) * mn_load(dout + d);
    float rest = 0;
    for (; d < D; d++) rest += x[d] * dout[d];
    dp[e] = mn_sum(sum) + rest;
  }
}

/* Where input i holds, or its gradient receives, the numbers of a token; NULL if absent. */
static const float *at(const mn_attention *a, int i, long token, int n) {
  const float *p = a->c->in[i].data;
  return p ? p + token * n : NULL;
}

static float *grad_at(const mn_attention *a, int i, long token, int n) {
  float *p = a->c->in[i].grad;
  return p ? p + token * n : NULL;
}

static void pad(float *x, int from, int to, float value) {
  for (int i = from; i < to; i++) x[i] = value;
}

/* The gate of every key; false: there is none. */
static bool key_gate(const mn_attention *a, long token, float *g) {
  if (a->Dg)
    outer(a->Dg, at(a, IN_GAMMA, token, a->Dg), a->Eg, at(a, IN_P_GAMMA, token, a->Eg), g);
  else if (a->scalar)
    pad(g, 0, a->K, *at(a, IN_BETA, token, 1));
  else
    return false;
  return true;
}

void mn_keys(const mn_attention *a, long token, float keep, float *restrict q,
             float *restrict write, float *restrict decay) {
  int K = a->K;
  outer(a->D, at(a, IN_Q, token, a->D), a->E, at(a, IN_P_Q, token, a->E), q);
  outer(a->D, at(a, IN_K, token, a->D), a->E, at(a, IN_P_K, token, a->E), write);
  if (key_gate(a, token, decay))
    for (int i = 0; i < K; i++) {
      float g = decay[i];
      write[i] *= g;
      decay[i] = keep * (1 - g);
    }
  else
    pad(decay, 0, K, keep);
  pad(q, K, a->Kp, 0);
  pad(write, K, a->Kp, 0);
  pad(decay, K, a->Kp, 1);
}

void mn_keys_back(const mn_attention *a, long token, float keep, const float *restrict dq,
                  const float *restrict dwrite, const float *restrict ddecay,
                  float *restrict work) {
  const mn_arg *in = a->c->in;
  int K = a->K, D = a->D, E = a->E;
  float *restrict g = work, *restrict k = work + a->Kp;
  const float *p_k = at(a, IN_P_K, token, E), *x_k = at(a, IN_K, token, D);
  if (in[IN_Q].grad || in[IN_P_Q].grad)
    outer_back(D, at(a, IN_Q, token, D), E, at(a, IN_P_Q, token, E), dq,
               grad_at(a, IN_Q, token, D), grad_at(a, IN_P_Q, token, E));
  bool gated = key_gate(a, token, g);
  if (gated) {                               /* k becomes the gradient of g, g that of k */
    outer(D, x_k, E, p_k, k);
    for (int i = 0; i < K; i++) {
      float kept = keep * ddecay[i];
      k[i] = k[i] * dwrite[i] - kept;
      g[i] *= dwrite[i];
    }
  }
  if (in[IN_K].grad || in[IN_P_K].grad)
    outer_back(D, x_k, E, p_k, gated ? g : dwrite, grad_at(a, IN_K, token, D),
               grad_at(a, IN_P_K, token, E));
  if (a->Dg && (in[IN_GAMMA].grad || in[IN_P_GAMMA].grad))
    outer_back(a->Dg, at(a, IN_GAMMA, token, a->Dg), a->Eg, at(a, IN_P_GAMMA, token, a->Eg), k,
               grad_at(a, IN_GAMMA, token, a->Dg), grad_at(a, IN_P_GAMMA, token, a->Eg));
  if (a->scalar && in[IN_BETA].grad) {
    float sum = 0;
    for (int i = 0; i < K; i++) sum += k[i];
    *grad_at(a, IN_BETA, token, 1) = sum;
  }
}

void mn_values(const mn_attention *a, long token, float keep, float *restrict write,
               float *restrict decay) {
  const float *v = at(a, IN_V, token, a->V);
  const float *b = a->scalar ? NULL : at(a, IN_BETA, token, a->V);
  for (int i = 0; i < a->V; i++) {
    write[i] = b ? b[i] * v[i] : v[i];
    decay[i] = b ? keep * (1 - b[i]) : keep;
  }
  pad(write, a->V, a->Vp, 0);
  pad(decay, a->V, a->Vp, 1);
}

void mn_values_back(const mn_attention *a, long token, float keep, const float *restrict dwrite,
                    const float *restrict ddecay) {
  const float *v = at(a, IN_V, token, a->V);
  const float *b = a->scalar ? NULL : at(a, IN_BETA, token, a->V);
  float *dv = grad_at(a, IN_V, token, a->V), *db = b ? grad_at(a, IN_BETA, token, a->V) : NULL;
  for (int i = 0; dv && i < a->V; i++) dv[i] = b ? b[i] * dwrite[i] : dwrite[i];
  for (int i = 0; db && i < a->V; i++) db[i] = v[i] * dwrite[i] - keep * ddecay[i];
}
