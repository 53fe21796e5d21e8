/* delta_chunk.c -- sixteen tokens of a delta rule at once.  With D_ts the decay from after s to t (0 across
** a reset), P_t the decay of the state S before the chunk, G the products of keys and queries:
**   F_ts = e_t D_(t-1)s k_t.k_s (s < t)      R_ts = D_ts q_t.k_s (s <= t)
**   r_t = v_t - e_t P_(t-1) S k_t - sum_s F_ts u_s     u_t = write_t r_t
**   C_t q_t = P_t S q_t + sum_s R_ts u_s
** A token never reads what came before its episode: sums begin at `first`, and the old state is used
** only if `old`, so that dropped infinities and NaNs cannot return as 0 * NaN. */
#include <string.h>
#include "delta_chunk.h"
#include "matrix_state.h"
#include "numerics/simd.h"

enum { L = MN_CHUNK, LAST = L - 1 };

typedef struct tokens {          /* a chunk, worked out; row-major arrays, k above q in [32,...] */
  int   first[L], last[L];       /* of the episode's tokens in this chunk */
  bool  old[L], reset[L];        /* old: its episode began before the chunk */
  float write[L], keep[L], erase[L];   /* erase: e */
  float P[L], before[L];         /* before: e_t P_(t-1), or 0 */
  float z[L], old_z[L];          /* s.q, and of it the old sum's part before decay */
  float D[(L + 1) * L];          /* row t+1 holds D_t; row 0 zeros */
  float G[2 * L * L], F[L * L], R[L * L];
  float *kq, *M;                 /* [32,Kp]; [32,Vp] what they read of the old state */
  float *v, *r, *u, *num;        /* [16,Vp] */
  float *kept;                   /* P of the last token as often as there are rows */
} tokens;

static long widest(const mn_attention *a) {
  int n = a->Kp > a->Vp ? a->Kp : a->Vp;
  return n > 2 * L ? n : 2 * L;
}

long mn_delta_work(const mn_delta *d) {
  const mn_attention *a = &d->a;
  return L * (5L * a->Kp + 12L * a->Vp) + widest(a);
}

/* `from` and zeros up to `wide`; from NULL: zeros. */
static void copy_row(const float *from, int n, int wide, float *to) {
  for (int i = 0; i < wide; i += MN_LANES) mn_store(to + i, from ? mn_load_n(from + i, n - i) : (mn_lanes){ 0 });
}

/* Inputs of n tokens in padded rows; rows n..15 leave any state as it is. */
static void load(const mn_delta *d, int bh, int t, int n, tokens *x) {
  const mn_attention *a = &d->a;
  const mn_arg *in = a->c->in;
  for (int i = 0; i < L; i++) {
    const bool real = i < n, reads = real && mn_delta_last(d, t + i), fades = real && in[IN_KEEP].data && mn_delta_first(d, t + i);
    const long key = mn_delta_key(d, t + i, bh), at = mn_delta_step(d, t + i, bh);
    copy_row(real ? in[IN_K].data + key * a->K : NULL, a->K, a->Kp, x->kq + i * a->Kp);
    copy_row(reads ? in[IN_Q].data + at * a->K : NULL, a->K, a->Kp, x->kq + (L + i) * a->Kp);
    copy_row(real ? in[IN_V].data + key * a->V : NULL, a->V, a->Vp, x->v + i * a->Vp);
    x->write[i] = real ? in[IN_WRITE].data[key] : 0;
    x->keep[i] = fades ? in[IN_KEEP].data[at] : 1;
    x->erase[i] = d->after ? x->keep[i] : 1;
    x->reset[i] = real && mn_delta_reset(d, t + i, bh);
  }
}

/* Everything that is one number a token or a pair of tokens, from G. */
static void weigh(tokens *x) {
  bool old = true;
  float P = 1;
  memset(x->D, 0, sizeof(float) * L);
  for (int t = 0, first = 0; t < L; t++) {
    if (x->reset[t]) first = t, old = false;
    float *D = x->D + (t + 1) * L, *was = D - L, e = x->reset[t] ? 0 : x->erase[t];
    float keep = x->reset[t] ? 0 : x->keep[t];
    MN_PRAGMA(omp simd)
    for (int s = 0; s < L; s++) {
      x->F[t * L + s] = e * was[s] * x->G[t * L + s];
      D[s] = s == t ? 1 : keep * was[s];
      x->R[t * L + s] = D[s] * x->G[(L + t) * L + s];
    }
    x->before[t] = old ? e * P : 0;
    if (old) P *= keep;
    x->P[t] = old ? P : 0;
    x->old[t] = old;
    x->first[t] = first;
  }
  for (int t = LAST, last = LAST; t >= 0; t--) {
    x->last[t] = last;
    if (x->reset[t]) last = t - 1;
  }
}

