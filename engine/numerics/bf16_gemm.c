/* bf16_gemm.c -- products of bfloat16 in plain code, with the bits of the instructions, and which way a CPU has: see bf16_gemm.h. */
#include "bf16.h"

void mn_bf16_pack_plain(const float *B, int ldb, int K, int n, bool transposed, float *panel) {
  uint16_t *to = (uint16_t *)panel;
  memset(panel, 0, sizeof *panel * PANEL * (size_t)mn_bf16_depth(K));
  for (int k = 0; k < K; k++)
    for (int j = 0; j < n; j++) to[(k / 2 * PANEL + j) * 2 + k % 2] = mn_to_bf16(transposed ? B[(long)j * ldb + k] : B[(long)k * ldb + j]);
}

static void plain(int m0, int m1, int N, int K, const float *A, int lda, bool transposed, const float *panels, float *C, int ldc, bool add) {
  for (int m = m0; m < m1; m++)
    for (int n = 0; n < N; n++) {
      const uint16_t *b = (const uint16_t *)(panels + n / PANEL * PANEL * mn_bf16_depth(K)) + n % PANEL * 2;
      float sum = add ? C[(long)m * ldc + n] : 0;
      for (int k = 0; k < K; k += 2, b += 2 * PANEL) {
        const float *x = transposed ? A + (long)k * lda + m : A + (long)m * lda + k;
        const uint16_t a[2] = { mn_to_bf16(x[0]), k + 1 < K ? mn_to_bf16(transposed ? x[lda] : x[1]) : 0 };
        sum = mn_bf16_dot(sum, a, b);
      }
      C[(long)m * ldc + n] = sum;
    }
}

static const mn_bf16 emulated = { "emulated AVX512-BF16", mn_bf16_pack_plain, plain };

const mn_bf16 *mn_bf16_find(const char *emulate) {
  if (!strcmp(emulate, "1")) return &emulated;
  if (!strcmp(emulate, "amx")) return mn_bf16_amx_emulated();
  const mn_bf16 *best = mn_bf16_amx();
  return best ? best : mn_bf16_avx512();
}
