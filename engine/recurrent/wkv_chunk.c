/* wkv_chunk.c -- the arithmetic of a piece: sixteen steps of a matrix memory in which each key has its own decay.  See wkv.h.
** What step t reads of key s is multiplied by every decay in between: running rows, computed by multiplication only, so
** that decays of exactly 0 and 1 are exact.  They are computed once for both readers.  Channels are processed a
** vector at a time, so that all gradients of sixteen steps stay in registers in backward. */
#include <string.h>
#include "numerics/simd.h"
#include "wkv.h"

enum { L = MN_CHUNK, PAIR = 2 * L, HALF = L / 2 };

void mn_wkv_prefix(int n, const float *decay, const float *early, const float *late, float *P, float *by_early, float *by_late) {
  for (int j = 0; j < n; j += MN_LANES) {
    mn_lanes p = mn_splat(1);
    for (long i = j; i < (long)L * n; i += n) {
      mn_store(by_early + i, p * mn_load(early + i));
      p *= mn_load(decay + i);
      mn_store(P + i, p);
      if (late) mn_store(by_late + i, p * mn_load(late + i));
    }
  }
}

void mn_wkv_prefix_back(int n, const float *decay, const float *P, const float *early, const float *late, const float *dend,
                        float *dearly, float *dlate, float *ddecay) {
  for (int j = 0; j < n; j += MN_LANES) {
    mn_lanes g = mn_load(dend + j);
    for (int t = L - 1; t >= 0; t--) {
      long i = (long)t * n + j;
      mn_lanes before = t ? mn_load(P + i - n) : mn_splat(1), de = mn_load(dearly + i);
      if (late) {
        mn_lanes dl = mn_load(dlate + i);
        g += dl * mn_load(late + i);
        mn_store(dlate + i, dl * mn_load(P + i));
      }
      mn_store(ddecay + i, g * before);
      mn_store(dearly + i, de * before);
      g = g * mn_load(decay + i) + de * mn_load(early + i);
    }
  }
}

/* Step t of the running rows s = from .. from+7, and their products with both readers. */
MN_INLINE void score_half(const int t, const int from, const mn_wkv_keys *x, float *run, float *take, float *read) {
  const int end = t < from + HALF ? t : from + HALF;
  const long n = x->n, row = t * n;
  mn_lanes acc[L];
#pragma GCC unroll 16
  for (int i = 0; i < L; i++) acc[i] = (mn_lanes){ 0 };
  for (long j = 0; j < n; j += MN_LANES) {
    mn_lanes d = mn_load(x->decay + row + j), e = mn_load(x->early + row + j), l = mn_load(x->late + row + j);
#pragma GCC unroll 8
    for (int s = from; s < end; s++) {
      mn_lanes was = mn_load(run + s * n + j), now = was * d;
      mn_store(run + s * n + j, now);
      acc[s - from] += was * e;
      acc[HALF + s - from] += now * l;
    }
    if (t < from + HALF) {
      mn_lanes k = mn_load(x->key + row + j);
      mn_store(run + row + j, k);
      acc[HALF + t - from] += k * l;
    }
  }
  float sums[L];
#pragma GCC unroll 4
  for (int i = 0; i < L; i += MN_LANES) mn_store(sums + i, mn_sums(acc + i));
  memcpy(take + t * PAIR + from, sums, sizeof(float) * HALF);
  memcpy(read + t * PAIR + from, sums + HALF, sizeof(float) * HALF);
}

void mn_wkv_scores(const mn_wkv_keys *x, float *run, float *take, float *read) {
#define FIRST(t) score_half(t, 0, x, run, take, read);
#define SECOND(t) score_half(t, HALF, x, run, take, read);
  for (int t = 0; t < HALF; t++) {
    memset(take + t * PAIR + HALF, 0, sizeof(float) * HALF);
    memset(read + t * PAIR + HALF, 0, sizeof(float) * HALF);
  }
  FIRST(0) FIRST(1) FIRST(2) FIRST(3) FIRST(4) FIRST(5) FIRST(6) FIRST(7)
  FIRST(8) SECOND(8) FIRST(9) SECOND(9) FIRST(10) SECOND(10) FIRST(11) SECOND(11)
  FIRST(12) SECOND(12) FIRST(13) SECOND(13) FIRST(14) SECOND(14) FIRST(15) SECOND(15)
#undef FIRST
#undef SECOND
}

