/* rmsprop.c -- one step of RMSprop (Tieleman, Hinton 2012) as in torch.optim.RMSprop: eps is added outside of the root.
** hyper = lr, 1-alpha, eps, weight_decay, momentum, max_norm (0: no clipping), step.  With `mean` it is centred: the square of the mean
** gradient is taken off (Graves 2013).  Clipping by the global norm and its being finite are as in adam.c. */
#include "gradient_norm.h"
#include "op.h"

static void forward(mn_call *c) {
  const float *g = c->in[0].grad, *hyper = c->in[4].data, norm = c->in[5].data[0];
  float *w = c->in[0].data, *v = c->in[1].data, *m = c->in[2].data, *mean = c->in[3].data;
  const float scale = mn_step_scale(norm, hyper[5], true);
  if (!g || scale < 0) return;
  const float lr = hyper[0], a = hyper[1], eps = hyper[2], decay = hyper[3], momentum = hyper[4];
  const long n = c->in[0].n;
  MN_PARALLEL(c->ctx, 8.0 * n)
  for (long i0 = 0; i0 < n; i0 += 4096) {
    const long end = n - i0 < 4096 ? n : i0 + 4096;
    MN_PRAGMA(omp simd)
    for (long i = i0; i < end; i++) {
      const float d = g[i] * scale + decay * w[i];
      float size = v[i] = (1 - a) * v[i] + a * d * d;
      if (mean) {
        mean[i] = (1 - a) * mean[i] + a * d;
        size -= mean[i] * mean[i];
        size = size < 0 ? 0 : size;            /* a variance that rounding put below 0; NaN stays */
      }
      float step = d / (sqrtf(size) + eps);
      if (m) step = m[i] = momentum * m[i] + step;
      w[i] -= lr * step;
    }
  }
}

const mn_op mn_op_rmsprop = {
  .sig = "w[...] v[...] m?[...] mean?[...] hyper[7] norm[1] ->",
  .doc = "one step of RMSprop on a leaf, in place, as torch.optim.RMSprop. hyper = lr, 1-alpha, eps, weight_decay, momentum, max_norm, step; m: with "
      "momentum; mean: centred",
  .time = MN_WHOLE, .off_tape = true, .writes = 1 << 0 | 1 << 1 | 1 << 2 | 1 << 3, .forward = forward,
};
