/* gates.h -- elementwise parts of gates, forward and back: of sLSTM and minLSTM one channel of one step, on any device; of GTrXL's gate rows. */
#ifndef MN_GATES_H
#define MN_GATES_H
#include "fast_math.h"
#include "op.h"

typedef struct mn_slstm { float i, f, z, o, c, n, m; } mn_slstm;        /* what a step reads, or gradients of it */
typedef struct mn_slstm_next { float y, c, n, m; } mn_slstm_next;       /* what it leaves, or gradients of it */

/* Of exp(keep - m') and exp(i - m') one is 1, since m' is the larger of the two. */
MN_MATH mn_slstm_next mn_slstm_step(mn_slstm x) {
  const float keep = x.m - mn_softplusf(-x.f), e = mn_exp_minus(keep - x.i);
  const float a = mn_select(keep < x.i, e, 1), b = mn_select(keep < x.i, 1, e);
  const float c = a * x.c + b * mn_tanhf(x.z), n = a * x.n + b;
  const mn_slstm_next next = { mn_sigmoidf(x.o) * (c / n), c, n, mn_at_least(keep, x.i) };
  return next;
}

/* y and the next c are given, n and m are not needed. */
MN_MATH mn_slstm mn_slstm_back(mn_slstm x, float y, float c, float n, mn_slstm_next g) {
  const float keep = x.m - mn_softplusf(-x.f), e = mn_exp_minus(keep - x.i);
  const float a = mn_select(keep < x.i, e, 1), b = mn_select(keep < x.i, 1, e);
  const float z = mn_tanhf(x.z), o = mn_sigmoidf(x.o), through = g.y * o / n;
  const float gc = g.c + through, gn = g.n - through * (c / n);
  const float of_e = e * mn_select(keep < x.i, gc * x.c + gn * x.n, gc * z + gn), rest = g.m - of_e;
  const float old = mn_select(keep < x.i, of_e, rest);
  const mn_slstm d = { mn_select(keep < x.i, rest, of_e), old * mn_sigmoidf(-x.f), gc * b * (1 - z * z), g.y * y * (1 - o), gc * a, gn * a, old };
  return d;
}

/* exp(-f) and exp(-i), for sigma(f) and sigma(i) over their sum.  Where both are below -40 a sigmoid is an exponential, and the shares stay
** when both are moved up; so nothing overflows, and no share is 0/0. */
MN_MATH void mn_minlstm_open(float f, float i, float *a, float *b) {
  const float up = mn_at_least(-40 - mn_at_least(f, i), 0);
  int32_t n, m;
  const float p = mn_expm1_reduced(mn_at_most(mn_at_least(-f - up, -88), 80), &n), q = mn_expm1_reduced(mn_at_most(mn_at_least(-i - up, -88), 80), &m);
  *a = (1 + p) * mn_power_of_2(n);
  *b = (1 + q) * mn_power_of_2(m);
}

/* x = share of i times v, keep = share of f. */
MN_MATH void mn_minlstm_step(float f, float i, float v, float *x, float *keep) {
  float a, b;
  mn_minlstm_open(f, i, &a, &b);
  const float part = 1 / (2 + a + b);
  *x = (1 + a) * part * v;
  *keep = (1 + b) * part;
}

/* Their gradients dx and dkeep become those of f, i and v. */
MN_MATH void mn_minlstm_back(float f, float i, float v, float dx, float dkeep, float *df, float *di, float *dv) {
  float a, b;
  mn_minlstm_open(f, i, &a, &b);
  const float part = 1 / (2 + a + b), z = (1 + a) * part, g = dx * v - dkeep;
  *df = -g * ((1 + b) * part) * (a * part);
  *di = g * z * (b * part);
  *dv = dx * z;
}

/* ---- GTrXL's gate (gru_gate.c), on rows: pre holds r, z, g side by side ---- */

/* r, z and r*x of columns from .. end-1, from their sums of products in pre. */
static inline void mn_gate_open(const float *x, const float *bias, float *pre, float *rx, long rows, int D,
                                int from, int end) {
  for (long n = 0; n < rows; n++, x += D, pre += 3 * D, rx += D) {
    MN_PRAGMA(omp simd)
    for (int d = from; d < end; d++) {
      float r = mn_sigmoidf(pre[d]);
      pre[d] = r;
      pre[D + d] = mn_sigmoidf(pre[D + d] - bias[d]);
      rx[d] = r * x[d];
    }
  }
}

/* g and the output o = (1-z)*x + z*g, of the same columns; pre's last third holds g before its tanh. */
static inline void mn_gate_mix(const float *x, float *pre, float *o, long rows, int D, int from, int end) {
  for (long n = 0; n < rows; n++, x += D, pre += 3 * D, o += D) {
    MN_PRAGMA(omp simd)
    for (int d = from; d < end; d++) {
      float g = mn_tanhf(pre[2 * D + d]), z = pre[D + d];
      pre[2 * D + d] = g;
      o[d] = (1 - z) * x[d] + z * g;
    }
  }
}

/* Gradients of the three pre-activations, as far as they do not need d(rx); dx gets the direct part. */
static inline void mn_gate_undo_mix(const float *x, const float *pre, const float *d_o, float *dp, float *dx, long rows,
                                    int D) {
  for (long n = 0; n < rows; n++, x += D, pre += 3 * D, d_o += D, dp += 3 * D, dx += D) {
    MN_PRAGMA(omp simd)
    for (int d = 0; d < D; d++) {
      float z = pre[D + d], g = pre[2 * D + d];
      dp[D + d] = d_o[d] * (g - x[d]) * z * (1 - z);
      dp[2 * D + d] = d_o[d] * z * (1 - g * g);
      dx[d] = d_o[d] * (1 - z);
    }
  }
}

/* What came back through u_g, drx: the gradient of r's sum in dp; r's part is added to dx. */
static inline void mn_gate_undo_open(const float *x, const float *pre, const float *drx, float *dp, float *dx, long rows,
                                    int D) {
  for (long n = 0; n < rows; n++, x += D, pre += 3 * D, drx += D, dp += 3 * D, dx += D) {
    MN_PRAGMA(omp simd)
    for (int d = 0; d < D; d++) {
      float r = pre[d];
      dx[d] += drx[d] * r;
      dp[d] = drx[d] * x[d] * r * (1 - r);
    }
  }
}

#endif
