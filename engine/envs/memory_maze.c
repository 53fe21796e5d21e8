/* memory_maze.c -- find the target of the requested colour, then the next one, and so on, in a maze that is new
** in each episode.  An agent that remembers where the targets are goes straight to them.
** Mazes and rewards are those of Memory Maze (Pasukonis et al. 2022).  On a grid one step is one
** cell or one quarter turn, and stands for four of the original's; or a ball rolls (ball_dynamics.h), four
** steps a second, as in the original.
** The observation is the codes of cells in a window ahead of the agent (line_of_sight.h), a few numbers, or an image
** (raycast.h). */
#include "memory_maze_picture.h"
#include "op.h"
#include <stdio.h>

enum { NOOP, FORWARD, LEFT, RIGHT, FORWARD_LEFT, FORWARD_RIGHT };
enum { VECTOR_PLACE = 4, VECTOR_WALLS = 4, VECTOR_TARGET = 4 };   /* numbers of each part */
#define TOUCH 0.387f             /* how near, in cells, the ball's centre comes to a target's */

/* As published: turns and steps of their own on the grid; both at once where the ball rolls. */
MN_FN int actions_of(const double *param) {
  return param[ACTIONS] > 0 ? (int)param[ACTIONS] : (int)param[MODE] == CONTINUOUS ? 6 : 4;
}

/* Steps from target to target of an agent that knows the maze: the published scores. */
MN_FN float oracle_steps(const double *param) {
  const float size = (float)param[SIZE];
  if ((int)param[MODE] == CONTINUOUS) return 3.4f + 2.82f * size;
  return actions_of(param) == 4 ? 2.9f + 0.89f * size : 1.2f + 0.76f * size;
}

MN_FN void spaces(const double *param, mn_space *out) {
  const int size = (int)param[SIZE], observation = (int)param[OBSERVATION];
  const int bytes = level_bytes(size + 2, (int)param[VIEW], observation);
  const bool map = param[MINIMAP] > 0;
  out->ndim = 1;
  if (observation == PIXELS) {
    out->dtype = MN_U8;
    out->ndim = 3;
    out->shape[0] = out->shape[1] = MN_RAY_SIZE;
    out->shape[2] = 3;
  } else if (observation == VECTOR) {
    out->dtype = MN_F32;
    out->shape[0] = VECTOR_PLACE + VECTOR_WALLS + VECTOR_TARGET * targets_of(param);
  } else {
    out->dtype = MN_U8;
    out->shape[0] = (int)param[VIEW] * (int)param[VIEW] + 1 + map * size * size;
    out->codes = map ? YOU + 4 : YOU;
  }
  out->n_actions = actions_of(param);
  out->time_limit = (size <= 9 ? 250 : 125 * (size - 7)) * ((int)param[MODE] == CONTINUOUS ? 4 : 1);
  out->bytes = (int)sizeof(memory_maze) + (param[LEVELS] > 0 ? 0 : bytes);
  out->shared_bytes = sizeof(world) + (size_t)param[LEVELS] * (size_t)bytes;
}

