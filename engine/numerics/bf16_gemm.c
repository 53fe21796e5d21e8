/* bf16_gemm.c -- products of bfloat16 in plain code, with the bits of the instructions, and which way a CPU has: see bf16_gemm.h. */
#include "bf16.h"

static void pack(const float *B, int ldb, int K, int n, bool transposed, float *panel) {
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

/* ---- bf16_amx.c's blocks on tiles in plain code ---- */

typedef struct tile { union { float sum[SIDE][SIDE]; uint16_t pair[SIDE][SIDE][2]; }; } tile;

static void tile_load(tile *t, const void *from, long bytes) {
  for (int r = 0; r < SIDE; r++) memcpy(t->sum[r], (const char *)from + r * bytes, sizeof t->sum[r]);
}

static void tile_store(const tile *t, void *to, long bytes) {
  for (int r = 0; r < SIDE; r++) memcpy((char *)to + r * bytes, t->sum[r], sizeof t->sum[r]);
}

/* TDPBF16PS (Intel's manual, volume 2). */
static void tile_dot(tile *to, const tile *a, const tile *b) {
  for (int m = 0; m < SIDE; m++)
    for (int n = 0; n < SIDE; n++) {
      float even = 0, odd = 0;
      for (int k = 0; k < SIDE; k++) {
        even = mn_bf16_fma(mn_from_bf16(a->pair[m][k][0]), mn_from_bf16(b->pair[k][n][0]), even);
        odd = mn_bf16_fma(mn_from_bf16(a->pair[m][k][1]), mn_from_bf16(b->pair[k][n][1]), odd);
      }
      to->sum[m][n] = mn_no_denormal(mn_no_denormal(to->sum[m][n]) + mn_no_denormal(even + odd));
    }
}

/* Converts rows of A, and takes the products that are left of K: in plain code. */
static void take_plain(int some, int depth, const float *A, long lda, bool transposed, int m, int k, uint16_t *to) {
  for (int r = 0; r < some; r++)
    for (int i = 0; i < (depth + DEEP - 1) / DEEP * DEEP; i++)
      to[r * DEPTH + i] = i < depth ? mn_to_bf16(transposed ? A[(long)(k + i) * lda + m + r] : A[(m + r) * lda + k + i]) : 0;
}

static void rest_plain(int some, int n, int depth, const uint16_t *a, const float *panel, float *C, long ldc, bool add) {
  for (int m = 0; m < some; m++)
    for (int j = 0; j < (n < PANEL ? n : PANEL); j++) {
      float sum = add ? C[m * ldc + j] : 0;
      for (int k = 0; k < depth; k += 2) sum = mn_bf16_dot(sum, a + m * DEPTH + k, (const uint16_t *)panel + (k / 2 * PANEL + j) * 2);
      C[m * ldc + j] = sum;
    }
}

/* Rows that were taken before, without tiles. */
static void pairs_taken(int M, int N, int K, const uint16_t *a, long piece, const float *panels, float *C, int ldc, bool add) {
  for (int k = 0; k < K; k += DEPTH, a += piece)
    for (int n = 0; n < N; n += PANEL)
      rest_plain(M, N - n, K - k < DEPTH ? K - k : DEPTH, a, panels + n * mn_bf16_depth(K) + k / 2 * PANEL, C + n, ldc, add || k);
}

#define MN_TILES(x) plain_##x
#define TILE_BEGIN
#define TILE_END
#define TILE_REGISTERS tile t[8];
#define TILE_LOAD(i, from, bytes) tile_load(&t[i], from, bytes)
#define TILE_STORE(i, to, bytes) tile_store(&t[i], to, bytes)
#define TILE_DOT(to, a, b) tile_dot(&t[to], &t[a], &t[b])
#define TAKE take_plain
#define REST rest_plain
#include "bf16_tiles.h"

/* ---- which way ---- */

static const mn_bf16 emulated = { "emulated AVX512-BF16", pack, plain, plain_take, pairs_taken },
  emulated_tiles = { "emulated AMX-BF16", pack, plain_rows, plain_take, plain_taken };

const mn_bf16 *mn_bf16_find(const char *emulate) {
  if (!strcmp(emulate, "1")) return &emulated;
  if (!strcmp(emulate, "amx")) return &emulated_tiles;
  const mn_bf16 *best = mn_bf16_amx();
  return best ? best : mn_bf16_avx512();
}
