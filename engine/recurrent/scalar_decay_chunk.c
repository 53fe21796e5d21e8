/* scalar_decay_chunk.c -- sixteen tokens of linear attention whose decay is one number per token, or 1.
** The decay between two tokens is then one number too, and no running products of whole rows are
** needed.  With D[t][s] = d_{s+1} ... d_t and P_t = d_0 ... d_t, products of forward intervals,
**   y_t = P_t C q_t + sum over s <= t of D[t][s] b_s (k_s.q_t) v_s      C' = P_15 C + sum D[15][s] b_s v_s k_s^T
** is matrix products only; b is the scalar gate, or 1; d what it leaves, or keep_k, or 1.  If features are not outer products and need no padding,
** their gradients are written in place.  Arrays named ..T have one row of sixteen tokens per channel: a row is
** one vector, so nothing is summed across lanes. */
#include <string.h>
#include "chunk.h"
#include "scalar_decay_chunk.h"
#include "numerics/simd.h"

enum { L = MN_CHUNK };

typedef struct rows { const float *x; long ld; } rows;       /* row t is x + t*ld */

typedef struct chunk {
  bool plain;                    /* q and k are sixteen rows of the op's inputs: no outer products, no padding */
  bool whole;                    /* nothing decays, and b is 1: of D and DT only the last row of D is there */
  rows q, k, v;                  /* packed copies: rows pages apart would share too few sets of the first-level cache */
  float b[L], d[L], P[L], D[L][L], DT[L * L];
} chunk;

static void find_decays(const mn_attention *a, const mn_tokens *at, chunk *x) {
  const float *gate = a->scalar ? a->c->in[a->gate_k].data : NULL, *kept = a->c->in[IN_KEEP_K].data;
  for (int t = 0; t < L; t++) x->b[t] = x->d[t] = 1;
  for (int t = 0; t < at->n; t++) {
    long token = mn_token(a, at->t + t, at->bh);
    float keep = mn_keep(a, at->t + t, at->bh) * mn_shrink(a, token);
    if (gate) x->b[t] = gate[token];
    x->d[t] = a->kept_k == MN_KEPT_REST ? keep - keep * gate[token] : kept ? keep * kept[token] : keep;
  }
  float p = 1;
  for (int t = 0; t < L; t++) x->P[t] = p *= x->d[t], x->D[L - 1][t] = 1;
  x->whole = !gate && !kept && p == 1 && !a->c->in[IN_SHRINK].grad;           /* a product of numbers that are not above 1 */
  if (x->whole) return;
  mn_lanes row[L / MN_LANES] = { { 0 } };
#pragma GCC unroll 16
  for (int t = 0; t < L; t++) {
#pragma GCC unroll 4
    for (int j = 0; j < L / MN_LANES; j++) {
      row[j] *= x->d[t];
      if (j == t / MN_LANES) row[j][t % MN_LANES] = 1;
      mn_store(&x->D[t][j * MN_LANES], row[j]);
    }
  }
  mn_tile_transpose(L, L, &x->D[0][0], L, x->DT, L);
}

/* Gradients of d from those of D and P: row t of D is row t-1 times d_t, and so is P. */
static void decays_back(const chunk *x, const float *dD, const float dP[L], float dd[L]) {
  mn_lanes row[L / MN_LANES] = { { 0 } }, part[L];
  for (int t = L - 1; t >= 0; t--) {
    part[t] = (mn_lanes){ 0 };
#pragma GCC unroll 4
    for (int j = 0; j < L / MN_LANES; j++) {
      row[j] += mn_load(dD + t * L + j * MN_LANES);
      if (t) part[t] += row[j] * mn_load(&x->D[t - 1][j * MN_LANES]);
      row[j] *= x->d[t];
    }
  }
  for (int t = 0; t < L; t += MN_LANES) mn_store(dd + t, mn_sums(part + t));
  float p = 0;
  for (int t = L - 1; t >= 0; t--) {
    p += dP[t];
    dd[t] += t ? p * x->P[t - 1] : p;
    p *= x->d[t];
  }
}

/* A row of n numbers, and zeros up to `wide`, a multiple of the lanes. */
MN_INLINE void copy(int n, int wide, const float *from, float *to) {
  if (n == wide) for (int j = 0; j < n; j += MN_LANES) mn_store(to + j, mn_load(from + j));
  else           for (int j = 0; j < wide; j++) to[j] = j < n ? from[j] : 0;
}

