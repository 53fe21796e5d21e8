/* pointwise.cu -- elementwise ops of one tensor; lerp, between, logical_not, detach.  They are limited by memory, so one kernel
** computes them all and selects the formula at run time: every thread of a launch selects the same one, which costs nothing compared
** with the loads.  A new op is one line in this list: its name, what its slope reads, y and dy/dx.  Values are read and written four
** at a time. */
#include "runtime/strided_copy.cuh"
extern "C" {
#include "numerics/fast_math.h"
}

enum Needs { NOTHING = 0, X = 1, Y = 2 };           /* what the slope reads */

/* y and dy/dx in x, y and the op's first two options, p and q */
#define UNARY_OPS(OP) \
  OP(abs, X, fabsf(x), x > 0 ? 1.0f : x < 0 ? -1.0f : 0.0f) \
  OP(atan, X, atanf(x), 1 / (1 + x * x)) \
  OP(clamp, X, mn_at_most(mn_at_least(x, p), q), x < p || x > q ? 0.0f : 1.0f) \
  OP(cos, X, cosf(x), -sinf(x)) \
  OP(elu, X | Y, x > 0 ? x : p * expm1f(x), x > 0 ? 1.0f : y + p) \
  OP(elu1, X | Y, x > 0 ? x + 1 : mn_expf(x), x > 0 ? 1.0f : y) \
  OP(erf, X, mn_erff(x), 1.128379167f * mn_expf(-x * x)) \
  OP(exp, Y, mn_expf(x), y) \
  OP(expm1, Y, expm1f(x), y + 1) \
  OP(gelu, X, 0.5f * x * (1 + mn_erff(0.7071067812f * x)), \
     0.5f * (1 + mn_erff(0.7071067812f * x)) + 0.3989422804f * x * mn_expf(-0.5f * x * x)) \
  OP(leaky_relu, X, x > 0 ? x : p * x, x > 0 ? 1.0f : p) \
  OP(log, X, mn_logf(x), 1 / x) \
  OP(log1p, X, log1pf(x), 1 / (1 + x)) \
  OP(mish, X, x * mn_tanhf(mn_softplusf(x)), mish_slope(x)) \
  OP(neg, NOTHING, -x, -1.0f) \
  OP(pow, X, powf(x, p), p == 0 ? 0.0f : p * powf(x, p - 1)) \
  OP(reciprocal, X | Y, p / x, -y / x) \
  OP(relu, X, mn_at_least(x, 0), x > 0 ? 1.0f : 0.0f) \
  OP(rsqrt, X | Y, 1 / sqrtf(x), -0.5f * y / x) \
  OP(scale, NOTHING, fmaf(p, x, q), p) \
  OP(sigmoid, Y, mn_sigmoidf(x), y * (1 - y)) \
  OP(silu, X, x * mn_sigmoidf(x), silu_slope(x, mn_sigmoidf(x))) \
  OP(sin, X, sinf(x), cosf(x)) \
  OP(softplus, X, mn_softplusf(x), mn_sigmoidf(x)) \
  OP(sqrt, Y, sqrtf(x), 0.5f / y) \
  OP(square, X, x * x, 2 * x) \
  OP(tan, Y, tanf(x), 1 + y * y) \
  OP(tanh, Y, mn_tanhf(x), 1 - y * y)

/* Constants for gradients. */
#define CONSTANT_OPS(OP) \
  OP(ceil, ceilf(x)) \
  OP(floor, floorf(x)) \
  OP(round, rintf(x)) \
  OP(sign, x > 0 ? 1.0f : x < 0 ? -1.0f : x) \
  OP(trunc, truncf(x))

static __device__ float silu_slope(float x, float s) { return s * (1 + x * (1 - s)); }
static __device__ float mish_slope(float x) {
  const float t = mn_tanhf(mn_softplusf(x));
  return t + x * (1 - t * t) * mn_sigmoidf(x);
}

namespace {
#define NAMED(op, ...) op##_formula,
enum Formula { UNARY_OPS(NAMED) CONSTANT_OPS(NAMED) };
}

static __device__ float value_of(Formula f, float x, float p, float q) {
  switch (f) {
#define VALUE(op, needs, value, slope) case op##_formula: return value;
#define CONSTANT_VALUE(op, value) case op##_formula: return value;
  UNARY_OPS(VALUE)
  CONSTANT_OPS(CONSTANT_VALUE)
  }
  return 0;
}

static __device__ float slope_of(Formula f, float x, float y, float p, float q) {
  switch (f) {
#define SLOPE(op, needs, value, slope) case op##_formula: return slope;
  UNARY_OPS(SLOPE)
  default: return 0;
  }
}

CU_KERNEL unary_value(Formula f, const float *x, float *y, long n, long quads, float p, float q) {
  CU_LOOP(i, quads) {
    float4 v = ((const float4 *)x)[i];
    v = { value_of(f, v.x, p, q), value_of(f, v.y, p, q), value_of(f, v.z, p, q), value_of(f, v.w, p, q) };
    ((float4 *)y)[i] = v;
  }
  CU_LOOP(i, n - 4 * quads) y[4 * quads + i] = value_of(f, x[4 * quads + i], p, q);
}

