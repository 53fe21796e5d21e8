/* chunk.c -- arithmetic of sixteen tokens at once, for the chunked form of gated linear attention.
** Sixteen, because the work per token, 2 V K (1 + 1/L) + L (V + K) for chunks of L, has its minimum
** nearby at the usual sizes. */
#include <string.h>
#include "chunk.h"
#include "simd.h"

enum { L = 16 };

/* A block of C in registers: RM rows by RN vectors.  The counts are constants where it is inlined,
** so that acc never touches memory. */
MN_INLINE void block(const int RM, const int RN, int K, const float *A, long ra, long ca,
                     const float *B, long ldb, const float *C0, const float *row, const float *col,
                     float *C, long ldc) {
  mn_lanes acc[16][4];
#pragma GCC unroll 16
  for (int i = 0; i < RM; i++)
#pragma GCC unroll 4
    for (int j = 0; j < RN; j++) {
      acc[i][j] = C0 ? mn_load(C0 + i * ldc + j * MN_LANES) : (mn_lanes){ 0 };
      if (row) acc[i][j] *= row[i];
      if (col) acc[i][j] *= mn_load(col + j * MN_LANES);
    }
  for (int k = 0; k < K; k++) {
    mn_lanes b[4];
#pragma GCC unroll 4
    for (int j = 0; j < RN; j++) {
      b[j] = mn_load(B + k * ldb + j * MN_LANES);
      MN_HOLD(b[j]);
    }
#pragma GCC unroll 16
    for (int i = 0; i < RM; i++) {
      float f = A[i * ra + k * ca];
#pragma GCC unroll 4
      for (int j = 0; j < RN; j++) acc[i][j] += b[j] * f;
    }
  }
#pragma GCC unroll 16
  for (int i = 0; i < RM; i++)
#pragma GCC unroll 4
    for (int j = 0; j < RN; j++) mn_store(C + i * ldc + j * MN_LANES, acc[i][j]);
}

#if MN_LANES == 16
enum { WIDE_M = 4, WIDE_N = 4, THIN_M = 16, THIN_N = 1 };  /* of 32 registers */
#else
enum { WIDE_M = 4, WIDE_N = 2, THIN_M = 4, THIN_N = 2 };    /* of 16 registers */
#endif

#define AT(p, offset) ((p) ? (p) + (offset) : NULL)

void mn_chunk_gemm(int M, int N, int K, const float *A, long ra, long ca, const float *B, long ldb,
                   const float *C0, const float *row, const float *col, float *C, long ldc) {
  int j = 0;
  for (; j + WIDE_N * MN_LANES <= N; j += WIDE_N * MN_LANES)
    for (int i = 0; i < M; i += WIDE_M)
      block(WIDE_M, WIDE_N, K, A + i * ra, ra, ca, B + j, ldb, AT(C0, i * ldc + j),
            AT(row, i), AT(col, j), C + i * ldc + j, ldc);
  for (; j < N; j += THIN_N * MN_LANES)
    for (int i = 0; i < M; i += THIN_M)
      block(THIN_M, THIN_N, K, A + i * ra, ra, ca, B + j, ldb, AT(C0, i * ldc + j),
            AT(row, i), AT(col, j), C + i * ldc + j, ldc);
}

/* RM rows of A times 4 rows of B, RM*4 a multiple of the lanes: sums by lanes, added at the end. */
MN_INLINE void dots_block(const int RM, int K, const float *A, long lda, const float *B, long ldb,
                          float *C, long ldc) {
  mn_lanes acc[16];
#pragma GCC unroll 16
  for (int i = 0; i < RM * 4; i++) acc[i] = (mn_lanes){ 0 };
  for (int k = 0; k < K; k += MN_LANES) {
    mn_lanes b[4];
#pragma GCC unroll 4
    for (int j = 0; j < 4; j++) {
      b[j] = mn_load(B + j * ldb + k);
      MN_HOLD(b[j]);
    }
#pragma GCC unroll 4
    for (int i = 0; i < RM; i++) {
      mn_lanes a = mn_load(A + i * lda + k);
      MN_HOLD(a);
#pragma GCC unroll 4
      for (int j = 0; j < 4; j++) acc[i * 4 + j] += a * b[j];
    }
  }
  float sums[16];
#pragma GCC unroll 4
  for (int i = 0; i < RM * 4; i += MN_LANES) mn_store(sums + i, mn_sums(acc + i));
#pragma GCC unroll 4
  for (int i = 0; i < RM; i++) memcpy(C + i * ldc, sums + i * 4, 4 * sizeof(float));
}

void mn_chunk_dots(int M, int N, int K, const float *A, long lda, const float *B, long ldb,
                   float *C, long ldc) {
  enum { RM = MN_LANES == 16 ? 4 : 2 };
  for (int j = 0; j < N; j += 4)
    for (int i = 0; i < M; i += RM)
      dots_block(RM, K, A + i * lda, lda, B + j * ldb, ldb, C + i * ldc + j, ldc);
}

