/* chunk.h -- arithmetic of sixteen tokens at once, for the chunked form of gated linear attention.
** A token-major array is [16][n], n a multiple of 16, its rows ld apart (or n).  "Running" rows are x_s times every later
** decay, made by multiplication only: gates of exactly 0 stay exact, nothing overflows or is divided. */
#ifndef MN_CHUNK_H
#define MN_CHUNK_H

/* C[M,N] = A B (+ row_i col_j C0[i,j] where C0 is given; row or col NULL: 1).  A's element (i,k) is
** A[i*ra + k*ca], ra or ca 1; B and C are row-major with the given row lengths, C0 as C, and may be C.  N a multiple
** of 16; M one of 4 where N is one of 64, else of 16. */
void mn_chunk_gemm(int M, int N, int K, const float *A, long ra, long ca, const float *B, long ldb,
                   const float *C0, const float *row, const float *col, float *C, long ldc);

/* The same where the rows of C0 are ld0 apart. */
void mn_chunk_gemm_to(int M, int N, int K, const float *A, long ra, long ca, const float *B, long ldb, const float *C0,
                      long ld0, const float *row, const float *col, float *C, long ldc);

/* Of A [16,16] nothing but A[s][t], t >= s:  C_s = row_s C0_s + sum over t >= s of A[s][t] B_t, and `until`
** C_t = row_t C0_t + sum over s <= t of A[s][t] B_s.  Rows of N numbers, a multiple of 16; the rest of A holds zeros. */
void mn_chunk_since(int N, const float *A, const float *B, long ldb, const float *row, const float *C0, long ld0,
                    float *C, long ldc);
void mn_chunk_until(int N, const float *A, const float *B, long ldb, const float *row, const float *C0, long ld0,
                    float *C, long ldc);

/* C[M,N] = A[M,K] B[N,K]^T, all row-major with the given row lengths; M and N multiples of 4, K of 16. */
void mn_chunk_dots(int M, int N, int K, const float *A, long lda, const float *B, long ldb,
                   float *C, long ldc);

/* out_t = x_t.y_t + S_t.R_t of the sixteen tokens: rows of n numbers, ldx and ldy apart, and of sixteen.  R NULL: the sum of
** S_t; S NULL: nothing. */
void mn_chunk_row_dots(int n, const float *x, long ldx, const float *y, long ldy, const float *S, const float *R, float *out);

/* to[cols,rows] = from[rows,cols], with the given row lengths; sizes multiples of 16. */
void mn_chunk_transpose(int rows, int cols, const float *from, long ld, float *to, long ldt);

/* P_t = decay_0 ... decay_t; and unless x is NULL, Px_t = P_t * x_t. */
void mn_chunk_prefix(int n, long ld, const float *decay, const float *x, float *P, float *Px);

/* x becomes the running rows at the end of the chunk; kept: the product of all decays, [n]. */
void mn_chunk_run(int n, long ld, const float *decay, float *x, float *kept);

/* S[t][s] = r_t . (x_s decay_{s+1} ... decay_t) for s <= t, else 0; run: the running rows at the
** end. */
void mn_chunk_scores(int n, long ld, const float *x, const float *decay, const float *r, float *run,
                     float *S);

/* y_t = P_t * y0_t + sum over s <= t of S[t][s] (x_s decay_{s+1} ... decay_t); run as above. */
void mn_chunk_mix(int n, const float *x, const float *decay, const float *S, const float *P,
                  const float *y0, float *y, float *run);

/* Backward of what made the running rows R and used them as sum_s coef[t][s] R_ts . r_t.
** G: in, gradient of the rows at the end of the chunk; out, gradient of x.  ddecay: stored.
** dr: stored, unless NULL. */
void mn_chunk_back(int n, long ld, const float *x, const float *decay, const float *r, const float *coef,
                   float *G, float *ddecay, float *dr);

/* Backward of the prefix: ddecay is added to; dP is used up. */
void mn_chunk_prefix_back(int n, long ld, const float *decay, const float *P, float *dP, float *ddecay);

#endif
