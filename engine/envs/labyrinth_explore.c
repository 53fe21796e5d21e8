/* labyrinth_explore.c -- visit all cells of a maze that is seen 3 x 3 cells at a time.
** LabyrinthExplore of POPGym; rules and observation in worlds/labyrinth.h. */
#include "worlds/labyrinth.h"

typedef labyrinth labyrinth_explore;

MN_FN void reset(labyrinth_explore *m, mn_io *io) { labyrinth_enter(m, io, false); }

MN_FN void step(labyrinth_explore *m, mn_io *io) {
  const bool fresh = labyrinth_walk(m, io);
  io->terminated = m->found == m->cells;
  io->reward = fresh ? 1 / (float)m->cells : -1 / (float)(LABYRINTH_LIMIT + 1);
  io->score = (float)m->found / (float)m->cells;
  labyrinth_observe(m, io);
}

static inline bool valid(const labyrinth_explore *m, const mn_io *io) { return labyrinth_valid(m, io, false); }

/* Of random actions, by levels; every cell can be reached, in fewer steps than there are.  Who keeps a wall on the
** right comes everywhere in time, without memory. */
static inline void reference(const double *param, const void *shared, mn_reference *out) {
  const double chance[] = { 0.6124, 0.3527, 0.2220 };
  (void)shared;
  out->chance = chance[(int)param[LABYRINTH_LEVEL]];
  out->episodes = 20000;
  out->memoryless = out->best = 1;
}

MN_ENV(labyrinth_explore, .rules = "You see the cells around you: visit every cell of the maze; a new one pays, and each step elsewhere costs a little.",
       .see = labyrinth_see, .reference = reference,
       .version = 0, .doc = "visit all of a maze: where was I, and where not yet? (POPGym)",
       .about = LABYRINTH_ABOUT "\nscore     the share of the cells that were visited",
       .params = LABYRINTH_PARAMS, .actions = "left right up down", .settable = LABYRINTH_SETTABLE,
       .to_know = "row=number column=number", .observes = "view[9] last",
       .spaces = labyrinth_spaces, .reset = reset, .step = step, .draw = labyrinth_draw, .truth = labyrinth_truth, .valid = valid,
       .set = labyrinth_set, .observe = labyrinth_observe)
