/* elementwise.h -- elementwise ops: an op's file gives the formulas, this file the loops.
**
** MN_UNARY(value, slope): y and dy/dx, in x, y and the op's first two options, p and q.
** MN_CONSTANT(value): y alone, a constant for gradients.
** MN_BINARY(value, slope_a, slope_b): y, dy/da and dy/db, in a, b and y, with broadcasting.
** Formulas without branches are inlined into loops that then vectorise. */
#ifndef MN_ELEMENTWISE_H
#define MN_ELEMENTWISE_H
#include "numerics/broadcast.h"
#include "numerics/fast_math.h"

#define MN_LOOP static inline __attribute__((always_inline, unused))

typedef float (*mn_f1)(float x, float p, float q);
typedef float (*mn_d1)(float x, float y, float p, float q);
typedef float (*mn_f2)(float a, float b);
typedef float (*mn_d2)(float a, float b, float y);

MN_LOOP void mn_unary_forward(mn_call *c, float *y, long from, long end, mn_f1 f) {
  const float *x = c->in[0].data;
  float p = (float)OPT(c, 0), q = (float)OPT(c, 1);
  MN_PRAGMA(omp simd)
  for (long i = from; i < end; i++) y[i] = f(x[i], p, q);
}

MN_LOOP void mn_unary_backward(mn_call *c, float *dx, long from, long end, mn_d1 d) {
  const float *x = c->in[0].data, *y = c->out[0].data, *dy = c->out[0].grad;
  float p = (float)OPT(c, 0), q = (float)OPT(c, 1);
  MN_PRAGMA(omp simd)
  for (long i = from; i < end; i++) dx[i] = dy[i] * d(x[i], y[i], p, q);
}

/* In a run an operand moves on or stands still; a loop for each case, so that each vectorises.
** Where both stand still, the run is one element long. */
MN_LOOP void mn_binary_forward(mn_call *c, float *to, long from, long end, mn_f2 f) {
  mn_layout l = mn_layout_of(c);
  long moves_a = l.stride[0][l.axes - 1], moves_b = l.stride[1][l.axes - 1], start[MN_OPERANDS];
  for (long at = from, n; at < end; at += n) {
    n = mn_run(&l, at, end, start);
    const float *a = c->in[0].data + start[0], *b = c->in[1].data + start[1];
    float *y = to + at, a0 = *a, b0 = *b;
    if (moves_a && moves_b) {
      MN_PRAGMA(omp simd)
      for (long i = 0; i < n; i++) y[i] = f(a[i], b[i]);
    } else if (moves_a) {
      MN_PRAGMA(omp simd)
      for (long i = 0; i < n; i++) y[i] = f(a[i], b0);
    } else {
      MN_PRAGMA(omp simd)
      for (long i = 0; i < n; i++) y[i] = f(a0, b[i]);
    }
  }
}

/* g = dy * d(a, b, y), for every element of the output. */
MN_LOOP void mn_binary_backward(mn_call *c, float *to, long from, long end, mn_d2 d) {
  mn_layout l = mn_layout_of(c);
  long moves_a = l.stride[0][l.axes - 1], moves_b = l.stride[1][l.axes - 1], start[MN_OPERANDS];
  for (long at = from, n; at < end; at += n) {
    n = mn_run(&l, at, end, start);
    const float *a = c->in[0].data + start[0], *b = c->in[1].data + start[1];
    const float *y = c->out[0].data + at, *dy = c->out[0].grad + at;
    float *g = to + at, a0 = *a, b0 = *b;
    if (moves_a && moves_b) {
      MN_PRAGMA(omp simd)
      for (long i = 0; i < n; i++) g[i] = dy[i] * d(a[i], b[i], y[i]);
    } else if (moves_a) {
      MN_PRAGMA(omp simd)
      for (long i = 0; i < n; i++) g[i] = dy[i] * d(a[i], b0, y[i]);
    } else {
      MN_PRAGMA(omp simd)
      for (long i = 0; i < n; i++) g[i] = dy[i] * d(a0, b[i], y[i]);
    }
  }
}

#define MN_PART(name, body, formula) \
  static void name(mn_call *c, float *to, long from, long end) { body(c, to, from, end, formula); }

#define MN_CONSTANT(value) \
  MN_LOOP float value_of(float x, float p, float q) { (void)p, (void)q; return value; } \
  MN_PART(forward_part, mn_unary_forward, value_of) \
  static void forward(mn_call *c) { mn_in_parts(c, c->out[0].data, c->out[0].n, forward_part); }

#define MN_UNARY(value, slope) \
  MN_CONSTANT(value) \
  MN_LOOP float slope_of(float x, float y, float p, float q) { \
    (void)x, (void)y, (void)p, (void)q; \
    return slope; \
  } \
  MN_PART(backward_part, mn_unary_backward, slope_of) \
  static void backward(mn_call *c) { mn_in_parts(c, c->in[0].grad, c->in[0].n, backward_part); }

#define MN_BINARY(value, slope_a, slope_b) \
  MN_LOOP float value_of(float a, float b) { return value; } \
  MN_LOOP float slope_of_a(float a, float b, float y) { \
    (void)a, (void)b, (void)y; \
    return slope_a; \
  } \
  MN_LOOP float slope_of_b(float a, float b, float y) { \
    (void)a, (void)b, (void)y; \
    return slope_b; \
  } \
  MN_PART(forward_part, mn_binary_forward, value_of) \
  MN_PART(a_part, mn_binary_backward, slope_of_a) \
  MN_PART(b_part, mn_binary_backward, slope_of_b) \
  static void forward(mn_call *c) { mn_in_parts(c, c->out[0].data, c->out[0].n, forward_part); } \
  static void backward(mn_call *c) { \
    mn_operand_backward(c, 0, a_part); \
    mn_operand_backward(c, 1, b_part); \
  }

#endif
