/* tmaze_bakker.c -- the T-Maze of Bakker (2002): the agent does not observe its position.
** Three bits encode what is there: 011 the cue "up", 110 the cue "down" (first observation only), 101
** the corridor, 010 the junction; then the distractors. */
#include "worlds/tmaze_draw.h"

typedef tmaze tmaze_bakker;
enum { SIGHT, NOISE = SIGHT + 3 };

enum { LIMIT = 5000 };           /* steps */

MN_FN void spaces(const double *param, mn_space *out) { tmaze_spaces(param, NOISE, LIMIT, out); }

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

/* The cue, a piece of corridor between fogs, or the junction behind one: not where. */
static inline void see(const mn_io *io, mn_canvas *c) {
  enum { LENGTH = 7 };
  const int sight = (io->obs[SIGHT] > 0) << 2 | (io->obs[SIGHT + 1] > 0) << 1 | (io->obs[SIGHT + 2] > 0);
  const bool junction = sight == 2, cue = sight == 3 || sight == 6;
  const tmaze m = { .corridor = LENGTH, .position = (int16_t)(cue ? 0 : junction ? LENGTH - 1 : LENGTH / 2),
                    .cue = (uint8_t)(!cue ? (int)TMAZE_UNKNOWN : sight == 3 ? (int)TMAZE_UP : (int)TMAZE_DOWN), .shown = cue };
  const float from = cue ? 1.2f : -1.4f, to = junction ? LENGTH - 1.8f : LENGTH + 1, middle = 0.5f * LENGTH;
  tmaze_draw(&m, io, c);
  if (cue || junction) {
    mn_canvas_add(c, MN_RECT, 0x1A2028FF, from, -1.8f, to - from, 3.6f);
  } else {
    mn_canvas_add(c, MN_RECT, 0x1A2028FF, from, -1.8f, middle - 0.8f - from, 3.6f);
    mn_canvas_add(c, MN_RECT, 0x1A2028FF, middle + 0.8f, -1.8f, to - middle - 0.8f, 3.6f);
  }
}

static inline void reference(const double *param, const void *shared, mn_reference *out) {
  (void)shared;
  tmaze_reference(param, LIMIT, out);
}

MN_ENV(tmaze_bakker, .rules = "The first screen has an arrow, up or down: walk right until you stand at the junction and turn that way, for +4; "
                              "the other way costs 1, and every other step 0.1.", .see = see, .reference = reference, .steps = tmaze_steps,
       .version = 0,
       .doc = "the T-Maze without positions: the agent observes only cue, corridor and junction",
       .params = "corridor=160[2..256] distractors=6[0..64]", .actions = "up down left right",
       .settable = TMAZE_SETTABLE, .to_know = "cue=action@distance position=number",
       .observes = "sight[3] noise[*]",
       .spaces = spaces, .reset = reset, .step = step, .draw = tmaze_draw,
       .truth = tmaze_truth, .valid = tmaze_valid, .set = tmaze_set, .observe = observe)
