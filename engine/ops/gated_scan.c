/* gated_scan.c -- a linear recurrence of channels, each with a factor of its own: the core of RG-LRU and Hawk (De et al. 2024),
** minGRU and minLSTM (Feng et al. 2024), HGRN (Qin et al. 2023) and the real diagonal state spaces. */
#include "scan.h"

MN_STEP void step(long n, long im, const float *a, const float *h, const float *x, float *y) {
  (void)im;
  MN_PRAGMA(omp simd)
  for (long i = 0; i < n; i++) y[i] = a[i] * h[i] + x[i];
}

MN_STEP void step_back(long n, long im, const float *a, const float *h, const float *x, const float *y, float *g, float *da, float *dx,
                       bool sums) {
  (void)im, (void)x, (void)y;
  MN_PRAGMA(omp simd)
  for (long i = 0; i < n; i++) {
    const float d = g[i];
    dx[i] = d;
    da[i] = sums ? da[i] + d * h[i] : d * h[i];
    g[i] = d * a[i];
  }
}

MN_SCAN_OP(1, 1)

const mn_op mn_op_gated_scan = {
  .sig = MN_SCAN_SIG("..."),
  .doc = "h_t = a_t h_{t-1} + x_t, elementwise, y = h; done: h_{t-1} = 0; a as x, or [...] if it is the same at every step (RG-LRU: De et al. "
         "2024; minGRU: Feng et al. 2024)",
  .time = MN_SCAN, .shape = mn_scan_shape, .forward = forward, .backward = backward, .batch_parallel = batch_parallel,
};
