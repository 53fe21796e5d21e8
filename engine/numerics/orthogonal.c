/* orthogonal.c -- random orthogonal matrices for initial weights (Saxe et al. 2014).
** Gram-Schmidt on Gaussian rows (or columns, whichever are fewer) is uniform over such matrices. */
#include <math.h>
#include <stdlib.h>
#include "mneme.h"

/* Row i of v loses what lies along those before it for the second time, which is enough (Kahan), and gets length 1; the next row, which may be
** scratch, loses it for the first time.  A sum waits for each addition: both rows' go on at once, while what lies along the row before goes.
** At j = i nothing reads the sums. */
static void orthogonalise(double *v, int i, int len) {
  double *a = v + (long)i * len, *next = a + len, dot = 0, dot_next = 0, norm = 0;
  for (int j = 0; j <= i; j++) {
    const double *before = v + (long)(j ? j - 1 : 0) * len, *b = j < i ? v + (long)j * len : before, along = dot, along_next = dot_next;
    dot = dot_next = 0;
    for (int k = 0; k < len && i; k++) {
      if (j) a[k] -= along * before[k], next[k] -= along_next * before[k];
      dot += a[k] * b[k];
      dot_next += next[k] * b[k];
    }
  }
  for (int k = 0; k < len; k++) norm += a[k] * a[k];
  norm = sqrt(norm);
  for (int k = 0; k < len; k++) a[k] /= norm > 0 ? norm : 1;
  dot_next = 0;
  for (int k = 0; k < len; k++) dot_next += next[k] * a[k];
  for (int k = 0; k < len; k++) next[k] -= dot_next * a[k];
}

int mn_orthogonal(float *w, int rows, int cols, double gain) {
  bool by_rows = rows <= cols;
  int n = by_rows ? rows : cols, len = by_rows ? cols : rows;
  double *v = calloc(((size_t)n + 1) * (size_t)len, sizeof *v);
  if (!v) return -1;
  for (int i = 0; i < n; i++)
    for (int k = 0; k < len; k++) v[(long)i * len + k] = w[by_rows ? (long)i * cols + k : (long)k * cols + i];
  for (int i = 0; i < n; i++) orthogonalise(v, i, len);
  for (int i = 0; i < n; i++)
    for (int k = 0; k < len; k++)
      w[by_rows ? (long)i * cols + k : (long)k * cols + i] = (float)(gain * v[(long)i * len + k]);
  free(v);
  return 0;
}
