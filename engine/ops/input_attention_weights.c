/* input_attention_weights.c -- the weights that the last row of an `input_attention` gives to each row of x, for display. */
#include "attention/causal_attention.h"

static int shape(mn_call *c) {
  mn_softmax s;
  mn_call in_place;
  if (mn_softmax_open_shared(&s, &in_place, c, "input_attention_weights")) return -1;
  c->out[0].shape[3] = s.window < s.E ? s.window + 1 : s.E;
  return 0;
}

static void forward(mn_call *c) {
  mn_softmax s;
  mn_call in_place;
  mn_softmax_open_shared(&s, &in_place, c, "input_attention_weights");
  mn_softmax_weights(&s);
}

const mn_op mn_op_input_attention_weights = {
  .sig = "q[T,B,H,K] a[T,B,H,V] x[T,B,V] old[M,B,V] mask[M,B] done?[T,B]:bit w[H,K] r[F,H,K] -> ~weights[1,B,H,?,3] | window=-1",
  .doc = "attention weights of the last row, as `input_attention` computes them from the same inputs. Entries of steps back, number of steps (1), "
      "weight; unused entries are 0",
  .time = MN_ON_DEMAND, .shape = shape, .forward = forward,
};
