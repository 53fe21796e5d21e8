/* mystery_path_grid.c -- find a hidden path by falling off it, and remember it: cell by cell, with
** quarter turns.  MysteryPath-Grid of memory-gym: after a fall the agent is back at the start,
** and only its memory holds which steps were safe.
** Observation: mystery_view.h, and four slots for the heading (up, left, down, right); or pixels.
** A time limit is truncation here; memory-gym reports it as termination, as bootstrap_truncated=0
** does in a learner. */
#include "worlds/mystery_view.h"

typedef mystery mystery_path_grid;

enum { STAY, TURN_LEFT, TURN_RIGHT, FORWARD, ACTIONS };
enum { HEADING = MYSTERY_MORE, NUMBERS = HEADING + 4 };

MN_FN void spaces(const double *param, mn_space *out) {
  mystery_spaces(param, NUMBERS, ACTIONS, 128, out);
}

MN_FN void observe(const mystery *m, mn_io *io) {
  if (io->param[MYSTERY_OBSERVATION] == MYSTERY_SEEN_PIXELS) {
    mystery_paint(m, io);
  } else {
    mystery_tell(m, io, NUMBERS);
    io->obs[HEADING + m->heading / 2] = 1;
  }
}

MN_FN void reset(mystery_path_grid *m, mn_io *io) {
  mystery_enter(m, io);
  observe(m, io);
}

MN_FN void step(mystery_path_grid *m, mn_io *io) {
  const int h = m->heading / 2, turn = (io->action == TURN_LEFT) - (io->action == TURN_RIGHT);
  if (m->fell) {
    mystery_put_at_start(m);
  } else if (io->action == FORWARD) {
    mystery_walk(m, MYSTERY_TILE * ((h == 3) - (h == 1)), MYSTERY_TILE * ((h == 2) - (h == 0)));
  } else {
    m->heading = (uint8_t)((m->heading + 2 * turn) & 7);
  }
  mystery_judge(m, io, io->param[MYSTERY_LEVEL] == MYSTERY_EASY ? 0.1f : 0);
  observe(m, io);
}

static inline void see(const mn_io *io, mn_canvas *c) {
  if (io->param[MYSTERY_OBSERVATION] == MYSTERY_SEEN_PIXELS) {
    gym_see_pixels(io, c);
    return;
  }
  const int cell = mystery_pointed(io->obs + MYSTERY_COLUMN);
  int heading = 0;
  for (int i = 0; i < 4; i++)
    if (io->obs[HEADING + i] > 0) heading = 2 * i;
  mystery_see(io, (float)(cell % MYSTERY_SIDE) + 0.5f, (float)(cell / MYSTERY_SIDE) + 0.5f, heading, c);
}

/* Random actions see nothing, so no setting matters to them. */
static inline void reference(const double *param, const void *shared, mn_reference *out) {
  (void)param, (void)shared;
  out->chance = 0.0098;
  out->episodes = 100000;
}

MN_ENV(mystery_path_grid, .rules = "A hidden path leads from the start to the goal: find it by falling off it, remember it, and reach the goal, for +1; "
                                   "after a fall the next step takes you back to the start.",
       .see = see, .reference = reference,
       .version = 0,
       .doc = "find a hidden path by falling off it, and remember it; quarter turns and cells (Memory Gym)",
       .about = MYSTERY_ABOUT, .params = MYSTERY_PARAMS, .actions = "stay turn_left turn_right forward",
       .to_know = "path=class x=number y=number",
       .observes = "column[7] row[7] fell origin[14] goal[14] heading=up,left,down,right",
       .spaces = spaces, .prepare = NULL, .reset = reset, .step = step, .draw = mystery_draw,
       .truth = mystery_truth, .valid = mystery_valid)
