/* grad_norm.c -- adds one leaf's squared gradients to a running sum and outputs its square root so far.
** The first leaf (first=1) sets sum[0] to zero; the last one's norm[0] is the global norm.  The leaf's own sum of squares
** is output too, to find the layer whose gradient explodes or vanishes. */
#include <math.h>
#include "op.h"

static void forward(mn_call *c) {
  const float *g = c->in[0].grad;
  float *sum = c->in[1].data, *norm = c->in[2].data, *own = c->in[3].data;
  long n = c->in[0].n;
  double total = OPT(c, 0) != 0 ? 0 : (double)sum[0] + (double)sum[1], squares = 0;
  for (long i0 = 0; g && i0 < n; i0 += 1024) {       /* short sums in float, their sum in double */
    const long end = n - i0 < 1024 ? n : i0 + 1024;
    float part = 0;
    MN_PRAGMA(omp simd reduction(+:part))
    for (long i = i0; i < end; i++) part += g[i] * g[i];
    total += (double)part;
    squares += (double)part;
  }
  sum[0] = (float)total;                             /* a double in two floats: high and low part */
  sum[1] = isfinite(sum[0]) ? (float)(total - (double)sum[0]) : 0;
  norm[0] = (float)sqrt(total);
  if (own) own[0] = (float)squares;
}

const mn_op mn_op_grad_norm = {
  .sig = "w[...] sum[2] norm[1] own?[1] -> | first=0",
  .doc = "norm of the gradients of several leaves. Call it once for each, with first=1 at the first; own: the squares of this leaf alone",
  .time = MN_WHOLE, .off_tape = true, .forward = forward,
};
