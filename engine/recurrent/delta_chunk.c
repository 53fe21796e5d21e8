/* delta_chunk.c -- sixteen tokens of a delta rule at once.  With D_ts the decay from after s to t (0 across
** a reset), P_t the decay of the state S before the chunk, G the products of keys and queries:
**   F_ts = e_t D_(t-1)s k_t.k_s (s < t)      R_ts = D_ts q_t.k_s (s <= t)
**   r_t = v_t - e_t P_(t-1) S k_t - sum_s F_ts u_s     u_t = write_t r_t
**   C_t q_t = P_t S q_t + sum_s R_ts u_s
** A token never reads what came before its episode: sums begin at `first`, and the old state is used
** only if `old`, so that dropped infinities and NaNs cannot return as 0 * NaN.  Where a step has several keys the
** last of them alone reads: queries are rows of their own, half as many as tokens or fewer. */
#include <string.h>
#include "delta_chunk.h"
#include "matrix_state.h"
#include "numerics/simd.h"

enum { L = MN_CHUNK, LAST = L - 1 };

typedef struct tokens {          /* a chunk, worked out; row-major arrays, k above q in [16+rows,...] */
  int   rows;                    /* of queries, those of no token zeros: 16, or 8 where a step has several keys */
  int   query[L], reader[L];     /* the row of a token's query, or -1; the token of a row */
  int   first[L], last[L];       /* of the episode's tokens in this chunk */
  bool  old[L], reset[L];        /* old: its episode began before the chunk */
  float write[L], keep[L], erase[L];   /* erase: e */
  float P[L], before[L];         /* before: e_t P_(t-1), or 0 */
  float z[L], old_z[L];          /* s.q, and of it the old sum's part before decay */
  float D[(L + 1) * L];          /* row t+1 holds D_t; row 0 zeros */
  float G[2 * L * L], F[L * L], R[L * L];   /* R: [rows,16] */
  float *kq, *M;                 /* [16+rows,Kp]; [16+rows,Vp] what they read of the old state */
  float *v, *r, *u, *num;        /* [16,Vp]; num: [rows,Vp] */
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
  int rows = 0;
  for (int i = 0; i < L; i++) {
    const bool real = i < n, reads = real && mn_delta_last(d, t + i), fades = real && in[IN_KEEP].data && mn_delta_first(d, t + i);
    const long key = mn_delta_key(d, t + i, bh), at = mn_delta_step(d, t + i, bh);
    copy_row(real ? in[IN_K].data + key * a->K : NULL, a->K, a->Kp, x->kq + i * a->Kp);
    x->query[i] = reads ? rows : -1;
    if (reads) x->reader[rows] = i, copy_row(in[IN_Q].data + at * a->K, a->K, a->Kp, x->kq + (L + rows++) * a->Kp);
    copy_row(real ? in[IN_V].data + key * a->V : NULL, a->V, a->Vp, x->v + i * a->Vp);
    x->write[i] = real ? in[IN_WRITE].data[key] : 0;
    x->keep[i] = fades ? in[IN_KEEP].data[at] : 1;
    x->erase[i] = d->after ? x->keep[i] : 1;
    x->reset[i] = real && mn_delta_reset(d, t + i, bh);
  }
  x->rows = d->keys == 1 ? L : L / 2;
  for (; rows < x->rows; rows++) x->reader[rows] = LAST, copy_row(NULL, a->K, a->Kp, x->kq + (L + rows) * a->Kp);
}

