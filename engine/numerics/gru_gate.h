/* gru_gate.h -- the elementwise part of GTrXL's gate (gru_gate.c), on rows: pre holds r, z, g side by side. */
#ifndef MN_GRU_GATE_H
#define MN_GRU_GATE_H
#include "fast_math.h"
#include "op.h"

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
