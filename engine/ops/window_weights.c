/* window_weights.c -- the weights that the last row of a window_attention gives to each key, for display. */
#include "window.h"

static int shape(mn_call *c) {
  if (mn_window_check(c, "window_weights")) return -1;
  mn_window s = mn_window_of(c);
  int most = mn_window_most(&s);
  c->out[0].shape[3] = most > 0 ? most : 1;
  return 0;
}

EPISODE_WEIGHTS(mn_window, mn_window_of, mn_window_episode)

const mn_op mn_op_window_weights = {
  .sig = WINDOW_INPUTS " -> ~weights[1,B,H,?,3]" WINDOW_OPTIONS,
  .doc = "attention weights of the last row, as `window_attention` computes them from the same inputs. Entries of steps back, number of steps (1), "
      "weight; unused entries are 0",
  .time = MN_ON_DEMAND, .shape = shape, .forward = forward,
};
