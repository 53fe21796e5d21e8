/* longshort_weights.c -- the weights that the last row of a longshort_attention gives to each key, for display.
** A compressed key stands for the steps of its chunk. */
#include "longshort.h"

static mn_longshort setting_of(const mn_call *c) {
  mn_longshort s = mn_longshort_of(c);
  s.chunks = c->in[LS_INPUTS].data;
  return s;
}

static int shape(mn_call *c) {
  if (mn_longshort_check(c, "longshort_weights")) return -1;
  mn_longshort s = mn_longshort_of(c);
  if (DIM(c, 'C') != s.C)
    return mn_fail(c->ctx, "longshort_weights: axis 2 (C) of chunks is %d, expected %d", DIM(c, 'C'), s.C);
  c->out[0].shape[3] = s.W + s.window;
  return 0;
}

static void stands(const mn_episode *e, int of, int P, int p, mn_weight *to) {
  const mn_longshort *s = e->op;
  if (!of) return;
  *to = (mn_weight){ (float)(P - (p / s->R + 1) * s->chunk + 1), (float)s->chunk, 0 };
}

static mn_episode episode_of(const mn_call *c, const mn_longshort *s) {
  mn_episode e = mn_longshort_episode(c, s);
  e.stands = stands;
  return e;
}

EPISODE_WEIGHTS(mn_longshort, setting_of, episode_of)

const mn_op mn_op_longshort_weights = {
  .sig = LONGSHORT_INPUTS " chunks[B,2,C,H,D] -> ~weights[1,B,H,?,3]" LONGSHORT_OPTIONS,
  .doc = "attention weights of the last row, as `longshort_attention` computes them from the same inputs and `chunks`. Entries of steps back, number "
      "of steps (1, or J for a chunk), weight; unused entries are 0",
  .time = MN_ON_DEMAND, .shape = shape, .forward = forward,
};
