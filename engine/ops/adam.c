/* adam.c -- one step of Adam (Kingma & Ba 2015, algorithm 1) with clipping by the global norm.
** hyper = lr, 1-beta1, 1-beta2, eps, max_norm (0: no clipping), step (1 at the first).  `norm` is the norm of
** all gradients together, from grad_norm: if it exceeds max_norm, gradients are scaled to it.  With weight_decay
** the weights also shrink by lr weight_decay w (AdamW, Loshchilov & Hutter 2019, algorithm 2).  If the norm
** is not finite, or its square is not and nothing clips it, nothing changes, so that the weights that caused it can be examined.
** rectified=1: RAdam (Liu et al. 2020, algorithm 2), whose steps wait until the squares are of enough gradients; until then they divide by none. */
#include "gradient_norm.h"
#include "op.h"

typedef struct step { float *w, *m, *v; const float *g; float lr, eps, a1, a2, c1, c2, scale, keep; } step;        /* lr: of a rectified step, rectified */

/* Weights from .. end-1.  A correction that has come to 1 divides nothing: the bits are the same, and divisions are most of the time. */
static inline __attribute__((always_inline)) void run(const step *s, const bool by_c1, const bool by_c2, long from, long end) {
  float *w = s->w, *m = s->m, *v = s->v;
  const float *g = s->g, b1 = 1 - s->a1, b2 = 1 - s->a2, a1 = s->a1, a2 = s->a2, c1 = s->c1, c2 = s->c2;
  MN_PRAGMA(omp simd)
  for (long i = from; i < end; i++) {
    float gi = g[i] * s->scale;
    m[i] = b1 * m[i] + a1 * gi;
    v[i] = b2 * v[i] + a2 * gi * gi;
    w[i] = s->keep * w[i] - s->lr * (by_c1 ? m[i] / c1 : m[i]) / (sqrtf(by_c2 ? v[i] / c2 : v[i]) + s->eps);
  }
}

/* The same before the squares count. */
static void by_the_mean(const step *s, long from, long end) {
  for (long i = from; i < end; i++) {
    float gi = s->g[i] * s->scale;
    s->m[i] = (1 - s->a1) * s->m[i] + s->a1 * gi;
    s->v[i] = (1 - s->a2) * s->v[i] + s->a2 * gi * gi;
    s->w[i] = s->keep * s->w[i] - s->lr * (s->m[i] / s->c1);
  }
}

static void some(const step *s, bool squares, long from, long end) {
  if (!squares) by_the_mean(s, from, end);
  else if (s->c1 != 1) run(s, true, true, from, end);
  else if (s->c2 != 1) run(s, false, true, from, end);
  else run(s, false, false, from, end);
}

static void forward(mn_call *c) {
  const float *g = c->in[0].grad, *hyper = c->in[3].data;
  float *w = c->in[0].data, *m = c->in[1].data, *v = c->in[2].data, norm = c->in[4].data[0];
  const float scale = mn_step_scale(norm, hyper[4], true);
  if (!g || scale < 0) return;
  step s = { w, m, v, g, .lr = hyper[0], .a1 = hyper[1], .a2 = hyper[2], .eps = hyper[3] };
  s.scale = scale;
  s.keep = c->in[5].data ? 1 - s.lr * c->in[5].data[0] : 1;
  s.c1 = (float)-expm1(hyper[5] * log1p(-(double)s.a1)), s.c2 = (float)-expm1(hyper[5] * log1p(-(double)s.a2));
  const float rectified = OPT(c, 0) != 0 ? mn_rectified(hyper[2], hyper[5]) : 1;
  if (rectified > 0) s.lr *= rectified;
  const long n = c->in[0].n;
  MN_FOR(c->ctx, 8.0 * n, i, 0, n, 4096, some(&s, rectified != 0, i, n - i < 4096 ? n : i + 4096));
}

const mn_op mn_op_adam = {
  .sig = "w[...] m[...] v[...] hyper[6] norm[1] weight_decay?[1] -> | rectified=0",
  .doc = "one step of Adam (Kingma & Ba 2015) on a leaf, in place. hyper = lr, 1-beta1, 1-beta2, eps, max_norm, step; with weight_decay: AdamW; "
      "rectified=1: RAdam (Liu et al. 2020)",
  .time = MN_WHOLE, .off_tape = true, .writes = 1 << 0 | 1 << 1 | 1 << 2, .forward = forward,
};
