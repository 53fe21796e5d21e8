/* gemm.h -- the BLAS, found once a process. */
#ifndef MN_BLAS_H
#define MN_BLAS_H
void mn_blas_open(void);
#endif
