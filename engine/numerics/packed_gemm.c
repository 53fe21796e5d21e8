/* packed_gemm.c -- products of a few rows with a packed matrix: see packed_gemm.h. */
#include <string.h>
#include "tile_products.h"
#include "packed_gemm.h"
#include "simd.h"

enum { AHEAD = 32 };              /* rows of a panel that are on their way from far memory */
enum { WIDE = MN_PANEL / MN_LANES };               /* vectors across a panel */
#if MN_LANES == 16
enum { ROWS = 8, FOUR_ACROSS = 4, TWO_ACROSS = 6 };    /* 8 x 2 sums fill half of the 32 registers, as 4 x 4 do */
#else
enum { ROWS = 6, FOUR_ACROSS = 2, TWO_ACROSS = 4 };    /* 6 x 2 sums, two vectors of a panel and one of A: 15 of 16 registers */
#endif
enum { TWO = TWO_ACROSS * MN_LANES, MOST = TWO_ACROSS > 2 * WIDE ? TWO_ACROSS : 2 * WIDE };   /* columns of two rows at once; vectors across a block */

/* One panel of n columns; `transposed`: those columns are stored as rows. */
void mn_pack_panel(const float *B, int ldb, int K, int n, bool transposed, float *panel) {
  if (n < MN_PANEL) memset(panel, 0, sizeof(float) * (size_t)K * MN_PANEL);
  if (!transposed && n == MN_PANEL) {       /* a copy whose length the compiler knows */
    for (int k = 0; k < K; k++) memcpy(panel + (long)k * MN_PANEL, B + (long)k * ldb, sizeof(float) * MN_PANEL);
    return;
  }
  if (!transposed) {
    for (int k = 0; k < K; k++) memcpy(panel + (long)k * MN_PANEL, B + (long)k * ldb, sizeof(float) * (size_t)n);
    return;
  }
  const int rows = n / 16 * 16, columns = K / 16 * 16;
  mn_tile_transpose(rows, columns, B, ldb, panel, MN_PANEL);
  for (int j = 0; j < n; j++)
    for (int k = j < rows ? columns : 0; k < K; k++) panel[(long)k * MN_PANEL + j] = B[(long)j * ldb + k];
}

typedef struct pack_job { const mn_bf16 *bf16; const float *B; int K, N; bool transposed; float *panels; } pack_job;

static void panel_task(void *arg, int p, int worker) {
  (void)worker;
  const pack_job *j = arg;
  const int K = j->K, N = j->N, left = N - p * MN_PANEL, n = left < MN_PANEL ? left : MN_PANEL;
  const long at = (long)p * MN_PANEL;
  const float *B = j->transposed ? j->B + at * K : j->B + at;
  float *panel = (float *)mn_panel_of(j->bf16, j->panels, at, K);
  if (j->bf16) j->bf16->pack(B, j->transposed ? K : N, K, n, j->transposed, panel);
  else mn_pack_panel(B, j->transposed ? K : N, K, n, j->transposed, panel);
}

void mn_pack(mn_ctx *mn, const float *B, int K, int N, bool transposed, float *panels) {
  pack_job job = { mn_bf16_of(mn), B, K, N, transposed, panels };
  if ((double)N * K >= MN_ONE_THREAD_WORK) mn_parallel_for(mn, mn_panels(N), panel_task, &job);
  else for (int p = 0; p < mn_panels(N); p++) panel_task(&job, p, 0);
}

