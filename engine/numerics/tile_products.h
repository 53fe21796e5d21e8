/* tile_products.h -- small matrix products on the calling thread, a block of the result in registers.
** For sizes that are multiples of a vector: chunks of sixteen tokens, blocks of 32 rows of attention. */
#ifndef MN_TILE_PRODUCTS_H
#define MN_TILE_PRODUCTS_H

/* C[M,N] = A B (+ row_i col_j C0[i,j] where C0 is given; row or col NULL: 1).  A's element (i,k) is
** A[i*ra + k*ca], ra or ca 1; B and C are row-major with the given row lengths, C0 as C, and may be C.  N a multiple
** of 16; M one of 4 where N is one of 64, else of 8. */
void mn_tile_gemm(int M, int N, int K, const float *A, long ra, long ca, const float *B, long ldb,
                   const float *C0, const float *row, const float *col, float *C, long ldc);

/* The same where the rows of C0 are ld0 apart. */
void mn_tile_gemm_to(int M, int N, int K, const float *A, long ra, long ca, const float *B, long ldb, const float *C0,
                      long ld0, const float *row, const float *col, float *C, long ldc);

/* Of A [16,16] nothing but A[s][t], t >= s:  C_s = row_s C0_s + sum over t >= s of A[s][t] B_t, and `until`
** C_t = row_t C0_t + sum over s <= t of A[s][t] B_s.  Rows of N numbers, a multiple of 16; the rest of A holds zeros. */
void mn_tile_since(int N, const float *A, const float *B, long ldb, const float *row, const float *C0, long ld0,
                    float *C, long ldc);
void mn_tile_until(int N, const float *A, const float *B, long ldb, const float *row, const float *C0, long ld0,
                    float *C, long ldc);

/* C[M,N] = A[M,K] B[N,K]^T, all row-major with the given row lengths; M and N multiples of 4, K of 16. */
void mn_tile_dots(int M, int N, int K, const float *A, long lda, const float *B, long ldb,
                   float *C, long ldc);

/* to[cols,rows] = from[rows,cols], with the given row lengths; sizes multiples of 16. */
void mn_tile_transpose(int rows, int cols, const float *from, long ld, float *to, long ldt);

#endif
