/* norm.h -- layer normalisation of one row, and back; stats: mean and 1/sqrt(variance + eps). */
#ifndef MN_NORM_H
#define MN_NORM_H
#include "op.h"

static inline void mn_norm_stats(const float *x, float eps, long D, float *stats) {
  float sum = 0, squares = 0;
  MN_PRAGMA(omp simd reduction(+:sum))
  for (long i = 0; i < D; i++) sum += x[i];
  float mean = sum / (float)D;
  MN_PRAGMA(omp simd reduction(+:squares))
  for (long i = 0; i < D; i++) squares += (x[i] - mean) * (x[i] - mean);
  stats[0] = mean;
  stats[1] = 1 / __builtin_sqrtf(squares / (float)D + eps);
}

static inline void mn_norm_row(const float *x, const float *weight, const float *bias, float eps, long D, float *y,
                               float *stats) {
  mn_norm_stats(x, eps, D, stats);
  float mean = stats[0], scale = stats[1];
  MN_PRAGMA(omp simd)
  for (long i = 0; i < D; i++) y[i] = (x[i] - mean) * scale * weight[i] + bias[i];
}

/* With n = (x - mean) scale and g = dy weight: dx = scale (g - mean of g - n * mean of g n), stored or added. */
static inline void mn_norm_row_back(const float *x, const float *weight, const float *stats, long D, const float *dy,
                                    float *dx, bool add) {
  if (D == 1) {                 /* y is the bias, whatever x is; rounding would say otherwise */
    if (!add) dx[0] = 0;
    return;
  }
  float mean = stats[0], scale = stats[1], g_sum = 0, gn_sum = 0;
  MN_PRAGMA(omp simd reduction(+:g_sum, gn_sum))
  for (long i = 0; i < D; i++) {
    float g = dy[i] * weight[i];
    g_sum += g;
    gn_sum += g * ((x[i] - mean) * scale);
  }
  float a = g_sum / (float)D, b = gn_sum / (float)D;
  MN_PRAGMA(omp simd)
  for (long i = 0; i < D; i++)
    dx[i] = (add ? dx[i] : 0) + scale * (dy[i] * weight[i] - a - (x[i] - mean) * scale * b);
}

/* Adds a row's part of the gradients of weight and bias. */
static inline void mn_norm_row_params(const float *x, const float *stats, long D, const float *dy, float *dweight,
                                      float *dbias) {
  float mean = stats[0], scale = stats[1];
  MN_PRAGMA(omp simd)
  for (long i = 0; i < D; i++) {
    dweight[i] += dy[i] * ((x[i] - mean) * scale);
    dbias[i] += dy[i];
  }
}

#endif
