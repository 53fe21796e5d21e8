/* tile_products.c -- matrix products of tiles that fit in registers: see tile_products.h. */
#include <stdbool.h>
#include <string.h>
#include "op.h"
#include "simd.h"
#include "tile_products.h"

enum { L = 16 };                 /* rows of a triangle */

/* acc += column k of A times row k of B.  Rows of A lie ra apart: if not one after another, every fourth has a pointer of
** its own, from which the next three are reached: sixteen would not fit the registers.  ra3: 3 ra, not recomputed. */
MN_INLINE void block_step(const int RM, const int RN, const float *const *a, long ra, long ra3, const float *B, mn_lanes (*acc)[4]) {
  mn_lanes b[4];
#pragma GCC unroll 4
  for (int j = 0; j < RN; j++) {
    b[j] = mn_load(B + j * MN_LANES);
    MN_HOLD(b[j]);
  }
#pragma GCC unroll 16
  for (int i = 0; i < RM; i++) {
    float f = ra == 1 ? a[0][i] : a[i / 4][i % 4 == 3 ? ra3 : i % 4 * ra];
#pragma GCC unroll 4
    for (int j = 0; j < RN; j++) acc[i][j] += b[j] * f;
  }
}

/* A block of C in registers: RM rows by RN vectors.  The counts are constants where it is inlined, and ra or ca is,
** so that acc never touches memory and the loop moves as few pointers as can be. */
MN_INLINE void block(const int RM, const int RN, int K, const float *A, long ra, long ca,
                     const float *B, long ldb, const float *C0, long ld0, const float *row, const float *col,
                     float *C, long ldc) {
  mn_lanes acc[16][4];
  const float *a[4];
  const int pointers = ra == 1 ? 1 : RM / 4;
  long ra3 = 3 * ra;
  MN_KEEP(ra3);
#pragma GCC unroll 16
  for (int i = 0; i < RM; i++)
#pragma GCC unroll 4
    for (int j = 0; j < RN; j++) acc[i][j] = (mn_lanes){ 0 };
#pragma GCC unroll 4
  for (int i = 0; i < pointers; i++) a[i] = A + 4 * i * ra;
  for (int k = 0; k < K; k++, B += ldb) {
    block_step(RM, RN, a, ra, ra3, B, acc);
#pragma GCC unroll 4
    for (int i = 0; i < pointers; i++) {
      a[i] += ca;
      MN_KEEP(a[i]);
    }
  }
#pragma GCC unroll 16
  for (int i = 0; i < RM; i++)
#pragma GCC unroll 4
    for (int j = 0; j < RN; j++) {
      if (C0) {
        mn_lanes kept = mn_splat(1);
        if (row) kept *= row[i];
        if (col) kept *= mn_load(col + j * MN_LANES);
        acc[i][j] += kept * mn_load(C0 + i * ld0 + j * MN_LANES);
      }
      mn_store(C + i * ldc + j * MN_LANES, acc[i][j]);
    }
}

#if MN_LANES == 16
enum { WIDE_M = 4, WIDE_N = 4, THIN_M = 16, THIN_N = 1 };  /* of 32 registers */
#else
enum { WIDE_M = 4, WIDE_N = 2, THIN_M = 4, THIN_N = 2 };    /* of 16 registers */
#endif