/* The level of a pool is a function of its number, the seed and what mazes there are: so a pool holds
** the levels of every smaller one. */
static int prepare(mn_ctx *mn, const double *param, const char *text, void *shared) {
  (void)text;
  world *w = (world *)shared;
  w->size = (int)param[SIZE];
  w->width = w->size + 2;
  w->mode = (int)param[MODE];
  w->targets = targets_of(param);
  w->observation = (int)param[OBSERVATION];
  w->actions = actions_of(param);
  w->levels = (int)param[LEVELS];
  w->cue_frames = (uint32_t)param[CUE_FRAMES];
  w->minimap = (int)param[MINIMAP];
  w->random_colours = (int)param[RANDOMIZE_COLORS];
  const int view = (int)param[VIEW], most = maze_most_targets(w->size);
  if (w->size % 2 == 0)
    return mn_fail(mn, "memory_maze: size=%d, expected an odd number of %d..%d", w->size, MAZE_LEAST, MAZE_MOST);
  if (w->targets < 3 || w->targets > most)
    return mn_fail(mn, "memory_maze: targets=%d, expected 3..%d in a maze of size=%d, or 0: as published",
                   w->targets, most, w->size);
  if (view % 2 == 0) return mn_fail(mn, "memory_maze: view=%d, expected 3, 5 or %d", view, SIGHT_MOST);
  if (w->actions != 4 && w->actions != 6)
    return mn_fail(mn, "memory_maze: actions=%d, expected 4 (noop forward left right), 6 (also turn and move at "
                   "once), or 0: as published", w->actions);
  if (w->minimap && w->observation == PIXELS)
    return mn_fail(mn, "memory_maze: minimap=1 with observation=pixels, expected observation=grid or vector");
  w->cells_at = cells_at(w->width, view);
  w->colours_at = colours_at(w->width, view);
  w->level_bytes = level_bytes(w->width, view, w->observation);
  w->oracle = oracle_steps(param);
  snprintf(w->names, sizeof w->names,
           "x y heading prompt colors[%d] targets[%d] target_vectors[%d] rooms rejected walls[9] layout[%d]",
           w->targets, 2 * w->targets, 2 * w->targets, w->size * w->size);
  mn_sight_prepare(&w->sight, view, w->width);
  for (int i = 0; i < w->levels; i++) {
    mn_io io = { .key = { (uint32_t)param[LEVEL_SEED], 0, (uint32_t)i, 0, 0, MN_FOR_RESET } };
    make_level((level *)(void *)((char *)(w + 1) + (size_t)i * (size_t)w->level_bytes), w, &io);
  }
  return 0;
}

/* ---- observations ---- */

/* The whole maze from above, without its border, the agent as YOU + heading. */
MN_FN void observe_map(const memory_maze *m, const world *w, const uint8_t *cell, uint8_t *out) {
  for (int row = 0; row < w->size; row++)
    for (int col = 0; col < w->size; col++) out[row * w->size + col] = cell[(row + 1) * w->width + col + 1];
  out[(m->row - 1) * w->size + m->col - 1] = (uint8_t)(YOU + m->heading);
}

/* The window, far to near, left to right; the code of the target asked for; the map. */
MN_FN void observe_cells(const memory_maze *m, const world *w, const level *l, uint8_t *out) {
  const mn_sight *s = &w->sight;
  const int h = m->heading, n = s->view * s->view;
  const uint64_t seen = seen_by(m, w, l);
  const uint8_t *cell = cells_of(l, w), *here = cell + m->row * w->width + m->col;
  for (int k = 0; k < n; k++) out[k] = (uint8_t)(here[s->over[h][k]] & -(seen >> s->at[h][k] & 1));
  out[n] = cue_is_shown(m, w) ? (uint8_t)(TARGET + m->prompt) : (uint8_t)UNSEEN;
  if (w->minimap) observe_map(m, w, cell, out + n + 1);
  if (!w->random_colours) return;
  const int all = n + 1 + (w->minimap ? w->size * w->size : 0);
  for (int k = 0; k < all; k++)
    if (out[k] >= TARGET && out[k] < YOU) out[k] = (uint8_t)(TARGET + m->colour[out[k] - TARGET]);
}

/* Cells from the agent to the wall ahead, to the right, behind or to the left. */
MN_FN int free_way(const memory_maze *m, const world *w, const uint8_t *cell, int heading) {
  const int step = mn_south_of(heading) * w->width + mn_east_of(heading);
  int at = m->row * w->width + m->col, n = 0;
  while (cell[at += step] != WALL) n++;
  return n;
}

