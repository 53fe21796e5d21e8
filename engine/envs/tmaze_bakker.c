/* tmaze_bakker.c -- the T-Maze of Bakker (2002): the agent does not observe its position.
** Three bits encode what is there: 011 the cue "up", 110 the cue "down" (first observation only), 101
** the corridor, 010 the junction; then the distractors. */
#include "worlds/tmaze.h"

typedef tmaze tmaze_bakker;
enum { SIGHT, NOISE = SIGHT + 3 };

MN_FN void spaces(const double *param, mn_space *out) { tmaze_spaces(param, NOISE, 5000, out); }

MN_FN void observe(tmaze *m, mn_io *io) {
  const int junction = m->position == m->corridor - 1;
  const int cue = m->cue == TMAZE_UP ? 3 : 6, place = junction ? 2 : 5;
  const int sight = m->shown ? cue : place;
  for (int i = 0; i < 3; i++) io->obs[SIGHT + i] = (float)(sight >> (2 - i) & 1);
  tmaze_noise(m, io, io->obs + NOISE);
}

MN_FN void reset(tmaze_bakker *m, mn_io *io) {
  tmaze_enter(m, io);
  observe(m, io);
}

MN_FN void step(tmaze_bakker *m, mn_io *io) {
  tmaze_move(m, io);
  observe(m, io);
}

MN_ENV(tmaze_bakker, .version = 0,
       .doc = "the T-Maze without positions: the agent observes only cue, corridor and junction",
       .params = "corridor=160[2..256] distractors=6[0..64]", .actions = "up down left right",
       .settable = TMAZE_SETTABLE, .to_know = "cue=class position=number",
       .observes = "sight[3] noise[*]",
       .spaces = spaces, .reset = reset, .step = step, .draw = tmaze_draw,
       .truth = tmaze_truth, .valid = tmaze_valid, .set = tmaze_set, .observe = observe)
