/* wkv6.c -- RWKV-6's memory: a matrix of keys by values in which every key decays at its own, changing rate.
**   y_t = r_t^T (S_{t-1} + diag(first) k_t v_t^T)        S_t = diag(keep_t) S_{t-1} + k_t v_t^T
** Peng et al. 2024, eq. 18-19.  Sixteen steps are computed at a time: they read and write the old matrix by matrix
** products, and affect each other through running products of decays, without division, so that decays of
** exactly 0 and 1 are exact.  A step reads before its own decay, the state that the previous step left. */
#include <string.h>
#include "numerics/simd.h"
#include "recurrent/wkv.h"

enum { R_IN, K_IN, V_IN, KEEP_IN, FIRST, DONE, STATE };
enum { L = MN_CHUNK };

typedef struct tokens {          /* sixteen steps of one head, and what both passes make of them; w: keep */
  float *r, *k, *w, *v;          /* r has one more row, of zeros */
  float *P, *rp;                 /* P_t = w_0 ... w_t, and P_{t-1} r_t */
  float *run;                    /* k_s w_{s+1} ... w_15 */
  float *A;                      /* [16,16], and a row of zeros: what step t takes of v_s */
} tokens;

static const float *bonus(const mn_wkv *a, int bh) { return a->c->in[FIRST].data + bh % a->H * a->K; }

/* What each step takes of its own value, on the diagonal of A. */
static void own_keys(const mn_wkv *a, const float *first, tokens *x) {
  mn_lanes sum[L];
#pragma GCC unroll 16
  for (int i = 0; i < L; i++) sum[i] = (mn_lanes){ 0 };
  for (int j = 0; j < a->Kp; j += MN_LANES) {
    mn_lanes b = mn_load_n(first + j, a->K - j);
#pragma GCC unroll 16
    for (int i = 0; i < L; i++) sum[i] += mn_load(x->r + i * a->Kp + j) * mn_load(x->k + i * a->Kp + j) * b;
  }
  float own[L];
#pragma GCC unroll 4
  for (int i = 0; i < L; i += MN_LANES) mn_store(own + i, mn_sums(sum + i));
  for (int i = 0; i < L; i++) x->A[i * L + i] = own[i];
}

static tokens read_tokens(const mn_wkv *a, int bh, int t, int n, mn_prefetch *q, float **work) {
  long kn = (long)L * a->Kp;
  tokens x = { .r = mn_alloc_from(work, kn + a->Kp), .k = mn_alloc_from(work, kn), .w = mn_alloc_from(work, kn),
               .v = mn_alloc_from(work, (long)L * a->Vp), .P = mn_alloc_from(work, kn), .rp = mn_alloc_from(work, kn),
               .run = mn_alloc_from(work, kn), .A = mn_alloc_from(work, L * L + L) };
  mn_wkv_load(a, R_IN, bh, t, n, 0, x.r);
  mn_wkv_load(a, K_IN, bh, t, n, 0, x.k);
  mn_prefetch_some(q);
  mn_wkv_load(a, KEEP_IN, bh, t, n, 1, x.w);
  mn_wkv_load(a, V_IN, bh, t, n, 0, x.v);
  memset(x.r + kn, 0, sizeof(float) * (size_t)a->Kp);
  mn_prefetch_some(q);
  mn_wkv_prefix(a->Kp, x.w, x.r, NULL, x.P, x.rp, NULL);
  mn_prefetch_some(q);
  memset(x.A, 0, sizeof(float) * L);
  mn_chunk_scores(a->Kp, a->Kp, x.k, x.w, x.r + a->Kp, x.run, x.A + L);
  mn_prefetch_some(q);
  own_keys(a, bonus(a, bh), &x);
  mn_prefetch_some(q);
  return x;
}

static void piece(const mn_wkv *a, int bh, int t, int n, const float *S, float *to, float *work) {
  int Kp = a->Kp, Vp = a->Vp, rows = (n + 7) / 8 * 8;
  mn_prefetch q;
  mn_wkv_prefetch(a, bh, t, &q);
  tokens x = read_tokens(a, bh, t, n, &q, &work);
  float *y = mn_alloc_from(&work, (long)L * Vp);
  mn_prefetch_gemm(&q, rows, Vp, L, x.A, L, 1, x.v, NULL, NULL, y);
  mn_prefetch_gemm(&q, rows, Vp, Kp, x.rp, Kp, 1, S, y, NULL, y);
  mn_wkv_write_y(a, bh, t, n, y);
  mn_wkv_update(a, &q, L, x.P + (L - 1) * Kp, x.run, x.v, S, to);
  mn_prefetch_rest(&q);
}

/* N vectors of columns of S through one step. */
MN_INLINE void step_columns(const int N, const mn_wkv *a, const float *r, const float *k, const float *w, const float *v,
                            float own, int left, float *S, float *y) {
  mn_lanes sum[4], vs[4];
#pragma GCC unroll 4
  for (int j = 0; j < N; j++) {
    vs[j] = mn_load_n(v + j * MN_LANES, left - j * MN_LANES);
    sum[j] = vs[j] * own;
  }
  for (int i = 0; i < a->K; i++, S += a->V) {
#pragma GCC unroll 4
    for (int j = 0; j < N; j++) {
      mn_lanes s = mn_load_n(S + j * MN_LANES, left - j * MN_LANES);
      sum[j] += s * r[i];
      mn_store_n(S + j * MN_LANES, s * w[i] + vs[j] * k[i], left - j * MN_LANES);
    }
  }
#pragma GCC unroll 4
  for (int j = 0; j < N; j++) mn_store_n(y + j * MN_LANES, sum[j], left - j * MN_LANES);
}

