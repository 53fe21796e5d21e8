/* input_attention.c -- attention whose keys and values are products of its inputs, without those products: with k_j = W x_j and v_j = V x_j
** the score q.k_j is (W^T q).x_j, and the sum of weight_j v_j is V times that of weight_j x_j.  So a step reads one row for each step before
** it in place of a key and a value for every head, and nothing is computed for the rows that were carried.  For acting: it has no gradient. */
#include "attention/causal_attention.h"

static int shape(mn_call *c) {
  mn_softmax s;
  mn_call in_place;
  if (mn_softmax_open_shared(&s, &in_place, c, "input_attention")) return -1;
  mn_arg *packed = &c->out[SM_PACKED];
  packed->shape[0] = s.H * mn_panels(s.E);
  packed->shape[1] = s.K;
  packed->shape[2] = MN_PANEL;
  return 0;
}

static void forward(mn_call *c) {
  mn_softmax s;
  mn_call in_place;
  mn_softmax_open_shared(&s, &in_place, c, "input_attention");
  mn_softmax_prepare(&s);
  mn_softmax_steps(&s);
}

const mn_op mn_op_input_attention = {
  .sig = "q[T,B,H,K] a[T,B,H,V] x[T,B,V] old[M,B,V] mask[M,B] done?[T,B]:bit w[H,K] r[F,H,K]"
         " -> ~y[T,B,H,V] ~~stats[T,B,H,2] ~~start[T,B]:i32 ~~carried[B,2]:i32 ~~packed[?,?,?] | window=-1",
  .doc = "attention whose keys and values are products of x, carried `old` and x: y_t = sum_j softmax_j((a_t.x_j + (q+w).r_(M+t-j)) / sqrt K) x_j, where a "
      "is q+u times the map of the keys, and the map of the values follows y; see attention. No gradient",
  .time = MN_SCAN, .shape = shape, .forward = forward,
};
