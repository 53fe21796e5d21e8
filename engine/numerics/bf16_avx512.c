/* bf16_avx512.c -- products of bfloat16 by AVX512-BF16: see bf16_gemm.h.  Compiled for that instruction set (Makefile). */
#include "bf16_avx512.h"

#ifdef MN_BF16_VECTORS
static void rows(int m0, int m1, int N, int K, const float *A, int lda, bool transposed, const float *panels, float *C, int ldc, bool add) {
  _Alignas(64) uint16_t a[SOME * DEPTH];
  for (int m = m0; m < m1; m += SOME)
    for (int k = 0; k < K; k += DEPTH) {
      const int some = m1 - m < SOME ? m1 - m : SOME, depth = K - k < DEPTH ? K - k : DEPTH;
      mn_bf16_take_rows(some, depth, A, lda, transposed, m, k, a);
      for (int n = 0; n < N; n += PANEL)
        mn_bf16_panel_rows(some, N - n, depth, a, panels + n * mn_bf16_depth(K) + k / 2 * PANEL, C + (long)m * ldc + n, ldc, add || k);
    }
}

const mn_bf16 *mn_bf16_avx512(void) {
  static const mn_bf16 own = { "AVX512-BF16", mn_bf16_pack_vectors, rows };
  return __builtin_cpu_supports("avx512bf16") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") ? &own : NULL;
}
#else
const mn_bf16 *mn_bf16_avx512(void) { return NULL; }
#endif