static void step(const mn_wkv *a, int bh, int t, float *S, float *work) {
  (void)work;
  const float *r = mn_wkv_at(a, R_IN, bh, t, a->K), *k = mn_wkv_at(a, K_IN, bh, t, a->K);
  const float *w = mn_wkv_at(a, KEEP_IN, bh, t, a->K), *v = mn_wkv_at(a, V_IN, bh, t, a->V);
  const float *first = a->c->in[FIRST].data + bh % a->H * a->K;
  float *y = a->c->out[0].data + (v - a->c->in[V_IN].data), own = 0;
  for (int i = 0; i < a->K; i++) own += first[i] * r[i] * k[i];
  int j = 0;
  for (; j + 4 * MN_LANES <= a->V; j += 4 * MN_LANES) step_columns(4, a, r, k, w, v + j, own, 4 * MN_LANES, S + j, y + j);
  for (; j < a->V; j += MN_LANES) step_columns(1, a, r, k, w, v + j, own, a->V - j, S + j, y + j);
}

/* Backward of own_keys; dA's diagonal has the gradients of A's. */
static void own_keys_back(const mn_wkv *a, int bh, const tokens *x, const float *dA, float *dr, float *dk) {
  float *dfirst = a->sums + (long)bh * a->Kp;
  for (int j = 0; j < a->Kp; j += MN_LANES) {
    mn_lanes b = mn_load_n(bonus(a, bh) + j, a->K - j), db = mn_load(dfirst + j);
    for (int i = 0; i < L; i++) {
      long at = (long)i * a->Kp + j;
      mn_lanes r = mn_load(x->r + at), k = mn_load(x->k + at) * dA[i * L + i];
      mn_store(dr + at, mn_load(dr + at) + k * b);
      mn_store(dk + at, mn_load(dk + at) + r * b * dA[i * L + i]);
      db += r * k;
    }
    mn_store(dfirst + j, db);
  }
}

static void piece_back(const mn_wkv *a, int bh, int t, int n, const float *S, float *dS, float *work) {
  int Kp = a->Kp, Vp = a->Vp;
  long kn = (long)L * Kp, vn = (long)L * Vp;
  mn_prefetch q;
  mn_wkv_prefetch(a, bh, t, &q);
  tokens x = read_tokens(a, bh, t, n, &q, &work);
  float *dy = mn_alloc_from(&work, vn), *dv = mn_alloc_from(&work, vn), *dA = mn_alloc_from(&work, L * L);
  float *dr = mn_alloc_from(&work, kn), *dk = mn_alloc_from(&work, kn), *dw = mn_alloc_from(&work, kn), *kept = mn_alloc_from(&work, Kp);
  mn_wkv_read_dy(a, bh, t, n, dy);
  mn_prefetch_some(&q);

  /* The products of the forward pass, transposed. */
  mn_prefetch_dots(&q, L, L, Vp, dy, x.v, dA);
  mn_prefetch_gemm(&q, L, Vp, L, x.A, 1, L, dy, NULL, NULL, dv);
  mn_prefetch_gemm(&q, L, Vp, Kp, x.run, Kp, 1, dS, dv, NULL, dv);
  mn_wkv_store(a, V_IN, bh, t, n, dv);
  mn_prefetch_some(&q);
  mn_prefetch_dots(&q, L, Kp, Vp, dy, S, dr);                     /* of rp */
  mn_prefetch_dots(&q, L, Kp, Vp, x.v, dS, dk);                   /* of run */
  mn_wkv_kept_back(a, S, dS, kept);
  mn_wkv_update(a, &q, L, x.P + kn - Kp, x.rp, dy, dS, dS);

  /* The end of P is what is kept of the state. */
  mn_wkv_prefix_back(Kp, x.w, x.P, x.r, NULL, kept, dr, NULL, dw);
  mn_prefetch_some(&q);
  mn_wkv_keys keys = { Kp, x.w, x.k, x.r, NULL };
  mn_wkv_keys_back(&keys, dA, NULL, dk, dr, NULL, dw);
  mn_prefetch_some(&q);
  own_keys_back(a, bh, &x, dA, dr, dk);
  mn_wkv_store(a, R_IN, bh, t, n, dr);
  mn_wkv_store(a, K_IN, bh, t, n, dk);
  mn_wkv_store(a, KEEP_IN, bh, t, n, dw);
  mn_prefetch_rest(&q);
}

static const mn_wkv_op op = {
  .name = "wkv6", .rows = FIRST, .done = DONE, .state = STATE, .key_rows = 10, .value_rows = 3,
  .piece = piece, .step = step, .piece_back = piece_back,
};

static int shape(mn_call *c) { return mn_wkv_shape(c, &op); }
static void forward(mn_call *c) { mn_wkv_forward(c, &op); }
static void backward(mn_call *c) { mn_wkv_backward(c, &op, FIRST); }

const mn_op mn_op_wkv6 = {
  .sig = "r[T,B,H,K] k[T,B,H,K] v[T,B,H,V] keep[T,B,H,K]:01 first[H,K] done?[T,B]:bit S?[B,H,K,V] -> "
         "y[T,B,H,V] S'[B,H,K,V] ~~saved[?,?]",
  .doc = "RWKV-6's matrix memory: y = r^T (S + diag(first) k v^T), S = diag(keep) S + k v^T (Peng et al. 2024, eq. 18-19)",
  .time = MN_SCAN, .shape = shape, .forward = forward, .backward = backward,
};
