/* complex_scan.c -- a linear recurrence of complex channels: the diagonal state space of LRU (Orvieto et al. 2023) and S5 (Smith et
** al. 2023).  A vector of complex values is twice as long: first all real parts, then all imaginary parts.  So one matrix with the
** rows of B's real and then imaginary part makes x, and one with the columns Re C and -Im C reads Re(C h). */
#include "scan.h"

MN_STEP void step(long n, long im, const float *a, const float *h, const float *x, float *y) {
  MN_PRAGMA(omp simd)
  for (long i = 0; i < n; i++) {
    const float ar = a[i], ai = a[i + im], hr = h[i], hi = h[i + im];
    y[i] = ar * hr - ai * hi + x[i];
    y[i + im] = ar * hi + ai * hr + x[i + im];
  }
}

MN_STEP void step_back(long n, long im, const float *a, const float *h, const float *x, const float *y, float *g, float *da, float *dx,
                       bool sums) {
  (void)x, (void)y;
  MN_PRAGMA(omp simd)
  for (long i = 0; i < n; i++) {
    const float ar = a[i], ai = a[i + im], hr = h[i], hi = h[i + im], dr = g[i], di = g[i + im];
    const float to_ar = dr * hr + di * hi, to_ai = di * hr - dr * hi;
    dx[i] = dr;
    dx[i + im] = di;
    da[i] = sums ? da[i] + to_ar : to_ar;
    da[i + im] = sums ? da[i + im] + to_ai : to_ai;
    g[i] = dr * ar + di * ai;
    g[i + im] = di * ar - dr * ai;
  }
}

static int shape(mn_call *c) {
  if (DIM(c, 'D') % 2) return mn_fail(c->ctx, "complex_scan: axis 2 (D) of x is %d, expected an even size: real parts, then imaginary parts", DIM(c, 'D'));
  return mn_scan_shape(c);
}

MN_SCAN_OP(2, 4)

const mn_op mn_op_complex_scan = {
  .sig = MN_SCAN_SIG("D"),
  .doc = "h_t = a_t h_{t-1} + x_t, elementwise and complex, y = h: the first half of D holds real parts, the second imaginary parts; done: "
         "h_{t-1} = 0; a as x, or [D] if it is the same at every step (LRU: Orvieto et al. 2023; S5: Smith et al. 2023)",
  .time = MN_SCAN, .shape = shape, .forward = forward, .backward = backward, .batch_parallel = batch_parallel,
};
