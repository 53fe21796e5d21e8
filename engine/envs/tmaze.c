/* tmaze.c -- remember one bit for as long as the corridor is long.
** The cue shows in the first observation only; at the junction the agent must turn the way it said. */
#include "tmaze.h"

enum { CUE_DOWN, CUE_UP, PLACE, NOISE = PLACE + 8 };       /* slots of the observation */

MN_FN void spaces(const double *param, mn_space *out) {
  out->dtype = MN_F32;
  out->ndim = 1;
  out->shape[0] = NOISE + (int)param[TMAZE_DISTRACTORS];
  out->n_actions = TMAZE_ACTIONS;
  out->time_limit = 1000;
  out->bytes = sizeof(tmaze);
}

/* The place is told in Gray code, most significant bit first: one step changes one bit. */
MN_FN void observe(const tmaze *m, mn_io *io) {
  unsigned place = (unsigned)m->position, gray = place ^ place >> 1;
  io->obs[CUE_DOWN] = (float)(m->shown & (m->cue == TMAZE_DOWN));
  io->obs[CUE_UP] = (float)(m->shown & (m->cue == TMAZE_UP));
#pragma omp simd
  for (int i = 0; i < 8; i++) io->obs[PLACE + i] = (float)(gray >> (7 - i) & 1);
  tmaze_noise(m, io, io->obs + NOISE);
}

MN_FN void reset(tmaze *m, mn_io *io) {
  tmaze_enter(m, io);
  observe(m, io);
}

MN_FN void step(tmaze *m, mn_io *io) {
  tmaze_move(m, io);
  observe(m, io);
}
MN_FN void draw(const tmaze *m, const double *param, mn_canvas *c) { (void)m; (void)param; (void)c; }
MN_FN int truth(const tmaze *m, const double *param, const char **names, float *values) { (void)m; (void)param; *names=""; (void)values; return 0; }

MN_ENV(tmaze, .version = 0, .doc = "remember for a whole corridor which way to turn at its end",
       .params = "corridor=160[2..256] distractors=6[0..64]", .actions = "up down left right",
       .spaces = spaces, .reset = reset, .step = step, .draw = draw, .truth = truth)
