/* floor.c -- y = the largest whole number up to x, a constant for gradients. */
#include <math.h>
#include "elementwise.h"

MN_LOOP float value_of(float x, float p, float q) { (void)p, (void)q; return floorf(x); }
MN_PART(forward_part, mn_unary_forward, value_of)
static void forward(mn_call *c) { mn_in_parts(c, c->out[0].data, c->out[0].n, forward_part); }

const mn_op mn_op_floor = {
  .sig = "x[...] -> ~y[...]",
  .doc = "y = the largest whole number that is no larger than x; a constant for gradients",
  .time = MN_PER_ROW, .forward = forward,
};