typedef enum need { NO_QUERIES, QUERIES_ONCE, QUERIES } need;

/* The tokens' rows, those of q as they are needed (once: where they lie), and decays; rows n..15 leave any state as it is. */
static void load(const mn_attention *a, const mn_tokens *at, const need queries, chunk *x, float **work) {
  const mn_arg *in = a->c->in;
  long Kp = a->Kp, Vp = a->Vp;
  float *q = mn_alloc_from(work, L * Kp), *k = mn_alloc_from(work, L * Kp), *v = mn_alloc_from(work, L * Vp);
  x->q = (rows){ q, Kp }, x->k = (rows){ k, Kp }, x->v = (rows){ v, Vp };
  x->plain = at->n == L && !in[IN_P_Q].data && a->K == Kp;
  for (int t = 0; t < at->n; t++, q += Kp, k += Kp, v += Vp) {
    long token = mn_token(a, at->t + t, at->bh);
    if (!x->plain) mn_features(a, token, q, k);
    else copy(a->K, a->Kp, in[IN_K].data + token * a->K, k);
    if (x->plain && queries == QUERIES) copy(a->K, a->Kp, in[IN_Q].data + token * a->K, q);
    copy(a->V, a->Vp, in[IN_V].data + token * a->V, v);
  }
  for (int t = at->n; t < L; t++, q += Kp, k += Kp, v += Vp) copy(0, a->Kp, NULL, q), copy(0, a->Kp, NULL, k), copy(0, a->Vp, NULL, v);
  if (x->plain && queries == QUERIES_ONCE) x->q = (rows){ in[IN_Q].data + mn_token(a, at->t, at->bh) * Kp, (long)a->B * a->H * Kp };
  find_decays(a, at, x);
}

/* out_t = x_t times a number of its own; out is [16,n]. */
static void scale_rows(int n, rows x, const float *by, float *out) {
  for (int t = 0; t < L; t++)
    for (int j = 0; j < n; j += MN_LANES)
      mn_store(out + t * n + j, mn_load(x.x + t * x.ld + j) * by[t]);
}

/* to = kept from + sum over t of by[t] x_t. */
static void add_rows(int n, rows x, const float *by, float kept, const float *from, float *to) {
  for (int j = 0; j < n; j += MN_LANES) {
    mn_lanes sum = mn_load(from + j) * kept;
    for (int t = 0; t < L; t++) sum += mn_load(x.x + t * x.ld + j) * by[t];
    mn_store(to + j, sum);
  }
}

/* x, [s][t], times b_s. */
static void gate(const mn_attention *a, const chunk *x, float *ST) {
  if (a->scalar) scale_rows(L, (rows){ ST, L }, x->b, ST);
}

/* Scores b_s k_s.q_t as [s][t], from queries by channel. */
static void scores(const mn_attention *a, const chunk *x, const float *qT, float *ST) {
  mn_tile_gemm(L, L, a->Kp, x->k.x, x->k.ld, 1, qT, L, 0, 0, 0, ST, L);
  gate(a, x, ST);
}

/* z_t = P_t s.q_t + sum over s of S[t][s]; ST holds the scores times D, as [s][t].  sq: s.q_t. */
static void key_sums(int Kp, const float *qT, const float *s, const float *P, const float *ST,
                     float *sq, float *z) {
  for (int t = 0; t < L; t += MN_LANES) {
    mn_lanes old[4] = { { 0 } }, new = { 0 };
    for (int j = 0; j < Kp; j += 4)
#pragma GCC unroll 4
      for (int i = 0; i < 4; i++) old[i] += mn_load(qT + (j + i) * L + t) * s[j + i];
    for (int i = 0; i < L; i++) new += mn_load(ST + i * L + t);
    mn_store(sq + t, old[0] + old[1] + old[2] + old[3]);
    mn_store(z + t, mn_load(sq + t) * mn_load(P + t) + new);
  }
}

/* x, which belongs to row s and the tokens t, t+1, ...; 0 where those come before s, whatever x is there. */
MN_INLINE mn_lanes since(int s, int t, mn_lanes x) {
  typedef int32_t ints __attribute__((vector_size(sizeof(mn_lanes))));
  static const int32_t tokens[L] = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15 };
  ints at;
  memcpy(&at, tokens + t, sizeof at);
  return (mn_lanes)((ints)x & (at >= s));
}

