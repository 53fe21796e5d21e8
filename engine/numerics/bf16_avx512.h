/* bf16_avx512.h -- rows and panels of bfloat16 with AVX512-BF16, for the two files that are compiled for it: what AMX's tiles
** leave over goes the same way. */
#ifndef MN_BF16_AVX512_H
#define MN_BF16_AVX512_H
#include "bf16.h"
#include "simd.h"

#if defined __AVX512BF16__ && defined __AVX512BW__ && MN_LANES == 16
#define MN_BF16_VECTORS
#include <immintrin.h>

typedef __m512i mn_pairs;        /* 16 pairs of bfloat16 */

/* The first n of 16 floats; the others are 0. */
MN_INLINE __m512 mn_floats(const float *p, long n) {
  return n >= 16 ? _mm512_loadu_ps(p) : n <= 0 ? _mm512_setzero_ps() : _mm512_maskz_loadu_ps((__mmask16)((1u << n) - 1), p);
}

/* Pairs of the numbers of one row: n floats, up to 32. */
MN_INLINE mn_pairs mn_pairs_along(const float *p, long n) {
  return (mn_pairs)_mm512_cvtne2ps_pbh(mn_floats(p + 16, n - 16), mn_floats(p, n));
}

/* Pairs of two rows, number by number: of n columns, up to 16.  `second` NULL: zeros. */
MN_INLINE mn_pairs mn_pairs_across(const float *first, const float *second, long n) {
  const __m512i order = _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24, 8, 23, 7, 22, 6, 21, 5, 20, 4, 19, 3,
                                         18, 2, 17, 1, 16, 0);
  __m512 a = mn_floats(first, n), b = second ? mn_floats(second, n) : _mm512_setzero_ps();
  return _mm512_permutexvar_epi16(order, (mn_pairs)_mm512_cvtne2ps_pbh(b, a));
}

/* 16 vectors of 16 pairs: rows become columns. */
MN_INLINE void mn_turn_pairs(mn_pairs *v) {
  mn_lanes x[16];
  memcpy(x, v, sizeof x);
  mn_turn_lanes(x);
  memcpy(v, x, sizeof x);
}

enum { AWAY = 16 };               /* rows that are on their way from far memory while pairs of rows are converted */

static void mn_bf16_pack_vectors(const float *B, int ldb, int K, int n, bool transposed, float *panel) {
  const int pairs = (int)mn_bf16_depth(K);
  if (!transposed) {
    for (int k = 0; k < pairs; k++, panel += PANEL)
      for (int j = 0; j < PANEL; j += 16) {
        const float *b = B + 2L * k * ldb + j;
        __builtin_prefetch(b + AWAY * ldb);
        __builtin_prefetch(b + (AWAY + 1) * ldb);
        _mm512_storeu_si512(panel + j, mn_pairs_across(b, 2 * k + 1 < K ? b + ldb : NULL, n - j));
      }
    return;
  }
  for (int j = 0; j < PANEL; j += 16)
    for (int k = 0; k < pairs; k += 16) {
      mn_pairs v[16];
#pragma GCC unroll 16
      for (int r = 0; r < 16; r++) v[r] = j + r < n ? mn_pairs_along(B + (long)(j + r) * ldb + 2 * k, K - 2 * k) : _mm512_setzero_si512();
      mn_turn_pairs(v);
      for (int r = 0; r < 16 && k + r < pairs; r++) _mm512_storeu_si512(panel + (long)(k + r) * PANEL + j, v[r]);
    }
}

/* Rows m .. m+some-1 and depth k .. of A in pairs, rows of DEPTH numbers; what is left of 32 numbers, or of 16 rows where
** `transposed`, holds zeros. */
static void mn_bf16_take_rows(int some, int depth, const float *A, long lda, bool transposed, int m, int k, uint16_t *to) {
  if (!transposed) {
    for (int r = 0; r < some; r++)
      for (int i = 0; i < depth; i += 32) _mm512_store_si512(to + r * DEPTH + i, mn_pairs_along(A + (m + r) * lda + k + i, depth - i));
    return;
  }
  for (int i = 0; i < depth; i += 32)
    for (int r = 0; r < some; r += 16) {
      mn_pairs v[16];
#pragma GCC unroll 16
      for (int p = 0; p < 16; p++) {
        const float *x = A + (long)(k + i + 2 * p) * lda + m + r;
        const int left = depth - i - 2 * p;
        v[p] = left > 0 ? mn_pairs_across(x, left > 1 ? x + lda : NULL, some - r) : _mm512_setzero_si512();
      }
      mn_turn_pairs(v);
#pragma GCC unroll 16
      for (int p = 0; p < 16; p++) _mm512_store_si512(to + (r + p) * DEPTH + i, v[p]);
    }
}

enum { BLOCK = 12 };              /* 12 x 2 sums of 32 registers */
enum { AHEAD = 64 };              /* rows of a panel that are on their way from far memory, while few rows of A pass */

