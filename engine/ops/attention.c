/* attention.c -- causal softmax attention over a sequence and the keys and values that were carried into it.
** The inputs k and v are themselves the cache: a run by rows reads those of the rows so far where they lie. */
#include "attention/causal_attention.h"

enum { STEPWISE = 8 };           /* fewer rows do not repay packing the keys */

static int shape(mn_call *c) {
  mn_softmax s;
  if (mn_softmax_open(&s, c, "attention")) return -1;
  mn_arg *packed = &c->out[SM_PACKED];
  bool xl = c->in[SM_R].data != NULL;
  packed->shape[0] = xl ? s.H * mn_panels(s.E) : 1;
  packed->shape[1] = xl ? s.K : 1;
  packed->shape[2] = xl ? MN_PANEL : 1;
  c->out[SM_HALVES].shape[0] = c->in[SM_Q].timed && s.bf16 ? s.B * s.E : 1;
  c->out[SM_HALVES].shape[1] = c->in[SM_Q].timed && s.bf16 ? (s.H * (s.K + s.V) + 1) / 2 : 1;
  return 0;
}

static void forward(mn_call *c) {
  mn_softmax s;
  mn_softmax_open(&s, c, "attention");
  mn_softmax_prepare(&s);
  if (c->t1 - c->t0 < STEPWISE) mn_softmax_steps(&s);
  else mn_softmax_blocks(&s);
}

static void backward(mn_call *c) {
  mn_softmax s;
  mn_softmax_open(&s, c, "attention");
  mn_softmax_backward(&s);
}

const mn_op mn_op_attention = {
  .sig = "q[T,B,H,K] k[T,B,H,K] v[T,B,H,V] mk?[M,B,H,K] mv?[M,B,H,V] ~mask?[M,B] done?[T,B]:bit u?[H,K] w?[H,K] r?[F,H,K]"
         " -> y[T,B,H,V] ~~stats[T,B,H,2] ~~start[T,B]:i32 ~~carried[B,2]:i32 ~~packed[?,?,?] ~~halves[?,?] | window=-1",
  .doc = "causal softmax attention over carried and current keys (Vaswani et al. 2017, eq. 1; with u, w, r: Dai et al. 2019, section 3.3). y_t = "
      "sum_j softmax_j(((q+u).k_j + (q+w).r_(M+t-j)) / sqrt K) v_j, over the carried keys mk (mask 1: blocked) and the rows <= t of the episode, at "
      "most `window` rows back",
  .time = MN_SCAN, .shape = shape, .forward = forward, .backward = backward,
};