/* Place (x, y; the middle of the maze is 0) and heading (east, south); free way ahead, right, behind,
** left; then for each target: whether it is asked for; whether it is seen, and where: ahead, right.
** Lengths are parts of the maze's.  The map is that all targets are seen.  A ball that looks askew sees
** what one would that looks the nearest way of four; what it sees is told as it lies. */
MN_FN void observe_vector(const memory_maze *m, const world *w, const level *l, float *out) {
  const uint64_t seen = seen_by(m, w, l);
  const float unit = 1.0f / (float)w->size, middle = 0.5f * (float)(w->size + 1);
  const bool cue = cue_is_shown(m, w);
  const mn_roller pose = pose_of(m, w);
  *out++ = (pose.x - 0.5f - middle) * unit;
  *out++ = (pose.y - 0.5f - middle) * unit;
  mn_roll_ahead(pose.heading, out, out + 1);
  out += 2;
  for (int i = 0; i < VECTOR_WALLS; i++)
    *out++ = (float)free_way(m, w, cells_of(l, w), (m->heading + i) % 4) * unit;
  for (int i = 0; i < w->targets; i++) {
    const int south = l->target[i] / w->width - m->row, east = l->target[i] % w->width - m->col;
    const bool sees = w->minimap || mn_sight_sees(&w->sight, seen, m->heading, south, east);
    float ahead, right;
    target_vector(&pose, w, l, i, &ahead, &right);
    *out++ = (float)(cue && m->prompt == i);
    *out++ = (float)sees;
    *out++ = sees ? ahead * unit : 0;
    *out++ = sees ? right * unit : 0;
  }
}

MN_FN void observe(const memory_maze *m, const world *w, const level *l, mn_io *io) {
  if (w->observation == CELLS) observe_cells(m, w, l, io->pixels);
  else if (w->observation == VECTOR) observe_vector(m, w, l, io->obs);
  else observe_picture(m, w, l, io->pixels);
}

/* ---- episodes ---- */

/* The cell that the ball is in, and the nearest of the four headings. */
MN_FN void locate_ball(memory_maze *m) {
  m->row = (uint8_t)m->body.y;
  m->col = (uint8_t)m->body.x;
  m->heading = (uint8_t)((int)(m->body.heading + 0.5f) % 4);
}

/* At rest in the middle of the cell. */
MN_FN void place_ball(memory_maze *m, float heading) {
  m->body.x = (float)m->col + 0.5f;
  m->body.y = (float)m->row + 0.5f;
  m->body.heading = heading;
  locate_ball(m);
}

MN_FN void reset(memory_maze *m, mn_io *io) {
  const world *w = (const world *)io->shared;
  if (w->levels) m->level = mn_rand_below(io, w->levels);
  else make_level((level *)(void *)(m + 1), w, io);
  const level *l = level_of(m, w);
  const int at = l->spawn[mn_rand_below(io, l->spawns)];
  m->row = (uint8_t)(at / w->width);
  m->col = (uint8_t)(at % w->width);
  if (w->mode == CONTINUOUS) place_ball(m, (float)mn_rand(io) * 0x1p-30f);
  else m->heading = (uint8_t)mn_rand_below(io, 4);
  m->prompt = (uint8_t)mn_rand_below(io, w->targets);
  for (int i = 0; i < MAZE_TARGETS; i++) m->colour[i] = (uint8_t)i;
  for (int i = 0; i < w->targets && w->random_colours; i++) {
    const int other = i + mn_rand_below(io, MAZE_TARGETS - i);
    const uint8_t colour = m->colour[i];
    m->colour[i] = m->colour[other];
    m->colour[other] = colour;
  }
  observe(m, w, l, io);
}

/* Turn, then move: is the agent in the cell of the target asked for? */
MN_FN bool walk(memory_maze *m, const world *w, const level *l, bool go, int turn) {
  m->heading = (uint8_t)((m->heading + 4 + turn) % 4);
  const int row = m->row + go * mn_south_of(m->heading), col = m->col + go * mn_east_of(m->heading);
  const int to = row * w->width + col;
  if (cells_of(l, w)[to] != WALL) m->row = (uint8_t)row, m->col = (uint8_t)col;
  return to == l->target[m->prompt];
}

