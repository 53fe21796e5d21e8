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

void mn_pack(const float *B, int K, int N, bool transposed, float *panels) {
  for (int p = 0; p < mn_panels(N); p++, panels += (long)K * MN_PANEL) {
    int n = N - p * MN_PANEL < MN_PANEL ? N - p * MN_PANEL : MN_PANEL;
    if (n < MN_PANEL) memset(panels, 0, sizeof(float) * (size_t)K * MN_PANEL);
    if (!transposed) {
      for (int k = 0; k < K; k++) memcpy(panels + (long)k * MN_PANEL, B + (long)k * N + p * MN_PANEL, sizeof(float) * (size_t)n);
      continue;
    }
    for (int k0 = 0; k0 < K; k0 += 16)               /* blocks of 16, so that both sides stay in cache */
      for (int j = 0; j < n; j++)
        for (int k = k0; k < K && k < k0 + 16; k++) panels[(long)k * MN_PANEL + j] = B[(long)(p * MN_PANEL + j) * K + k];
  }
}

/* `rows` (a constant, so that the sums stay in registers) rows of A with one panel. */
MN_INLINE void block(const int rows, int n, int K, const float *A, int lda, const float *panel, float *C, int ldc, bool add) {
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
      float a = A[(long)r * lda + k];
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

static void panel_rows(int M, int n, int K, const float *A, int lda, const float *panel, float *C, int ldc, bool add) {
  int m = 0;
  for (; m + ROWS <= M; m += ROWS) block(ROWS, n, K, A + (long)m * lda, lda, panel, C + (long)m * ldc, ldc, add);
#if MN_LANES == 16
  for (; m + 4 <= M; m += 4) block(4, n, K, A + (long)m * lda, lda, panel, C + (long)m * ldc, ldc, add);
#endif
  for (; m < M; m++) block(1, n, K, A + (long)m * lda, lda, panel, C + (long)m * ldc, ldc, add);
}

void mn_few(mn_ctx *mn, int M, int N, int K, const float *A, int lda, const float *panels, float *C, int ldc, bool add) {
  int count = mn_panels(N);
  MN_PARALLEL(mn, (double)M * N * K / 8)
  for (int p = 0; p < count; p++) {
    int n = N - p * MN_PANEL < MN_PANEL ? N - p * MN_PANEL : MN_PANEL;
    panel_rows(M, n, K, A, lda, panels + (long)p * K * MN_PANEL, C + (long)p * MN_PANEL, ldc, add);
  }
}
