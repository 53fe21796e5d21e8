/* orthogonal.c -- random orthogonal matrices for initial weights (Saxe et al. 2014).
** Gram-Schmidt on Gaussian rows (or columns, whichever are fewer) is uniform over such matrices. */
#include <math.h>
#include <stdlib.h>
#include "mneme.h"

int mn_orthogonal(float *w, int rows, int cols, double gain) {
  bool by_rows = rows <= cols;
  int n = by_rows ? rows : cols, len = by_rows ? cols : rows;
  double *v = malloc(sizeof(double) * (size_t)n * (size_t)len);
  if (!v) return -1;
  for (int i = 0; i < n; i++)
    for (int k = 0; k < len; k++) v[(long)i * len + k] = w[by_rows ? (long)i * cols + k : (long)k * cols + i];
  for (int i = 0; i < n; i++) {
    double *a = v + (long)i * len, norm = 0;
    for (int pass = 0; pass < 2; pass++)             /* twice is enough (Kahan) */
      for (int j = 0; j < i; j++) {
        const double *b = v + (long)j * len;
        double dot = 0;
        for (int k = 0; k < len; k++) dot += a[k] * b[k];
        for (int k = 0; k < len; k++) a[k] -= dot * b[k];
      }
    for (int k = 0; k < len; k++) norm += a[k] * a[k];
    norm = sqrt(norm);
    for (int k = 0; k < len; k++) a[k] /= norm > 0 ? norm : 1;
  }
  for (int i = 0; i < n; i++)
    for (int k = 0; k < len; k++)
      w[by_rows ? (long)i * cols + k : (long)k * cols + i] = (float)(gain * v[(long)i * len + k]);
  free(v);
  return 0;
}
