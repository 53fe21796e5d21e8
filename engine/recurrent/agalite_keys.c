/* agalite_keys.c -- updates the key vectors of agalite from token to token, forward and backward.
** Two vectors and up to four factors e are computed at a time: that many accumulators fit in the registers, and
** a decay is computed once for both.  The packed order is the order in which these loops read the values. */
#include <string.h>
#include "agalite_keys.h"
#include "numerics/simd.h"

enum { PAIR = 2, MOST_E = MN_LANES == 16 ? 4 : 2 };
enum { Q, WRITE, FORGET, ROLES };    /* of a token's factors */

/* ---- factors ---- */

/* The gate's factors are shaped as those of the key, or there is no gate; and no vector is cut short. */
static bool as_given(const mn_attention *a) {
  return a->D % 16 == 0 && (!a->Dg || a->Dg == a->D) && !a->scalar && !mn_keys_apart(a);
}

static int outer_size(const mn_attention *a) { return as_given(a) ? a->E : 1; }
static int inner_size(const mn_attention *a) { return as_given(a) ? a->D : a->Kp; }

long mn_factor_room(const mn_attention *a) {
  return as_given(a) ? a->D + mn_padded(ROLES * a->E) : ROLES * a->Kp;
}

/* A gate times a key is the product of their factors: (p_g p_k) (x) (g k).  Without gates nothing is forgotten: p_g is 0. */
static void given_factors(const mn_attention *a, long token, float keep, float *room, mn_key_factors *f) {
  const int D = a->D, E = a->E;
  const float *q = mn_input_at(a, IN_Q, token, D), *k = mn_input_at(a, IN_K, token, D), *gamma = mn_input_at(a, IN_GAMMA, token, D);
  const float *p_q = mn_input_at(a, IN_P_Q, token, E), *p_k = mn_input_at(a, IN_P_K, token, E), *p_gamma = mn_input_at(a, IN_P_GAMMA, token, E);
  float *p = room + D;
  keep *= mn_shrink(a, token);
  for (int d = 0; gamma && d < D; d += MN_LANES) mn_store(room + d, mn_load(gamma + d) * mn_load(k + d));
  for (int e = 0; e < E; e++) {
    float gate = gamma && p_gamma ? p_gamma[e] : 1;
    p[ROLES * e + Q] = p_q ? p_q[e] : 1;
    p[ROLES * e + WRITE] = gate * (p_k ? p_k[e] : 1);
    p[ROLES * e + FORGET] = gamma ? keep * gate : 0;
  }
  *f = (mn_key_factors){ E, D, keep, q, gamma ? room : k, gamma ? gamma : k, p };
}

void mn_factor_keys(const mn_attention *a, long token, float keep, float *room, mn_key_factors *f) {
  static const float whole[ROLES] = { [Q] = 1, [WRITE] = 1, [FORGET] = -1 };
  if (as_given(a)) {
    given_factors(a, token, keep, room, f);
    return;
  }
  float *q = room, *write = q + a->Kp, *decay = write + a->Kp;
  mn_keys(a, token, keep, q, write, decay);
  *f = (mn_key_factors){ 1, a->Kp, 0, q, write, decay, whole };
}

/* ---- the packed order: pairs of vectors, some factors e, lanes of d, vectors of the pair, e ---- */

static void repack(const mn_attention *a, int M, mn_key_vectors at, float *packed, const bool pack) {
  const int E = outer_size(a), D = inner_size(a);
  for (int m = 0, count; m <= M; m += count) {
    count = m < M ? PAIR : 1;
    for (int e0 = 0, some; e0 < E; e0 += some) {
      some = e0 + MOST_E <= E ? MOST_E : 1;
      for (int d = 0; d < D; d += MN_LANES)
        for (int c = 0; c < count; c++) {
          float *vector = m + c < M ? at.weighted : at.last;
          if (vector) vector += (m + c < M ? (m + c) * at.stride : 0) + (long)e0 * D + d;
          for (int e = 0; e < some; e++, packed += MN_LANES) {
            if (pack) mn_store(packed, vector ? mn_load(vector + (long)e * D) : (mn_lanes){ 0 });
            else if (vector) mn_store(vector + (long)e * D, mn_load(packed));
          }
        }
    }
  }
}

void mn_pack_keys(const mn_attention *a, int M, mn_key_vectors from, float *packed) { repack(a, M, from, packed, true); }