/* N vectors of columns through the triangular system, and what is read back. */
MN_INLINE void substitute(const int N, const tokens *x, long Vp, int j) {
  for (int t = 0; t < L; t++) {
    long at = t * Vp + j;
    mn_lanes r[4], y[4];
#pragma GCC unroll 4
    for (int i = 0; i < N; i++) {
      long m = at + i * MN_LANES;
      r[i] = mn_load(x->v + m);
      y[i] = (mn_lanes){ 0 };
      if (!x->old[t]) continue;
      r[i] -= mn_load(x->M + m) * x->before[t];
      y[i] = mn_load(x->M + L * Vp + m) * x->P[t];
    }
    for (int s = x->first[t]; s < t; s++) {
      float f = x->F[t * L + s], g = x->R[t * L + s];
#pragma GCC unroll 4
      for (int i = 0; i < N; i++) {
        mn_lanes u = mn_load(x->u + s * Vp + j + i * MN_LANES);
        r[i] -= u * f;
        y[i] += u * g;
      }
    }
#pragma GCC unroll 4
    for (int i = 0; i < N; i++) {
      long m = at + i * MN_LANES;
      mn_lanes u = r[i] * x->write[t];
      mn_store(x->r + m, r[i]);
      mn_store(x->u + m, u);
      mn_store(x->num + m, y[i] + u * x->R[t * L + t]);
    }
  }
}

/* Forward as far as y, from the state before the chunk. */
static void solve(const mn_delta *d, int bh, int t, int n, mn_delta_state from, tokens *x, mn_prefetch *q,
                  float **work) {
  const mn_attention *a = &d->a;
  int Kp = a->Kp, Vp = a->Vp;
  x->kq = mn_alloc_from(work, 2L * L * Kp);
  x->M = mn_alloc_from(work, 2L * L * Vp);
  x->v = mn_alloc_from(work, (long)L * Vp), x->r = mn_alloc_from(work, (long)L * Vp);
  x->u = mn_alloc_from(work, (long)L * Vp), x->num = mn_alloc_from(work, (long)L * Vp);
  x->kept = mn_alloc_from(work, widest(a));
  load(d, bh, t, n, x);
  mn_prefetch_some(q);
  mn_prefetch_dots(q, 2 * L, L, Kp, x->kq, x->kq, x->G);
  mn_prefetch_gemm(q, 2 * L, Vp, Kp, x->kq, Kp, 1, from.C, NULL, NULL, x->M);
  weigh(x);
  mn_prefetch_some(q);
  int j = 0;
  for (; j + 4 * MN_LANES <= Vp; j += 4 * MN_LANES) substitute(4, x, Vp, j);
  for (; j < Vp; j += MN_LANES) substitute(1, x, Vp, j);
  mn_prefetch_some(q);
  for (int i = 0; i < widest(a); i++) x->kept[i] = x->P[LAST];
  for (int i = 0; i < L; i++) {
    x->z[i] = x->old_z[i] = 0;
    if (!a->normalise) continue;
    for (int s = x->first[i]; s <= i; s++) x->z[i] += x->R[i * L + s] * x->write[s];
    if (!x->old[i]) continue;
    x->old_z[i] = mn_dot(Kp, x->kq + (long)(L + i) * Kp, from.s);
    x->z[i] += x->P[i] * x->old_z[i];
  }
}

/* y of the steps that end among n tokens. */
static void write_y(const mn_delta *d, int bh, int t, int n, const tokens *x) {
  for (int i = 0; i < n; i++)
    if (mn_delta_last(d, t + i)) mn_divide(&d->a, mn_delta_step(d, t + i, bh), x->num + (long)i * d->a.Vp, x->z[i]);
}

