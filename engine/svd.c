/* svd.c -- truncation of a product of two factors: QR of each, then a small singular value decomposition.
** The triangles come from inner products by Cholesky's method, in double: products of float32 numbers are exact there,
** so nothing is lost against Householder's QR in float32, and the long columns are only read once.  The core is
** decomposed by one-sided Jacobi rotations, which are simple and accurate to the last digits. */
#include "svd.h"
#include <math.h>
#include <stdbool.h>
#include <string.h>

static const double DEPENDENT = 1e-13;       /* share of a column's square below which it hangs on the others */
static const double NOISE = 1e-7, TINY = 1e-37;       /* singular values below: relative, absolute */

/* R [n,n] with R^T R = G, a row for each independent column, the most independent one first; rows that are left
** over are zeros.  `rest` [n]: what the squares of columns have left. */
static void triangle(int n, const double *G, double *R, double *rest) {
  memset(R, 0, sizeof(double) * (size_t)n * (size_t)n);
  for (int j = 0; j < n; j++) rest[j] = G[j * n + j];
  for (int k = 0; k < n; k++) {
    int best = -1;
    double most = DEPENDENT, *row = R + k * n;
    for (int j = 0; j < n; j++) {
      double share = rest[j] / G[j * n + j];           /* NaN for 0 / 0: never more */
      if (share > most) most = share, best = j;
    }
    if (best < 0) return;
    double pivot = sqrt(rest[best]);
    for (int j = 0; j < n; j++) {
      double x = G[best * n + j];
      for (int i = 0; i < k; i++) x -= R[i * n + best] * R[i * n + j];
      row[j] = rest[j] > 0 ? x / pivot : 0;            /* columns already taken have nothing left */
      rest[j] -= row[j] * row[j];
    }
    row[best] = pivot;
    rest[best] = 0;
  }
}

static double dot(int n, const double *x, const double *y) {
  double sum = 0;
  for (int i = 0; i < n; i++) sum += x[i] * y[i];
  return sum;
}

static void rotate(int n, double *x, double *y, double c, double s) {
  for (int i = 0; i < n; i++) {
    double a = x[i], b = y[i];
    x[i] = c * a - s * b;
    y[i] = s * a + c * b;
  }
}

/* Rows of M become orthogonal by rotations among them, which are done to the rows of V too: afterwards row i of M
** is sigma_i x_i^T, row i of V is y_i^T, for a V that began as the unit matrix and an M that began as the transpose
** of what is decomposed. */
static void jacobi(int n, double *M, double *V) {
  enum { SWEEPS = 40 };
  bool turned = true;
  for (int sweep = 0; turned && sweep < SWEEPS; sweep++) {
    turned = false;
    for (int p = 0; p < n - 1; p++)
      for (int q = p + 1; q < n; q++) {
        double *x = M + p * n, *y = M + q * n;
        double xx = dot(n, x, x), yy = dot(n, y, y), xy = dot(n, x, y);
        if (!(xy * xy > 1e-28 * xx * yy)) continue;
        double t = (yy - xx) / (2 * xy), c, s;
        t = (t < 0 ? -1 : 1) / (fabs(t) + sqrt(1 + t * t));
        c = 1 / sqrt(1 + t * t);
        s = c * t;
        rotate(n, x, y, c, s);
        rotate(n, V + p * n, V + q * n, c, s);
        turned = true;
      }
  }
}

/* out[c] = sum_k R[k][c] * x[k] * f */
static void back_to_columns(int n, const double *R, const double *x, double f, double *out) {
  memset(out, 0, sizeof(double) * (size_t)n);
  for (int k = 0; k < n; k++)
    for (int c = 0; c < n; c++) out[c] += R[k * n + c] * x[k] * f;
}

void mn_svd_truncate(int n, int r, const double *gram_u, const double *gram_w, float *A, float *B, float *root,
                     double *work) {
  double *R = work, *S = R + n * n, *M = S + n * n, *V = M + n * n, *a = V + n * n, *b = a + n, *sigma = b + n;
  triangle(n, gram_u, R, a);
  triangle(n, gram_w, S, a);
  memset(V, 0, sizeof(double) * (size_t)n * (size_t)n);
  for (int i = 0; i < n; i++) {
    V[i * n + i] = 1;
    for (int j = 0; j < n; j++) M[i * n + j] = dot(n, S + i * n, R + j * n);     /* (R S^T)^T */
  }
  jacobi(n, M, V);
  double largest = 0;
  for (int i = 0; i < n; i++) {
    sigma[i] = sqrt(dot(n, M + i * n, M + i * n));
    if (sigma[i] > largest) largest = sigma[i];
  }
  for (int i = 0; i < r; i++, A += n, B += n) {
    int top = 0, sign = 0;
    for (int j = 1; j < n; j++) if (sigma[j] > sigma[top]) top = j;
    double value = sigma[top];
    sigma[top] = -1;                         /* taken */
    root[i] = 0;
    memset(A, 0, sizeof(float) * (size_t)n);
    memset(B, 0, sizeof(float) * (size_t)n);
    if (!(value > NOISE * largest && value > TINY)) continue;
    double scale = 1 / sqrt(value);
    back_to_columns(n, S, V + top * n, scale, a);
    back_to_columns(n, R, M + top * n, scale / value, b);
    for (int c = 1; c < n; c++) if (fabs(a[c]) > fabs(a[sign])) sign = c;
    double turn = a[sign] < 0 ? -1 : 1;
    for (int c = 0; c < n; c++) {
      A[c] = (float)(turn * a[c]);
      B[c] = (float)(turn * b[c]);
    }
    root[i] = (float)scale;
  }
}
