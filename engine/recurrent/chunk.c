/* chunk.c -- arithmetic of sixteen tokens at once, for the chunked form of gated linear attention.
** Sixteen, because the work per token, 2 V K (1 + 1/L) + L (V + K) for chunks of L, has its minimum
** nearby at the usual sizes. */
#include <stdbool.h>
#include <string.h>
#include "chunk.h"
#include "numerics/simd.h"

enum { L = MN_CHUNK };

void mn_chunk_row_dots(int n, const float *x, long ldx, const float *y, long ldy, const float *S, const float *R, float *out) {
  mn_lanes sum[L];
#pragma GCC unroll 4
  for (int t = 0; t < L; t += 4) {                 /* four at once, so that no addition waits for the one before */
    mn_lanes four[4] = { { 0 } };
    for (int j = 0; j < n; j += MN_LANES)
#pragma GCC unroll 4
      for (int i = 0; i < 4; i++) four[i] += mn_load(x + (t + i) * ldx + j) * mn_load(y + (t + i) * ldy + j);
    for (int j = 0; S && j < L; j += MN_LANES)
#pragma GCC unroll 4
      for (int i = 0; i < 4; i++) {
        mn_lanes more = mn_load(S + (t + i) * L + j);
        four[i] += R ? more * mn_load(R + (t + i) * L + j) : more;
      }
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) sum[t + i] = four[i];
  }
#pragma GCC unroll 4
  for (int t = 0; t < L; t += MN_LANES) mn_store(out + t, mn_sums(sum + t));
}

void mn_chunk_prefix(int n, long ld, const float *decay, const float *x, float *P, float *Px) {
  for (int j = 0; j < n; j += MN_LANES) {
    mn_lanes p = mn_splat(1);
    for (long at = j; at < L * ld; at += ld) {
      p *= mn_load(decay + at);
      mn_store(P + at, p);
      if (x) mn_store(Px + at, p * mn_load(x + at));
    }
  }
}

void mn_chunk_run(int n, long ld, const float *decay, float *x, float *kept) {
  for (int j = 0; j < n; j += MN_LANES) {
    mn_lanes later = mn_load(decay + (L - 1) * ld + j);
    for (int t = L - 2; t >= 0; t--) {
      mn_store(x + t * ld + j, mn_load(x + t * ld + j) * later);
      later *= mn_load(decay + t * ld + j);
    }
    mn_store(kept + j, later);
  }
}

enum { HALF = L / 2 };

/* Scores of rows t and t+1, t even, with the running rows from s0, half of them: those are brought on by two tokens. */
MN_INLINE void score_rows(const int t, const int s0, int n, long ld, const float *x, const float *decay, const float *r,
                          float *run, float *S) {
  mn_lanes acc[L];                                 /* of row t, then of row t+1 */
#pragma GCC unroll 16
  for (int s = 0; s < L; s++) acc[s] = (mn_lanes){ 0 };
  for (int j = 0; j < n; j += MN_LANES) {
    long at = t * ld + j;
    mn_lanes r0 = mn_load(r + at), r1 = mn_load(r + at + ld), d0 = mn_load(decay + at), d1 = mn_load(decay + at + ld);
#pragma GCC unroll 8
    for (int i = 0; i < HALF; i++) {
      int s = s0 + i;
      if (s > t + 1) continue;
      mn_lanes k = s < t ? mn_load(run + s * ld + j) * d0 : mn_load(x + s * ld + j);
      if (s <= t) acc[i] += k * r0, k *= d1;
      acc[HALF + i] += k * r1;
      mn_store(run + s * ld + j, k);
    }
  }
  float sums[L];
#pragma GCC unroll 4
  for (int i = 0; i < L; i += MN_LANES) mn_store(sums + i, mn_sums(acc + i));
  memcpy(S + t * L + s0, sums, sizeof sums / 2);
  memcpy(S + (t + 1) * L + s0, sums + HALF, sizeof sums / 2);
}

void mn_chunk_scores(int n, long ld, const float *x, const float *decay, const float *r, float *run,
                     float *S) {
  for (int t = 0; t < HALF; t++) memset(S + t * L + HALF, 0, HALF * sizeof(float));
#define ROWS(t, s0) score_rows(t, s0, n, ld, x, decay, r, run, S);
  ROWS(0, 0) ROWS(2, 0) ROWS(4, 0) ROWS(6, 0)
  ROWS(8, 0) ROWS(8, HALF) ROWS(10, 0) ROWS(10, HALF) ROWS(12, 0) ROWS(12, HALF) ROWS(14, 0) ROWS(14, HALF)
#undef ROWS
}

