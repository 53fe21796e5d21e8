/* linear_attention.c -- gated linear attention: a matrix of values by keys that decays along both.
** Sixteen tokens are computed at a time (the chunked form): they read and write the old matrix by small
** matrix products, and affect each other through running products of decays.
** Yang et al. 2024 use logarithms and divisions; here every decay is a product over a forward
** interval, so gates of exactly 0 and 1 are exact and nothing can overflow. */
#include <string.h>
#include "recurrent/chunk.h"
#include "recurrent/scalar_decay_chunk.h"
#include "recurrent/matrix_state.h"
#include "numerics/simd.h"

enum { L = MN_CHUNK };

static void load_values(const mn_attention *a, const mn_tokens *at, float *write, float *decay) {
  long Vp = a->Vp;
  for (int i = 0; i < at->n; i++)
    mn_values(a, mn_token(a, at->t + i, at->bh), mn_keep(a, at->t + i, at->bh), write + i * Vp,
              decay + i * Vp);
  for (long i = at->n * Vp; i < L * Vp; i++) write[i] = 0, decay[i] = 1;
}

static void multiply(long n, const float *x, const float *y, float *out) {
  for (long i = 0; i < n; i += MN_LANES) mn_store(out + i, mn_load(x + i) * mn_load(y + i));
}

/* The state after a chunk: v and k as they are left at its end, and what is kept of the old one. */
static void write_state(const mn_attention *a, const float *v, const float *k, const float *kept_v,
                        const float *kept_k, mn_chunk_state from, mn_chunk_state to) {
  long Kp = a->Kp, Vp = a->Vp, ld = mn_key_row(a);
  mn_tile_gemm((int)Vp, (int)Kp, L, v, 1, Vp, k, ld, from.C, kept_v, kept_k, to.C, Kp);
  for (int j = 0; j < Kp; j += MN_LANES) {
    mn_lanes sum = mn_load(from.s + j) * mn_load(kept_k + j);
    for (int i = 0; i < L; i++) sum += mn_load(k + i * ld + j);
    mn_store(to.s + j, sum);
  }
}

static void chunk(const mn_attention *a, const mn_tokens *at, mn_chunk_state from,
                  mn_chunk_state to, float *work) {
  if (mn_even(a)) {
    mn_scalar_decay_chunk(a, at, from, to, work);
    return;
  }
  long Kp = a->Kp, Vp = a->Vp, ld = mn_key_row(a), kn = L * ld, vn = L * Vp;
  float *q = mn_alloc_from(&work, kn), *k = mn_alloc_from(&work, kn), *kd = mn_alloc_from(&work, kn);
  float *P = mn_alloc_from(&work, kn), *Pq = mn_alloc_from(&work, kn), *kr = mn_alloc_from(&work, kn);
  float *v = mn_alloc_from(&work, vn), *vd = mn_alloc_from(&work, vn), *PA = mn_alloc_from(&work, vn);
  float *y0 = mn_alloc_from(&work, vn), *y = mn_alloc_from(&work, vn), *vr = mn_alloc_from(&work, vn);
  float *S = mn_alloc_from(&work, L * L), z[L];
  mn_load_keys(a, at, q, k, kd);
  load_values(a, at, v, vd);
  mn_prefetch_token(a, at, 0);
  mn_chunk_prefix((int)Kp, ld, kd, q, P, Pq);
  mn_prefetch_token(a, at, 1);
  mn_chunk_prefix((int)Vp, Vp, vd, NULL, PA, NULL);
  mn_prefetch_token(a, at, 2);
  mn_chunk_scores((int)Kp, ld, k, kd, q, kr, S);
  mn_prefetch_token(a, at, 3);
  mn_tile_dots(L, (int)Vp, (int)Kp, Pq, ld, from.C, Kp, y0, Vp);
  mn_prefetch_token(a, at, 4);
  mn_chunk_mix((int)Vp, v, vd, S, PA, y0, y, vr);
  mn_prefetch_token(a, at, 5);
  mn_chunk_row_dots((int)Kp, Pq, ld, from.s, 0, S, NULL, z);         /* s.q: of the old sum, and of the chunk's keys */
  mn_prefetch_token(a, at, 6);
  mn_write_y(a, at->bh, at->t, at->n, y, z);
  mn_prefetch_token(a, at, 7);

  write_state(a, vr, kr, PA + vn - Vp, P + kn - ld, from, to);
}