/* Gradients of num [16,Vp] and z [16] from that of y; zeros where nothing is read. */
static void read_dy(const mn_delta *d, int bh, int t, int n, const float *z, float *dnum, float *dz) {
  for (int i = 0; i < L; i++) {
    const long at = mn_delta_step(d, t + i, bh);
    const bool reads = i < n && mn_delta_last(d, t + i);
    if (reads) mn_dnum(&d->a, at, z[i], dnum + (long)i * d->a.Vp);
    else       memset(dnum + (long)i * d->a.Vp, 0, sizeof(float) * (size_t)d->a.Vp);
    dz[i] = reads ? mn_dz(&d->a, at, z[i]) : 0;
  }
}

/* How much of each token's u is left at the end of the chunk. */
static const float *left(const tokens *x) { return x->D + L * L; }

/* to[t] = weight_t x_t, and zeros before token `first`. */
static void weighted_rows(int n, int first, const float *weight, const float *x, float *to) {
  memset(to, 0, sizeof(float) * (size_t)first * (size_t)n);
  for (int t = first; t < L; t++)
    for (long i = (long)t * n; i < (long)(t + 1) * n; i += MN_LANES)
      mn_store(to + i, mn_load(x + i) * weight[t]);
}

void mn_delta_chunk(const mn_delta *d, int bh, int t, int n, mn_delta_state from, mn_delta_state to,
                    mn_prefetch *q, float *work) {
  const mn_attention *a = &d->a;
  int Kp = a->Kp, Vp = a->Vp;
  tokens x;
  solve(d, bh, t, n, from, &x, q, &work);
  write_y(d, bh, t, n, &x);
  weighted_rows(Vp, x.first[LAST], left(&x), x.u, x.M);
  memset(x.kq, 0, sizeof(float) * (size_t)(x.first[LAST] * Kp));       /* keys that were dropped */
  mn_prefetch_gemm(q, Kp, Vp, L, x.kq, 1, Kp, x.M, x.old[LAST] ? from.C : NULL, x.kept, to.C);
  mn_prefetch_rest(q);
  for (int j = 0; j < Kp; j += MN_LANES) {
    mn_lanes sum = { 0 };
    if (x.old[LAST]) sum = mn_load(from.s + j) * x.P[LAST];
    for (int i = x.first[LAST]; i < L; i++) sum += mn_load(x.kq + (long)i * Kp + j) * (left(&x)[i] * x.write[i]);
    mn_store(to.s + j, sum);
  }
}

/* ---- backward ---- */

typedef struct grads {
  float *dr, *g;                 /* [16,Vp] each, one above the other: of r, and of C q */
  float *du;                     /* [16,Vp] */
  float *N;                      /* [16,Vp]: what the keys read of the gradient of the state after */
  float dz[L], dwrite[L], dkeep[L];
  float before[L], P[L], left[L];     /* of `before` and P where they were used, and of left() */
  float kept;                    /* of P at the end, through the state after */
  float pairs[2 * L * L];        /* first dr.u, g.u; then the gradient of G */
} grads;

/* The transposed system, from the last token to the first. */
MN_INLINE void substitute_back(const int N, const tokens *x, const grads *d, long Vp, int j) {
  for (int t = LAST; t >= 0; t--) {
    long at = t * Vp + j;
    mn_lanes du[4];
#pragma GCC unroll 4
    for (int i = 0; i < N; i++) {
      long m = at + i * MN_LANES;
      mn_lanes g = mn_load(d->g + m), later = mn_load(d->N + m);
      du[i] = i < 2 || t < x->first[LAST] ? g * x->R[t * L + t] : later * left(x)[t];
      MN_HOLD(du[i]);                                    /* rounded; the other product is fused with the sum: as GCC once chose, */
      MN_HOLD(g);                                        /* fixed so that gradients keep their bits */
      if (t >= x->first[LAST]) du[i] += i < 2 ? later * left(x)[t] : g * x->R[t * L + t];
    }
    for (int s = t + 1; s <= x->last[t]; s++) {
      float f = x->F[s * L + t], g = x->R[s * L + t];
#pragma GCC unroll 4
      for (int i = 0; i < N; i++) {
        long m = s * Vp + j + i * MN_LANES;
        du[i] += mn_load(d->g + m) * g - mn_load(d->dr + m) * f;
      }
    }
#pragma GCC unroll 4
    for (int i = 0; i < N; i++) {
      mn_store(d->du + at + i * MN_LANES, du[i]);
      mn_store(d->dr + at + i * MN_LANES, du[i] * x->write[t]);
    }
  }
}

