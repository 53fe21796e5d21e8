/* svd.h -- the nearest matrix of lower rank to a product of two thin factors. */
#ifndef MN_SVD_H
#define MN_SVD_H

/* U W^T, whose factors have n columns each, becomes U' W'^T of r < n columns, the nearest there is (Eckart and Young
** 1936): U' = U A, W' = W B.  Only the columns' inner products are needed, gram_u = U^T U and gram_w = W^T W [n,n].
** With U = Q R, W = P S (Q, P orthonormal) and the singular values R S^T = X diag(sigma) Y^T,
**   A = S^T Y / sqrt(sigma),  B = R^T X / sqrt(sigma),
** so both sides carry sqrt(sigma) and their columns are orthogonal.  Values below 1e-7 of the largest are noise of
** float32: their columns become 0.  Stored: A and B, as rows [r,n] of one new column each; root[r] =
** 1 / sqrt(sigma), or 0 for a column of zeros.  The order is that of falling sigma; the largest entry of each row of
** A is positive.  work: mn_svd_work(n) numbers.  Factors that are not finite give zeros. */
void mn_svd_truncate(int n, int r, const double *gram_u, const double *gram_w, float *A, float *B, float *root,
                     double *work);

static inline long mn_svd_work(int n) { return (4L * n + 3) * ((n + 7) / 8 * 8); }

#endif
