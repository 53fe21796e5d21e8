/* adam.c -- one step of Adam (Kingma & Ba 2015, algorithm 1) with clipping by the global norm.
** hyper = lr, 1-beta1, 1-beta2, eps, max_norm (0: no clipping), step (1 at the first).  `norm` is the norm of
** all gradients together, from grad_norm: if it exceeds max_norm, gradients are scaled to it.  With weight_decay
** the weights also shrink by lr weight_decay w (AdamW, Loshchilov & Hutter 2019, algorithm 2).  If the norm
** is not finite nothing changes, so that the weights that caused it can be examined. */
#include <math.h>
#include "op.h"

static void forward(mn_call *c) {
  const float *g = c->in[0].grad, *hyper = c->in[3].data;
  float *w = c->in[0].data, *m = c->in[1].data, *v = c->in[2].data, norm = c->in[4].data[0];
  if (!g || !isfinite(norm)) return;
  float lr = hyper[0], a1 = hyper[1], a2 = hyper[2], eps = hyper[3], max_norm = hyper[4];
  float scale = max_norm > 0 && norm >= max_norm ? max_norm / norm : 1;
  float keep = c->in[5].data ? 1 - lr * c->in[5].data[0] : 1;
  float b1 = 1 - a1, b2 = 1 - a2;
  double c1 = -expm1(hyper[5] * log1p(-(double)a1)), c2 = -expm1(hyper[5] * log1p(-(double)a2));
  const float rate = (float)(lr / c1), root = (float)(1 / sqrt(c2));      /* both corrections once: a division and a root are left for each weight */
  long n = c->in[0].n;
  MN_PARALLEL(c->ctx, 8.0 * n)
  for (long i0 = 0; i0 < n; i0 += 4096) {
    const long end = n - i0 < 4096 ? n : i0 + 4096;
    MN_PRAGMA(omp simd)
    for (long i = i0; i < end; i++) {
      float gi = g[i] * scale;
      m[i] = b1 * m[i] + a1 * gi;
      v[i] = b2 * v[i] + a2 * gi * gi;
      w[i] = keep * w[i] - rate * m[i] / (sqrtf(v[i]) * root + eps);
    }
  }
}

const mn_op mn_op_adam = {
  .sig = "w[...] m[...] v[...] hyper[6] norm[1] weight_decay?[1] ->",
  .doc = "one step of Adam (Kingma & Ba 2015) on a leaf, in place. hyper = lr, 1-beta1, 1-beta2, eps, max_norm, step; with weight_decay: AdamW",
  .time = MN_WHOLE, .off_tape = true, .forward = forward,
};