/* What each token's numbers receive directly; D and P come later. */
static void direct(const mn_attention *a, const tokens *x, mn_delta_state from, mn_delta_state grad,
                   grads *d) {
  long Vp = a->Vp, Kp = a->Kp;
  d->kept = 0;
  if (x->old[LAST]) d->kept = mn_long_dot(Kp * Vp, from.C, grad.C) + mn_dot(Kp, from.s, grad.s);
  for (int t = 0; t < L; t++) {
    long at = t * Vp;
    d->dwrite[t] = mn_dot(Vp, d->du + at, x->r + at);
    d->before[t] = d->P[t] = d->left[t] = 0;
    if (x->old[t]) {
      d->before[t] = -mn_dot(Vp, d->dr + at, x->M + at);
      d->P[t] = mn_dot(Vp, d->g + at, x->M + L * Vp + at) + d->dz[t] * x->old_z[t];
    }
    if (t < x->first[LAST]) continue;
    float sum = mn_dot(Kp, x->kq + t * Kp, grad.s);
    d->left[t] = mn_dot(Vp, x->u + at, d->N + at) + x->write[t] * sum;
    d->dwrite[t] += left(x)[t] * sum;
  }
}

/* Back through the decays, a running gradient `to` of the row D_t and `to_P` of P_t at a time; turns
** pairs into the gradient of G, and finishes dwrite and dkeep. */
static void weigh_back(bool after, const tokens *x, grads *d) {
  float to[L], to_P = d->kept;
  for (int s = 0; s < L; s++) to[s] = d->left[s];
  for (int t = LAST; t >= 0; t--) {
    const float *D = x->D + (t + 1) * L, *was = D - L;
    float *to_F = d->pairs + t * L, *to_R = to_F + L * L, through[L];
    int first = x->first[t];
    MN_PRAGMA(omp simd)
    for (int s = 0; s < L; s++) {
      bool uses = s >= first && s <= t, earlier = s >= first && s < t;
      float g = uses ? to_R[s] + d->dz[t] * x->write[s] : 0, f = earlier ? -to_F[s] : 0;
      d->dwrite[s] += uses ? d->dz[t] * x->R[t * L + s] : 0;
      to[s] = earlier ? to[s] + g * x->G[(L + t) * L + s] : 0;
      through[s] = f * x->G[t * L + s];
      to_R[s] = g * D[s];
      to_F[s] = f * x->erase[t] * was[s];
    }
    float erase = mn_dot(L, through, was), keep = mn_dot(L, to, was);
    for (int s = 0; s < L; s++) to[s] = to[s] * x->keep[t] + through[s] * x->erase[t];
    float P = t ? x->P[t - 1] : 1;
    if (x->old[t]) {
      to_P += d->P[t];
      erase += d->before[t] * P;
      keep += to_P * P;
      to_P = to_P * x->keep[t] + d->before[t] * x->erase[t];
    }
    d->dkeep[t] = keep + (after ? erase : 0);
  }
}

/* Gradients of keys and queries, [32,Kp], from everything they took part in.  dM, [32,Vp]: gradient
** of what they read of the old state. */
static void keys_back(const mn_attention *a, const tokens *x, const grads *d, const float *dM,
                      mn_delta_state from, mn_delta_state grad, float *rows, float *spare, float *dkq, mn_prefetch *q) {
  int Kp = a->Kp, Vp = a->Vp;
  mn_prefetch_dots(q, 2 * L, Kp, Vp, dM, from.C, dkq);
  weighted_rows(Vp, x->first[LAST], left(x), x->u, rows);
  mn_prefetch_dots(q, L, Kp, Vp, rows, grad.C, spare);
  for (int t = 0; t < L; t++) {
    float *dk = dkq + (long)t * Kp, *dq = dkq + (long)(L + t) * Kp, *end = spare + (long)t * Kp;
    bool stays = t >= x->first[LAST];
    float of_sum = left(x)[t] * x->write[t], of_old = x->P[t] * d->dz[t];
    for (int j = 0; j < Kp; j += MN_LANES) {
      mn_lanes to_k = { 0 }, to_q = { 0 };
      if (x->old[t]) to_k = mn_load(dk + j), to_q = mn_load(dq + j) + mn_load(from.s + j) * of_old;
      if (stays) to_k += mn_load(end + j) + mn_load(grad.s + j) * of_sum;
      mn_store(dk + j, to_k);
      mn_store(dq + j, to_q);
    }
  }
  mn_prefetch_gemm(q, 2 * L, Kp, L, d->pairs, L, 1, x->kq, dkq, NULL, dkq);
  mn_prefetch_gemm(q, L, Kp, 2 * L, d->pairs, 1, L, x->kq, dkq, NULL, dkq);
}

