/* packed_gemm.h -- our own matrix product, with the matrix on the right packed into panels of 32 columns.
** While acting, a few rows are multiplied with the same matrix again and again: it is packed once, and each product
** streams it once with the rows' sums in registers.  A BLAS packs at every call, which for 8 rows costs more
** than the product.  The same kernel computes whole batches (gemm.c). */
#ifndef MN_PACKED_GEMM_H
#define MN_PACKED_GEMM_H
#include "bf16_gemm.h"
#include "op.h"

enum { MN_PACKED_ROWS = 256, MN_PANEL = 32 };              /* at most that many rows use this path; columns of a panel */
enum { MN_ONE_THREAD_WORK = 30000 };                         /* multiplications that one thread does sooner than two */
enum { MN_FEW = 16384 };                                     /* bfloat16 numbers that fit a mn_few: 32 KB */

/* Does this call leave its weights packed for later rows?  Those may be few where the first are not. */
static inline bool mn_packs(const mn_call *c) { return c->by_rows && c->t0 == 0; }

/* How many panels N columns need: the packed matrix is [panels, K, MN_PANEL]. */
static inline int mn_panels(int N) { return (N + MN_PANEL - 1) / MN_PANEL; }

/* Where the panel of a column begins (of one that begins a panel), of a matrix that mn_pack packed. */
static inline const float *mn_panel_of(const mn_bf16 *bf16, const float *panels, long column, int K) {
  return panels + column * (bf16 ? mn_bf16_depth(K) : K);
}

/* Pack B[K,N] (or its transpose as stored, [N,K], where `transposed`) into panels, padded with zeros; in the context's
** precision, as mn_gemm_packed reads them. */
void mn_pack(mn_ctx *mn, const float *B, int K, int N, bool transposed, float *panels);

/* One panel of n <= MN_PANEL columns of a matrix with row length ldb. */
void mn_pack_panel(const float *B, int ldb, int K, int n, bool transposed, float *panel);

/* C[M,N] = A[M,K] B (+ C if add), for few rows (M <= MN_PACKED_ROWS is what it is good at). */
void mn_gemm_packed(mn_ctx *mn, int M, int N, int K, const float *A, int lda, const float *panels, float *C, int ldc, bool add);

/* A few rows that are multiplied with many panels, on any thread.  Where there is room they are converted to bfloat16 once. */
typedef struct mn_few {
  const mn_bf16 *bf16;           /* mn_bf16_of the context; NULL: panels of float32 */
  int M, K, lda;
  const float *A;
  bool taken;                    /* `a` holds them */
  uint16_t a[MN_FEW] __attribute__((aligned(64)));
} mn_few;
void mn_few_open(mn_few *few, const mn_bf16 *bf16, int M, int K, const float *A, int lda);

/* Rows m0 .. m1-1 times two panels, or what is left of `left` columns; on the calling thread.  C: that of row m0. */
void mn_few_columns(const mn_few *few, int m0, int m1, long left, const float *panel, float *C, int ldc, bool add);

/* Rows m0 .. m1-1 of the same on the calling thread, of A or of its transpose as stored, [K,M]. */
void mn_gemm_panel_rows(int m0, int m1, int N, int K, const float *A, int lda, bool transposed, const float *panels,
                    float *C, int ldc, bool add);

/* The same bits where B [K,N] lies unpacked, N a multiple of MN_PANEL: for a few rows of A packing B costs more than the product. */
enum { MN_UNPACKED_ROWS = 3 };                                /* up to that many rows do not pack */
enum { MN_NARROW_COLUMNS = 8 };                               /* up to that many columns are computed as rows */
void mn_gemm_unpacked(int M, int N, int K, const float *A, int lda, bool transposed, const float *B, int ldb, float *C, int ldc, bool add);

#endif
