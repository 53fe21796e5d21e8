/* elu1.c -- y = x + 1 above 0, e^x below: the positive feature map of linear attention. */
#include "elementwise.h"

MN_UNARY(x > 0 ? x + 1 : mn_expf(x), x > 0 ? 1 : y)

const mn_op mn_op_elu1 = {
  .sig = "x[...] -> y[...]",
  .doc = "y = x + 1 where x > 0, else e^x: positive features (Katharopoulos et al. 2020, eq. 7)",
  .time = MN_PER_ROW, .forward = forward, .backward = backward,
};