/* out = scores times D, all [s][t]; 0 where s > t, whatever the score. */
static void weigh(const chunk *x, const float *ST, float *out) {
  for (int s = 0; s < L; s++)
    for (int t = 0; t < L; t += MN_LANES) {
      mn_lanes score = mn_load(ST + s * L + t);
      mn_store(out + s * L + t, since(s, t, x->whole ? score : score * mn_load(x->DT + s * L + t)));
    }
}

/* to = P_15 from + the sum over t of by[t] v_t k_t^T, and without v of by_s[t] k_t; left and kept: room for [16,Vp] and [Vp]. */
static void add_outer(const mn_attention *a, const chunk *x, rows v, rows k, const float *by, const float *by_s, float *left,
                      float *kept, mn_chunk_state from, mn_chunk_state to) {
  for (int i = 0; i < a->Vp; i++) kept[i] = x->P[L - 1];
  if (!x->whole) scale_rows(a->Vp, v, by, left), v = (rows){ left, a->Vp };
  mn_tile_gemm(a->Vp, a->Kp, L, v.x, 1, v.ld, k.x, k.ld, from.C, x->whole ? NULL : kept, NULL, to.C, a->Kp);
  add_rows(a->Kp, k, by_s, x->P[L - 1], from.s, to.s);
}

/* The state after the chunk. */
static void write_state(const mn_attention *a, const chunk *x, float *left, float *kept,
                        mn_chunk_state from, mn_chunk_state to) {
  float by[L];
  for (int s = 0; s < L; s++) by[s] = x->D[L - 1][s] * x->b[s];
  add_outer(a, x, x->v, x->k, by, by, left, kept, from, to);
}

void mn_scalar_decay_chunk(const mn_attention *a, const mn_tokens *at, mn_chunk_state from,
                   mn_chunk_state to, float *work) {
  int Kp = a->Kp, Vp = a->Vp;
  float *qT = mn_alloc_from(&work, L * Kp), *y = mn_alloc_from(&work, L * Vp), *yT = mn_alloc_from(&work, L * Vp);
  float *kept = mn_alloc_from(&work, Vp), *ST = mn_alloc_from(&work, L * L), sq[L], z[L];
  chunk x;
  load(a, at, QUERIES_ONCE, &x, &work);
  mn_prefetch_token(a, at, 0);
  mn_tile_transpose(L, Kp, x.q.x, x.q.ld, qT, L);
  mn_prefetch_token(a, at, 1);
  scores(a, &x, qT, ST);
  weigh(&x, ST, ST);
  mn_prefetch_token(a, at, 2);
  mn_tile_gemm(Vp, L, Kp, from.C, Kp, 1, qT, L, 0, 0, 0, yT, L);
  mn_prefetch_token(a, at, 3);
  mn_tile_transpose(Vp, L, yT, L, y, Vp);
  mn_prefetch_token(a, at, 4);
  mn_tile_until(Vp, ST, x.v.x, x.v.ld, x.P, y, Vp, y, Vp);
  mn_prefetch_token(a, at, 5);
  key_sums(Kp, qT, from.s, x.P, ST, sq, z);
  mn_prefetch_token(a, at, 6);
  mn_write_y(a, at->bh, at->t, at->n, y, z);
  mn_prefetch_token(a, at, 7);

  write_state(a, &x, y, kept, from, to);
}

void mn_scalar_decay_advance(const mn_attention *a, const mn_tokens *at, mn_chunk_state from,
                     mn_chunk_state to, float *work) {
  float *left = mn_alloc_from(&work, L * a->Vp), *kept = mn_alloc_from(&work, a->Vp);
  chunk x;
  load(a, at, NO_QUERIES, &x, &work);
  write_state(a, &x, left, kept, from, to);
}