/* The chunk without y: what is left of every key and value at its end. */
static void advance(const mn_attention *a, const mn_tokens *at, mn_chunk_state from,
                    mn_chunk_state to, float *work) {
  if (mn_even(a)) {
    mn_scalar_decay_advance(a, at, from, to, work);
    return;
  }
  long Kp = a->Kp, Vp = a->Vp, ld = mn_key_row(a), kn = L * ld, vn = L * Vp;
  float *q = mn_alloc_from(&work, kn), *k = mn_alloc_from(&work, kn), *kd = mn_alloc_from(&work, kn);
  float *v = mn_alloc_from(&work, vn), *vd = mn_alloc_from(&work, vn);
  float *kept_k = mn_alloc_from(&work, Kp), *kept_v = mn_alloc_from(&work, Vp);
  mn_load_keys(a, at, q, k, kd);
  load_values(a, at, v, vd);
  mn_chunk_run((int)Kp, ld, kd, k, kept_k);
  mn_chunk_run((int)Vp, Vp, vd, v, kept_v);
  write_state(a, v, k, kept_v, kept_k, from, to);
}

/* One token on R rows of C: row i is kept by decay*vd[i] and gains v[i]*write. */
MN_INLINE void step_rows(const int R, int K, float *restrict C, const float *q, const float *write,
                         const float *decay, const float *v, const float *vd, float *num) {
  mn_lanes sum[4] = { { 0 } };
  int j = 0;
  for (; j + MN_LANES <= K; j += MN_LANES) {
    mn_lanes qj = mn_load(q + j), wj = mn_load(write + j), dj = mn_load(decay + j);
#pragma GCC unroll 4
    for (int i = 0; i < R; i++) {
      float *at = C + (long)i * K + j;
      mn_lanes x = mn_load(at) * dj * vd[i] + wj * v[i];
      mn_store(at, x);
      sum[i] += x * qj;
    }
  }
#pragma GCC unroll 4
  for (int i = 0; i < R; i++) {
    num[i] = mn_sum(sum[i]);
    for (int m = j; m < K; m++) {
      float *at = C + (long)i * K + m;
      *at = *at * decay[m] * vd[i] + write[m] * v[i];
      num[i] += *at * q[m];
    }
  }
}

static void step(const mn_attention *a, long token, float keep, float *C, const float *q,
                 const float *write, const float *decay, float *num, float *work) {
  float *v = mn_alloc_from(&work, a->Vp), *vd = mn_alloc_from(&work, a->Vp);
  int i = 0;
  mn_values(a, token, keep, v, vd);
  for (; i + 4 <= a->V; i += 4)
    step_rows(4, a->K, C + (long)i * a->K, q, write, decay, v + i, vd + i, num + i);
  for (; i < a->V; i++)
    step_rows(1, a->K, C + (long)i * a->K, q, write, decay, v + i, vd + i, num + i);
}

/* Gradients of the whole chunk's decay, through C' = (kept_v kept_k^T) * C + ...:
**   dkept_k[j] = sum_i C dC kept_v[i]     dkept_v[i] = sum_j C dC kept_k[j] */
static void decay_back(int Vp, int Kp, const float *C, const float *dC, const float *kept_v,
                       const float *kept_k, float *dkept_v, float *dkept_k) {
  memset(dkept_k, 0, sizeof(float) * (size_t)Kp);
  for (int i = 0; i < Vp; i += MN_LANES) {
    mn_lanes sum[MN_LANES];
#pragma GCC unroll 16
    for (int r = 0; r < MN_LANES; r++) sum[r] = (mn_lanes){ 0 };
    for (int j = 0; j < Kp; j += MN_LANES) {
      mn_lanes kept = mn_load(kept_k + j), dk = mn_load(dkept_k + j);
#pragma GCC unroll 16
      for (int r = 0; r < MN_LANES; r++) {
        long at = (long)(i + r) * Kp + j;
        mn_lanes x = mn_load(C + at) * mn_load(dC + at);
        dk += x * kept_v[i + r];
        sum[r] += x * kept;
      }
      mn_store(dkept_k + j, dk);
    }
    mn_store(dkept_v + i, mn_sums(sum));
  }
}

