/* mystery_path.c -- find a hidden path by falling off it, and remember it: walking pixel by pixel.
** MysteryPath of memory-gym, whose two actions, across and along, are combined into nine.  After
** a fall the agent is back at the start, and only its memory holds which way was safe.
** Observation: mystery_view.h, eight slots for the heading (from up to the left), and where in its
** cell the agent is (-1..1, across and down); or pixels.  A time limit is truncation here;
** memory-gym reports it as termination, as bootstrap_truncated=0 does in a learner. */
#include "worlds/mystery_view.h"

typedef mystery mystery_path;

enum { HEADING = MYSTERY_MORE, WITHIN = HEADING + 8, NUMBERS = WITHIN + 2 };
enum { STRAIGHT = 3, SLANTING = 2 };   /* pixels a step, along each axis */

MN_FN void spaces(const double *param, mn_space *out) {
  mystery_spaces(param, NUMBERS, 9, 512, out);
}

MN_FN float within(int pixel) {
  return (float)(pixel % MYSTERY_TILE - MYSTERY_TILE / 2) / (MYSTERY_TILE / 2);
}

MN_FN void observe(const mystery *m, mn_io *io) {
  if (io->param[MYSTERY_OBSERVATION] == MYSTERY_SEEN_PIXELS) {
    mystery_paint(m, io);
  } else {
    mystery_tell(m, io, NUMBERS);
    io->obs[HEADING + m->heading] = 1;
    io->obs[WITHIN] = within(m->x);
    io->obs[WITHIN + 1] = within(m->y);
  }
}

MN_FN void reset(mystery_path *m, mn_io *io) {
  mystery_enter(m, io);
  observe(m, io);
}

MN_FN void step(mystery_path *m, mn_io *io) {
  const uint8_t headings[9] = { 0, 0, 4, 2, 1, 3, 6, 7, 5 };
  const int across = io->action / 3, along = io->action % 3;           /* 1: back, 2: forth */
  const int dx = (across == 2) - (across == 1), dy = (along == 2) - (along == 1);
  if (m->fell) {
    mystery_put_at_start(m);
  } else if (io->action > 0) {
    const int pixels = dx && dy ? SLANTING : STRAIGHT;
    m->heading = headings[io->action];
    mystery_walk(m, pixels * dx, pixels * dy);
  }
  mystery_judge(m, io, 0.1f);
  observe(m, io);
}

static inline void see(const mn_io *io, mn_canvas *c) {
  if (io->param[MYSTERY_OBSERVATION] == MYSTERY_SEEN_PIXELS) {
    gym_see_pixels(io, c);
    return;
  }
  const int cell = mystery_pointed(io->obs + MYSTERY_COLUMN);
  int heading = 0;
  for (int i = 0; i < 8; i++)
    if (io->obs[HEADING + i] > 0) heading = i;
  mystery_see(io, (float)(cell % MYSTERY_SIDE) + 0.5f + 0.5f * io->obs[WITHIN], (float)(cell / MYSTERY_SIDE) + 0.5f + 0.5f * io->obs[WITHIN + 1], heading, c);
}

/* Random actions see nothing, so no setting matters to them. */
static inline void reference(const double *param, const void *shared, mn_reference *out) {
  (void)param, (void)shared;
  out->chance = 0;
  out->episodes = 20000;
}

MN_ENV(mystery_path, .rules = "A hidden path leads from the start to the goal: find it by falling off it, remember it, and reach the goal, for +1; "
                              "after a fall the next step takes you back to the start.",
       .see = see, .reference = reference,
       .version = 0,
       .doc = "find a hidden path by falling off it, and remember it; in small steps (Memory Gym)",
       .about = MYSTERY_ABOUT, .params = MYSTERY_PARAMS,
       .actions = "stay up down left up_left down_left right up_right down_right",
       .to_know = "path=class x=number y=number",
       .observes = "column[7] row[7] fell origin[14] goal[14] heading[8] within=across,down",
       .spaces = spaces, .prepare = NULL, .reset = reset, .step = step, .draw = mystery_draw,
       .truth = mystery_truth, .valid = mystery_valid)
