/* max.c -- y = the largest x along one axis, or of all, and its index.
** The first of equals wins, and it alone gets the gradient; a NaN wins over any number. */
#include "reduce.h"

static int shape(mn_call *c) { return mn_reduce_shape(c, "max"); }

static void forward(mn_call *c) {
  mn_span s = mn_reduced_span(c);
  const float *x = c->in[0].data;
  MN_PARALLEL_ROWS(c->ctx, c->in[0].n, s.outer * s.inner)
  for (long k = 0; k < s.outer * s.inner; k++) {
    const float *at = x + k / s.inner * s.size * s.inner + k % s.inner;
    float best = at[0];
    int32_t index = 0;
    for (long r = 1; r < s.size; r++) {
      float v = at[r * s.inner];
      if (v > best || (v != v && best == best)) best = v, index = (int32_t)r;
    }
    c->out[0].data[k] = best;
    c->out[1].i32[k] = index;
  }
}

static void backward(mn_call *c) {
  mn_span s = mn_reduced_span(c);
  const float *dy = c->out[0].grad;
  float *dx = c->in[0].grad;
  memset(dx, 0, (size_t)c->in[0].n * sizeof *dx);
  for (long k = 0; k < s.outer * s.inner; k++)
    dx[(k / s.inner * s.size + c->out[1].i32[k]) * s.inner + k % s.inner] = dy[k];
}

const mn_op mn_op_max = {
  .sig = "x[*] -> y[*] ~index[*]:i32 | axis=-100 keepdims=0",
  .doc = "y = largest x along an axis, index = where; axis=-100: of all, giving shape [1]",
  .time = MN_PER_ROW, .shape = shape, .forward = forward, .backward = backward,
};
