/* even_chunk.c -- sixteen tokens of linear attention whose decay is one number a token, or none.
** Then what happens between two tokens is one number too, and no running products of whole rows are
** needed: with D[t][s] = d_{s+1} ... d_t and P_t = d_0 ... d_t, products of forward intervals,
**   y_t = P_t C q_t + sum over s <= t of D[t][s] (k_s.q_t) v_s      C' = P_15 C + sum D[15][s] v_s k_s^T
** is matrix products alone.  Arrays named ..T hold a row for every channel and sixteen tokens in it:
** one vector, so that nothing is summed across lanes. */
#include <string.h>
#include "chunk.h"
#include "even_chunk.h"
#include "simd.h"

enum { L = MN_CHUNK };

typedef struct decays { float d[L], P[L], D[L][L], DT[L * L]; } decays;

static void load_decays(const float *kd, long Kp, decays *x) {
  float p = 1;
  memset(x->D, 0, sizeof x->D);
  for (int t = 0; t < L; t++) {
    float d = x->d[t] = kd[t * Kp];
    x->P[t] = p *= d;
    for (int s = 0; t && s < t; s++) x->D[t][s] = d * x->D[t - 1][s];
    x->D[t][t] = 1;
  }
  mn_chunk_transpose(L, L, &x->D[0][0], x->DT);
}

/* Gradients of d from those of D and P, which are used up. */
static void decays_back(const decays *x, float dD[L][L], float dP[L], float dd[L]) {
  for (int t = L - 1; t > 0; t--) {
    dd[t] = dP[t] * x->P[t - 1];
    dP[t - 1] += dP[t] * x->d[t];
    for (int s = 0; s < t; s++) {
      dd[t] += dD[t][s] * x->D[t - 1][s];
      dD[t - 1][s] += dD[t][s] * x->d[t];
    }
  }
  dd[0] = dP[0];
}

static void load_values(const mn_attention *a, const mn_tokens *at, float *v) {
  for (int i = 0; i < at->n; i++) {
    const float *from = a->c->in[IN_V].data + mn_token(a, at->t + i, at->bh) * a->V;
    memcpy(v, from, sizeof(float) * (size_t)a->V);
    memset(v + a->V, 0, sizeof(float) * (size_t)(a->Vp - a->V));
    v += a->Vp;
  }
  memset(v, 0, sizeof(float) * (size_t)(L - at->n) * (size_t)a->Vp);
}

/* out_t = x_t times a number of its own. */
static void scale_rows(int n, const float *x, const float *by, float *out) {
  for (int t = 0; t < L; t++)
    for (int j = 0; j < n; j += MN_LANES)
      mn_store(out + t * n + j, mn_load(x + t * n + j) * by[t]);
}

/* sum = P_15 sum + sum over t of by[t] x_t. */
static void add_rows(int n, const float *x, const float *by, float kept, float *to) {
  for (int j = 0; j < n; j += MN_LANES) {
    mn_lanes sum = mn_load(to + j) * kept;
    for (int t = 0; t < L; t++) sum += mn_load(x + t * n + j) * by[t];
    mn_store(to + j, sum);
  }
}

/* Scores k_s.q_t as [s][t], from keys by row and queries by channel. */
static void scores(int Kp, const float *k, const float *qT, float *ST) {
  mn_chunk_gemm(L, L, Kp, k, Kp, 1, qT, L, 0, 0, 0, ST, L);
}

/* z_t = P_t s.q_t + sum over s of S[t][s]; ST holds the scores times D, as [s][t]. */
static void key_sums(int Kp, const float *qT, const float *s, const float *P, const float *ST,
                     float *z) {
  for (int t = 0; t < L; t += MN_LANES) {
    mn_lanes old[4] = { { 0 } }, new = { 0 };
    for (int j = 0; j < Kp; j += 4)
#pragma GCC unroll 4
      for (int i = 0; i < 4; i++) old[i] += mn_load(qT + (j + i) * L + t) * s[j + i];
    for (int i = 0; i < L; i++) new += mn_load(ST + i * L + t);
    mn_store(z + t, (old[0] + old[1] + old[2] + old[3]) * mn_load(P + t) + new);
  }
}

/* out = x times D, both [s][t]; 0 where s > t, whatever x is there. */
static void weigh(const float *xT, const float *DT, float *out) {
  for (int i = 0; i < L * L; i += MN_LANES)
    mn_store(out + i, mn_load(xT + i) * mn_load(DT + i));
  for (int s = 1; s < L; s++) memset(out + s * L, 0, sizeof(float) * (size_t)s);
}

