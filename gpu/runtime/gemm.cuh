/* gemm.cuh -- products of matrices for kernel files, in the order of other launches.
** C[M,N] = op(A) op(B) (+ C if add), row-major, float32: as mn_gemm in engine/op.h, with the device's
** pointers.  The context's precision says how products are made (mn_set_precision). */
#pragma once
#include "kernel.cuh"

void cu_gemm(mn_call *c, bool ta, bool tb, int M, int N, int K, const float *A, int lda, const float *B, int ldb,
             float *C, int ldc, bool add);

/* The same for `batch` triples, each a stride further on; a stride of 0 uses one operand for all. */
void cu_gemm_batch(mn_call *c, bool ta, bool tb, int M, int N, int K, const float *A, int lda, const float *B, int ldb,
                   float *C, int ldc, bool add, long stride_a, long stride_b, long stride_c, int batch);