/* What w, the gradient of P_t q_t through the old matrix, and dz through the old sum of keys, come to: dq and, by way of
** the prefix products P, ddecay are added to.  dkept: gradient of the last P through the new state. */
static void old_state_back(int Kp, long ld, const float *q, const float *decay, const float *P, const float *w,
                           const float *sum, const float *dz, const float *dkept, float *ddecay, float *dq) {
  for (int j = 0; j < Kp; j += MN_LANES) {
    mn_lanes s = mn_load(sum + j), g = mn_load(dkept + j);
    for (int t = L - 1; t >= 0; t--) {
      long at = t * ld + j;
      mn_lanes x = mn_load(w + at) + s * dz[t];
      mn_store(dq + at, mn_load(dq + at) + x * mn_load(P + at));
      g += x * mn_load(q + at);
      mn_store(ddecay + at, mn_load(ddecay + at) + (t ? g * mn_load(P + at - ld) : g));
      g *= mn_load(decay + at);
    }
  }
}

static void chunk_back(const mn_attention *a, const mn_tokens *at, mn_chunk_state from,
                       mn_chunk_state grad, float *work) {
  if (mn_even(a)) {
    mn_scalar_decay_chunk_back(a, at, from, grad, work);
    return;
  }
  long Kp = a->Kp, Vp = a->Vp, ld = mn_key_row(a), kn = L * ld, vn = L * Vp;
  float *q = mn_alloc_from(&work, kn), *k = mn_alloc_from(&work, kn), *kd = mn_alloc_from(&work, kn);
  float *P = mn_alloc_from(&work, kn), *Pq = mn_alloc_from(&work, kn), *kr = mn_alloc_from(&work, kn);
  float *w = mn_alloc_from(&work, kn), *dk = mn_alloc_from(&work, kn), *dkd = mn_alloc_from(&work, kn);
  float *dq = mn_alloc_from(&work, kn);
  float *v = mn_alloc_from(&work, vn), *vd = mn_alloc_from(&work, vn), *PA = mn_alloc_from(&work, vn);
  float *y0 = mn_alloc_from(&work, vn), *g = mn_alloc_from(&work, vn), *PAg = mn_alloc_from(&work, vn);
  float *vr = mn_alloc_from(&work, vn);
  float *dv = mn_alloc_from(&work, vn), *dvd = mn_alloc_from(&work, vn);
  float *S = mn_alloc_from(&work, L * L), *dS = mn_alloc_from(&work, L * L), z[L], dz[L], along[L];

  /* Forward once more, as far as it is needed. */
  mn_load_keys(a, at, q, k, kd);
  load_values(a, at, v, vd);
  mn_prefetch_token(a, at, 0);
  mn_chunk_prefix((int)Kp, ld, kd, q, P, Pq);
  mn_chunk_prefix((int)Vp, Vp, vd, NULL, PA, NULL);
  mn_prefetch_token(a, at, 1);
  mn_chunk_scores((int)Kp, ld, k, kd, q, kr, S);
  mn_prefetch_token(a, at, 2);
  mn_tile_dots(L, (int)Vp, (int)Kp, Pq, ld, from.C, Kp, y0, Vp);
  mn_prefetch_token(a, at, 3);
  mn_chunk_row_dots((int)Kp, Pq, ld, from.s, 0, S, NULL, z);
  mn_read_dy(a, at->bh, at->t, at->n, z, g, NULL);

  /* What flows through the scores and the old state (w); s.q is one more value channel, of value 1 that is never
  ** forgotten. */
  mn_chunk_scores((int)Vp, Vp, v, vd, g, vr, dS);
  mn_prefetch_token(a, at, 4);
  multiply(vn, PA, g, PAg);
  mn_tile_gemm(L, (int)Kp, (int)Vp, PAg, Vp, 1, from.C, Kp, 0, 0, 0, w, ld);
  mn_prefetch_token(a, at, 5);
  mn_chunk_row_dots((int)Vp, PAg, Vp, y0, Vp, S, dS, along);
  for (int i = 0; i < L; i++) {
    dz[i] = mn_den_back(a, z[i], along[i]);
    for (int s = 0; s < L; s++) dS[i * L + s] += dz[i];         /* those of s > i are not read */
  }

  /* And through the new state (dk, dv). */
  mn_tile_gemm_to(L, (int)Kp, (int)Vp, vr, Vp, 1, grad.C, Kp, grad.s, 0, 0, 0, dk, ld);
  mn_prefetch_token(a, at, 6);
  mn_tile_dots(L, (int)Vp, (int)Kp, kr, ld, grad.C, Kp, dv, Vp);
  mn_prefetch_token(a, at, 7);
  float *kept_k = P + kn - ld, *kept_v = PA + vn - Vp;
  float *dkept_k = mn_alloc_from(&work, 2 * Kp), *dkept_v = mn_alloc_from(&work, Vp);
  decay_back((int)Vp, (int)Kp, from.C, grad.C, kept_v, kept_k, dkept_v, dkept_k);
  for (int j = 0; j < Kp; j++) dkept_k[j] += from.s[j] * grad.s[j];
  multiply(vn, g, y0, y0);
  for (int j = 0; j < Vp; j++) y0[vn - Vp + j] += dkept_v[j];

  /* Among the tokens of the chunk, then the prefix products. */
  mn_chunk_back((int)Kp, ld, k, kd, q, dS, dk, dkd, dq);
  mn_chunk_back((int)Vp, Vp, v, vd, g, S, dv, dvd, NULL);
  old_state_back((int)Kp, ld, q, kd, P, w, from.s, dz, dkept_k, dkd, dq);
  mn_chunk_prefix_back((int)Vp, Vp, vd, PA, y0, dvd);
  for (int i = 0; i < at->n; i++) {
    long token = mn_token(a, at->t + i, at->bh);
    float keep = mn_keep(a, at->t + i, at->bh);
    mn_keys_back(a, token, keep, dq + i * ld, dk + i * ld, dkd + i * ld, dkept_k);
    mn_values_back(a, token, keep, dv + i * Vp, dvd + i * Vp);
  }

  /* The state before the chunk. */
  mn_tile_gemm((int)Vp, (int)Kp, L, PAg, 1, Vp, Pq, ld, grad.C, kept_v, kept_k, grad.C, Kp);
  for (int j = 0; j < Kp; j += MN_LANES) {
    mn_lanes sum = mn_load(grad.s + j) * mn_load(kept_k + j);
    for (int i = 0; i < L; i++) sum += mn_load(Pq + i * ld + j) * dz[i];
    mn_store(grad.s + j, sum);
  }
}