void mn_unpack_keys(const mn_attention *a, int M, const float *packed, mn_key_vectors to) {
  repack(a, M, to, (float *)packed, false);
}

/* ---- forward ---- */

void mn_add_lanes(long n, const float *lanes, float *out) {
  for (long i = 0; i < n; i += MN_LANES) {
    mn_lanes a[MN_LANES];
#pragma GCC unroll 16
    for (int j = 0; j < MN_LANES; j++) a[j] = mn_load(lanes + (i + j) * MN_LANES);
    mn_store(out + i, mn_sums(a));
  }
}

/* `count` vectors and the factors e0 .. e0+E-1; `unit`: the last vector's weight is 1. */
MN_INLINE void carry(const int count, const bool unit, const int E, const mn_key_factors *f, int e0, const float *w,
                     const float *from, float *to, float *lanes) {
  const float *p = f->p + ROLES * e0;
  mn_lanes sum[PAIR] = { { 0 } }, keep = mn_splat(f->keep), by[MOST_E][ROLES], weight[PAIR];
#pragma GCC unroll 4
  for (int e = 0; e < E; e++)
#pragma GCC unroll 3
    for (int i = 0; i < ROLES; i++) {
      by[e][i] = mn_splat(p[ROLES * e + i]);
      MN_HOLD(by[e][i]);
    }
#pragma GCC unroll 2
  for (int c = 0; c < count; c++) weight[c] = mn_splat(unit && c == count - 1 ? 1 : w[c]);
  for (long d = 0; d < f->D; d += MN_LANES, from += count * E * MN_LANES, to += count * E * MN_LANES) {
    const mn_lanes q = mn_load(f->q + d), write = mn_load(f->write + d), forget = mn_load(f->forget + d);
    mn_lanes along[PAIR] = { { 0 } };
#pragma GCC unroll 4
    for (int e = 0; e < E; e++) {
      mn_lanes decay = keep - forget * by[e][FORGET], written = write * by[e][WRITE];
#pragma GCC unroll 2
      for (int c = 0; c < count; c++) {
        int at = (c * E + e) * MN_LANES;
        mn_lanes now = decay * mn_load(from + at) + (unit && c == count - 1 ? written : written * weight[c]);
        mn_store(to + at, now);
        along[c] += now * by[e][Q];
      }
    }
#pragma GCC unroll 2
    for (int c = 0; c < count; c++) sum[c] += along[c] * q;
  }
#pragma GCC unroll 2
  for (int c = 0; c < count; c++) {
    if (e0) sum[c] += mn_load(lanes + c * MN_LANES);
    mn_store(lanes + c * MN_LANES, sum[c]);
  }
}

MN_INLINE void carry_all_e(const int count, const bool unit, const mn_key_factors *f, const float *w, const float *from,
                           float *to, float *lanes) {
  const long each = (long)count * f->D;
  int e = 0;
  for (; e + MOST_E <= f->E; e += MOST_E) carry(count, unit, MOST_E, f, e, w, from + e * each, to + e * each, lanes);
  for (; e < f->E; e++) carry(count, unit, 1, f, e, w, from + e * each, to + e * each, lanes);
}

void mn_carry_keys(const mn_key_factors *f, int M, const float *w, const float *from, float *to, float *lanes) {
  const long K = (long)f->D * f->E;
  int m = 0;
  for (; m + PAIR <= M; m += PAIR) carry_all_e(PAIR, false, f, w + m, from + m * K, to + m * K, lanes + m * MN_LANES);
  if (m < M) carry_all_e(PAIR, true, f, w + m, from + m * K, to + m * K, lanes + m * MN_LANES);
  else       carry_all_e(1, true, f, w + m, from + m * K, to + m * K, lanes + m * MN_LANES);
}

/* ---- backward ---- */

/* Gradients of a token's factors while they are added up: x, those of q, write and forget as [D / MN_LANES, 3, MN_LANES], and
** as lanes of each p. */
typedef struct sums { float *x, *p; } sums;

long mn_carry_room(const mn_attention *a) {
  return ROLES * inner_size(a) + mn_padded(ROLES * outer_size(a)) * (MN_LANES + 1) + (as_given(a) ? 0 : 5L * a->Kp);
}

