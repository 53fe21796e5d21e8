/* normalise.c -- divides each row by its length, its sum or its root mean square, for keys, queries, read-outs:
**   l2: x / (|x| + eps)      sum: x / (sum of x + eps)      rms: x / sqrt(mean of x^2 + eps)
** A row whose denominator is 0 (or too small to divide by) becomes zeros with zero gradient: with eps = 0
** a zero key stays zero, where a plain division gives NaN.  `stats`: the denominator, or 0; and
** the value to which eps was added. */
#include <math.h>
#include <string.h>
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
  double root = sqrtf(eps);
  for (long r = from; r < end; r++) {
    const float *x = c->in[0].data + r * D;
    float *y = c->out[0].data + r * D, *stats = c->out[1].data + 2 * r;
    float size = by == BY_SUM ? sum_of(x, D) : length_of(x, D, by == BY_RMS ? 1 / (float)D : 1);
    float den = by == BY_RMS ? (float)sqrt((double)size * size + root * root) : size + eps;     /* hypotf, which asks for glibc 2.35 */
    bool empty = fabsf(den) < 1.2e-38f;
    MN_PRAGMA(omp simd)
    for (long i = 0; i < D; i++) y[i] = empty ? 0 : x[i] / den;
    stats[0] = empty ? 0 : den;
    stats[1] = size;
  }
}

static void forward(mn_call *c) {
  long D = DIM(c, 'D'), rows = c->in[0].n / D;
  MN_FOR(c->ctx, rows * D, r, 0, rows, 64, rows_forward(c, r, rows - r < 64 ? rows : r + 64));
}

/* ---- backward: den dx = dy - (y.dy) dden/dx.  Where one number makes up the row, that is dy eps/den, the rest
** of a cancellation: so eps/den is taken out first, and what remains cancels exactly. ---- */

/* With u = x/|x|: eps/den dy + |x|/den (dy - u (u.dy)). */
static void back_l2(long D, const float *x, const float *dy, float eps, float den, float size, float *dx) {
  float dot = 0, kept = size / den, rest = eps / den;
  MN_PRAGMA(omp simd reduction(+:dot))
  for (long i = 0; i < D; i++) dot += size > 0 ? x[i] / size * dy[i] : 0;
  MN_PRAGMA(omp simd)
  for (long i = 0; i < D; i++) dx[i] = (rest * dy[i] + kept * (dy[i] - (size > 0 ? x[i] / size * dot : 0))) / den;
}

/* With g = dy - c for any c, since the y sum to 1 - eps/den: g - y.g + c eps/den; c is dy at the largest x. */
static void back_sum(long D, const float *x, const float *y, const float *dy, float eps, float den, float *dx) {
  long top = 0;
  float dot = 0;
  for (long i = 1; i < D; i++) if (fabsf(x[i]) > fabsf(x[top])) top = i;
  float c = dy[top];
  MN_PRAGMA(omp simd reduction(+:dot))
  for (long i = 0; i < D; i++) dot += y[i] * (dy[i] - c);
  MN_PRAGMA(omp simd)
  for (long i = 0; i < D; i++) dx[i] = (dy[i] - c - dot + c * (eps / den)) / den;
}

static void back_rms(long D, const float *y, const float *dy, float den, float *dx) {
  float dot = 0;
  MN_PRAGMA(omp simd reduction(+:dot))
  for (long i = 0; i < D; i++) dot += y[i] * dy[i];
  MN_PRAGMA(omp simd)
  for (long i = 0; i < D; i++) dx[i] = (dy[i] - y[i] * (dot / (float)D)) / den;
}

static void rows_backward(const mn_call *c, long from, long end) {
  long D = DIM(c, 'D');
  int by = (int)OPT(c, 0);
  float eps = (float)OPT(c, 1);
  for (long r = from; r < end; r++) {
    const float *x = c->in[0].data + r * D, *y = c->out[0].data + r * D, *dy = c->out[0].grad + r * D;
    float *dx = c->in[0].grad + r * D, den = c->out[1].data[2 * r], size = c->out[1].data[2 * r + 1];
    if (den == 0) memset(dx, 0, sizeof(float) * (size_t)D);
    else if (by == BY_L2) back_l2(D, x, dy, eps, den, size, dx);
    else if (by == BY_SUM) back_sum(D, x, y, dy, eps, den, dx);
    else back_rms(D, y, dy, den, dx);
  }
}

static void backward(mn_call *c) {
  long D = DIM(c, 'D'), rows = c->in[0].n / D;
  MN_FOR(c->ctx, rows * D, r, 0, rows, 64, rows_backward(c, r, rows - r < 64 ? rows : r + 64));
}

const mn_op mn_op_normalise = {
  .sig = "x[...,D] -> y[...,D] ~~stats[...,2] | by=l2|sum|rms eps=1e-6",
  .doc = "y = x divided by the length of each row, along the last axis (Schlag et al. 2021; Zhang, Sennrich 2019). by=l2: x / (|x| + eps); or by the "
      "sum, or by the root mean square; a row of zeros stays zero for any eps",
  .time = MN_PER_ROW, .forward = forward, .backward = backward,
};
