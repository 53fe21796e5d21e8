/* few.c -- products of a few rows with a packed matrix: see few.h. */
#include <string.h>
#include "few.h"
#include "simd.h"

enum { WIDE = MN_PANEL / MN_LANES };               /* vectors across a panel */
#if MN_LANES == 16
enum { ROWS = 8 };               /* 8 x 2 sums fill half of the 32 registers */
#else
enum { ROWS = 2 };               /* 2 x 4 sums and a row of the panel fill 16 */
#endif

/* One panel of n columns; `transposed`: those columns are stored as rows. */
void mn_pack_panel(const float *B, int ldb, int K, int n, bool transposed, float *panel) {
  if (n < MN_PANEL) memset(panel, 0, sizeof(float) * (size_t)K * MN_PANEL);
  if (!transposed) {
    for (int k = 0; k < K; k++) memcpy(panel + (long)k * MN_PANEL, B + (long)k * ldb, sizeof(float) * (size_t)n);
    return;
  }
  for (int k0 = 0; k0 < K; k0 += 16)                 /* blocks of 16, so that both sides stay in cache */
    for (int j = 0; j < n; j++)
      for (int k = k0; k < K && k < k0 + 16; k++) panel[(long)k * MN_PANEL + j] = B[(long)j * ldb + k];
}

void mn_pack(const float *B, int K, int N, bool transposed, float *panels) {
  for (int p = 0; p < mn_panels(N); p++) {
    int n = N - p * MN_PANEL < MN_PANEL ? N - p * MN_PANEL : MN_PANEL;
    long at = (long)p * MN_PANEL;
    mn_pack_panel(transposed ? B + at * K : B + at, transposed ? K : N, K, n, transposed, panels + at * K);
  }
}

/* `rows` (a constant, so that the sums stay in registers) rows of A with one panel. */
MN_INLINE void block(const int rows, int n, int K, const float *A, long row, long col, const float *panel, float *C, int ldc,
                     bool add) {
  mn_lanes sum[ROWS][WIDE];
#pragma GCC unroll 8
  for (int r = 0; r < rows; r++)
#pragma GCC unroll 8
    for (int j = 0; j < WIDE; j++) sum[r][j] = mn_splat(0);
  for (int k = 0; k < K; k++) {
    mn_lanes b[WIDE];
#pragma GCC unroll 8
    for (int j = 0; j < WIDE; j++) b[j] = mn_load(panel + (long)k * MN_PANEL + j * MN_LANES);
#pragma GCC unroll 8
    for (int r = 0; r < rows; r++) {
      float a = A[r * row + k * col];
#pragma GCC unroll 8
      for (int j = 0; j < WIDE; j++) sum[r][j] += a * b[j];
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < rows; r++) {
    float *c = C + (long)r * ldc, edge[MN_PANEL];
    if (n == MN_PANEL) {
#pragma GCC unroll 8
      for (int j = 0; j < WIDE; j++)
        mn_store(c + j * MN_LANES, add ? mn_load(c + j * MN_LANES) + sum[r][j] : sum[r][j]);
      continue;
    }
#pragma GCC unroll 8
    for (int j = 0; j < WIDE; j++) mn_store(edge + j * MN_LANES, sum[r][j]);
    for (int j = 0; j < n; j++) c[j] = add ? c[j] + edge[j] : edge[j];
  }
}

/* All rows with one panel; A's element (m, k) is at m * row + k * col. */
MN_INLINE void panel_rows(int M, int n, int K, const float *A, long row, long col, const float *panel, float *C, int ldc,
                          bool add) {
  int m = 0;
  for (; m + ROWS <= M; m += ROWS) block(ROWS, n, K, A + m * row, row, col, panel, C + (long)m * ldc, ldc, add);
#if MN_LANES == 16
  for (; m + 4 <= M; m += 4) block(4, n, K, A + m * row, row, col, panel, C + (long)m * ldc, ldc, add);
#endif
  for (; m < M; m++) block(1, n, K, A + m * row, row, col, panel, C + (long)m * ldc, ldc, add);
}

/* Depth is cut so that a piece of a panel stays in the first cache while the rows go by. */
void mn_panels_rows(int m0, int m1, int N, int K, const float *A, int lda, bool transposed, const float *panels,
                    float *C, int ldc, bool add) {
  enum { DEPTH = 256 };
  for (int k0 = 0; k0 < K; k0 += DEPTH) {
    int depth = K - k0 < DEPTH ? K - k0 : DEPTH;
    for (int p = 0; p < mn_panels(N); p++) {
      int n = N - p * MN_PANEL < MN_PANEL ? N - p * MN_PANEL : MN_PANEL;
      const float *panel = panels + ((long)p * K + k0) * MN_PANEL;
      float *c = C + (long)m0 * ldc + p * MN_PANEL;
      if (transposed) panel_rows(m1 - m0, n, depth, A + (long)k0 * lda + m0, 1, lda, panel, c, ldc, add || k0);
      else panel_rows(m1 - m0, n, depth, A + (long)m0 * lda + k0, lda, 1, panel, c, ldc, add || k0);
    }
  }
}

void mn_few(mn_ctx *mn, int M, int N, int K, const float *A, int lda, const float *panels, float *C, int ldc, bool add) {
  MN_FOR(mn, (double)M * N * K / 8, n, 0, N, MN_PANEL,
         panel_rows(M, (int)(N - n < MN_PANEL ? N - n : MN_PANEL), K, A, lda, 1, panels + n * K, C + n, ldc, add));
}
