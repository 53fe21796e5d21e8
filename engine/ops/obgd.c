/* obgd.c -- a step along the traces of B streams whose size is bounded, so that no single error overshoots (Elsayed, Vasan and Mahmood
** 2024, arXiv 2410.14606, algorithm 3).  Traces of several streams are averaged.  Used by the learner stream. */
#include <math.h>
#include <string.h>
#include "op.h"

enum { IN_W, IN_Z, IN_DELTA, IN_SUM, IN_OVER };

/* What a stream's trace is multiplied with. */
static float step_of(const mn_call *c, int b) {
  const float delta = c->in[IN_DELTA].data[b], lr = (float)OPT(c, 0), size = fabsf(delta);
  const float bound = (size > 1 ? size : 1) * c->in[IN_SUM].data[b] * lr * (float)OPT(c, 1);
  return lr / (bound > 1 ? bound : 1) * delta / (float)DIM(c, 'B');
}

static void forward(mn_call *c) {
  float *w = c->in[IN_W].data;
  const long n = c->in[IN_W].n;
  for (int b = 0; b < DIM(c, 'B'); b++) {
    float *z = c->in[IN_Z].data + b * n;
    const float step = step_of(c, b);
    MN_PRAGMA(omp simd) for (long i = 0; i < n; i++) w[i] += step * z[i];
    if (c->in[IN_OVER].u8[b]) memset(z, 0, sizeof(float) * (size_t)n);
  }
}

/* A step moves some forty leaves, most of them small. */
static int together(mn_call *const *calls, int n, bool back) {
  (void)back;
  for (int i = 0; i < n; i++) forward(calls[i]);
  return n;
}

const mn_op mn_op_obgd = {
  .sig = "w[...] z[B,...] delta[B] sum[B] over[B]:bit -> | lr=1 kappa=2",
  .doc = "w += mean over streams of lr / max(1, max(|delta|, 1) lr kappa sum) delta z, in place; then z = 0 where over is 1 (Elsayed et al. "
         "2024, overshooting-bounded gradient descent); sum: of |z| over all leaves",
  .time = MN_WHOLE, .off_tape = true, .writes = 1 << IN_W | 1 << IN_Z, .forward = forward, .fuse = together,
};