#if MN_LANES == 16
/* Four times, row i and row i+8 shuffled into each other: then rows are columns. */
static void transpose_block(const float *from, long ld, float *to, long ldt) {
  mn_lanes a[16], b[16];
#pragma GCC unroll 16
  for (int i = 0; i < 16; i++) a[i] = mn_load(from + i * ld);
#pragma GCC unroll 4
  for (int stage = 0; stage < 4; stage++) {
#pragma GCC unroll 8
    for (int i = 0; i < 8; i++) {
      b[2 * i] = __builtin_shufflevector(a[i], a[i + 8], 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21,
                                         6, 22, 7, 23);
      b[2 * i + 1] = __builtin_shufflevector(a[i], a[i + 8], 8, 24, 9, 25, 10, 26, 11, 27, 12, 28,
                                             13, 29, 14, 30, 15, 31);
    }
    memcpy(a, b, sizeof a);
  }
#pragma GCC unroll 16
  for (int i = 0; i < 16; i++) mn_store(to + i * ldt, a[i]);
}
#else
static void transpose_block(const float *from, long ld, float *to, long ldt) {
  for (int i = 0; i < 16; i++)
    for (int j = 0; j < 16; j++) to[j * ldt + i] = from[i * ld + j];
}
#endif

void mn_chunk_transpose(int rows, int cols, const float *from, float *to) {
  for (int i = 0; i < rows; i += 16)
    for (int j = 0; j < cols; j += 16)
      transpose_block(from + (long)i * cols + j, cols, to + (long)j * rows + i, rows);
}

void mn_chunk_prefix(int n, const float *decay, float *P) {
  for (int j = 0; j < n; j += MN_LANES) {
    mn_lanes p = mn_load(decay + j);
    mn_store(P + j, p);
    for (int t = 1; t < L; t++) {
      p *= mn_load(decay + t * n + j);
      mn_store(P + t * n + j, p);
    }
  }
}

void mn_chunk_run(int n, const float *decay, float *x, float *kept) {
  for (int j = 0; j < n; j += MN_LANES) {
    mn_lanes later = mn_load(decay + (L - 1) * n + j);
    for (int t = L - 2; t >= 0; t--) {
      mn_store(x + t * n + j, mn_load(x + t * n + j) * later);
      later *= mn_load(decay + t * n + j);
    }
    mn_store(kept + j, later);
  }
}

/* Row t of the scores: advances the running rows by one token and dots all of them with r_t. */
MN_INLINE void score_row(const int t, int n, const float *x, const float *decay, const float *r,
                         float *run, float *S) {
  mn_lanes acc[L];
#pragma GCC unroll 16
  for (int s = 0; s < L; s++) acc[s] = (mn_lanes){ 0 };
  for (int j = 0; j < n; j += MN_LANES) {
    mn_lanes rt = mn_load(r + t * n + j), d = mn_load(decay + t * n + j);
#pragma GCC unroll 16
    for (int s = 0; s < t; s++) {
      mn_lanes k = mn_load(run + s * n + j) * d;
      mn_store(run + s * n + j, k);
      acc[s] += k * rt;
    }
    mn_lanes k = mn_load(x + t * n + j);
    mn_store(run + t * n + j, k);
    acc[t] += k * rt;
  }
#pragma GCC unroll 4
  for (int s = 0; s < L; s += MN_LANES) mn_store(S + t * L + s, mn_sums(acc + s));
}

void mn_chunk_scores(int n, const float *x, const float *decay, const float *r, float *run,
                     float *S) {
#define ROW(t) score_row(t, n, x, decay, r, run, S);
  ROW(0) ROW(1) ROW(2) ROW(3) ROW(4) ROW(5) ROW(6) ROW(7)
  ROW(8) ROW(9) ROW(10) ROW(11) ROW(12) ROW(13) ROW(14) ROW(15)
#undef ROW
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

/* One vector of channels at a time, so that the running rows of all t fit the first-level cache. */
void mn_chunk_back(int n, const float *x, const float *decay, const float *r, const float *coef,
                   float *G, float *ddecay, float *dr) {
  for (int j = 0; j < n; j += MN_LANES) {
    mn_lanes run[L * (L + 1) / 2], g[L], *now = run;
    for (int t = 0; t < L; t++) {
      mn_lanes d = mn_load(decay + t * n + j);
      for (int s = 0; s < t; s++) now[s] = (now - t)[s] * d;
      now[t] = mn_load(x + t * n + j);
      now += t + 1;
      g[t] = mn_load(G + t * n + j);
    }
    for (int t = L - 1; t >= 0; t--) {
      now -= t + 1;
      const float *c = coef + t * L;
      mn_lanes d = mn_load(decay + t * n + j), rt = mn_load(r + t * n + j);
      mn_lanes sum = now[t] * c[t], dd = { 0 };
      mn_store(G + t * n + j, g[t] + rt * c[t]);
      for (int s = 0; s < t; s++) {
        mn_lanes gs = g[s] + rt * c[s];
        sum += now[s] * c[s];
        dd += gs * (now - t)[s];
        g[s] = gs * d;
      }
      mn_store(ddecay + t * n + j, dd);
      if (dr) mn_store(dr + t * n + j, mn_load(dr + t * n + j) + sum);
    }
  }
}

void mn_chunk_prefix_back(int n, const float *decay, const float *P, float *dP, float *ddecay) {
  for (int j = 0; j < n; j += MN_LANES) {
    mn_lanes g = { 0 };
    for (int t = L - 1; t >= 0; t--) {
      mn_lanes dd = mn_load(ddecay + t * n + j);
      g += mn_load(dP + t * n + j);
      mn_store(ddecay + t * n + j, dd + (t ? g * mn_load(P + (t - 1) * n + j) : g));
      g *= mn_load(decay + t * n + j);
    }
  }
}
