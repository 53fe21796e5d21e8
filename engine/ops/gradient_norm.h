/* gradient_norm.h -- the norm of many gradients in float32, carried from leaf to leaf, and what optimisers make of it.  Sums of squares
** leave the range of float32 long before the norm does; in double they do not. */
#ifndef MN_GRADIENT_NORM_H
#define MN_GRADIENT_NORM_H
#include <math.h>
#include <stdbool.h>
#include "numerics/fast_math.h"

/* Is a sum of squares in float32 to be trusted?  Else it is taken once more in double. */
MN_MATH bool mn_squares_fit(float sum) { return sum > 1e-30f && sum < 1e37f; }

/* A sum of squares in two floats: its high and low part, or where it is no float32 its root and NaN. */
MN_MATH double mn_squares_read(const float *at) { return at[1] == at[1] ? (double)at[0] + (double)at[1] : (double)at[0] * (double)at[0]; }

MN_MATH void mn_squares_write(double sum, float *at) {
  const float high = (float)sum;
  const bool fits = sum == 0 || mn_squares_fit(high), finite = sum - sum == 0;
  at[0] = fits || !finite ? high : (float)sqrt(sum);
  at[1] = fits ? (float)(sum - (double)high) : finite ? NAN : 0;
}

/* By what a step scales gradients of this norm; below 0: it is left out, because the norm is not finite, or, if the step `squares` them,
** their squares would not be. */
MN_MATH float mn_step_scale(float norm, float max_norm, bool squares) {
  const float scale = max_norm > 0 && norm >= max_norm ? max_norm / norm : 1;
  return norm - norm == 0 && !(squares && norm * scale > 1e19f) ? scale : -1;
}

/* RAdam's factor of step t, from 1 (Liu et al. 2020, algorithm 2): 0 where the mean of squares, which decays by 1 - a2, is of too few
** gradients to divide by (less than 5, as in torch and optax). */
MN_MATH float mn_rectified(double a2, double t) {
  const double most = 2 / a2 - 1, power = exp(t * log1p(-a2)), rho = most - 2 * t * power / (1 - power);
  return rho < 5 ? 0 : (float)sqrt((rho - 4) * (rho - 2) * most / ((most - 4) * (most - 2) * rho));
}

#endif