MN_INLINE void gemm(int M, int N, int K, const float *A, long ra, long ca, const float *B, long ldb, const float *C0,
                    long ld0, const float *row, const float *col, float *C, long ldc) {
  int j = 0;
  for (; j + WIDE_N * MN_LANES <= N; j += WIDE_N * MN_LANES)
    for (int i = 0; i < M; i += WIDE_M)
      block(WIDE_M, WIDE_N, K, A + i * ra, ra, ca, B + j, ldb, MN_AT(C0, i * ld0 + j), ld0,
            MN_AT(row, i), MN_AT(col, j), C + i * ldc + j, ldc);
  for (; j < N; j += THIN_N * MN_LANES) {
    int i = 0;
    for (; i + THIN_M <= M; i += THIN_M)
      block(THIN_M, THIN_N, K, A + i * ra, ra, ca, B + j, ldb, MN_AT(C0, i * ld0 + j), ld0,
            MN_AT(row, i), MN_AT(col, j), C + i * ldc + j, ldc);
    if (i < M)
      block(8, THIN_N, K, A + i * ra, ra, ca, B + j, ldb, MN_AT(C0, i * ld0 + j), ld0,
            MN_AT(row, i), MN_AT(col, j), C + i * ldc + j, ldc);
  }
}

void mn_tile_gemm_to(int M, int N, int K, const float *A, long ra, long ca, const float *B, long ldb, const float *C0,
                      long ld0, const float *row, const float *col, float *C, long ldc) {
  if (ra == 1) gemm(M, N, K, A, 1, ca, B, ldb, C0, ld0, row, col, C, ldc);
  else         gemm(M, N, K, A, ra, 1, B, ldb, C0, ld0, row, col, C, ldc);
}

void mn_tile_gemm(int M, int N, int K, const float *A, long ra, long ca, const float *B, long ldb,
                   const float *C0, const float *row, const float *col, float *C, long ldc) {
  mn_tile_gemm_to(M, N, K, A, ra, ca, B, ldb, C0, ldc, row, col, C, ldc);
}

/* Four rows at a time where the columns are many, each with the products that are not 0; else all of them at once. */
MN_INLINE void triangle(const bool since, int N, const float *A, const float *B, long ldb, const float *row,
                        const float *C0, long ld0, float *C, long ldc) {
  const long ra = since ? L : 1, ca = since ? 1 : L;
  const int wide = N / (WIDE_N * MN_LANES) * (WIDE_N * MN_LANES);
  for (int i = 0; i < L; i += WIDE_M) {
    const int s = since ? i : 0, n = since ? L - i : i + WIDE_M;
    gemm(WIDE_M, wide, n, A + i * ra + s * ca, ra, ca, B + s * ldb, ldb, C0 + i * ld0, ld0, row + i, NULL, C + i * ldc, ldc);
  }
  gemm(L, N - wide, L, A, ra, ca, B + wide, ldb, C0 + wide, ld0, row, NULL, C + wide, ldc);
}

void mn_tile_since(int N, const float *A, const float *B, long ldb, const float *row, const float *C0, long ld0,
                    float *C, long ldc) {
  triangle(true, N, A, B, ldb, row, C0, ld0, C, ldc);
}

void mn_tile_until(int N, const float *A, const float *B, long ldb, const float *row, const float *C0, long ld0,
                    float *C, long ldc) {
  triangle(false, N, A, B, ldb, row, C0, ld0, C, ldc);
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

void mn_tile_dots(int M, int N, int K, const float *A, long lda, const float *B, long ldb,
                   float *C, long ldc) {
  enum { RM = MN_LANES == 16 ? 4 : 2 };
  for (int j = 0; j < N; j += 4)
    for (int i = 0; i < M; i += RM)
      dots_block(RM, K, A + i * lda, lda, B + j * ldb, ldb, C + i * ldc + j, ldc);
}

void mn_tile_transpose(int rows, int cols, const float *from, long ld, float *to, long ldt) {
  for (int i = 0; i < rows; i += MN_LANES)
    for (int j = 0; j < cols; j += MN_LANES) {
      mn_lanes a[MN_LANES];
#pragma GCC unroll 16
      for (int r = 0; r < MN_LANES; r++) a[r] = mn_load(from + (i + r) * ld + j);
      mn_turn_lanes(a);
#pragma GCC unroll 16
      for (int r = 0; r < MN_LANES; r++) mn_store(to + (j + r) * ldt + i, a[r]);
    }
}