/* Gradients of the decays: dST of the scores, [s][t]; of P what flows into q through the old state, along q (used up);
** u: what flows into b k through the new state. */
static void find_decay_grads(const mn_attention *a, const chunk *x, const float *rawT, const float *dST,
                             float dP[L], const float *u, mn_chunk_state from, mn_chunk_state grad, float dd[L]) {
  float dDT[L * L], dD[L * L], ku[L];
  for (int i = 0; i < L * L; i += MN_LANES) mn_store(dDT + i, since(i / L, i % L, mn_load(dST + i) * mn_load(rawT + i)));
  mn_tile_transpose(L, L, dDT, L, dD, L);
  mn_chunk_row_dots(a->Kp, x->k.x, x->k.ld, u, a->Kp, NULL, NULL, ku);
  for (int s = 0; s < L; s++) dD[(L - 1) * L + s] += x->b[s] * ku[s];
  dP[L - 1] += mn_long_dot((long)a->Vp * a->Kp, from.C, grad.C) + mn_dot(a->Kp, from.s, grad.s);
  decays_back(x, dD, dP, dd);
}

/* Where the last step of a gradient [16,n] of input i puts it: where it belongs if that takes whole rows as they are, or in x.
** Those rows lie pages apart and share places of the first-level cache: what is read again is not made there. */
typedef struct grad_rows { float *x; long ld; } grad_rows;

static grad_rows grad_of(const mn_attention *a, const mn_tokens *at, const bool whole, int i, int n, float *x) {
  float *grad = a->c->in[i].grad;
  if (!whole || !grad) return (grad_rows){ x, n };
  return (grad_rows){ grad + mn_token(a, at->t, at->bh) * n, (long)a->B * a->H * n };
}

/* x_t += sum * by[t]. */
static void add_to_rows(int n, const float *sum, const float *by, float *x) {
  for (int t = 0; t < L; t++, x += n)
    for (int j = 0; j < n; j += MN_LANES) mn_store(x + j, mn_load(x + j) + mn_load(sum + j) * by[t]);
}

/* From u, the gradient of b_t k_t, and dd, that of the decays: the gradients of k, of b and of keep_k. */
static void gate_back(const mn_attention *a, const mn_tokens *at, const chunk *x, const float *u, const float *dd, grad_rows dk) {
  float *dgate = a->scalar ? a->c->in[a->gate_k].grad : NULL, *dkept = a->c->in[IN_KEEP_K].grad, along[L];
  float *dshrink = a->c->in[IN_SHRINK].grad;
  if (dgate) mn_chunk_row_dots(a->Kp, x->k.x, x->k.ld, u, a->Kp, NULL, NULL, along);
  for (int t = 0; t < at->n; t++) {
    long token = mn_token(a, at->t + t, at->bh);
    float keep = mn_keep(a, at->t + t, at->bh);
    if (dshrink) dshrink[token] = keep * dd[t] * (a->kept_k == MN_KEPT_REST ? 1 - x->b[t] : a->kept_k == MN_KEPT_HEAD ? a->c->in[IN_KEEP_K].data[token] : 1);
    keep *= mn_shrink(a, token);
    if (dgate) dgate[token] = a->kept_k == MN_KEPT_REST ? along[t] - keep * dd[t] : along[t];
    if (dkept) dkept[token] = keep * dd[t];
  }
  for (int t = 0; a->scalar && t < L; t++)
    for (int j = 0; j < a->Kp; j += MN_LANES) mn_store(dk.x + t * dk.ld + j, mn_load(u + t * a->Kp + j) * x->b[t]);
}

/* Is the gradient of a decay wanted? */
static bool wants_decays(const mn_attention *a) {
  return a->c->in[IN_KEEP_K].grad || a->c->in[IN_SHRINK].grad || (a->scalar && a->kept_k == MN_KEPT_REST && a->c->in[a->gate_k].grad);
}

