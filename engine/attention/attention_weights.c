/* attention_weights.c -- see attention_weights.h. */
#include <math.h>
#include <string.h>
#include "numerics/simd.h"
#include "attention_weights.h"

float mn_weight_score(int D, const float *q, const float *k) { return mn_dot(D, q, k) / sqrtf((float)D); }

void mn_weights_finish(mn_weight *w, int n, int N) {
  double top = -HUGE_VAL, sum = 0;
  for (int i = 0; i < n; i++) if (w[i].weight > top) top = w[i].weight;
  for (int i = 0; i < n; i++) sum += w[i].weight = expf((float)(w[i].weight - top));
  for (int i = 0; i < n; i++) w[i].weight = (float)(w[i].weight / sum);
  memset(w + n, 0, sizeof *w * (size_t)(N - n));
}