/* The state after the chunk; left and kept: room for [16,Vp] and [Vp]. */
static void write_state(const mn_attention *a, const decays *x, const float *v, const float *k,
                        float *left, float *kept, mn_chunk_state from, mn_chunk_state to) {
  int Kp = a->Kp, Vp = a->Vp;
  for (int i = 0; i < Vp; i++) kept[i] = x->P[L - 1];
  scale_rows(Vp, v, x->D[L - 1], left);
  mn_chunk_gemm(Vp, Kp, L, left, 1, Vp, k, Kp, from.C, kept, NULL, to.C, Kp);
  memcpy(to.s, from.s, sizeof(float) * (size_t)Kp);
  add_rows(Kp, k, x->D[L - 1], x->P[L - 1], to.s);
}

void mn_even_chunk(const mn_attention *a, const mn_tokens *at, mn_chunk_state from,
                   mn_chunk_state to, float *work) {
  long Kp = a->Kp, Vp = a->Vp, kn = L * Kp, vn = L * Vp;
  float *q = mn_cut(&work, kn), *k = mn_cut(&work, kn), *kd = mn_cut(&work, kn);
  float *qT = mn_cut(&work, kn), *v = mn_cut(&work, vn), *y = mn_cut(&work, vn);
  float *yT = mn_cut(&work, vn), *kept = mn_cut(&work, Vp);
  float *ST = mn_cut(&work, L * L), z[L];
  decays x;
  mn_load_keys(a, at, q, k, kd);
  load_values(a, at, v);
  load_decays(kd, Kp, &x);
  mn_chunk_transpose(L, (int)Kp, q, qT);
  scores((int)Kp, k, qT, ST);
  weigh(ST, x.DT, ST);
  mn_chunk_gemm((int)Vp, L, (int)Kp, from.C, Kp, 1, qT, L, 0, 0, 0, yT, L);
  mn_chunk_gemm((int)Vp, L, L, v, 1, Vp, ST, L, yT, NULL, x.P, yT, L);
  mn_chunk_transpose((int)Vp, L, yT, y);
  key_sums((int)Kp, qT, from.s, x.P, ST, z);
  mn_write_y(a, at->bh, at->t, at->n, y, z);

  write_state(a, &x, v, k, y, kept, from, to);
}

void mn_even_advance(const mn_attention *a, const mn_tokens *at, mn_chunk_state from,
                     mn_chunk_state to, float *work) {
  long Kp = a->Kp, Vp = a->Vp, kn = L * Kp, vn = L * Vp;
  float *q = mn_cut(&work, kn), *k = mn_cut(&work, kn), *kd = mn_cut(&work, kn);
  float *v = mn_cut(&work, vn), *left = mn_cut(&work, vn), *kept = mn_cut(&work, Vp);
  decays x;
  mn_load_keys(a, at, q, k, kd);
  load_values(a, at, v);
  load_decays(kd, Kp, &x);
  write_state(a, &x, v, k, left, kept, from, to);
}

/* x.y of n numbers, a multiple of 64. */
static float long_dot(long n, const float *x, const float *y) {
  mn_lanes sum[4] = { { 0 } };
  for (long i = 0; i < n; i += 4 * MN_LANES)
#pragma GCC unroll 4
    for (int j = 0; j < 4; j++)
      sum[j] += mn_load(x + i + j * MN_LANES) * mn_load(y + i + j * MN_LANES);
  return mn_sum((sum[0] + sum[1]) + (sum[2] + sum[3]));
}

/* Gradients of the decays: dST of the scores, [s][t]; w and u what flows into q and k through the old
** and the new state. */
static void find_decay_grads(const mn_attention *a, const decays *x, const float *rawT,
                             const float *dST, const float *q, const float *w, const float *k,
                             const float *u, mn_chunk_state from, mn_chunk_state grad, float dd[L]) {
  float dD[L][L], dP[L];
  for (int t = 0; t < L; t++) {
    for (int s = 0; s < L; s++) dD[t][s] = s <= t ? dST[s * L + t] * rawT[s * L + t] : 0;
    dP[t] = mn_dot(a->Kp, q + (long)t * a->Kp, w + (long)t * a->Kp);
  }
  for (int s = 0; s < L; s++)
    dD[L - 1][s] += mn_dot(a->Kp, k + (long)s * a->Kp, u + (long)s * a->Kp);
  dP[L - 1] += long_dot((long)a->Vp * a->Kp, from.C, grad.C) + mn_dot(a->Kp, from.s, grad.s);
  decays_back(x, dD, dP, dd);
}