/* Everything that is one number a token or a pair of tokens, from G. */
static void weigh(tokens *x) {
  bool old = true;
  float P = 1, none[L] = { 0 };
  memset(x->D, 0, sizeof(float) * L);
  for (int t = 0, first = 0; t < L; t++) {
    if (x->reset[t]) first = t, old = false;
    float *D = x->D + (t + 1) * L, *was = D - L, e = x->reset[t] ? 0 : x->erase[t];
    float keep = x->reset[t] ? 0 : x->keep[t], *R = x->query[t] < 0 ? none : x->R + x->query[t] * L;
    const float *G = x->query[t] < 0 ? none : x->G + (L + x->query[t]) * L;
    MN_PRAGMA(omp simd)
    for (int s = 0; s < L; s++) {
      x->F[t * L + s] = e * was[s] * x->G[t * L + s];
      D[s] = s == t ? 1 : keep * was[s];
      R[s] = D[s] * G[s];
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

/* r -= F u, y += R u of the tokens from `first` before t. */
MN_INLINE void subtract(const int N, const bool reads, const tokens *x, long Vp, int j, int t, const float *R, mn_lanes *r, mn_lanes *y) {
  for (int s = x->first[t]; s < t; s++) {
    const float f = x->F[t * L + s], g = reads ? R[s] : 0;
#pragma GCC unroll 4
    for (int i = 0; i < N; i++) {
      mn_lanes u = mn_load(x->u + s * Vp + j + i * MN_LANES);
      r[i] -= u * f;
      if (reads) y[i] += u * g;
    }
  }
}

/* N vectors of columns through the triangular system, and what is read back. */
MN_INLINE void substitute(const int N, const tokens *x, long Vp, int j) {
  for (int t = 0; t < L; t++) {
    const int q = x->query[t];
    const float *R = x->R + q * L;
    long at = t * Vp + j;
    mn_lanes r[4], y[4];
#pragma GCC unroll 4
    for (int i = 0; i < N; i++) {
      long m = i * MN_LANES;
      r[i] = mn_load(x->v + at + m);
      y[i] = (mn_lanes){ 0 };
      if (!x->old[t]) continue;
      r[i] -= mn_load(x->M + at + m) * x->before[t];
      if (q >= 0) y[i] = mn_load(x->M + (L + q) * Vp + j + m) * x->P[t];
    }
    if (q < 0) subtract(N, false, x, Vp, j, t, R, r, y);
    else       subtract(N, true, x, Vp, j, t, R, r, y);
#pragma GCC unroll 4
    for (int i = 0; i < N; i++) {
      long m = i * MN_LANES;
      mn_lanes u = r[i] * x->write[t];
      mn_store(x->r + at + m, r[i]);
      mn_store(x->u + at + m, u);
      if (q >= 0) mn_store(x->num + q * Vp + j + m, y[i] + u * R[t]);
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
  mn_prefetch_dots(q, L + x->rows, L, Kp, x->kq, x->kq, x->G);
  mn_prefetch_gemm(q, L + x->rows, Vp, Kp, x->kq, Kp, 1, from.C, NULL, NULL, x->M);
  weigh(x);
  mn_prefetch_some(q);
  int j = 0;
  for (; j + 4 * MN_LANES <= Vp; j += 4 * MN_LANES) substitute(4, x, Vp, j);
  for (; j < Vp; j += MN_LANES) substitute(1, x, Vp, j);
  mn_prefetch_some(q);
  for (int i = 0; i < widest(a); i++) x->kept[i] = x->P[LAST];
  for (int i = 0; i < L; i++) {
    x->z[i] = x->old_z[i] = 0;
    if (!a->normalise || x->query[i] < 0) continue;
    for (int s = x->first[i]; s <= i; s++) x->z[i] += x->R[x->query[i] * L + s] * x->write[s];
    if (!x->old[i]) continue;
    x->old_z[i] = mn_dot(Kp, x->kq + (long)(L + x->query[i]) * Kp, from.s);
    x->z[i] += x->P[i] * x->old_z[i];
  }
}

/* y of the steps that end among n tokens. */
static void write_y(const mn_delta *d, int bh, int t, int n, const tokens *x) {
  for (int i = 0; i < n; i++)
    if (x->query[i] >= 0) mn_divide(&d->a, mn_delta_step(d, t + i, bh), x->num + (long)x->query[i] * d->a.Vp, x->z[i]);
}

/* Gradients of num [rows,Vp] and z [16] from that of y; zeros where nothing is read. */
static void read_dy(const mn_delta *d, int bh, int t, const tokens *x, float *dnum, float *dz) {
  memset(dnum, 0, sizeof(float) * (size_t)(x->rows * d->a.Vp));
  for (int i = 0; i < L; i++) {
    const long at = mn_delta_step(d, t + i, bh);
    if (x->query[i] >= 0) mn_dnum(&d->a, at, x->z[i], dnum + (long)x->query[i] * d->a.Vp);
    dz[i] = x->query[i] >= 0 ? mn_dz(&d->a, at, x->z[i]) : 0;
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
  float *dr, *g;                 /* [16,Vp] and [rows,Vp], one above the other: of r, and of C q */
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
    const int q = x->query[t];
    const bool stays = t >= x->first[LAST];
    const float R = q < 0 ? 0 : x->R[q * L + t];
    long at = t * Vp + j;
    mn_lanes du[4];
#pragma GCC unroll 4
    for (int i = 0; i < N; i++) {
      mn_lanes g = q < 0 ? (mn_lanes){ 0 } : mn_load(d->g + q * Vp + j + i * MN_LANES), later = mn_load(d->N + at + i * MN_LANES);
      du[i] = i < 2 || !stays ? g * R : later * left(x)[t];
      MN_HOLD(du[i]);                                    /* rounded; the other product is fused with the sum: as GCC once chose, */
      MN_HOLD(g);                                        /* fixed so that gradients keep their bits */
      if (stays) du[i] += i < 2 ? later * left(x)[t] : g * R;
    }
    for (int s = t + 1; s <= x->last[t]; s++) {
      const int read = x->query[s];
      const float f = x->F[s * L + t], g = read < 0 ? 0 : x->R[read * L + t];
#pragma GCC unroll 4
      for (int i = 0; i < N; i++) {
        const long m = j + i * MN_LANES;
        const mn_lanes dr = mn_load(d->dr + s * Vp + m);
        if (read < 0) du[i] -= dr * f;
        else du[i] += mn_load(d->g + read * Vp + m) * g - dr * f;
      }
    }
#pragma GCC unroll 4
    for (int i = 0; i < N; i++) {
      mn_store(d->du + at + i * MN_LANES, du[i]);
      mn_store(d->dr + at + i * MN_LANES, du[i] * x->write[t]);
    }
  }
}

/* to[t] = x_t . y_t of `rows` rows of n numbers, four at a time; `each`: from one y to the next. */
static void row_dots(int rows, long n, const float *x, const float *y, long each, float *to) {
  for (int t = 0; t < rows; t += 4) {
    mn_lanes sum[4] = { { 0 } };
    for (long i = 0; i < n; i += MN_LANES)
#pragma GCC unroll 4
      for (int r = 0; r < 4; r++) sum[r] += mn_load(x + (t + r) * n + i) * mn_load(y + (t + r) * each + i);
    const mn_lanes all = mn_sums_of_4(sum);
    memcpy(to + t, &all, 4 * sizeof(float));
  }
}

/* What each token's numbers receive directly; D and P come later. */
static void direct(const mn_attention *a, const tokens *x, mn_delta_state from, mn_delta_state grad,
                   grads *d) {
  const long Vp = a->Vp, Kp = a->Kp;
  float sum[L], read[L];
  d->kept = 0;
  if (x->old[LAST]) d->kept = mn_long_dot(Kp * Vp, from.C, grad.C) + mn_dot(Kp, from.s, grad.s);
  row_dots(L, Vp, d->du, x->r, Vp, d->dwrite);
  row_dots(L, Vp, d->dr, x->M, Vp, d->before);
  row_dots(x->rows, Vp, d->g, x->M + L * Vp, Vp, read);
  row_dots(L, Vp, x->u, d->N, Vp, d->left);
  row_dots(L, Kp, x->kq, grad.s, 0, sum);
  for (int t = 0; t < L; t++) {
    const bool stays = t >= x->first[LAST];
    d->before[t] = x->old[t] ? -d->before[t] : 0;
    d->P[t] = x->old[t] && x->query[t] >= 0 ? read[x->query[t]] + d->dz[t] * x->old_z[t] : 0;
    d->left[t] = stays ? d->left[t] + x->write[t] * sum[t] : 0;
    if (stays) d->dwrite[t] += left(x)[t] * sum[t];
  }
}

/* Back through the decays, a running gradient `to` of the row D_t and `to_P` of P_t at a time; turns
** pairs into the gradient of G, and finishes dwrite and dkeep. */
static void weigh_back(bool after, const tokens *x, grads *d) {
  float to[L], to_P = d->kept, none[L] = { 0 };
  for (int s = 0; s < L; s++) to[s] = d->left[s];
  for (int t = LAST; t >= 0; t--) {
    const float *D = x->D + (t + 1) * L, *was = D - L;
    const int first = x->first[t], q = x->query[t];
    const float *R = q < 0 ? none : x->R + q * L, *G = q < 0 ? none : x->G + (L + q) * L;
    float *to_F = d->pairs + t * L, *to_R = q < 0 ? none : d->pairs + (L + q) * L, through[L];
    MN_PRAGMA(omp simd)
    for (int s = 0; s < L; s++) {
      bool uses = s >= first && s <= t, earlier = s >= first && s < t;
      float g = uses ? to_R[s] + d->dz[t] * x->write[s] : 0, f = earlier ? -to_F[s] : 0;
      d->dwrite[s] += uses ? d->dz[t] * R[s] : 0;
      to[s] = earlier ? to[s] + g * G[s] : 0;
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

/* Gradients of keys and queries, [16+rows,Kp], from everything they took part in.  dM, [16+rows,Vp]: gradient
** of what they read of the old state. */
static void keys_back(const mn_attention *a, const tokens *x, const grads *d, const float *dM,
                      mn_delta_state from, mn_delta_state grad, float *rows, float *spare, float *dkq, mn_prefetch *q) {
  int Kp = a->Kp, Vp = a->Vp;
  mn_prefetch_dots(q, L + x->rows, Kp, Vp, dM, from.C, dkq);
  weighted_rows(Vp, x->first[LAST], left(x), x->u, rows);
  mn_prefetch_dots(q, L, Kp, Vp, rows, grad.C, spare);
  for (int t = 0; t < L; t++) {
    float *dk = dkq + (long)t * Kp, *dq = x->query[t] < 0 ? NULL : dkq + (long)(L + x->query[t]) * Kp, *end = spare + (long)t * Kp;
    bool stays = t >= x->first[LAST];
    float of_sum = left(x)[t] * x->write[t], of_old = x->P[t] * d->dz[t];
    for (int j = 0; j < Kp; j += MN_LANES) {
      mn_lanes to_k = { 0 }, to_q = { 0 };
      if (x->old[t]) to_k = mn_load(dk + j);
      if (x->old[t] && dq) to_q = mn_load(dq + j) + mn_load(from.s + j) * of_old;
      if (stays) to_k += mn_load(end + j) + mn_load(grad.s + j) * of_sum;
      mn_store(dk + j, to_k);
      if (dq) mn_store(dq + j, to_q);
    }
  }
  mn_prefetch_gemm(q, L + x->rows, Kp, L, d->pairs, L, 1, x->kq, dkq, NULL, dkq);
  mn_prefetch_gemm(q, L, Kp, L + x->rows, d->pairs, 1, L, x->kq, dkq, NULL, dkq);
}

static void store_row(float *grad, long at, int n, const float *row) {
  if (grad) memcpy(grad + at * n, row, sizeof(float) * (size_t)n);
}

static void store(const mn_delta *rule, int bh, int t, int n, const tokens *x, const grads *d, const float *dkq) {
  const mn_attention *a = &rule->a;
  const mn_arg *in = a->c->in;
  for (int i = 0; i < n; i++) {
    const long key = mn_delta_key(rule, t + i, bh), at = mn_delta_step(rule, t + i, bh);
    store_row(in[IN_K].grad, key, a->K, dkq + (long)i * a->Kp);
    if (x->query[i] >= 0) store_row(in[IN_Q].grad, at, a->K, dkq + (long)(L + x->query[i]) * a->Kp);
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
  read_dy(rule, bh, t, &x, d.g, d.dz);
  mn_prefetch_gemm(q, L, Vp, Kp, x.kq, Kp, 1, grad.C, NULL, NULL, d.N);
  int j = 0;
  for (; j + 4 * MN_LANES <= Vp; j += 4 * MN_LANES) substitute_back(4, &x, &d, Vp, j);
  for (; j < Vp; j += MN_LANES) substitute_back(1, &x, &d, Vp, j);
  mn_prefetch_some(q);
  mn_prefetch_dots(q, L + x.rows, L, Vp, d.dr, x.u, d.pairs);
  direct(a, &x, from, grad, &d);
  mn_prefetch_some(q);
  weigh_back(rule->after, &x, &d);
  mn_prefetch_some(q);

  for (int i = 0; i < L + x.rows; i++) {
    const int of = i < L ? i : x.reader[i - L];
    const float old = x.old[of] ? 1 : 0, part = i < L ? -x.before[of] : x.P[of];
    for (long m = (long)i * Vp; m < (long)(i + 1) * Vp; m += MN_LANES) mn_store(dM + m, mn_load(d.dr + m) * part * old);
  }
  keys_back(a, &x, &d, dM, from, grad, d.du, spare, dkq, q);
  store(rule, bh, t, n, &x, &d, dkq);

  mn_prefetch_gemm(q, Kp, Vp, L + x.rows, x.kq, 1, Kp, dM, x.old[LAST] ? grad.C : NULL, x.kept, grad.C);
  mn_prefetch_rest(q);
  for (int m = 0; m < Kp; m += MN_LANES) {
    mn_lanes sum = { 0 };
    if (x.old[LAST]) sum = mn_load(grad.s + m) * x.P[LAST];
    for (int i = 0; i < x.rows && x.old[x.reader[i]]; i++) sum += mn_load(x.kq + (long)(L + i) * Kp + m) * (x.P[x.reader[i]] * d.dz[x.reader[i]]);
    mn_store(grad.s + m, sum);
  }
}