/* Backward of `carry`; `first`: nothing is in the sums of p yet. */
MN_INLINE void back(const int count, const bool unit, const int E, const mn_key_factors *f, int e0, bool first,
                    const float *w, const float *dproduct, const float *before, const float *after, float *dx,
                    sums to) {
  const float *p = f->p + ROLES * e0;
  float *sum = to.x, *sum_p = to.p + ROLES * e0 * MN_LANES, along[PAIR][MOST_E];
  mn_lanes dp[MOST_E][ROLES], keep = mn_splat(f->keep);
  const bool fresh = first && e0 == 0;
#pragma GCC unroll 4
  for (int e = 0; e < E; e++) {
#pragma GCC unroll 3
    for (int i = 0; i < ROLES; i++) dp[e][i] = first ? (mn_lanes){ 0 } : mn_load(sum_p + (ROLES * e + i) * MN_LANES);
#pragma GCC unroll 2
    for (int c = 0; c < count; c++) along[c][e] = p[ROLES * e + Q] * dproduct[c];
  }
  for (long d = 0; d < f->D; d += MN_LANES, sum += ROLES * MN_LANES) {
    const mn_lanes q = mn_load(f->q + d), write = mn_load(f->write + d), forget = mn_load(f->forget + d);
    mn_lanes dq = { 0 }, dwrite = { 0 }, dforget = { 0 };
    if (!fresh) dq = mn_load(sum), dwrite = mn_load(sum + WRITE * MN_LANES), dforget = mn_load(sum + FORGET * MN_LANES);
#pragma GCC unroll 4
    for (int e = 0; e < E; e++) {
      const float *by = p + ROLES * e;
      mn_lanes decay = keep - forget * by[FORGET], to_q = { 0 }, to_write = { 0 }, to_decay = { 0 };
#pragma GCC unroll 2
      for (int c = 0; c < count; c++) {
        int at = (c * E + e) * MN_LANES;
        mn_lanes y = mn_load(dx + at) + q * along[c][e];
        to_q += mn_load(after + at) * dproduct[c];
        to_write += unit && c == count - 1 ? y : y * w[c];
        to_decay += y * mn_load(before + at);
        mn_store(dx + at, y * decay);
      }
      dq += to_q * by[Q];
      dwrite += to_write * by[WRITE];
      dforget -= to_decay * by[FORGET];
      dp[e][Q] += to_q * q;
      dp[e][WRITE] += to_write * write;
      dp[e][FORGET] -= to_decay * forget;
    }
    mn_store(sum, dq);
    mn_store(sum + WRITE * MN_LANES, dwrite);
    mn_store(sum + FORGET * MN_LANES, dforget);
    before += count * E * MN_LANES;
    after += count * E * MN_LANES;
    dx += count * E * MN_LANES;
  }
#pragma GCC unroll 4
  for (int e = 0; e < E; e++)
#pragma GCC unroll 3
    for (int i = 0; i < ROLES; i++) mn_store(sum_p + (ROLES * e + i) * MN_LANES, dp[e][i]);
}

MN_INLINE void back_all_e(const int count, const bool unit, const mn_key_factors *f, int m, const float *w,
                          const float *dproduct, const float *before, const float *after, float *dx, sums to) {
  const long each = (long)count * f->D;
  long at = (long)m * f->D * f->E;
  int e = 0;
  for (; e + MOST_E <= f->E; e += MOST_E, at += MOST_E * each)
    back(count, unit, MOST_E, f, e, m == 0, w + m, dproduct + m, before + at, after + at, dx + at, to);
  for (; e < f->E; e++, at += each)
    back(count, unit, 1, f, e, m == 0, w + m, dproduct + m, before + at, after + at, dx + at, to);
}

/* The gradient of shrink, where the factors are as given and dx is still that after the token. */
static void given_shrink_back(const mn_attention *a, long token, float keep, const mn_key_factors *f, int M, const float *dproduct,
                              const float *before, const float *dx) {
  const float *gamma = mn_input_at(a, IN_GAMMA, token, a->D), *p_gamma = mn_input_at(a, IN_P_GAMMA, token, a->E);
  mn_lanes sum = { 0 };
  for (int m = 0, count; m <= M; m += count) {
    count = m < M ? PAIR : 1;
    for (int e0 = 0, some; e0 < f->E; e0 += some) {
      some = e0 + MOST_E <= f->E ? MOST_E : 1;
      for (int d = 0; d < f->D; d += MN_LANES)
        for (int c = 0; c < count; c++)
          for (int e = e0; e < e0 + some; e++, before += MN_LANES, dx += MN_LANES) {
            const mn_lanes y = mn_load(dx) + mn_load(f->q + d) * (f->p[ROLES * e + Q] * dproduct[m + c]);
            const mn_lanes kept = gamma ? 1 - mn_load(gamma + d) * (p_gamma ? p_gamma[e] : 1) : mn_splat(1);
            sum += y * mn_load(before) * kept;
          }
    }
  }
  *mn_grad_at(a, IN_SHRINK, token, 1) = keep * mn_sum(sum);
}

