/* sgd.c -- one step of stochastic gradient descent as in torch.optim.SGD: with weight decay, momentum, dampening, Nesterov.
** hyper = lr, momentum, dampening, weight_decay, max_norm (0: no clipping), step (1 at the first).  Clipping by the global norm and
** its being finite are as in adam.c. */
#include "gradient_norm.h"
#include "op.h"

static void forward(mn_call *c) {
  const float *g = c->in[0].grad, *hyper = c->in[2].data, norm = c->in[3].data[0];
  float *w = c->in[0].data, *v = c->in[1].data;
  const float scale = mn_step_scale(norm, hyper[4], false);
  if (!g || scale < 0) return;
  const float lr = hyper[0], momentum = hyper[1], decay = hyper[3];
  const float keep = hyper[5] > 1 ? momentum : 0, take = hyper[5] > 1 ? 1 - hyper[2] : 1;     /* the first step takes all of it */
  const bool ahead = OPT(c, 0) != 0;
  const long n = c->in[0].n;
  MN_PARALLEL(c->ctx, 4.0 * n)
  for (long i0 = 0; i0 < n; i0 += 4096) {
    const long end = n - i0 < 4096 ? n : i0 + 4096;
    MN_PRAGMA(omp simd)
    for (long i = i0; i < end; i++) {
      float d = g[i] * scale + decay * w[i];
      if (v) {
        v[i] = keep * v[i] + take * d;
        d = ahead ? d + momentum * v[i] : v[i];
      }
      w[i] -= lr * d;
    }
  }
}

const mn_op mn_op_sgd = {
  .sig = "w[...] v?[...] hyper[6] norm[1] -> | nesterov=0",
  .doc = "one step of SGD on a leaf, in place, as torch.optim.SGD. hyper = lr, momentum, dampening, weight_decay, max_norm, step; v: with momentum",
  .time = MN_WHOLE, .off_tape = true, .writes = 1 << 0 | 1 << 1, .forward = forward,
};
