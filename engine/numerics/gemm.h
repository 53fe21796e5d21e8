/* gemm.h -- the BLAS, found once a process. */
#ifndef MN_GEMM_H
#define MN_GEMM_H
void mn_blas_open(void);
#endif
