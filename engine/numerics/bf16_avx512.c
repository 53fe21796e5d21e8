/* bf16_avx512.c -- products of bfloat16 by AVX512-BF16: see bf16_gemm.h.  Compiled for that instruction set (Makefile). */
#include "bf16_avx512.h"

#ifdef MN_BF16_VECTORS
/* Depth k .. of rows m .. of a transposed A, pairs of 64 rows one after another: no row becomes a column.  A's next rows are on their way. */
static void take_columns(int some, int depth, const float *A, long lda, int m, int k, uint16_t *to) {
  for (int i = 0; i < depth; i += 2, to += 2 * SOME) {
    const float *x = A + (long)(k + i) * lda + m;
    for (int r = 0; r < some; r += 16) {
      __builtin_prefetch(x + AWAY * lda + r);
      __builtin_prefetch(x + (AWAY + 1) * lda + r);
      _mm512_store_si512(to + 2 * r, mn_pairs_across(x + r, i + 1 < depth ? x + lda + r : NULL, some - r));
    }
  }
}

static void rows(int m0, int m1, int N, int K, const float *A, int lda, bool transposed, const float *panels, float *C, int ldc, bool add) {
  _Alignas(64) uint16_t a[SOME * DEPTH];
  for (int m = m0; m < m1; m += SOME)
    for (int k = 0; k < K; k += DEPTH) {
      const int some = m1 - m < SOME ? m1 - m : SOME, depth = K - k < DEPTH ? K - k : DEPTH, pairs = (int)mn_bf16_depth(depth);
      if (transposed) take_columns(some, depth, A, lda, m, k, a);
      else mn_bf16_take_rows(some, depth, A, lda, false, m, k, a);
      for (int n = 0; n < N; n += PANEL) {
        const float *panel = panels + n * mn_bf16_depth(K) + k / 2 * PANEL;
        float *c = C + (long)m * ldc + n;
        if (transposed) mn_bf16_all_rows(true, 0, some, N - n, pairs, a, panel, c, ldc, add || k);
        else mn_bf16_panel_rows(some, N - n, depth, a, panel, c, ldc, add || k);
      }
    }
}

static void take(int M, int K, const float *A, int lda, uint16_t *to) {
  for (int k = 0; k < K; k += DEPTH, to += mn_bf16_piece(M)) mn_bf16_take_rows(M, K - k < DEPTH ? K - k : DEPTH, A, lda, false, 0, k, to);
}

static void taken(int M, int N, int K, const uint16_t *a, long piece, const float *panels, float *C, int ldc, bool add) {
  const int pairs = (int)mn_bf16_depth(K);
  for (int n = 0; n < N; n += PANEL) mn_bf16_all_rows(false, piece, M, N - n, pairs, a, panels + (long)n * pairs, C + n, ldc, add);
}

const mn_bf16 *mn_bf16_avx512(void) {
  static const mn_bf16 own = { "AVX512-BF16", mn_bf16_pack_vectors, rows, take, taken };
  return __builtin_cpu_supports("avx512bf16") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") ? &own : NULL;
}
#else
const mn_bf16 *mn_bf16_avx512(void) { return NULL; }
#endif
