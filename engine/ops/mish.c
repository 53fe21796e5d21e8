/* mish.c -- y = x tanh(softplus x). */
#include "elementwise.h"

MN_LOOP float mish_slope(float x) {
  float t = mn_tanhf(mn_softplusf(x));
  return t + x * (1 - t * t) * mn_sigmoidf(x);
}
MN_UNARY(x * mn_tanhf(mn_softplusf(x)), mish_slope(x))

const mn_op mn_op_mish = {
  .sig = "x[...] -> y[...]",
  .doc = "y = x tanh(softplus(x)) (Misra 2019)",
  .time = MN_PER_ROW, .forward = forward, .backward = backward,
};
