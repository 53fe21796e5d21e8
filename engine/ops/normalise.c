/* normalise.c -- each row over its length, its sum or its root mean square, for keys, queries, read-outs:
**   l2: x / (|x| + eps)      sum: x / (sum of x + eps)      rms: x / sqrt(mean of x^2 + eps)
** A row whose denominator is 0 (or too small to divide by) becomes zeros with zero gradient: with eps = 0
** an empty key stays an empty key, where a plain division gives NaN.  `stats`: 1/denominator, |x|. */
#include <math.h>
#include "op.h"

enum { BY_L2, BY_SUM, BY_RMS };

static float sum_of(const float *x, long D) {
  float sum = 0;
  MN_PRAGMA(omp simd reduction(+:sum))
  for (long i = 0; i < D; i++) sum += x[i];
  return sum;
}

/* sqrt(sum of x^2 * factor); where squares leave the range of floats, of x over its largest number. */
static float length_of(const float *x, long D, float factor) {
  float sum = 0, top = 0;
  MN_PRAGMA(omp simd reduction(+:sum))
  for (long i = 0; i < D; i++) sum += x[i] * x[i];
  if (sum > 1e-30f && sum < 1e30f) return sqrtf(sum * factor);
  for (long i = 0; i < D; i++) top = fmaxf(top, fabsf(x[i]));
  if (top == 0 || isinf(top)) return top;
  sum = 0;
  for (long i = 0; i < D; i++) sum += (x[i] / top) * (x[i] / top);
  return top * sqrtf(sum * factor);
}

static void rows_forward(const mn_call *c, long from, long end) {
  long D = DIM(c, 'D');
  int by = (int)OPT(c, 0);
  float eps = (float)OPT(c, 1);
  for (long r = from; r < end; r++) {
    const float *x = c->in[0].data + r * D;
    float *y = c->out[0].data + r * D, *stats = c->out[1].data + 2 * r;
    float size = by == BY_SUM ? sum_of(x, D) : length_of(x, D, by == BY_RMS ? 1 / (float)D : 1);
    float den = by == BY_RMS ? hypotf(size, sqrtf(eps)) : size + eps;
    float scale = fabsf(den) >= 1.2e-38f || isnan(den) ? 1 / den : 0;
    MN_PRAGMA(omp simd)
    for (long i = 0; i < D; i++) y[i] = x[i] * scale;
    stats[0] = scale;
    stats[1] = size;
  }
}

static void forward(mn_call *c) {
  long D = DIM(c, 'D'), rows = c->in[0].n / D;
  MN_FOR(c->ctx, rows * D, r, 0, rows, 64, rows_forward(c, r, rows - r < 64 ? rows : r + 64));
}

/* dx = (dy - (y.dy) dden/dx) / den, and dden/dx is x/|x|, 1 or y/D. */
static void rows_backward(const mn_call *c, long from, long end) {
  long D = DIM(c, 'D');
  int by = (int)OPT(c, 0);
  for (long r = from; r < end; r++) {
    const float *x = c->in[0].data + r * D, *y = c->out[0].data + r * D, *dy = c->out[0].grad + r * D;
    float *dx = c->in[0].grad + r * D, scale = c->out[1].data[2 * r], size = c->out[1].data[2 * r + 1];
    float dot = 0, along = 0, all = 0;
    MN_PRAGMA(omp simd reduction(+:dot))
    for (long i = 0; i < D; i++) dot += y[i] * dy[i];
    if (by == BY_L2) along = size > 0 ? dot / size : 0;
    if (by == BY_RMS) along = dot / (float)D * scale;
    if (by == BY_SUM) all = dot;
    MN_PRAGMA(omp simd)
    for (long i = 0; i < D; i++) dx[i] = (dy[i] - all - x[i] * along) * scale;
  }
}

static void backward(mn_call *c) {
  long D = DIM(c, 'D'), rows = c->in[0].n / D;
  MN_FOR(c->ctx, rows * D, r, 0, rows, 64, rows_backward(c, r, rows - r < 64 ? rows : r + 64));
}

const mn_op mn_op_normalise = {
  .sig = "x[...,D] -> y[...,D] ~stats[...,2] | by=l2|sum|rms eps=1e-6",
  .doc = "rows over their length, y = x / (|x| + eps), their sum, or their root mean square, along the "
         "last axis (Schlag et al. 2021; Zhang, Sennrich 2019); a row of zeros stays zeros for any eps",
  .time = MN_ROWS, .forward = forward, .backward = backward,
};