void mn_chunk_mix(int n, const float *x, const float *decay, const float *S, const float *P,
                  const float *y0, float *y, float *run) {
  for (int j = 0; j < n; j += MN_LANES) {
    mn_lanes v[L];
    for (int t = 0; t < L; t++) {
      mn_lanes d = mn_load(decay + t * n + j);
      mn_lanes sum = mn_load(P + t * n + j) * mn_load(y0 + t * n + j);
      for (int s = 0; s < t; s++) {
        v[s] *= d;
        sum += v[s] * S[t * L + s];
      }
      v[t] = mn_load(x + t * n + j);
      mn_store(y + t * n + j, sum + v[t] * S[t * L + t]);
    }
    for (int t = 0; t < L; t++) mn_store(run + t * n + j, v[t]);
  }
}

/* Row t of one vector of channels: what its pairs with the rows before it give.  `before` holds the running rows of
** t-1: those of t are d times them, so that no other is read. */
MN_INLINE void back_row(const int t, const bool readers, mn_lanes x, mn_lanes d, mn_lanes rt, const float *c,
                        const mn_lanes *before, mn_lanes *g, float *G, float *ddecay, float *dr) {
  mn_lanes sum[2] = { { 0 } }, dd[2] = { { 0 } };        /* two each, so that no addition waits for the one before */
  g[t] += rt * c[t];
  mn_store(G, g[t]);
#pragma GCC unroll 16
  for (int s = 0; s < t; s++) {
    mn_lanes coef = mn_splat(c[s]), gs = g[s] + rt * coef;
    if (readers) sum[s % 2] += before[s] * coef;
    dd[s % 2] += before[s] * gs;
    g[s] = gs * d;
  }
  mn_store(ddecay, dd[0] + dd[1]);
  if (readers) mn_store(dr, d * (sum[0] + sum[1]) + x * c[t]);
}

/* One vector of channels at a time: the running rows of all t fit the first-level cache, their gradients the registers. */
MN_INLINE void back(const bool readers, int n, long ld, const float *x, const float *decay, const float *r, const float *coef,
                    float *G, float *ddecay, float *dr) {
  for (int j = 0; j < n; j += MN_LANES) {
    mn_lanes run[L * (L - 1) / 2], now[L], g[L];
#pragma GCC unroll 16
    for (int t = 0; t < L - 1; t++) {
      mn_lanes d = mn_load(decay + t * ld + j);
      now[t] = mn_load(x + t * ld + j);
#pragma GCC unroll 16
      for (int s = 0; s <= t; s++) {
        if (s < t) now[s] *= d;
        run[t * (t + 1) / 2 + s] = now[s];
      }
    }
#pragma GCC unroll 16
    for (int t = 0; t < L; t++) g[t] = mn_load(G + t * ld + j);
#define ROW(t) \
    back_row(t, readers, mn_load(x + (t) * ld + j), mn_load(decay + (t) * ld + j), mn_load(r + (t) * ld + j), coef + (t) * L, \
             run + (t) * ((t) - 1) / 2, g, G + (t) * ld + j, ddecay + (t) * ld + j, dr + (t) * ld + j);
    ROW(15) ROW(14) ROW(13) ROW(12) ROW(11) ROW(10) ROW(9) ROW(8)
    ROW(7) ROW(6) ROW(5) ROW(4) ROW(3) ROW(2) ROW(1) ROW(0)
#undef ROW
  }
}

void mn_chunk_back(int n, long ld, const float *x, const float *decay, const float *r, const float *coef,
                   float *G, float *ddecay, float *dr) {
  if (dr) back(true, n, ld, x, decay, r, coef, G, ddecay, dr);
  else    back(false, n, ld, x, decay, r, coef, G, ddecay, G);      /* G: nothing is stored there for dr */
}

void mn_chunk_prefix_back(int n, long ld, const float *decay, const float *P, float *dP, float *ddecay) {
  for (int j = 0; j < n; j += MN_LANES) {
    mn_lanes g = { 0 };
    for (int t = L - 1; t >= 0; t--) {
      mn_lanes dd = mn_load(ddecay + t * ld + j);
      g += mn_load(dP + t * ld + j);
      mn_store(ddecay + t * ld + j, dd + (t ? g * mn_load(P + (t - 1) * ld + j) : g));
      g *= mn_load(decay + t * ld + j);
    }
  }
}
