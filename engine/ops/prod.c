/* prod.c -- y = the product of x over one axis, or over all.  An element's gradient is the product of the others, so that where
** one element is 0 that one alone has a gradient, and where two are 0 none has. */
#include "reduce.h"

static void multiply(mn_call *c, const mn_span *s, long k) {
  const float *x = c->in[0].data + mn_lane(s, k);
  double y = 1;
  for (long r = 0; r < s->size; r++) y *= (double)x[r * s->inner];
  c->out[0].data[k] = (float)y;
}

static void spread(mn_call *c, const mn_span *s, long k) {
  const float *x = c->in[0].data + mn_lane(s, k);
  float *dx = c->in[0].grad + mn_lane(s, k);
  const double dy = (double)c->out[0].grad[k];
  double rest = 1;                                    /* the product of those that are not 0 */
  long zeros = 0;
  for (long r = 0; r < s->size; r++) {
    const float v = x[r * s->inner];
    if (v == 0) zeros++;
    else rest *= (double)v;
  }
  for (long r = 0; r < s->size; r++) {
    const float v = x[r * s->inner];
    dx[r * s->inner] = zeros - (v == 0) ? 0 : (float)(dy * (v == 0 ? rest : rest / (double)v));
  }
}

static void forward(mn_call *c) { mn_each_lane(c, multiply); }
static void backward(mn_call *c) { mn_each_lane(c, spread); }

const mn_op mn_op_prod = {
  .sig = "x[*] -> y[*] | axis=-100 keepdim=0",
  .doc = "y = product of x over an axis; axis=-100: over all, giving shape [1]",
  .time = MN_PER_ROW, .shape = mn_reduce_shape, .forward = forward, .backward = backward,
};
