/* variance.h -- the variance along an axis, and its root: var and std.  Both are over n - correction: 1 is unbiased, as torch's
** default; 0 is the variance of the elements themselves. */
#ifndef MN_VARIANCE_H
#define MN_VARIANCE_H
#include <math.h>
#include "reduce.h"

/* What squares are divided by; 0 if there are too few elements, so that the result is NaN or infinite. */
static inline double mn_freedom(const mn_call *c) {
  return fmax(0, (double)mn_reduced_span(c).size - OPT(c, 2));
}

MN_FOLD double mn_squared(double x, double centre, double p) { (void)p; return (x - centre) * (x - centre); }
MN_FOLD double mn_divided(double sum, double p) { return sum / p; }
MN_FOLD double mn_divided_root(double sum, double p) { return sqrt(sum / p); }

typedef double (*mn_slope)(double dy, double y, double p);

MN_FOLD void mn_variance(mn_call *c, mn_of_sum finish) {
  const mn_span s = mn_reduced_span(c);
  float *mean = mn_scratch(c->ctx, 1, s.outer * s.inner);
  mn_sum_axis(c, mean, 1.0 / (double)s.size);
  mn_fold(c, c->out[0].data, mean, mn_squared, finish, mn_freedom(c));
}

/* dx = slope * (x - mean) of the elements of output k, whose mean is computed again. */
MN_FOLD void mn_variance_back(mn_call *c, const mn_span *s, long k, mn_slope slope) {
  const float *x = c->in[0].data + mn_lane(s, k);
  float *dx = c->in[0].grad + mn_lane(s, k);
  double sum = 0;
  for (long r = 0; r < s->size; r++) sum += (double)x[r * s->inner];
  const float mean = (float)(sum / (double)s->size);
  const float g = (float)slope((double)c->out[0].grad[k], (double)c->out[0].data[k], mn_freedom(c));
  for (long r = 0; r < s->size; r++) dx[r * s->inner] = g * (x[r * s->inner] - mean);
}

#endif
