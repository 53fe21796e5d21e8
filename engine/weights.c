/* weights.c -- see weights.h.  Few rows are looked at, so plain doubles will do. */
#include <math.h>
#include <string.h>
#include "weights.h"

double mn_weight_score(int D, const float *q, const float *k) {
  double sum = 0;
  for (int d = 0; d < D; d++) sum += (double)q[d] * k[d];
  return sum / sqrt(D);
}

void mn_weights_finish(mn_weight *w, int n, int N) {
  double top = -HUGE_VAL, sum = 0;
  for (int i = 0; i < n; i++) if (w[i].weight > top) top = w[i].weight;
  for (int i = 0; i < n; i++) sum += exp(w[i].weight - top);
  for (int i = 0; i < n; i++) w[i].weight = (float)(exp(w[i].weight - top) / sum);
  memset(w + n, 0, sizeof *w * (size_t)(N - n));
}
