/* rotary.c -- rotary position embedding: rotates pairs of elements by an angle that grows with time.
** y_2i = x_2i cos - x_2i+1 sin,  y_2i+1 = x_2i sin + x_2i+1 cos  of  position * base^(-2i/D), and the
** position of row t is tick + t.  Angles are reduced in double.  The clock that calls hand on is a float, which counts to 2^24:
** an environment that has been stepped that often stays at this position, since no period of all angles is a whole number. */
#include <math.h>
#include <string.h>
#include "numerics/fast_math.h"
#include "op.h"

static int shape(mn_call *c) {
  int D = DIM(c, 'D');
  if (D % 2) return mn_fail(c->ctx, "rotary: axis 3 of x is %d, expected an even number, to rotate pairs", D);
  return 0;
}

/* Angles of a step, in quarter turns. */
static const double *angles(mn_call *c) {
  int D = DIM(c, 'D');
  double *quarters = (double *)mn_scratch(c->ctx, 0, D);
  for (int i = 0; i < D / 2; i++) quarters[i] = pow(OPT(c, 0), -2.0 * i / D) / 1.5707963267948966;
  return quarters;
}

/* Row t of environment b, all heads, turned forwards (sign 1) or back (-1); table: D numbers. */
static void turn(const mn_call *c, long row, const double *quarters, float sign, const float *x, float *y,
                 float *table) {
  int B = DIM(c, 'B'), H = DIM(c, 'H'), D = DIM(c, 'D'), n = D / 2;
  float *cosine = table, *sine = table + n;
  double position = (double)c->in[1].data[row % B] + (double)(row / B);
  MN_PRAGMA(omp simd)
  for (int i = 0; i < n; i++) mn_sincos_quarters(position * quarters[i], &sine[i], &cosine[i]);
  x += row * H * D;
  y += row * H * D;
  for (int h = 0; h < H; h++, x += D, y += D) {
    MN_PRAGMA(omp simd)
    for (int i = 0; i < n; i++) {
      float u = x[2 * i], v = x[2 * i + 1], s = sign * sine[i];
      y[2 * i] = u * cosine[i] - v * s;
      y[2 * i + 1] = u * s + v * cosine[i];
    }
  }
}

enum { ROWS = 16 };              /* to a job, each with a table of its own */

static void turn_rows(mn_call *c, float sign, const float *x, float *y) {
  const double *quarters = angles(c);
  int D = DIM(c, 'D'), B = DIM(c, 'B');
  long from = (long)c->t0 * B, end = (long)c->t1 * B, jobs = (end - from + ROWS - 1) / ROWS;
  float *tables = mn_scratch(c->ctx, 1, jobs * D);
  MN_FOR(c->ctx, (end - from) * DIM(c, 'H') * D, i, 0, jobs * ROWS, ROWS,
         for (long row = from + i; row < end && row < from + i + ROWS; row++)
           turn(c, row, quarters, sign, x, y, tables + i / ROWS * D));
}

static void forward(mn_call *c) {
  turn_rows(c, 1, c->in[0].data, c->out[0].data);
  for (int b = 0; b < DIM(c, 'B'); b++) c->out[1].data[b] = c->in[1].data[b] + (float)c->t1;
}

static void backward(mn_call *c) {
  if (c->in[0].grad) turn_rows(c, -1, c->out[0].grad, c->in[0].grad);
  if (c->in[1].grad) memset(c->in[1].grad, 0, sizeof(float) * (size_t)c->in[1].n);
}

const mn_op mn_op_rotary = {
  .sig = "x[T,B,H,D] ~tick[B] -> y[T,B,H,D] ~tick'[B] | base=10000",
  .doc = "rotary positions (Su et al. 2021, section 3.2). Pairs (2i, 2i+1) are rotated by (tick + t) base^(-2i/D); tick' = tick + T, a counter "
      "without gradient",
  .time = MN_SCAN, .shape = shape, .forward = forward, .backward = backward,
};
