/* few.h -- products of a few rows with the same matrix again and again, as acting makes them.
** The matrix is packed once into panels of 32 columns; then each product streams it once, with the rows'
** sums in registers.  A BLAS packs at every call, which for 8 rows costs more than the product. */
#ifndef MN_FEW_H
#define MN_FEW_H
#include "op.h"

enum { MN_FEW = 32, MN_PANEL = 32 };               /* at most so many rows; columns of a panel */

/* How many panels N columns need: the packed matrix is [panels, K, MN_PANEL]. */
static inline int mn_panels(int N) { return (N + MN_PANEL - 1) / MN_PANEL; }

/* Pack B[K,N] (or its transpose as stored, [N,K], where `transposed`) into panels, padded with zeros. */
void mn_pack(const float *B, int K, int N, bool transposed, float *panels);

/* C[M,N] = A[M,K] B (+ C if add); M <= MN_FEW. */
void mn_few(mn_ctx *mn, int M, int N, int K, const float *A, int lda, const float *panels, float *C, int ldc, bool add);

#endif
