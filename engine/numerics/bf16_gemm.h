/* bf16_gemm.h -- matrix products of bfloat16 with sums in float32, for precision=bf16.
** The matrix on the right is packed into panels of 32 columns: pairs of rows, [(K+1)/2, 32, 2] bfloat16, in half the memory
** of the panels of packed_gemm.h.  Each element of the result begins at 0, or at what was there, and takes its products in
** the order of K, so that it has the same bits in any block, on any number of threads:
**   avx512  pairs of products, added one after the other (VDPBF16PS)
**   amx     32 products in two sums, which are added to each other, then to the result (TDPBF16PS); what is left of K as above */
#ifndef MN_BF16_GEMM_H
#define MN_BF16_GEMM_H
#include "op.h"

struct mn_bf16 {                 /* a way to compute them */
  const char *name;              /* "AVX512-BF16", "AMX-BF16", or "emulated ..." */
  /* One panel of n <= 32 columns of B[K,N], or where `transposed` of its transpose as stored, [N,K]. */
  void (*pack)(const float *B, int ldb, int K, int n, bool transposed, float *panel);
  /* C[m0..m1-1, N] = A B (+ C if add) of A[M,K] or, where `transposed`, of its transpose as stored, [K,M]; on the calling thread. */
  void (*rows)(int m0, int m1, int N, int K, const float *A, int lda, bool transposed, const float *panels, float *C, int ldc, bool add);
  /* The same in two parts, for a few rows that are multiplied with many panels: `take` converts A[M,K], in pieces of mn_bf16_piece(M)
  ** numbers for each MN_BF16_DEPTH of K; `taken` multiplies M of such rows, which begin at `a`, their pieces `piece` numbers apart. */
  void (*take)(int M, int K, const float *A, int lda, uint16_t *to);
  void (*taken)(int M, int N, int K, const uint16_t *a, long piece, const float *panels, float *C, int ldc, bool add);
};

enum { MN_BF16_DEPTH = 256 };
static inline long mn_bf16_piece(int M) { return (M + 15L) / 16 * 16 * MN_BF16_DEPTH; }     /* whole tiles of AMX */

/* Floats that a panel's rows of depth K take, divided by 32. */
static inline long mn_bf16_depth(long K) { return (K + 1) / 2; }

/* emulate: "0": the fastest that this CPU has; "1": AVX512-BF16 in slow code; "amx": AMX in slow code.
** NULL: this CPU has none. */
const mn_bf16 *mn_bf16_find(const char *emulate);

/* Of files that are compiled for one instruction set each; NULL where the compiler, or this CPU, lacks it. */
const mn_bf16 *mn_bf16_avx512(void);
const mn_bf16 *mn_bf16_amx(void);
#endif