void mn_scalar_decay_chunk_back(const mn_attention *a, const mn_tokens *at, mn_chunk_state from,
                        mn_chunk_state grad, float *work) {
  int Kp = a->Kp, Vp = a->Vp;
  float *xT = mn_alloc_from(&work, L * Kp), *g = mn_alloc_from(&work, L * Vp), *gT = mn_alloc_from(&work, L * Vp);
  float *dvT = mn_alloc_from(&work, L * Vp), *dv = mn_alloc_from(&work, L * Vp), *kept = mn_alloc_from(&work, Vp);
  float *rawT = mn_alloc_from(&work, L * L), *ST = mn_alloc_from(&work, L * L);
  float *dST = mn_alloc_from(&work, L * L), *w = mn_alloc_from(&work, L * Kp), *u = mn_alloc_from(&work, L * Kp);
  float sq[L], z[L], dz[L] = { 0 }, Pdz[L], along[L], dP[L], dd[L] = { 0 };
  chunk x;

  /* Forward once more, as far as it is needed. */
  load(a, at, QUERIES, &x, &work);
  const bool whole = at->n == L && a->V == Vp;
  grad_rows to_q = grad_of(a, at, x.plain, IN_Q, Kp, w), to_k = grad_of(a, at, x.plain, IN_K, Kp, u);
  grad_rows to_v = grad_of(a, at, whole, IN_V, Vp, dv);
  mn_tile_transpose(L, Kp, x.q.x, x.q.ld, xT, L);
  mn_prefetch_token(a, at, 0);
  scores(a, &x, xT, rawT);
  mn_prefetch_token(a, at, 1);
  weigh(&x, rawT, ST);
  key_sums(Kp, xT, from.s, x.P, ST, sq, z);
  mn_read_dy(a, at->bh, at->t, at->n, z, g, NULL);
  mn_prefetch_token(a, at, 2);

  /* What flows through the scores and the old state (w); s.q is one more value channel, of value 1. */
  mn_tile_transpose(L, Vp, g, Vp, gT, L);
  mn_tile_gemm(L, L, Vp, x.v.x, x.v.ld, 1, gT, L, 0, 0, 0, dST, L);
  mn_prefetch_token(a, at, 3);
  mn_tile_gemm(L, Kp, Vp, g, Vp, 1, from.C, Kp, 0, 0, 0, w, Kp);
  mn_prefetch_token(a, at, 4);
  mn_chunk_row_dots(Kp, x.q.x, x.q.ld, w, Kp, NULL, NULL, dP);
  if (a->normalise) {
    for (int t = 0; t < L; t += MN_LANES) {
      mn_lanes sum = mn_load(x.P + t) * mn_load(dP + t);
      for (int s = 0; s < L; s++) sum += since(s, t, mn_load(ST + s * L + t) * mn_load(dST + s * L + t));
      mn_store(along + t, sum);
    }
    for (int i = 0; i < L; i++) dz[i] = mn_den_back(a, z[i], along[i]), dP[i] += dz[i] * sq[i];
    for (int i = 0; i < L * L; i += MN_LANES) mn_store(dST + i, mn_load(dST + i) + mn_load(dz + i % L));
    add_to_rows(Kp, from.s, dz, w);
  }

  /* And through the new state (u, dvT). */
  mn_tile_gemm_to(L, Kp, Vp, x.v.x, x.v.ld, 1, grad.C, Kp, grad.s, 0, 0, 0, u, Kp);
  mn_prefetch_token(a, at, 5);
  if (wants_decays(a))
    find_decay_grads(a, &x, rawT, dST, dP, u, from, grad, dd);
  mn_tile_transpose(L, Kp, x.k.x, x.k.ld, xT, L);
  mn_prefetch_token(a, at, 6);
  mn_tile_gemm(Vp, L, Kp, grad.C, Kp, 1, xT, L, 0, 0, 0, dvT, L);
  mn_prefetch_token(a, at, 7);

  /* Among the tokens; dST becomes the gradient of the unweighed scores. */
  weigh(&x, dST, dST);
  grad_rows last_u = a->scalar ? (grad_rows){ u, Kp } : to_k;
  mn_tile_since(Kp, dST, x.q.x, x.q.ld, x.D[L - 1], u, Kp, last_u.x, last_u.ld);
  gate(a, &x, dST);
  mn_tile_until(Kp, dST, x.k.x, x.k.ld, x.P, w, Kp, to_q.x, to_q.ld);
  for (int s = 0; s < L; s++) kept[s] = x.D[L - 1][s] * x.b[s];
  mn_tile_transpose(Vp, L, dvT, L, dv, Vp);
  mn_tile_since(Vp, ST, g, Vp, kept, dv, Vp, to_v.x, to_v.ld);
  gate_back(a, at, &x, u, dd, to_k);
  for (int i = 0; i < at->n; i++) {
    long token = mn_token(a, at->t + i, at->bh);
    if (!x.plain) mn_features_back(a, token, w + i * Kp, u + i * Kp);
    if (!whole) mn_values_back(a, token, 0, dv + i * Vp, NULL);
  }

  /* The state before the chunk. */
  for (int i = 0; i < L; i++) Pdz[i] = x.P[i] * dz[i];
  add_outer(a, &x, (rows){ g, Vp }, x.q, x.P, Pdz, dv, kept, grad, grad);
}
