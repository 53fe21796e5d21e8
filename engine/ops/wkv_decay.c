/* wkv_decay.c -- the decay of RWKV-6 and RWKV-7, from an unbounded value, in one pass each way.
**   by=exp      w = exp(-exp(x))                   (RWKV-6: any decay from 1 to 0)
**   by=sigmoid  w = exp(-e^{-1/2} sigmoid(x))      (RWKV-7: never below exp(-0.6065) = 0.545) */
#include "numerics/broadcast.h"
#include "numerics/fast_math.h"

static const float SOFT = 0.60653065971f;                              /* e^{-1/2} */

static void forward_part(mn_call *c, float *y, long from, long end) {
  const float *x = c->in[0].data;
  if (OPT(c, 0) != 0) {
    MN_PRAGMA(omp simd)
    for (long i = from; i < end; i++) y[i] = mn_expf(-SOFT * mn_sigmoidf(x[i]));
  } else {
    MN_PRAGMA(omp simd)
    for (long i = from; i < end; i++) y[i] = mn_expf(-mn_expf(x[i]));
  }
}

static void backward_part(mn_call *c, float *dx, long from, long end) {
  const float *x = c->in[0].data, *y = c->out[0].data, *dy = c->out[0].grad;
  if (OPT(c, 0) != 0) {
    MN_PRAGMA(omp simd)
    for (long i = from; i < end; i++) {
      float s = mn_sigmoidf(x[i]);
      dx[i] = -SOFT * dy[i] * y[i] * s * (1 - s);
    }
  } else {                       /* where exp(x) overflows, y is 0, and so is its slope */
    MN_PRAGMA(omp simd)
    for (long i = from; i < end; i++) dx[i] = -dy[i] * y[i] * mn_expf(mn_at_most(x[i], 80));
  }
}

static void forward(mn_call *c) { mn_in_parts(c, c->out[0].data, c->out[0].n, forward_part); }
static void backward(mn_call *c) { mn_in_parts(c, c->in[0].grad, c->in[0].n, backward_part); }

const mn_op mn_op_wkv_decay = {
  .sig = "x[...] -> w[...] | by=exp|sigmoid",
  .doc = "decay per step of RWKV-6 and RWKV-7: w = exp(-exp(x)), or exp(-e^{-1/2} sigmoid(x))",
  .time = MN_PER_ROW, .forward = forward, .backward = backward,
};
