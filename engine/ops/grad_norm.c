/* grad_norm.c -- adds one leaf's squared gradients to a running sum and outputs its square root so far.
** The first leaf (first=1) sets the sum to zero; the last one's norm[0] is the global norm.  The leaf's own norm
** is output too, to find the layer whose gradient explodes or vanishes. */
#include "gradient_norm.h"
#include "op.h"

static double squares_of(const float *g, long n) {
  float part = 0;
  MN_PRAGMA(omp simd reduction(+:part))
  for (long i = 0; i < n; i++) part += g[i] * g[i];
  if (mn_squares_fit(part)) return (double)part;
  double sum = 0;
  for (long i = 0; i < n; i++) sum += (double)g[i] * (double)g[i];
  return sum;
}

static void forward(mn_call *c) {
  const float *g = c->in[0].grad;
  float *sum = c->in[1].data, *norm = c->in[2].data, *own = c->in[3].data;
  long n = c->in[0].n;
  double total = OPT(c, 0) != 0 ? 0 : mn_squares_read(sum), squares = 0;
  for (long i = 0; g && i < n; i += 1024) {          /* short sums in float, their sum in double */
    const double part = squares_of(g + i, n - i < 1024 ? n - i : 1024);
    total += part;
    squares += part;
  }
  mn_squares_write(total, sum);
  norm[0] = (float)sqrt(total);
  if (own) own[0] = (float)sqrt(squares);
}

const mn_op mn_op_grad_norm = {
  .sig = "w[...] sum[2] norm[1] own?[1] -> | first=0",
  .doc = "norm of the gradients of several leaves. Call it once for each, with first=1 at the first; own: that of this leaf alone",
  .time = MN_WHOLE, .off_tape = true, .writes = 1 << 1 | 1 << 2 | 1 << 3, .forward = forward,
};
