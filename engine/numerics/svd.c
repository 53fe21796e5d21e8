/* svd.c -- truncation of a product of two factors: QR of each, then a small singular value decomposition.
** The triangles come from inner products by Cholesky's method, in double: products of float32 numbers are exact there,
** so nothing is lost against Householder's QR in float32, and the long columns are only read once.  The core is
** decomposed by one-sided Jacobi rotations, which are simple and accurate to the last digits. */
#include "svd.h"
#include "op.h"
#include <math.h>
#include <string.h>

static const double DEPENDENT = 1e-13;       /* share of a column's square below which it hangs on the others */
static const double NOISE = 1e-7, TINY = 1e-37;       /* singular values below: relative, absolute */
static const double ORTHOGONAL = 1e-20;      /* square of a cosine; the next digits come by themselves */

/* R [n,wide] with R^T R = G, a row for each independent column, the most independent one first; rows that are left
** over are zeros.  `rest` [n]: what the squares of columns have left. */
static void triangle(int n, int wide, const double *G, double *R, double *rest) {
  memset(R, 0, sizeof(double) * (size_t)n * (size_t)wide);
  for (int j = 0; j < n; j++) rest[j] = G[j * n + j];
  for (int k = 0; k < n; k++) {
    int best = -1;
    double most = DEPENDENT, *row = R + k * wide;
    for (int j = 0; j < n; j++) {
      double share = rest[j] / G[j * n + j];           /* NaN for 0 / 0: never more */
      if (share > most) most = share, best = j;
    }
    if (best < 0) return;
    double pivot = sqrt(rest[best]);
    for (int j = 0; j < n; j++) row[j] = G[best * n + j];
    for (int i = 0; i < k; i++) {
      double f = R[i * wide + best];
      for (int j = 0; j < wide; j++) row[j] -= f * R[i * wide + j];
    }
    for (int j = 0; j < n; j++) {
      row[j] = rest[j] > 0 ? row[j] / pivot : 0;       /* columns already taken have nothing left */
      rest[j] -= row[j] * row[j];
    }
    row[best] = pivot;
    rest[best] = 0;
  }
}

/* Rows are padded with zeros to whole vectors. */
static int row_length(int n) { return (n + 7) / 8 * 8; }

static double dot(int n, const double *x, const double *y) {
  double sum = 0;
  MN_PRAGMA(omp simd reduction(+:sum))
  for (int i = 0; i < n; i++) sum += x[i] * y[i];
  return sum;
}

static void rotate(int n, double *restrict x, double *restrict y, double c, double s) {
  MN_PRAGMA(omp simd)
  for (int i = 0; i < n; i++) {
    double a = x[i], b = y[i];
    x[i] = c * a - s * b;
    y[i] = s * a + c * b;
  }
}

/* The n rows of M, `wide` apart, become orthogonal by rotations among them, which are done to the rows of V too:
** afterwards row i of M is sigma_i x_i^T and row i of V is y_i^T, for a V that began as the unit matrix and an M that
** began as the transpose of what is decomposed.  square [n]: sigma^2. */
static void jacobi(int n, int wide, double *M, double *V, double *square) {
  enum { SWEEPS = 40 };
  bool turned = true;
  for (int sweep = 0; turned && sweep < SWEEPS; sweep++) {
    turned = false;
    for (int i = 0; i < n; i++) square[i] = dot(wide, M + i * wide, M + i * wide);
    for (int p = 0; p < n - 1; p++)
      for (int q = p + 1; q < n; q++) {
        double *x = M + p * wide, *y = M + q * wide, xx = square[p], yy = square[q], xy = dot(wide, x, y);
        if (!(xy * xy > ORTHOGONAL * xx * yy)) continue;
        double t = (yy - xx) / (2 * xy), c, s;
        t = (t < 0 ? -1 : 1) / (fabs(t) + sqrt(1 + t * t));
        c = 1 / sqrt(1 + t * t);
        s = c * t;
        rotate(wide, x, y, c, s);
        rotate(wide, V + p * wide, V + q * wide, c, s);
        square[p] = xx - t * xy;
        square[q] = yy + t * xy;
        turned = true;
      }
  }
}

/* out[c] = f sum_k R[k][c] x[k] */
static void back_to_columns(int n, int wide, const double *R, const double *x, double f, double *out) {
  memset(out, 0, sizeof(double) * (size_t)wide);
  for (int k = 0; k < n; k++)
    for (int c = 0; c < wide; c++) out[c] += R[k * wide + c] * x[k] * f;
}

void mn_svd_truncate(int n, int r, const double *gram_u, const double *gram_w, float *A, float *B, float *root,
                     double *work) {
  int wide = row_length(n);
  long whole = (long)n * wide;
  double *R = work, *S = R + whole, *M = S + whole, *V = M + whole, *a = V + whole, *b = a + wide, *square = b + wide;
  triangle(n, wide, gram_u, R, a);
  triangle(n, wide, gram_w, S, a);
  memset(M, 0, sizeof(double) * (size_t)whole * 2);
  for (int i = 0; i < n; i++) {
    V[i * wide + i] = 1;
    for (int j = 0; j < n; j++) M[i * wide + j] = dot(wide, S + i * wide, R + j * wide);     /* (R S^T)^T */
  }
  jacobi(n, wide, M, V, square);
  double largest = 0;
  for (int i = 0; i < n; i++) if (square[i] > largest) largest = square[i];
  for (int i = 0; i < r; i++, A += n, B += n) {
    int top = 0, sign = 0;
    for (int j = 1; j < n; j++) if (square[j] > square[top]) top = j;
    double value = sqrt(square[top]);
    square[top] = -1;                        /* taken */
    root[i] = 0;
    memset(A, 0, sizeof(float) * (size_t)n);
    memset(B, 0, sizeof(float) * (size_t)n);
    if (!(value > NOISE * sqrt(largest) && value > TINY)) continue;
    double scale = 1 / sqrt(value);
    back_to_columns(n, wide, S, V + top * wide, scale, a);
    back_to_columns(n, wide, R, M + top * wide, scale / value, b);
    for (int c = 1; c < n; c++) if (fabs(a[c]) > fabs(a[sign])) sign = c;
    double turn = a[sign] < 0 ? -1 : 1;
    for (int c = 0; c < n; c++) {
      A[c] = (float)(turn * a[c]);
      B[c] = (float)(turn * b[c]);
    }
    root[i] = (float)scale;
  }
}