/* dx = dy * slope; x or y is NULL where the slope does not read it. */
CU_KERNEL unary_slope(Formula f, const float *x, const float *y, const float *dy, float *dx, long n,
                      long quads, float p, float q) {
  const float4 none = { 0, 0, 0, 0 };
  CU_LOOP(i, quads) {
    const float4 u = x ? ((const float4 *)x)[i] : none, v = y ? ((const float4 *)y)[i] : none;
    const float4 d = ((const float4 *)dy)[i];
    ((float4 *)dx)[i] = { d.x * slope_of(f, u.x, v.x, p, q), d.y * slope_of(f, u.y, v.y, p, q),
                          d.z * slope_of(f, u.z, v.z, p, q), d.w * slope_of(f, u.w, v.w, p, q) };
  }
  CU_LOOP(k, n - 4 * quads) {
    const long i = 4 * quads + k;
    dx[i] = dy[i] * slope_of(f, x ? x[i] : 0.0f, y ? y[i] : 0.0f, p, q);
  }
}

static void forward(const mn_call *c, Formula f) {
  const float *x = c->in[0].data;
  float *y = c->out[0].data;
  const long n = c->in[0].n, quads = cu_quads(n, x, y);
  CU_LAUNCH(unary_value, cu_blocks(n, 4), CU_THREADS, 0, f, x, y, n, quads, (float)OPT(c, 0),
            (float)OPT(c, 1));
}

static void backward(const mn_call *c, Formula f, int needs) {
  const float *x = needs & X ? c->in[0].data : NULL, *y = needs & Y ? c->out[0].data : NULL, *dy = c->out[0].grad;
  float *dx = c->in[0].grad;
  const long n = c->in[0].n, quads = cu_quads(n, x, y, dy, dx);
  CU_LAUNCH(unary_slope, cu_blocks(n, 4), CU_THREADS, 0, f, x, y, dy, dx, n, quads, (float)OPT(c, 0),
            (float)OPT(c, 1));
}

#define EXPORT(op, needs, value, slope) \
  static void op##_forward(mn_call *c) { forward(c, op##_formula); } \
  static void op##_backward(mn_call *c) { backward(c, op##_formula, needs); } \
  MN_KERNEL(op, op##_forward, op##_backward)
UNARY_OPS(EXPORT)

#define EXPORT_CONSTANT(op, value) \
  static void op##_forward(mn_call *c) { forward(c, op##_formula); } \
  MN_KERNEL(op, op##_forward, NULL)
CONSTANT_OPS(EXPORT_CONSTANT)

/* ---- lerp ---- */

CU_KERNEL lerp_value(const float *a, const float *b, const float *m, float *y, long n) {
  CU_LOOP(i, n) y[i] = a[i] + (b[i] - a[i]) * m[i];
}

/* Each gradient that is wanted, and of the inputs only what it needs. */
CU_KERNEL lerp_slope(const float *a, const float *b, const float *m, const float *dy, float *da, float *db,
                     float *dm, long n) {
  CU_LOOP(i, n) {
    const float d = dy[i], way = da || db ? m[i] : 0.0f;
    if (da) da[i] = d * (1 - way);
    if (db) db[i] = d * way;
    if (dm) dm[i] = d * (b[i] - a[i]);
  }
}

static void lerp_forward(mn_call *c) {
  const long n = c->out[0].n;
  CU_LAUNCH(lerp_value, cu_blocks(n), CU_THREADS, 0, c->in[0].data, c->in[1].data, c->in[2].data,
            c->out[0].data, n);
}

static void lerp_backward(mn_call *c) {
  const long n = c->out[0].n;
  CU_LAUNCH(lerp_slope, cu_blocks(n), CU_THREADS, 0, c->in[0].data, c->in[1].data, c->in[2].data,
            c->out[0].grad, c->in[0].grad, c->in[1].grad, c->in[2].grad, n);
}

MN_KERNEL(lerp, lerp_forward, lerp_backward)

/* ---- without gradient ---- */

CU_KERNEL within_mask(const float *x, uint8_t *mask, long n, float lo, float hi) {
  CU_LOOP(i, n) mask[i] = x[i] >= lo && x[i] <= hi;
}

static void within_forward(mn_call *c) {
  const long n = c->in[0].n;
  CU_LAUNCH(within_mask, cu_blocks(n, 4), CU_THREADS, 0, c->in[0].data, c->out[0].u8, n, (float)OPT(c, 0),
            (float)OPT(c, 1));
}

MN_KERNEL(between, within_forward, NULL)

CU_KERNEL inverted_mask(const uint8_t *a, uint8_t *mask, long n) { CU_LOOP(i, n) mask[i] = !a[i]; }

static void not_forward(mn_call *c) {
  CU_LAUNCH(inverted_mask, cu_blocks(c->in[0].n, 4), CU_THREADS, 0, c->in[0].u8, c->out[0].u8, c->in[0].n);
}

MN_KERNEL(logical_not, not_forward, NULL)

static void detach_forward(mn_call *c) { cu_copy(c->out[0].data, c->in[0].data, c->in[0].n); }

MN_KERNEL(detach, detach_forward, NULL)
