/* sign.c -- y = the sign of x, a constant for gradients. */
#include "elementwise.h"

MN_LOOP float value_of(float x, float p, float q) { (void)p, (void)q; return x > 0 ? 1.0f : x < 0 ? -1.0f : x; }
MN_PART(forward_part, mn_unary_forward, value_of)
static void forward(mn_call *c) { mn_in_parts(c, c->out[0].data, c->out[0].n, forward_part); }

const mn_op mn_op_sign = {
  .sig = "x[...] -> ~y[...]",
  .doc = "y = 1 where x > 0, -1 where x < 0, else x; a constant for gradients",
  .time = MN_PER_ROW, .forward = forward,
};