static void store_row(float *grad, long at, int n, const float *row) {
  if (grad) memcpy(grad + at * n, row, sizeof(float) * (size_t)n);
}

static void store(const mn_delta *rule, int bh, int t, int n, const grads *d, const float *dkq) {
  const mn_attention *a = &rule->a;
  const mn_arg *in = a->c->in;
  for (int i = 0; i < n; i++) {
    const long key = mn_delta_key(rule, t + i, bh), at = mn_delta_step(rule, t + i, bh);
    store_row(in[IN_K].grad, key, a->K, dkq + (long)i * a->Kp);
    if (mn_delta_last(rule, t + i)) store_row(in[IN_Q].grad, at, a->K, dkq + (long)(L + i) * a->Kp);
    store_row(in[IN_V].grad, key, a->V, d->dr + (long)i * a->Vp);
    if (in[IN_WRITE].grad) in[IN_WRITE].grad[key] = d->dwrite[i];
    if (in[IN_KEEP].grad && mn_delta_first(rule, t + i)) in[IN_KEEP].grad[at] = d->dkeep[i];
  }
}

void mn_delta_chunk_back(const mn_delta *rule, int bh, int t, int n, mn_delta_state from,
                         mn_delta_state grad, mn_prefetch *q, float *work) {
  const mn_attention *a = &rule->a;
  int Kp = a->Kp, Vp = a->Vp;
  long vn = (long)L * Vp;
  tokens x;
  grads d;
  solve(rule, bh, t, n, from, &x, q, &work);
  d.dr = mn_alloc_from(&work, vn), d.g = mn_alloc_from(&work, vn);
  d.du = mn_alloc_from(&work, vn), d.N = mn_alloc_from(&work, vn);
  float *dM = mn_alloc_from(&work, 2 * vn), *dkq = mn_alloc_from(&work, 2L * L * Kp), *spare = mn_alloc_from(&work, (long)L * Kp);
  read_dy(rule, bh, t, n, x.z, d.g, d.dz);
  mn_prefetch_gemm(q, L, Vp, Kp, x.kq, Kp, 1, grad.C, NULL, NULL, d.N);
  int j = 0;
  for (; j + 4 * MN_LANES <= Vp; j += 4 * MN_LANES) substitute_back(4, &x, &d, Vp, j);
  for (; j < Vp; j += MN_LANES) substitute_back(1, &x, &d, Vp, j);
  mn_prefetch_some(q);
  mn_prefetch_dots(q, 2 * L, L, Vp, d.dr, x.u, d.pairs);
  direct(a, &x, from, grad, &d);
  mn_prefetch_some(q);
  weigh_back(rule->after, &x, &d);
  mn_prefetch_some(q);

  for (int i = 0; i < L; i++) {
    float old = x.old[i] ? 1 : 0;
    long at = (long)i * Vp;
    for (int m = 0; m < Vp; m += MN_LANES) {
      mn_store(dM + at + m, mn_load(d.dr + at + m) * -x.before[i] * old);
      mn_store(dM + vn + at + m, mn_load(d.g + at + m) * x.P[i] * old);
    }
  }
  keys_back(a, &x, &d, dM, from, grad, d.du, spare, dkq, q);
  store(rule, bh, t, n, &d, dkq);

  mn_prefetch_gemm(q, Kp, Vp, 2 * L, x.kq, 1, Kp, dM, x.old[LAST] ? grad.C : NULL, x.kept, grad.C);
  mn_prefetch_rest(q);
  for (int m = 0; m < Kp; m += MN_LANES) {
    mn_lanes sum = { 0 };
    if (x.old[LAST]) sum = mn_load(grad.s + m) * x.P[LAST];
    for (int i = 0; i < L && x.old[i]; i++) sum += mn_load(x.kq + (long)(L + i) * Kp + m) * (x.P[i] * d.dz[i]);
    mn_store(grad.s + m, sum);
  }
}
