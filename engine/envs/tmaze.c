/* tmaze.c -- remember one bit for as long as the corridor is long.
** The cue is in the first observation only; at the junction the agent must turn the way that the cue showed.
** Observation: cue (2), place in Gray code (8), distractors.  The T-Maze of the AGaLiTe paper, whose corridors have up to 256 cells; a longer one
** shows in which 255th of it the agent is, and the junction, and has four times its length of time. */
#include "worlds/tmaze_draw.h"

enum { CUE_DOWN, CUE_UP, PLACE, NOISE = PLACE + 8 };       /* where they begin in the observation */

enum { LIMIT = 1000, PLACES = 256 };

MN_FN int limit(const double *param) { return param[TMAZE_CORRIDOR] > PLACES ? 4 * (int)param[TMAZE_CORRIDOR] : LIMIT; }         /* steps */

MN_FN void spaces(const double *param, mn_space *out) { tmaze_spaces(param, NOISE, limit(param), out); }

/* Gray code, most significant bit first: one step changes one bit. */
MN_FN void observe(tmaze *m, mn_io *io) {
  const int position = m->corridor > PLACES ? m->position * (PLACES - 1) / (m->corridor - 1) : m->position;
  const uint32_t place = (uint32_t)position, gray = place ^ place >> 1;
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

/* Where it is, and the cue while that is shown. */
static inline void see(const mn_io *io, mn_canvas *c) {
  tmaze m = { .corridor = (int16_t)io->param[TMAZE_CORRIDOR], .cue = TMAZE_UNKNOWN };
  int gray = 0;
  for (int i = 0; i < 8; i++) gray = 2 * gray | (io->obs[PLACE + i] > 0);
  for (; gray; gray >>= 1) m.position ^= (int16_t)gray;
  if (m.corridor > PLACES) m.position = (int16_t)((m.position * (m.corridor - 1) + PLACES - 2) / (PLACES - 1));
  m.shown = io->obs[CUE_DOWN] > 0 || io->obs[CUE_UP] > 0;
  if (m.shown) m.cue = io->obs[CUE_UP] > 0 ? TMAZE_UP : TMAZE_DOWN;
  tmaze_draw(&m, io, c);
}

static inline void reference(const double *param, const void *shared, mn_reference *out) {
  (void)shared;
  tmaze_reference(param, limit(param), out);
}

MN_ENV(tmaze, .rules = "The first screen has an arrow, up or down: walk right to the end of the corridor and turn that way, for +4; "
                       "the other way costs 1, and every other step 0.1.", .see = see, .reference = reference, .steps = tmaze_steps,
       .version = 0, .doc = "remember a cue along a corridor, and turn that way at its end",
       .params = "corridor=160[2..2048] distractors=6[0..64]", .actions = "up down left right",
       .settable = TMAZE_SETTABLE, .to_know = "cue=action@distance position=number",
       .observes = "cue=down,up place[8] noise[*]",
       .spaces = spaces, .reset = reset, .step = step, .draw = tmaze_draw,
       .truth = tmaze_truth, .valid = tmaze_valid, .set = tmaze_set, .observe = observe)