/* Roll: did the ball touch the target asked for, anywhere on its way? */
MN_FN bool roll(memory_maze *m, const world *w, const level *l, bool go, int turn) {
  const mn_roller from = m->body;
  const int target = l->target[m->prompt];
  const float x = (float)(target % w->width) + 0.5f, y = (float)(target / w->width) + 0.5f;
  mn_roll(&m->body, go, turn, cells_of(l, w), w->width, WALL);
  locate_ball(m);
  return mn_roll_nearest(from.x, from.y, m->body.x, m->body.y, x, y) < TOUCH * TOUCH;
}

/* Reaching the requested target pays 1, and one of the others is requested next.  Nothing but time
** ends an episode. */
MN_FN void step(memory_maze *m, mn_io *io) {
  const world *w = (const world *)io->shared;
  const level *l = level_of(m, w);
  const int a = io->action;
  const int turn = (a == RIGHT || a == FORWARD_RIGHT) - (a == LEFT || a == FORWARD_LEFT);
  const bool go = a == FORWARD || a == FORWARD_LEFT || a == FORWARD_RIGHT;
  const bool touch = w->mode == CONTINUOUS ? roll(m, w, l, go, turn) : walk(m, w, l, go, turn);
  m->shown++;
  m->steps++;
  if (touch) {
    const int others = w->targets - 1;
    io->reward = 1;
    m->touched++;
    m->shown = 0;
    m->prompt = (uint8_t)((m->prompt + 1 + mn_below(io->bits[0], others)) % w->targets);
  }
  const float score = (float)m->touched * w->oracle / (float)m->steps;
  io->score = score < 1 ? score : 1;
  observe(m, w, l, io);
}

/* x, y: column and row of layout; the middle of a cell is a whole number.  heading: quarter turns from
** north, clockwise.  targets: x and y of each; target_vectors: cells ahead and to the right; walls:
** their colour in each third of rows and columns; layout: 0 wall, 1 corridor, 2 room, row by row. */
static int truth(const memory_maze *m, const mn_io *io, const char **names, float *values) {
  const world *w = (const world *)io->shared;
  const level *l = level_of(m, w);
  const mn_roller pose = pose_of(m, w);
  float *out = values;
  *names = w->names;
  *out++ = pose.x - 1.5f;
  *out++ = pose.y - 1.5f;
  *out++ = pose.heading;
  *out++ = m->prompt;
  for (int i = 0; i < w->targets; i++) *out++ = m->colour[i];
  for (int i = 0; i < w->targets; i++) {
    *out++ = (float)(l->target[i] % w->width - 1);
    *out++ = (float)(l->target[i] / w->width - 1);
  }
  for (int i = 0; i < w->targets; i++) {
    target_vector(&pose, w, l, i, out, out + 1);
    out += 2;
  }
  *out++ = l->spawns;
  *out++ = l->rejected;
  for (int i = 0; i < 9; i++) *out++ = l->block[i];
  for (int row = 1; row <= w->size; row++)
    for (int col = 1; col <= w->size; col++) {
      const int is = cells_of(l, w)[row * w->width + col];
      *out++ = (float)(is == WALL ? 0 : is == OPEN ? 1 : 2);
    }
  return (int)(out - values);
}

static bool valid(const memory_maze *m, const mn_io *io) {
  const world *w = (const world *)io->shared;
  const mn_roller *b = &m->body;
  if (w->levels ? m->level < 0 || m->level >= w->levels : !level_valid(level_of(m, w), w)) return false;
  if (m->row < 1 || m->row > w->size || m->col < 1 || m->col > w->size || m->heading > 3 || m->prompt >= w->targets)
    return false;
  if (m->steps >= 1u << 30 || m->touched > m->steps) return false;
  for (int i = 0; i < MAZE_TARGETS; i++)
    if (m->colour[i] >= MAZE_TARGETS) return false;
  const uint8_t *cell = cells_of(level_of(m, w), w);
  if (cell[m->row * w->width + m->col] == WALL) return false;
  if (w->mode != CONTINUOUS) return true;
  return b->x >= m->col && b->x < m->col + 1 && b->y >= m->row && b->y < m->row + 1 && b->heading >= 0 && b->heading <= 4 &&
         b->speed >= 0 && b->speed <= 1 && b->spin >= -1 && b->spin <= 1;
}

