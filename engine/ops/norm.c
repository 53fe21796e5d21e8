/* norm.c -- y = (sum of |x|^p)^(1/p) over one axis, or over all; p = inf: the largest |x|, whose gradient goes in equal shares
** to all that are as large. */
#include <math.h>
#define MN_AXIS_OPTION 1
#include "reduce.h"

MN_FOLD double square(double x, double centre, double p) { (void)centre, (void)p; return x * x; }
MN_FOLD double size(double x, double centre, double p) { (void)centre, (void)p; return fabs(x); }
MN_FOLD double power(double x, double centre, double p) { (void)centre; return pow(fabs(x), p); }
MN_FOLD double square_root(double sum, double p) { (void)p; return sqrt(sum); }
MN_FOLD double unchanged(double sum, double p) { (void)p; return sum; }
MN_FOLD double root(double sum, double p) { return pow(sum, 1 / p); }

static int shape(mn_call *c) {
  if (!(OPT(c, 0) > 0)) return mn_fail(c->ctx, "norm: p is %g, expected a number greater than 0, or inf", OPT(c, 0));
  return mn_reduce_shape(c);
}

/* The largest |x|, or NaN, of output k. */
static void largest(mn_call *c, const mn_span *s, long k) {
  const float *x = c->in[0].data + mn_lane(s, k);
  float top = 0;
  for (long r = 0; r < s->size; r++) {
    const float v = fabsf(x[r * s->inner]);
    if (v > top || v != v) top = v;
  }
  c->out[0].data[k] = top;
}

static void forward(mn_call *c) {
  const double p = OPT(c, 0);
  float *y = c->out[0].data;
  if (p == 2) mn_fold(c, y, NULL, square, square_root, p);
  else if (p == 1) mn_fold(c, y, NULL, size, unchanged, p);
  else if (isinf(p)) mn_each_lane(c, largest);
  else mn_fold(c, y, NULL, power, root, p);
}

/* The gradient of the elements of output k. */
static void spread(mn_call *c, const mn_span *s, long k) {
  const double p = OPT(c, 0);
  const float *x = c->in[0].data + mn_lane(s, k), y = c->out[0].data[k], dy = c->out[0].grad[k];
  float *dx = c->in[0].grad + mn_lane(s, k);
  long equals = 0;
  for (long r = 0; isinf(p) && r < s->size; r++) equals += fabsf(x[r * s->inner]) == y;
  for (long r = 0; r < s->size; r++) {
    const float v = x[r * s->inner], sign = v > 0 ? 1.0f : v < 0 ? -1.0f : v;
    dx[r * s->inner] = y == 0 ? 0
      : p == 2 ? dy * v / y
      : p == 1 ? dy * sign
      : isinf(p) ? (fabsf(v) == y ? dy * sign / (float)equals : 0)
      : v == 0 ? 0 : dy * sign * powf(fabsf(v) / y, (float)(p - 1));
  }
}

static void backward(mn_call *c) { mn_each_lane(c, spread); }

const mn_op mn_op_norm = {
  .sig = "x[*] -> y[*] | p=2 axis=-100 keepdim=0",
  .doc = "y = (sum of |x|^p)^(1/p) over an axis, p=inf: largest |x|, slope 0 where y is 0; axis=-100: over all, giving shape [1]",
  .time = MN_PER_ROW, .shape = shape, .forward = forward, .backward = backward,
};
