/* recur.c -- a recurrence whose step was recorded from Lua: see mn.recur and graph/recurrence.c. */
#include "op.h"

const mn_op mn_op_recur = {
  .sig = "x[T,N] state[S] given?[P] done?[T,B]:bit start?[S] -> y[T,?] states[T,S] ~~saved[?,?] ~~later[T,?] | body=0 version=0 keep=1",
  .doc = "y[t], states[t] = body(x[t], states[t-1]) for a body that mn.recur records. keep=0 computes a row again in backward",
  .time = MN_SCAN, .any_device = true, .shape = mn_recur_shape, .forward = mn_recur_forward, .backward = mn_recur_backward,
};