/* Step t of a vector of channels: g, gradients of the running rows after it, become those before it; `was`: the
** rows s < t before it. */
MN_INLINE void step_back(const int t, const bool LATE, const mn_wkv_keys *x, long j, const float *take, const float *read,
                         const mn_lanes *was, mn_lanes *g, float *dkey, float *dearly, float *dlate, float *ddecay) {
  const int ld = LATE ? PAIR : L;
  const long i = t * (long)x->n + j;
  const float *c = read + t * ld, *e = take + t * ld;
  mn_lanes d = mn_load(x->decay + i), early = mn_load(x->early + i), late = { 0 };
  mn_lanes to_early = mn_load(dearly + i), to_late = { 0 }, dd = mn_load(ddecay + i);
  if (LATE) {
    late = mn_load(x->late + i);
    g[t] += late * c[t];
  }
  mn_store(dkey + i, g[t]);
#pragma GCC unroll 16
  for (int s = 0; s < t; s++) {
    mn_lanes w = was[t * (t - 1) / 2 + s];
    if (LATE) {
      g[s] += late * c[s];
      to_late += w * c[s];
    }
    to_early += w * e[s];
    dd += g[s] * w;
    g[s] = g[s] * d + early * e[s];
  }
  mn_store(ddecay + i, dd);
  mn_store(dearly + i, to_early);
  if (LATE) mn_store(dlate + i, mn_load(dlate + i) + to_late * d + mn_load(x->key + i) * c[t]);
}

MN_INLINE void keys_back(const bool LATE, const mn_wkv_keys *x, const float *take, const float *read, float *dkey,
                         float *dearly, float *dlate, float *ddecay) {
  const long n = x->n;
  for (long j = 0; j < n; j += MN_LANES) {
    mn_lanes was[L * (L - 1) / 2], g[L];
#pragma GCC unroll 16
    for (int s = 0; s < L; s++) g[s] = mn_load(x->key + s * n + j);
#pragma GCC unroll 16
    for (int t = 1; t < L; t++) {
      mn_lanes d = mn_load(x->decay + (t - 1) * n + j);
#pragma GCC unroll 16
      for (int s = 0; s < t; s++) {
        if (s < t - 1) g[s] *= d;
        was[t * (t - 1) / 2 + s] = g[s];
      }
    }
#pragma GCC unroll 16
    for (int s = 0; s < L; s++) g[s] = mn_load(dkey + s * n + j);
#define STEP(t) step_back(t, LATE, x, j, take, read, was, g, dkey, dearly, dlate, ddecay);
    STEP(15) STEP(14) STEP(13) STEP(12) STEP(11) STEP(10) STEP(9) STEP(8)
    STEP(7) STEP(6) STEP(5) STEP(4) STEP(3) STEP(2) STEP(1) STEP(0)
#undef STEP
  }
}

void mn_wkv_keys_back(const mn_wkv_keys *x, const float *take, const float *read, float *dkey, float *dearly, float *dlate,
                      float *ddecay) {
  if (x->late) keys_back(true, x, take, read, dkey, dearly, dlate, ddecay);
  else keys_back(false, x, take, take, dkey, dearly, dearly, ddecay);
}

void mn_wkv_update(const mn_wkv *a, mn_prefetch *q, int rows, const float *kept, const float *A, const float *B, const float *S,
                   float *to) {
  mn_prefetch_gemm(q, a->Kp, a->Vp, rows, A, 1, a->Kp, B, S, kept, to);
}

void mn_wkv_kept_back(const mn_wkv *a, const float *S, const float *dS, float *out) {
  for (long i = 0; i < a->Kp; i += MN_LANES) {
    mn_lanes sum[MN_LANES];
#pragma GCC unroll 16
    for (int r = 0; r < MN_LANES; r++) sum[r] = (mn_lanes){ 0 };
    for (long j = i * a->Vp; j < (i + 1) * a->Vp; j += MN_LANES)
#pragma GCC unroll 16
      for (int r = 0; r < MN_LANES; r++) sum[r] += mn_load(S + r * a->Vp + j) * mn_load(dS + r * a->Vp + j);
    mn_store(out + i, mn_sums(sum));
  }
}
