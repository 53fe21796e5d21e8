/* last_row.c -- a part of the last row of a sequence: the state that a recurrence ends with. */
#include "op.h"

const mn_op mn_op_last_row = {
  .sig = "x[T,N] -> y'[?] | from=0 to=1e9",
  .doc = "y = x[T-1, from .. to-1], counted from 0",
  .time = MN_FINAL, .any_device = true, .shape = mn_last_row_shape, .forward = mn_last_row_forward, .backward = mn_last_row_backward,
};
