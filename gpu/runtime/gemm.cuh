/* gemm.cuh -- matrix products for kernel files, in stream order.
** C[M,N] = op(A) op(B) (+ C if add), row-major, float32: as mn_gemm in engine/op.h, with device
** pointers.  mn_set_precision sets the input precision. */
#pragma once
#include "kernel.cuh"

void cu_gemm(mn_call *c, bool ta, bool tb, int M, int N, int K, const float *A, int lda, const float *B, int ldb,
             float *C, int ldc, bool add);

/* The same for `batch` triples, each a stride further on; a stride of 0 uses one operand for all. */
void cu_gemm_batch(mn_call *c, bool ta, bool tb, int M, int N, int K, const float *A, int lda, const float *B, int ldb,
                   float *C, int ldc, bool add, long stride_a, long stride_b, long stride_c, int batch);