void mn_even_chunk_back(const mn_attention *a, const mn_tokens *at, mn_chunk_state from,
                        mn_chunk_state grad, float *work) {
  long Kp = a->Kp, Vp = a->Vp, kn = L * Kp, vn = L * Vp;
  float *q = mn_cut(&work, kn), *k = mn_cut(&work, kn), *kd = mn_cut(&work, kn);
  float *xT = mn_cut(&work, kn), *w = mn_cut(&work, kn), *u = mn_cut(&work, kn);
  float *v = mn_cut(&work, vn), *g = mn_cut(&work, vn), *gT = mn_cut(&work, vn);
  float *dvT = mn_cut(&work, vn), *dv = mn_cut(&work, vn), *kept = mn_cut(&work, Vp);
  float *rawT = mn_cut(&work, L * L), *ST = mn_cut(&work, L * L), *S = mn_cut(&work, L * L);
  float *dST = mn_cut(&work, L * L);
  float z[L], dz[L], Pdz[L], dd[L] = { 0 };
  decays x;

  /* Forward once more, as far as it is needed. */
  mn_load_keys(a, at, q, k, kd);
  load_values(a, at, v);
  load_decays(kd, Kp, &x);
  mn_chunk_transpose(L, (int)Kp, q, xT);
  scores((int)Kp, k, xT, rawT);
  weigh(rawT, x.DT, ST);
  key_sums((int)Kp, xT, from.s, x.P, ST, z);
  mn_chunk_transpose(L, L, ST, S);
  mn_read_dy(a, at->bh, at->t, at->n, z, g, NULL);

  /* What flows through the scores and the old state (w); s.q is one more value channel, of value 1. */
  mn_chunk_transpose(L, (int)Vp, g, gT);
  mn_chunk_gemm(L, L, (int)Vp, v, Vp, 1, gT, L, 0, 0, 0, dST, L);
  mn_chunk_gemm(L, (int)Kp, (int)Vp, g, Vp, 1, from.C, Kp, 0, 0, 0, w, Kp);
  for (int i = 0; i < L; i++) {
    float along = x.P[i] * mn_dot((int)Kp, q + i * Kp, w + i * Kp);
    for (int s = 0; s <= i; s++) along += ST[s * L + i] * dST[s * L + i];
    dz[i] = mn_den_back(a, z[i], along);
  }
  for (int s = 0; s < L; s++)
    for (int i = 0; i < L; i++) dST[s * L + i] += dz[i];

  /* And through the new state (u, dvT). */
  mn_chunk_gemm(L, (int)Kp, (int)Vp, v, Vp, 1, grad.C, Kp, 0, 0, 0, u, Kp);
  for (int i = 0; i < L; i++)
    for (int j = 0; j < Kp; j += MN_LANES) {
      long ij = i * Kp + j;
      mn_store(w + ij, mn_load(w + ij) + mn_load(from.s + j) * dz[i]);
      mn_store(u + ij, mn_load(u + ij) + mn_load(grad.s + j));
    }
  if (a->scalar && a->c->in[IN_BETA].grad)
    find_decay_grads(a, &x, rawT, dST, q, w, k, u, from, grad, dd);
  mn_chunk_transpose(L, (int)Kp, k, xT);
  mn_chunk_gemm((int)Vp, L, (int)Kp, grad.C, Kp, 1, xT, L, 0, 0, 0, dvT, L);

  /* Among the tokens; dST becomes the gradient of the unweighed scores. */
  weigh(dST, x.DT, dST);
  mn_chunk_gemm(L, (int)Kp, L, dST, 1, L, k, Kp, w, x.P, NULL, w, Kp);
  mn_chunk_gemm(L, (int)Kp, L, dST, L, 1, q, Kp, u, x.D[L - 1], NULL, u, Kp);
  mn_chunk_gemm((int)Vp, L, L, g, 1, Vp, S, L, dvT, NULL, x.D[L - 1], dvT, L);
  mn_chunk_transpose((int)Vp, L, dvT, dv);
  memset(kd, 0, sizeof(float) * (size_t)Kp);
  for (int i = 0; i < at->n; i++) {
    long token = mn_token(a, at->t + i, at->bh);
    float keep = mn_keep(a, at->t + i, at->bh);
    kd[0] = dd[i];                     /* the decay of every channel is one number: its gradient once */
    mn_keys_back(a, token, keep, w + i * Kp, u + i * Kp, kd, xT);
    mn_values_back(a, token, keep, dv + i * Vp, NULL);
  }

  /* The state before the chunk. */
  for (int i = 0; i < Vp; i++) kept[i] = x.P[L - 1];
  for (int i = 0; i < L; i++) Pdz[i] = x.P[i] * dz[i];
  scale_rows((int)Vp, g, x.P, dv);
  mn_chunk_gemm((int)Vp, (int)Kp, L, dv, 1, Vp, q, Kp, grad.C, kept, NULL, grad.C, Kp);
  add_rows((int)Kp, q, Pdz, x.P[L - 1], grad.s);
}
