/* window_attention.c -- causal attention to a window of the row's episode and to the episode's first positions.
** Longformer (Beltagy et al. 2020, section 3.1), step by step.  It has two kinds of rows: `after` rows
** see a window and the first positions, the few `first` rows see everything before them. */
#include "window.h"

static int shape(mn_call *c) { return mn_window_check(c, "window_attention"); }

EPISODE_PASSES(mn_window, mn_window_of, mn_window_episode)


const mn_op mn_op_window_attention = {
  .sig = WINDOW_INPUTS " -> y[T,B,H,D]" WINDOW_OPTIONS,
  .doc = "softmax(q.k / sqrt(D)) v over a window and the first positions of the episode (Longformer: Beltagy et al. 2020, section 3.1). Positions as "
      "in position and kv_slots. rows=after: from position `globals` on, over the first `globals` and the `window` positions 0, dilation, ... before; "
      "rows=first: the first `globals`, over all up to their own; the other rows are 0",
  .time = MN_SCAN, .shape = shape, .forward = forward, .backward = backward,
};
