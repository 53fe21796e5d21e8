/* round.c -- y = the nearest whole number, a constant for gradients. */
#include <math.h>
#include "elementwise.h"

MN_LOOP float value_of(float x, float p, float q) { (void)p, (void)q; return rintf(x); }
MN_PART(forward_part, mn_unary_forward, value_of)
static void forward(mn_call *c) { mn_in_parts(c, c->out[0].data, c->out[0].n, forward_part); }

const mn_op mn_op_round = {
  .sig = "x[...] -> ~y[...]",
  .doc = "y = the nearest whole number, of two the even one, as torch.round; a constant for gradients",
  .time = MN_PER_ROW, .forward = forward,
};
