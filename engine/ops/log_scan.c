/* log_scan.c -- the gated scan of positive numbers in log space, where neither the factors nor the sums leave the range of a float.
** Heinsen 2023, Efficient Parallelization of a Ubiquitous Sequential Computation; minGRU and minLSTM (Feng et al. 2024, appendix B). */
#include <math.h>
#include "numerics/fast_math.h"
#include "scan.h"

/* log e^p - log e^q; the logarithm of 0 is below everything. */
MN_STEP float above(float p, float q) { return p == -INFINITY ? -INFINITY : p - q; }

MN_STEP void step(long n, long im, const float *a, const float *h, const float *x, float *y) {
  (void)im;
  MN_PRAGMA(omp simd)
  for (long i = 0; i < n; i++) {
    const float p = a[i] + h[i], d = above(p, x[i]);
    y[i] = (d > 0 ? p : x[i]) + mn_softplusf(-__builtin_fabsf(d));
  }
}

MN_STEP void step_back(long n, long im, const float *a, const float *h, const float *x, const float *y, float *g, float *da, float *dx,
                       bool sums) {
  (void)im, (void)y;
  MN_PRAGMA(omp simd)
  for (long i = 0; i < n; i++) {
    const float d = above(a[i] + h[i], x[i]), e = mn_expf(-__builtin_fabsf(d)), larger = g[i] / (1 + e), smaller = e * larger;
    const float old = d > 0 ? larger : smaller;
    dx[i] = d > 0 ? smaller : larger;
    da[i] = sums ? da[i] + old : old;
    g[i] = old;
  }
}

MN_SCAN_OP(1, 16)

const mn_op mn_op_log_scan = {
  .sig = MN_SCAN_SIG("..."),
  .doc = "h_t = log(e^(a_t + h_{t-1}) + e^(x_t)), elementwise, y = h: gated_scan of logarithms (Heinsen 2023); done: h_{t-1} = -inf; a as x, or "
         "[...] if it is the same at every step",
  .time = MN_SCAN, .shape = mn_scan_shape, .forward = forward, .backward = backward, .batch_parallel = batch_parallel,
};
