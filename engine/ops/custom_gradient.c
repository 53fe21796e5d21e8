/* custom_gradient.c -- hands y on, with a gradient of its arguments that was written in Lua: see mn.custom_gradient and
** graph/custom_gradient.c. */
#include "op.h"

const mn_op mn_op_custom_gradient = {
  .sig = "~y[...] a[*] b?[*] c?[*] d?[*] e?[*] f?[*] g?[*] h?[*] -> z[...] | plan=0 version=0",
  .doc = "z = y, computed from a, b, ... without a gradient; their gradients are those of a backward pass that mn.custom_gradient records",
  .time = MN_PER_ROW, .any_device = true, .shape = mn_custom_gradient_shape, .forward = mn_custom_gradient_forward,
  .backward = mn_custom_gradient_backward,
};