/* `rows` rows of A with `across` vectors of a panel, or of several side by side (constants, so that the sums stay in
** registers): a few rows alone have too few sums to keep the multipliers busy.  A's element (m, k) is at m * row + k * col;
** the vectors hold n columns of the product; a panel's rows are `pitch` apart, panels `stride`. */
MN_INLINE void block_at(const long pitch, const int rows, const int across, int n, int K, const float *A, long row, long col,
                        const float *panel, long stride, float *C, int ldc, bool add) {
  mn_lanes sum[ROWS][MOST];
#pragma GCC unroll 8
  for (int r = 0; r < rows; r++)
#pragma GCC unroll 16
    for (int j = 0; j < across; j++) sum[r][j] = mn_splat(0);
  for (int k = 0; k < K; k++) {
    mn_lanes b[MOST];
    if (MN_LANES == 16 || rows != 2 || k + AHEAD < K) {     /* two rows' weights are near, and to look for a page beyond the last panel takes long */
      __builtin_prefetch(panel + (k + AHEAD) * pitch);
      if (across * MN_LANES > 16) __builtin_prefetch(panel + (k + AHEAD) * pitch + 16);
    }
#pragma GCC unroll 16
    for (int j = 0; j < across; j++) {
      b[j] = mn_load(panel + j / WIDE * stride + k * pitch + j % WIDE * MN_LANES);
      if (rows > 1) MN_HOLD(b[j]);
    }
#pragma GCC unroll 8
    for (int r = 0; r < rows; r++) {
      float a = A[r * row + k * col];
#pragma GCC unroll 16
      for (int j = 0; j < across; j++) sum[r][j] += a * b[j];
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < rows; r++) {
    float *c = C + (long)r * ldc, edge[MOST * MN_LANES];
    if (n >= across * MN_LANES) {
#pragma GCC unroll 16
      for (int j = 0; j < across; j++) mn_store(c + j * MN_LANES, add ? mn_load(c + j * MN_LANES) + sum[r][j] : sum[r][j]);
      continue;
    }
#pragma GCC unroll 16
    for (int j = 0; j < across; j++) mn_store(edge + j * MN_LANES, sum[r][j]);
    for (int j = 0; j < n; j++) c[j] = add ? c[j] + edge[j] : edge[j];
  }
}

MN_INLINE void block(const int rows, const int across, int n, int K, const float *A, long row, long col,
                     const float *panel, long stride, float *C, int ldc, bool add) {
  block_at(MN_PANEL, rows, across, n, K, A, row, col, panel, stride, C, ldc, add);
}

/* Rows m .. M-1 as far as whole blocks go, n columns: the row after them.  Columns outside: a block's share of a panel stays
** near while the rows go by. */
MN_INLINE int blocks(const int rows, const int across, int m, int M, int n, int K, const float *A, long row, long col,
                     const float *panel, long stride, float *C, int ldc, bool add) {
  const int end = m + (M - m) / rows * rows;
  for (int j = 0; j < n; j += across * MN_LANES)
    for (int i = m; i < end; i += rows)
      block(rows, across, n - j, K, A + i * row, row, col, panel + j / MN_PANEL * stride + j % MN_PANEL, stride,
            C + (long)i * ldc + j, ldc, add);
  return end;
}

/* Two rows alone: sums enough for the multipliers take as many columns as there are registers for. */
static void two_rows(int N, int K, const float *A, long row, const float *panels, float *C, int ldc, bool add) {
  const long stride = (long)K * MN_PANEL;
  for (int j = 0, n; (n = N - j) > 0; j += TWO) {
    const float *panel = panels + j / MN_PANEL * stride + j % MN_PANEL;
    if (n <= MN_LANES) block(2, 1, n, K, A, row, 1, panel, stride, C + j, ldc, add);
    else if (TWO > 2 * MN_PANEL && n <= MN_PANEL) block(2, WIDE, n, K, A, row, 1, panel, stride, C + j, ldc, add);
    else if (TWO > 2 * MN_PANEL && n <= 2 * MN_PANEL) block(2, 2 * WIDE, n, K, A, row, 1, panel, stride, C + j, ldc, add);
    else block(2, TWO_ACROSS, n, K, A, row, 1, panel, stride, C + j, ldc, add);
  }
}

/* All rows with one panel, or with two, n columns of the last.  Up to one vector of columns, as heads have, is no panel's worth of work. */
MN_INLINE void panel_rows(const int panels, int M, int n, int K, const float *A, long row, long col,
                          const float *panel, long stride, float *C, int ldc, bool add) {
  const int all = panels * WIDE, four = all < FOUR_ACROSS ? all : FOUR_ACROSS, two = all < TWO_ACROSS ? all : TWO_ACROSS;
  int m = 0;
  if (panels == 1 && n <= MN_LANES) {
    m = blocks(ROWS, 1, m, M, n, K, A, row, col, panel, stride, C, ldc, add);
    m = blocks(4, 1, m, M, n, K, A, row, col, panel, stride, C, ldc, add);
    m = blocks(2, 1, m, M, n, K, A, row, col, panel, stride, C, ldc, add);
    blocks(1, 1, m, M, n, K, A, row, col, panel, stride, C, ldc, add);
    return;
  }
  n += (panels - 1) * MN_PANEL;
  m = blocks(ROWS, 2, 0, M, n, K, A, row, col, panel, stride, C, ldc, add);
  m = blocks(4, four, m, M, n, K, A, row, col, panel, stride, C, ldc, add);
  m = blocks(2, two, m, M, n, K, A, row, col, panel, stride, C, ldc, add);
  blocks(1, all, m, M, n, K, A, row, col, panel, stride, C, ldc, add);
}

enum { DEPTH = 256 };             /* the depth is cut so that a piece of a panel stays in the first cache while the rows go by */

void mn_gemm_panel_rows(int m0, int m1, int N, int K, const float *A, int lda, bool transposed, const float *panels,
                    float *C, int ldc, bool add) {
  for (int k0 = 0; k0 < K; k0 += DEPTH) {
    int depth = K - k0 < DEPTH ? K - k0 : DEPTH;
    for (int p = 0; p < mn_panels(N); p++) {
      int n = N - p * MN_PANEL < MN_PANEL ? N - p * MN_PANEL : MN_PANEL;
      const float *panel = panels + ((long)p * K + k0) * MN_PANEL;
      float *c = C + (long)m0 * ldc + p * MN_PANEL;
      if (transposed) panel_rows(1, m1 - m0, n, depth, A + (long)k0 * lda + m0, 1, lda, panel, 0, c, ldc, add || k0);
      else panel_rows(1, m1 - m0, n, depth, A + (long)m0 * lda + k0, lda, 1, panel, 0, c, ldc, add || k0);
    }
  }
}

/* A few rows with `across` vectors of columns that lie side by side. */
MN_INLINE void unpacked_columns(const int across, int M, int K, const float *A, long row, long col, const float *B, int ldb, float *C, int ldc,
                                bool add) {
  const int n = across * MN_LANES;
  int m = 0;
  for (; m + 4 <= M; m += 4) block_at(ldb, 4, across, n, K, A + m * row, row, col, B, MN_PANEL, C + (long)m * ldc, ldc, add);
  for (; m + 2 <= M; m += 2) block_at(ldb, 2, across, n, K, A + m * row, row, col, B, MN_PANEL, C + (long)m * ldc, ldc, add);
  if (m < M) block_at(ldb, 1, across, n, K, A + m * row, row, col, B, MN_PANEL, C + (long)m * ldc, ldc, add);
}

void mn_gemm_unpacked(int M, int N, int K, const float *A, int lda, bool transposed, const float *B, int ldb, float *C, int ldc, bool add) {
  const int wide = FOUR_ACROSS, narrow = wide < WIDE ? wide : WIDE;
  const long row = transposed ? 1 : lda, col = transposed ? lda : 1;
  for (int k = 0; k < K; k += DEPTH, A += DEPTH * col, B += (long)DEPTH * ldb) {
    const int depth = K - k < DEPTH ? K - k : DEPTH;
    int n = 0;
    for (; wide > narrow && n + wide * MN_LANES <= N; n += wide * MN_LANES)
      unpacked_columns(wide, M, depth, A, row, col, B + n, ldb, C + n, ldc, add || k);
    for (; n < N; n += narrow * MN_LANES) unpacked_columns(narrow, M, depth, A, row, col, B + n, ldb, C + n, ldc, add || k);
  }
}

void mn_few_open(mn_few *few, const mn_bf16 *bf16, int M, int K, const float *A, int lda) {
  few->bf16 = bf16, few->M = M, few->K = K, few->lda = lda, few->A = A;
  few->taken = bf16 && (K + MN_BF16_DEPTH - 1) / MN_BF16_DEPTH * mn_bf16_piece(M) <= MN_FEW;
  if (few->taken) bf16->take(M, K, A, lda, few->a);
}

void mn_few_columns(const mn_few *few, int m0, int m1, long left, const float *panel, float *C, int ldc, bool add) {
  const int K = few->K, lda = few->lda, n = (int)(left < 2 * MN_PANEL ? left : 2 * MN_PANEL), M = m1 - m0;
  const float *A = few->A + (long)m0 * lda;
  if (few->taken) few->bf16->taken(M, n, K, few->a + (long)m0 * MN_BF16_DEPTH, mn_bf16_piece(few->M), panel, C, ldc, add);
  else if (few->bf16) few->bf16->rows(0, M, n, K, A, lda, false, panel, C, ldc, add);
  else if (M == 2) two_rows(n, K, A, lda, panel, C, ldc, add);
  else if (n > MN_PANEL) panel_rows(2, M, n - MN_PANEL, K, A, lda, 1, panel, (long)K * MN_PANEL, C, ldc, add);
  else panel_rows(1, M, n, K, A, lda, 1, panel, 0, C, ldc, add);
}

typedef struct few_job { const mn_few *few; int N; const float *panels; float *C; int ldc; bool add; } few_job;

static void columns_task(void *arg, int i, int worker) {
  (void)worker;
  const few_job *j = arg;
  const long n = 2 * MN_PANEL * (long)i;
  mn_few_columns(j->few, 0, j->few->M, j->N - n, mn_panel_of(j->few->bf16, j->panels, n, j->few->K), j->C + n, j->ldc, j->add);
}

void mn_gemm_packed(mn_ctx *mn, int M, int N, int K, const float *A, int lda, const float *panels, float *C, int ldc, bool add) {
  const mn_bf16 *bf16 = mn_bf16_of(mn);
  const bool alone = (double)M * N * K < MN_ONE_THREAD_WORK;
  if (alone && M == 2 && !bf16) {
    two_rows(N, K, A, lda, panels, C, ldc, add);
    return;
  }
  mn_few few;
  mn_few_open(&few, bf16, M, K, A, lda);
  few_job job = { &few, N, panels, C, ldc, add };
  const int pieces = (N + 2 * MN_PANEL - 1) / (2 * MN_PANEL);
  if (!alone) mn_parallel_for(mn, pieces, columns_task, &job);
  else for (int i = 0; i < pieces; i++) columns_task(&job, i, 0);
}