/* From the gradients of given factors, those of the inputs. */
static void to_inputs(const mn_attention *a, long token, float keep, const float *dx, const float *dp) {
  const int D = a->D, E = a->E;
  const float *k = mn_input_at(a, IN_K, token, D), *gamma = mn_input_at(a, IN_GAMMA, token, D);
  const float *p_k = mn_input_at(a, IN_P_K, token, E), *p_gamma = mn_input_at(a, IN_P_GAMMA, token, E);
  float *dq = mn_grad_at(a, IN_Q, token, D), *dk = mn_grad_at(a, IN_K, token, D), *dgamma = mn_grad_at(a, IN_GAMMA, token, D);
  float *dp_q = mn_grad_at(a, IN_P_Q, token, E), *dp_k = mn_grad_at(a, IN_P_K, token, E);
  float *dp_gamma = mn_grad_at(a, IN_P_GAMMA, token, E);
  for (int d = 0; d < D; d += MN_LANES, dx += ROLES * MN_LANES) {
    mn_lanes dwrite = mn_load(dx + WRITE * MN_LANES);
    if (dq) mn_store(dq + d, mn_load(dx));
    if (dk) mn_store(dk + d, gamma ? dwrite * mn_load(gamma + d) : dwrite);
    if (dgamma) mn_store(dgamma + d, dwrite * mn_load(k + d) + mn_load(dx + FORGET * MN_LANES));
  }
  keep *= mn_shrink(a, token);
  for (int e = 0; e < E; e++, dp += ROLES) {
    if (dp_q) dp_q[e] = dp[Q];
    if (dp_k) dp_k[e] = dp[WRITE] * (p_gamma ? p_gamma[e] : 1);
    if (dp_gamma) dp_gamma[e] = dp[WRITE] * (p_k ? p_k[e] : 1) + keep * dp[FORGET];
  }
}

/* The same where the token's factors were the features themselves; work: 5 Kp. */
static void to_features(const mn_attention *a, long token, float keep, const float *dx, float *work) {
  float *dq = work, *dwrite = dq + a->Kp, *ddecay = dwrite + a->Kp;
  for (int d = 0; d < a->Kp; d += MN_LANES, dx += ROLES * MN_LANES) {
    mn_store(dq + d, mn_load(dx));
    mn_store(dwrite + d, mn_load(dx + WRITE * MN_LANES));
    mn_store(ddecay + d, mn_load(dx + FORGET * MN_LANES));
  }
  mn_keys_back(a, token, keep, dq, dwrite, ddecay, ddecay + a->Kp);
}

void mn_carry_keys_back(const mn_attention *a, long token, float keep, const mn_key_factors *f, int M, const float *w,
                        const float *dproduct, const float *before, const float *after, float *dx, float *work) {
  const long n = mn_padded(ROLES * f->E);
  float *dp = work + n * MN_LANES, *rest = dp + n + ROLES * f->D;
  const sums s = { .p = work, .x = dp + n };
  int m = 0;
  if (as_given(a) && a->c->in[IN_SHRINK].grad) given_shrink_back(a, token, keep, f, M, dproduct, before, dx);
  for (; m + PAIR <= M; m += PAIR) back_all_e(PAIR, false, f, m, w, dproduct, before, after, dx, s);
  if (m < M) back_all_e(PAIR, true, f, m, w, dproduct, before, after, dx, s);
  else       back_all_e(1, true, f, m, w, dproduct, before, after, dx, s);
  if (!as_given(a)) {
    to_features(a, token, keep, s.x, rest);
    return;
  }
  mn_add_lanes(ROLES * f->E, s.p, dp);
  to_inputs(a, token, keep, s.x, dp);
}