static const mn_matrix_kernels kernels = {
  .name = "linear_attention", .span = MN_LINEAR_SPAN, .chunk = chunk, .advance = advance, .step = step,
  .chunk_back = chunk_back,
  .key_rows = 11, .value_rows = 10,
};

static int shape(mn_call *c) { return mn_matrix_shape(c, &kernels); }
static void forward(mn_call *c) { mn_matrix_forward(c, &kernels); }
static void backward(mn_call *c) { mn_matrix_backward(c, &kernels); }

const mn_op mn_op_linear_attention = {
  .sig = ATTENTION_INPUTS("beta?[T,B,H,?]:01 gamma?[T,B,H,?]:01") MATRIX_STATE
         " | eps=1e-5 den_clamp=0 normalise=1",
  .doc = "gated linear attention (GaLiTe, Pramanik et al. 2023, eq. 10-16; Katharopoulos et al. 2020 without gates). C = (keep_v keep_k^T) * C + "
      "(write_v*v)(write_k*k)^T, s = keep_k*s + write_k*k, y = C q / den(s.q); beta is write_v = beta with keep_v = 1-beta, gamma the same for "
      "keys; with feature factors k = p_k (x) k, q = p_q (x) q, gamma = p_gamma (x) gamma, write_k = p_write_k (x) write_k",
  .time = MN_SCAN,
  .cpu_grads = 1u << IN_SHRINK,
  .forward = forward,
  .backward = backward,
  .shape = shape,
};