/* `rows` rows of pairs with one panel, its sums in registers.  Rows lie `row` numbers apart, pairs of a row `next`, pieces of DEPTH `piece`.
** `whole`: of a whole panel, without masks; a masked store is not forwarded to the load that comes next. */
MN_INLINE void mn_bf16_block(const bool whole, const int rows, const long row, const long next, const long piece, int n, int pairs, const uint16_t *a,
                             const float *panel, float *C, long ldc, bool add) {
  const __mmask16 first = n >= 16 ? 0xffff : (__mmask16)((1u << n) - 1);
  const __mmask16 second = n >= 32 ? 0xffff : n > 16 ? (__mmask16)((1u << (n - 16)) - 1) : 0;
  __m512 sum[16][2];
#pragma GCC unroll 16
  for (int r = 0; r < rows; r++) sum[r][0] = sum[r][1] = _mm512_setzero_ps();
  if (add) {
    const float *c = C;
#pragma GCC unroll 16
    for (int r = 0; r < rows; r++, c += ldc) {
      MN_KEEP(c);
      sum[r][0] = whole ? _mm512_loadu_ps(c) : _mm512_maskz_loadu_ps(first, c);
      sum[r][1] = whole ? _mm512_loadu_ps(c + 16) : _mm512_maskz_loadu_ps(second, c + 16);
    }
  }
  for (int left = pairs; left > 0; left -= DEPTH / 2, a += piece)
    for (int k = 0; k < (left < DEPTH / 2 ? left : DEPTH / 2); k++, panel += PANEL) {
      if (rows < BLOCK) {
        __builtin_prefetch(panel + AHEAD * PANEL);
        __builtin_prefetch(panel + AHEAD * PANEL + 16);
      }
      const __m512bh b0 = (__m512bh)_mm512_loadu_si512(panel), b1 = (__m512bh)_mm512_loadu_si512(panel + 16);
#pragma GCC unroll 16
      for (int r = 0; r < rows; r++) {
        int pair;
        memcpy(&pair, a + r * row + k * next, sizeof pair);
        const __m512bh x = (__m512bh)_mm512_set1_epi32(pair);
        sum[r][0] = _mm512_dpbf16_ps(sum[r][0], x, b0);
        sum[r][1] = _mm512_dpbf16_ps(sum[r][1], x, b1);
      }
    }
#pragma GCC unroll 16
  for (int r = 0; r < rows; r++, C += ldc) {
    MN_KEEP(C);
    if (whole) {
      _mm512_storeu_ps(C, sum[r][0]);
      _mm512_storeu_ps(C + 16, sum[r][1]);
    } else {
      _mm512_mask_storeu_ps(C, first, sum[r][0]);
      _mm512_mask_storeu_ps(C + 16, second, sum[r][1]);
    }
  }
}

/* Blocks of a whole panel, each a function of its own: their sums need all registers. */
#define MN_WHOLE(rows, name, row, next) \
  static __attribute__((noinline, unused)) void name(long piece, int pairs, const uint16_t *a, const float *panel, float *C, long ldc, bool add) { \
    mn_bf16_block(true, rows, row, next, piece, PANEL, pairs, a, panel, C, ldc, add); \
  }
MN_WHOLE(BLOCK, mn_bf16_many, DEPTH, 2)
MN_WHOLE(8, mn_bf16_eight, DEPTH, 2)
MN_WHOLE(BLOCK, mn_bf16_many_columns, 2, 2 * SOME)
MN_WHOLE(8, mn_bf16_eight_columns, 2, 2 * SOME)

MN_INLINE void mn_bf16_all_rows(const bool columns, const long piece, int some, int n, int pairs, const uint16_t *a, const float *panel, float *C,
                                long ldc, bool add) {
  const long row = columns ? 2 : DEPTH, next = columns ? 2 * SOME : 2;
  int m = 0;
  if (n >= PANEL) {
    for (; some - m >= BLOCK && some - m != 16; m += BLOCK)           /* 16 are two blocks of 8: sums of 4 rows would wait for each other */
      (columns ? mn_bf16_many_columns : mn_bf16_many)(piece, pairs, a + m * row, panel, C + m * ldc, ldc, add);
    for (; m + 8 <= some; m += 8) (columns ? mn_bf16_eight_columns : mn_bf16_eight)(piece, pairs, a + m * row, panel, C + m * ldc, ldc, add);
  }
#define MN_BLOCKS(rows) for (; m + rows <= some; m += rows) \
    mn_bf16_block(false, rows, row, next, piece, n, pairs, a + m * row, panel, C + m * ldc, ldc, add)
  MN_BLOCKS(8);
  MN_BLOCKS(4);
  MN_BLOCKS(2);
  MN_BLOCKS(1);
#undef MN_BLOCKS
}

static void mn_bf16_panel_rows(int some, int n, int depth, const uint16_t *a, const float *panel, float *C, long ldc, bool add) {
  mn_bf16_all_rows(false, 0, some, n, (int)mn_bf16_depth(depth), a, panel, C, ldc, add);
}
#endif
#endif
