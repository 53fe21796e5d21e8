/* labyrinth_escape.c -- find the way out of a maze that is seen 3 x 3 cells at a time.
** LabyrinthEscape of POPGym; rules and observation in worlds/labyrinth.h. */
#include "worlds/labyrinth.h"

typedef labyrinth labyrinth_escape;

MN_FN void reset(labyrinth_escape *m, mn_io *io) { labyrinth_enter(m, io, true); }

MN_FN void step(labyrinth_escape *m, mn_io *io) {
  const float cost = 1 / (float)(LABYRINTH_LIMIT + 1);
  labyrinth_walk(m, io);
  io->terminated = m->row * m->side + m->col == m->goal;
  io->reward = io->terminated ? 1 - cost : -cost;
  io->score = io->terminated && m->steps <= LABYRINTH_LIMIT ? 1 - cost * (float)m->steps : 0;
  labyrinth_observe(m, io);
}

static inline bool valid(const labyrinth_escape *m, const mn_io *io) { return labyrinth_valid(m, io, true); }

/* Of random actions, by levels.  Who keeps a wall on the right needs the last action and no memory: over 20,000 mazes of each level.
** Who remembers what it saw, and goes where something is not seen yet, the nearer to the exit's side the rather: over 2,000 mazes. */
static inline void reference(const double *param, const void *shared, mn_reference *out) {
  const double chance[] = { 0.1960, 0.0467, 0.0104 }, wall[] = { 0.9511, 0.9042, 0.8422 }, explorer[] = { 0.9661, 0.9322, 0.8909 };
  (void)shared;
  out->chance = chance[(int)param[LABYRINTH_LEVEL]];
  out->episodes = 20000;
  out->memoryless = wall[(int)param[LABYRINTH_LEVEL]];
  out->best = out->best_return = explorer[(int)param[LABYRINTH_LEVEL]];
}

MN_ENV(labyrinth_escape, .rules = "You see the cells around you: find the green exit on the far side of the maze; each step costs a little.",
       .see = labyrinth_see, .reference = reference,
       .version = 0, .doc = "find the way out of a maze: where was I, and where not yet? (POPGym)",
       .about = LABYRINTH_ABOUT "\nscore     1 - steps/1024 if the exit was found, else 0",
       .params = LABYRINTH_PARAMS, .actions = "left right up down", .settable = LABYRINTH_SETTABLE,
       .to_know = "row=number column=number", .observes = "view[9] last",
       .spaces = labyrinth_spaces, .reset = reset, .step = step, .draw = labyrinth_draw, .truth = labyrinth_truth, .valid = valid,
       .set = labyrinth_set, .observe = labyrinth_observe)