/* The agent is put into the cell nearest to x or y, a ball at rest in its middle. */
MN_FN bool put(memory_maze *m, const world *w, int row, int col) {
  if (row > w->size || col > w->size || cells_of(level_of(m, w), w)[row * w->width + col] == WALL) return false;
  m->row = (uint8_t)row;
  m->col = (uint8_t)col;
  m->body.speed = m->body.spin = 0;
  if (w->mode == CONTINUOUS) place_ball(m, m->body.heading);
  return true;
}

MN_FN bool set(memory_maze *m, const mn_io *io, int fact, double value) {
  const world *w = (const world *)io->shared;
  if (fact == 1) return put(m, w, m->row, (int)(value + 1.5));
  if (fact == 2) return put(m, w, (int)(value + 1.5), m->col);
  if (value >= w->targets) return false;
  if (m->prompt != (uint8_t)value) m->shown = 0;
  m->prompt = (uint8_t)value;
  return true;
}

MN_FN void observe_again(memory_maze *m, mn_io *io) {
  const world *w = (const world *)io->shared;
  observe(m, w, level_of(m, w), io);
}

/* Of random actions in the published sizes, 9 to 15.  Perfect play is that of an agent that knows the maze, as published, with a step
** counted as one: what the best memory gets, which must look for the targets first, is not known. */
static inline void reference(const double *param, const void *shared, mn_reference *out) {
  const double on_grid[] = { 0.0159, 0.0104, 0.0083, 0.0066 }, rolling[] = { 0.0095, 0.0066, 0.0053, 0.0043 };
  const int size = (int)param[SIZE], mode = (int)param[MODE];
  mn_space space = { .ndim = 0 };
  (void)shared;
  spaces(param, &space);
  out->best_return = (double)space.time_limit / (double)oracle_steps(param);
  if (size < 9 || size > 15 || param[TARGETS] > 0 || param[LEVELS] > 0 || param[ACTIONS] > 0) return;
  out->chance = (mode == CONTINUOUS ? rolling : on_grid)[(size - 9) / 2];
  out->episodes = mode == CONTINUOUS ? 4000 : 10000;
}

MN_ENV(memory_maze, .rules = "The border has the colour of a target somewhere in the maze: walk onto it, for +1, and the next colour is asked for; "
                             "find as many as you can before time is up, and remember where you saw the others.", .see = see, .reference = reference,
       .version = 0,
       .doc = "find the prompted coloured targets, one after another, in a new maze",
       .about = "size         cells per side, odd; with targets=0, sizes 9, 11, 13, 15 have 3, 4, 5, 6 targets\n"
                "mode         grid: cells and quarter turns; continuous: a rolling ball, four steps for each of those\n"
                "observation  grid: codes of view x view cells; vector: numbers; pixels: 64 x 64 RGB\n"
                "actions      0: 4 on the grid, 6 in continuous mode\n"
                "levels       number of mazes, drawn from level_seed; 0: a new maze in each episode\n"
                "cue_frames   steps for which a new target is shown; 0: always\n"
                "minimap=1    the observation includes a map; randomize_colors=1: new colours in each episode",
       .params = "size=9[7..31] mode=grid|continuous targets=0[0..6] observation=grid|vector|pixels "
                 "view=7[3..7] actions=0[0..6] "
                 "levels=0[0..100000] level_seed=0[0..999999999] cue_frames=0[0..1000000] "
                 "minimap=0[0..1] randomize_colors=0[0..1]",
       .actions = "noop forward left right forward_left forward_right",
       .settable = "prompt=0[0..5] x=0.0[0..30] y=0.0[0..30]",
       .to_know = "targets=number prompt=class heading=class x=number y=number target_vectors=number",
       .observes = "u8: view[view*view] target map[*] f32: place=x,y heading=east,south free=ahead,right,behind,left targets[*]",
       .spaces = spaces, .prepare = prepare, .reset = reset, .step = step, .draw = draw, .truth = truth, .valid = valid,
       .set = set, .observe = observe_again);
