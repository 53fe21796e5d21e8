/* pointwise.cu -- abs clamp cos elu1 erf exp floor gelu leaky_relu log neg pow relu round rsqrt scale sigmoid sign silu sin softplus sqrt
** square tanh, lerp, between, detach: elementwise ops.  They are limited by memory, so one kernel computes them all and
** selects the formula at run time: every thread of a launch selects the same one, which costs nothing compared with
** the loads, and each direction has one table of formulas.  Values are read and written four at a time. */
#include "runtime/strided_copy.cuh"
extern "C" {
#include "numerics/fast_math.h"
}

namespace {
enum Formula { ABS, CLAMP, COS, ELU1, ERF, EXP, FLOOR, GELU, LEAKY_RELU, LOG, NEG, POW, RELU, ROUND, RSQRT, SCALE, SIGMOID, SIGN, SILU, SIN, SOFTPLUS, SQRT,
  SQUARE, TANH };
}
enum Needs { NOTHING = 0, X = 1, Y = 2 };           /* what the slope looks at */

static __device__ float value_of(Formula f, float x, float p, float q) {
  switch (f) {
  case ABS:      return fabsf(x);
  case CLAMP:    return mn_at_most(mn_at_least(x, p), q);
  case COS:      return cosf(x);
  case ELU1:     return x > 0 ? x + 1 : mn_expf(x);
  case ERF:      return erff(x);
  case EXP:      return mn_expf(x);
  case FLOOR:    return floorf(x);
  case GELU:     return 0.5f * x * (1 + erff(0.7071067812f * x));
  case LEAKY_RELU: return x > 0 ? x : p * x;
  case LOG:      return mn_logf(x);
  case NEG:      return -x;
  case POW:      return powf(x, p);
  case RELU:     return mn_at_least(x, 0);
  case ROUND:    return rintf(x);
  case RSQRT:    return 1 / sqrtf(x);
  case SCALE:    return fmaf(p, x, q);
  case SIGMOID:  return mn_sigmoidf(x);
  case SIGN:     return x > 0 ? 1.0f : x < 0 ? -1.0f : x;
  case SILU:     return x * mn_sigmoidf(x);
  case SIN:      return sinf(x);
  case SOFTPLUS: return mn_softplusf(x);
  case SQRT:     return sqrtf(x);
  case SQUARE:   return x * x;
  case TANH:     return mn_tanhf(x);
  }
  return 0;
}

static __device__ float silu_slope(float x, float s) { return s * (1 + x * (1 - s)); }

static __device__ float slope_of(Formula f, float x, float y, float p, float q) {
  switch (f) {
  case ABS:      return x > 0 ? 1.0f : x < 0 ? -1.0f : 0.0f;
  case CLAMP:    return x < p || x > q ? 0.0f : 1.0f;
  case COS:      return -sinf(x);
  case ELU1:     return x > 0 ? 1.0f : y;
  case ERF:      return 1.128379167f * mn_expf(-x * x);
  case EXP:      return y;
  case FLOOR:    return 0;
  case GELU:     return 0.5f * (1 + erff(0.7071067812f * x)) + 0.3989422804f * x * mn_expf(-0.5f * x * x);
  case LEAKY_RELU: return x > 0 ? 1.0f : p;
  case LOG:      return 1 / x;
  case NEG:      return -1.0f;
  case POW:      return p == 0 ? 0.0f : p * powf(x, p - 1);
  case RELU:     return x > 0 ? 1.0f : 0.0f;
  case ROUND:    return 0;
  case RSQRT:    return -0.5f * y / x;
  case SCALE:    return p;
  case SIGMOID:  return y * (1 - y);
  case SIGN:     return 0;
  case SILU:     return silu_slope(x, mn_sigmoidf(x));
  case SIN:      return cosf(x);
  case SOFTPLUS: return mn_sigmoidf(x);
  case SQRT:     return 0.5f / y;
  case SQUARE:   return 2 * x;
  case TANH:     return 1 - y * y;
  }
  return 0;
}

CU_KERNEL unary_value(Formula f, const float *x, float *y, long n, long quads, float p, float q) {
  CU_LOOP(i, quads) {
    float4 v = ((const float4 *)x)[i];
    v = { value_of(f, v.x, p, q), value_of(f, v.y, p, q), value_of(f, v.z, p, q), value_of(f, v.w, p, q) };
    ((float4 *)y)[i] = v;
  }
  CU_LOOP(i, n - 4 * quads) y[4 * quads + i] = value_of(f, x[4 * quads + i], p, q);
}

/* dx = dy * slope; x or y is NULL where the slope does not look at it. */
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

#define UNARY(op, formula, needs) \
  static void op##_forward(mn_call *c) { forward(c, formula); } \
  static void op##_backward(mn_call *c) { backward(c, formula, needs); } \
  MN_KERNEL(op, op##_forward, op##_backward)

UNARY(abs, ABS, X)
UNARY(clamp, CLAMP, X)
UNARY(cos, COS, X)
UNARY(elu1, ELU1, X | Y)
UNARY(erf, ERF, X)
UNARY(exp, EXP, Y)
UNARY(gelu, GELU, X)
UNARY(leaky_relu, LEAKY_RELU, X)
UNARY(log, LOG, X)
UNARY(neg, NEG, NOTHING)
UNARY(pow, POW, X)
UNARY(relu, RELU, X)
UNARY(rsqrt, RSQRT, X | Y)
UNARY(scale, SCALE, NOTHING)
UNARY(sigmoid, SIGMOID, Y)
UNARY(silu, SILU, X)
UNARY(sin, SIN, X)
UNARY(softplus, SOFTPLUS, X)
UNARY(sqrt, SQRT, Y)
UNARY(square, SQUARE, X)
UNARY(tanh, TANH, Y)

/* Constants for gradients. */
#define CONSTANT(op, formula) \
  static void op##_forward(mn_call *c) { forward(c, formula); } \
  MN_KERNEL(op, op##_forward, NULL)

CONSTANT(floor, FLOOR)
CONSTANT(round, ROUND)
CONSTANT(sign, SIGN)

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

static void detach_forward(mn_call *c) { cu_copy(c->out[0].data, c->in[0].data, c->in[0].n); }

MN_KERNEL(detach, detach_forward, NULL)
