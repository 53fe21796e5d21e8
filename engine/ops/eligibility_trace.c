/* eligibility_trace.c -- adds a leaf's gradient to its trace, which decays, and sums the sizes of all numbers of several traces: what
** the bound of obgd needs.  Used by the learner stream. */
#include <math.h>
#include "op.h"

enum { IN_W, IN_Z, IN_SUM };
enum { PART = 1024 };            /* numbers summed in float32, the sums of which are summed in double */

static void forward(mn_call *c) {
  const float *g = c->in[IN_W].grad, decay = (float)OPT(c, 0);
  float *z = c->in[IN_Z].data;
  const long n = c->in[IN_W].n;
  double total = OPT(c, 1) != 0 ? 0 : (double)c->in[IN_SUM].data[0];
  for (long from = 0; from < n; from += PART) {
    const long to = from + PART < n ? from + PART : n;
    float sum = 0;
    if (g) MN_PRAGMA(omp simd reduction(+:sum)) for (long i = from; i < to; i++) sum += fabsf(z[i] = decay * z[i] + g[i]);
    else MN_PRAGMA(omp simd reduction(+:sum)) for (long i = from; i < to; i++) sum += fabsf(z[i] *= decay);
    total += (double)sum;
  }
  c->in[IN_SUM].data[0] = (float)total;
}

/* A step's traces are some forty leaves, most of them small. */
static int together(mn_call *const *calls, int n, bool back) {
  (void)back;
  for (int i = 0; i < n; i++) forward(calls[i]);
  return n;
}

const mn_op mn_op_eligibility_trace = {
  .sig = "w[...] z[...] sum[1] -> | decay=1 first=0",
  .doc = "z = decay z + gradient of w, in place; adds the sum of |z| to `sum`, which the first of several leaves (first=1) sets (Sutton 1988)",
  .time = MN_WHOLE, .off_tape = true, .writes = 1 << IN_Z | 1 << IN_SUM, .forward = forward, .fuse = together,
};
