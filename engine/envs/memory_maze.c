/* memory_maze.c -- find the coloured target that is asked for; then the next one is asked for, and so
** on, in a maze that is new in each episode.  Who remembers where the targets are goes straight to
** them.  Memory Maze of Pasukonis et al. (2022), its mazes and its rewards, on a grid: one step is one
** cell or one quarter turn, and takes as long as four of the original's.
** An agent sees codes of cells in a window ahead of it (sight.h), or a few numbers. */
#include "maze.h"
#include "op.h"
#include "sight.h"
#include <assert.h>
#include <stdio.h>

enum { SIZE, TARGETS, OBSERVATION, VIEW, ACTIONS, LEVELS, LEVEL_SEED, CUE_FRAMES, MINIMAP,
       RANDOMIZE_COLORS };                       /* parameters */
enum { CELLS, VECTOR };                          /* observation */
enum { UNSEEN, WALL, OPEN, FLOOR, TARGET, YOU = TARGET + MAZE_TARGETS };   /* codes; YOU + heading */
enum { NOOP, FORWARD, LEFT, RIGHT, FORWARD_LEFT, FORWARD_RIGHT };
enum { VECTOR_PLACE = 4, VECTOR_WALLS = 4, VECTOR_TARGET = 4 };   /* numbers of each part */

/* One maze as steps need it.  After it lie its walls, a word for each row (mn_sight_walls), and the
** codes of its cells, target i as TARGET + i, with room around for windows that reach over. */
typedef struct level {
  uint16_t target[MAZE_TARGETS], spawn[MAZE_ROOMS];
  uint8_t block[9], spawns;
  uint16_t rejected;
} level;
static_assert(sizeof(level) % 8 == 0, "words follow");

/* What all copies share; the pool of levels follows. */
typedef struct world {
  int size, width, targets, actions, observation, levels, minimap, random_colours;
  uint32_t cue_frames;           /* observations that show a new prompt; 0: all */
  int cells_at, level_bytes;     /* in a level: where codes begin; all of it */
  float oracle;                  /* steps from target to target of who knows the maze */
  char names[96];                /* of truth */
  mn_sight sight;
} world;
static_assert(sizeof(world) % 8 == 0, "levels follow");

typedef struct memory_maze {     /* a copy; without a pool its level follows */
  int32_t level;                 /* in the pool */
  uint32_t steps, touched;       /* of this episode */
  uint32_t shown;                /* observations since the prompt changed */
  uint8_t row, col, heading;
  uint8_t prompt;                /* the target asked for */
  uint8_t colour[MAZE_TARGETS + 2];   /* of each target, 0..5 */
  uint32_t unused;
} memory_maze;
static_assert(sizeof(memory_maze) % 8 == 0, "a level follows");

/* ---- sizes ---- */

MN_FN int wall_rows(int width, int view) { return width + 2 * mn_sight_margin(view); }

/* Cells of a window that reach over stand before the first row, after the last, or in a neighbouring
** row: they are never seen, and only must be there. */
MN_FN int overreach(int width, int view) { return mn_sight_margin(view) * (width + 1); }

MN_FN int cells_at(int width, int view) { return (int)sizeof(level) + 8 * wall_rows(width, view); }

MN_FN int level_bytes(int width, int view) {
  return (cells_at(width, view) + width * width + 2 * overreach(width, view) + 7) / 8 * 8;
}

MN_FN int targets_of(const double *param) {
  return param[TARGETS] > 0 ? (int)param[TARGETS] : maze_rule_of((int)param[SIZE]).targets;
}

MN_FN void spaces(const double *param, mn_space *out) {
  const int size = (int)param[SIZE], width = size + 2, view = (int)param[VIEW];
  const bool map = param[MINIMAP] > 0;
  out->ndim = 1;
  if ((int)param[OBSERVATION] == VECTOR) {
    out->dtype = MN_F32;
    out->shape[0] = VECTOR_PLACE + VECTOR_WALLS + VECTOR_TARGET * targets_of(param);
  } else {
    out->dtype = MN_U8;
    out->shape[0] = view * view + 1 + map * size * size;
    out->codes = map ? YOU + 4 : YOU;
  }
  out->n_actions = (int)param[ACTIONS];
  out->time_limit = size <= 9 ? 250 : 125 * (size - 7);
  out->bytes = (int)sizeof(memory_maze) + (param[LEVELS] > 0 ? 0 : level_bytes(width, view));
  out->shared_bytes = sizeof(world) + (size_t)param[LEVELS] * (size_t)level_bytes(width, view);
}

/* ---- levels ---- */

MN_FN const level *level_of(const memory_maze *m, const world *w) {
  if (!w->levels) return (const level *)(const void *)(m + 1);
  return (const level *)(const void *)((const char *)(w + 1) + (size_t)m->level * (size_t)w->level_bytes);
}

MN_FN const uint64_t *walls_of(const level *l) { return (const uint64_t *)(const void *)(l + 1); }

MN_FN const uint8_t *cells_of(const level *l, const world *w) {
  return (const uint8_t *)l + w->cells_at + overreach(w->width, w->sight.view);
}

MN_FN void make_level(level *l, const world *w, mn_io *io) {
  const int width = w->width, margin = mn_sight_margin(w->sight.view);
  uint64_t *wall = (uint64_t *)(void *)(l + 1);
  uint8_t *cell = (uint8_t *)l + w->cells_at + overreach(width, w->sight.view);
  mn_maze maze;
  maze_draw(&maze, w->size, w->targets, io);
  l->spawns = (uint8_t)maze.rooms;
  l->rejected = (uint16_t)maze.rejected;
  for (int i = 0; i < maze.rooms; i++) l->spawn[i] = maze.spawn[i];
  for (int i = 0; i < 9; i++) l->block[i] = maze.block[i];
  for (int i = 0; i < width + 2 * margin; i++) wall[i] = ~0ull;
  for (int row = 0; row < width; row++)
    for (int col = 0; col < width; col++) {
      const int at = row * width + col, is = maze.cell[at];
      cell[at] = is == MAZE_WALL ? WALL : is == MAZE_CORRIDOR ? OPEN : FLOOR;
      if (is != MAZE_WALL) wall[row + margin] &= ~(1ull << (col + margin));
    }
  for (int i = 0; i < w->targets; i++) {
    l->target[i] = maze.target[i];
    cell[maze.target[i]] = (uint8_t)(TARGET + i);
  }
}

/* The level of a pool is a function of its number, the seed and what mazes there are: so a pool holds
** the levels of every smaller one. */
static int prepare(mn_ctx *mn, const double *param, const char *text, void *shared) {
  (void)text;
  world *w = shared;
  w->size = (int)param[SIZE];
  w->width = w->size + 2;
  w->targets = targets_of(param);
  w->observation = (int)param[OBSERVATION];
  w->actions = (int)param[ACTIONS];
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
  if (w->actions == 5)
    return mn_fail(mn, "memory_maze: actions=5, expected 4 (noop forward left right) or 6 (also turn and move at once)");
  w->cells_at = cells_at(w->width, view);
  w->level_bytes = level_bytes(w->width, view);
  w->oracle = w->actions == 4 ? 2.9f + 0.89f * (float)w->size : 1.2f + 0.76f * (float)w->size;
  snprintf(w->names, sizeof w->names,
           "x y heading prompt colors[%d] targets[%d] target_vectors[%d] rooms rejected layout[%d]",
           w->targets, 2 * w->targets, 2 * w->targets, w->size * w->size);
  mn_sight_prepare(&w->sight, view);
  for (int i = 0; i < w->levels; i++) {
    mn_io io = { .key = { (uint32_t)param[LEVEL_SEED], 0, (uint32_t)i, 0, 0, MN_FOR_RESET } };
    make_level((level *)(void *)((char *)(w + 1) + (size_t)i * (size_t)w->level_bytes), w, &io);
  }
  return 0;
}

/* ---- what is seen ---- */

MN_FN uint64_t seen_by(const memory_maze *m, const world *w, const level *l) {
  const uint64_t walls = mn_sight_walls(&w->sight, walls_of(l), m->row, m->col, m->heading);
  return mn_sight_seen(&w->sight, walls, m->heading);
}

MN_FN bool cue_is_shown(const memory_maze *m, const world *w) {
  return !w->cue_frames || m->shown < w->cue_frames;
}

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
  const uint8_t *cell = cells_of(l, w), *at = s->at[h];
  const uint8_t *corner = cell + (m->row + s->row[h]) * w->width + m->col + s->col[h];
  for (int k = 0; k < n; k++) {
    const int place = at[k];
    out[k] = (uint8_t)(corner[(place >> 3) * w->width + (place & 7)] & -(seen >> place & 1));
  }
  out[n] = cue_is_shown(m, w) ? (uint8_t)(TARGET + m->prompt) : UNSEEN;
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

/* How far ahead and to the right of the agent a target is. */
MN_FN void target_vector(const memory_maze *m, const world *w, const level *l, int i, int *ahead, int *right) {
  const int south = l->target[i] / w->width - m->row, east = l->target[i] % w->width - m->col;
  const int v = mn_south_of(m->heading), u = mn_east_of(m->heading);
  *ahead = south * v + east * u;
  *right = south * u - east * v;
}

/* Place (x, y; the middle of the maze is 0) and heading (east, south); free way ahead, right, behind,
** left; then for each target: whether it is asked for; whether it is seen, and where: ahead, right.
** Lengths are parts of the maze's.  The map is that all targets are seen. */
MN_FN void observe_vector(const memory_maze *m, const world *w, const level *l, float *out) {
  const uint64_t seen = seen_by(m, w, l);
  const float unit = 1.0f / (float)w->size, middle = 0.5f * (float)(w->size + 1);
  const bool cue = cue_is_shown(m, w);
  *out++ = ((float)m->col - middle) * unit;
  *out++ = ((float)m->row - middle) * unit;
  *out++ = (float)mn_east_of(m->heading);
  *out++ = (float)mn_south_of(m->heading);
  for (int i = 0; i < VECTOR_WALLS; i++)
    *out++ = (float)free_way(m, w, cells_of(l, w), (m->heading + i) % 4) * unit;
  for (int i = 0; i < w->targets; i++) {
    const int south = l->target[i] / w->width - m->row, east = l->target[i] % w->width - m->col;
    const bool sees = w->minimap || mn_sight_sees(&w->sight, seen, m->heading, south, east);
    int ahead, right;
    target_vector(m, w, l, i, &ahead, &right);
    *out++ = (float)(cue && m->prompt == i);
    *out++ = (float)sees;
    *out++ = sees ? (float)ahead * unit : 0;
    *out++ = sees ? (float)right * unit : 0;
  }
}

MN_FN void observe(const memory_maze *m, const world *w, const level *l, mn_io *io) {
  if (w->observation == CELLS) observe_cells(m, w, l, io->pixels);
  else observe_vector(m, w, l, io->obs);
}

/* ---- episodes ---- */

MN_FN void reset(memory_maze *m, mn_io *io) {
  const world *w = (const world *)io->shared;
  if (w->levels) m->level = maze_below(io, w->levels);
  else make_level((level *)(void *)(m + 1), w, io);
  const level *l = level_of(m, w);
  const int at = l->spawn[maze_below(io, l->spawns)];
  m->row = (uint8_t)(at / w->width);
  m->col = (uint8_t)(at % w->width);
  m->heading = (uint8_t)maze_below(io, 4);
  m->prompt = (uint8_t)maze_below(io, w->targets);
  for (int i = 0; i < MAZE_TARGETS; i++) m->colour[i] = (uint8_t)i;
  for (int i = 0; i < w->targets && w->random_colours; i++) {
    const int other = i + maze_below(io, MAZE_TARGETS - i);
    const uint8_t colour = m->colour[i];
    m->colour[i] = m->colour[other];
    m->colour[other] = colour;
  }
  observe(m, w, l, io);
}

/* Turn, then move, then touch: whoever enters the cell of the target asked for has 1, and is asked for
** one of the others.  Nothing but time ends an episode. */
MN_FN void step(memory_maze *m, mn_io *io) {
  const world *w = (const world *)io->shared;
  const level *l = level_of(m, w);
  const int a = io->action;
  const int turn = a == RIGHT || a == FORWARD_RIGHT ? 1 : a == LEFT || a == FORWARD_LEFT ? 3 : 0;
  const bool go = a == FORWARD || a == FORWARD_LEFT || a == FORWARD_RIGHT;
  m->heading = (uint8_t)((m->heading + turn) % 4);
  const int row = m->row + go * mn_south_of(m->heading), col = m->col + go * mn_east_of(m->heading);
  const int to = row * w->width + col;
  if (cells_of(l, w)[to] != WALL) m->row = (uint8_t)row, m->col = (uint8_t)col;
  m->shown++;
  m->steps++;
  if (to == l->target[m->prompt]) {
    const int others = w->targets - 1;
    io->reward = 1;
    m->touched++;
    m->shown = 0;
    m->prompt = (uint8_t)((m->prompt + 1 + (int)((uint64_t)io->bits[0] * (uint32_t)others >> 32)) % w->targets);
  }
  const float score = (float)m->touched * w->oracle / (float)m->steps;
  io->score = score < 1 ? score : 1;
  observe(m, w, l, io);
}

/* ---- the picture: cell (row, col) without the border is the square from (col, row) ---- */

static const uint32_t target_colours[MAZE_TARGETS] = { 0xC52C23FF, 0x73C566FF, 0x2DA1FBFF, 0x6C7AEDFF,
                                                       0xFFE044FF, 0xFF947CFF };
static const uint32_t wall_colours[MAZE_WALL_COLOURS] = { 0x2074B1FF, 0xA94167FF, 0xA6C59CFF, 0x55784BFF,
                                                          0x4450B0FF, 0xD57B68FF, 0x8F201AFF, 0xC4A926FF };

static void draw_cells(const memory_maze *m, const world *w, const level *l, mn_canvas *c) {
  const uint64_t seen = seen_by(m, w, l);
  const uint8_t *cell = cells_of(l, w);
  for (int row = 0; row < w->width; row++)
    for (int col = 0; col < w->width; col++) {
      const int is = cell[row * w->width + col];
      const int block = 3 * maze_third(row, w->width) + maze_third(col, w->width);
      const float x = (float)(col - 1), y = (float)(row - 1);
      mn_canvas_add(c, MN_RECT, is == WALL ? wall_colours[l->block[block]] : is == OPEN ? 0x36596DFF : 0x4F7282FF,
                    x, y, 1, 1);
      if (is == WALL) mn_canvas_add(c, MN_RECT, 0x10141CB0, x, y, 1, 1);
      if (mn_sight_sees(&w->sight, seen, m->heading, row - m->row, col - m->col))
        mn_canvas_add(c, MN_RECT, 0xFFFFFF38, x, y, 1, 1);
    }
}

static void draw(const memory_maze *m, const mn_io *io, mn_canvas *c) {
  const world *w = (const world *)io->shared;
  const level *l = level_of(m, w);
  const float size = (float)w->size, x = (float)m->col - 0.5f, y = (float)m->row - 0.5f;
  const uint32_t cue = target_colours[m->colour[m->prompt]];
  mn_canvas_add(c, MN_RECT, cue_is_shown(m, w) ? cue : 0x808890FF, -1.4f, -1.4f, size + 2.8f, size + 2.8f);
  mn_canvas_add(c, MN_RECT, 0x202830FF, -1, -1, size + 2, size + 2);
  draw_cells(m, w, l, c);
  for (int i = 0; i < w->targets; i++) {
    const float tx = (float)(l->target[i] % w->width) - 0.5f, ty = (float)(l->target[i] / w->width) - 0.5f;
    if (i == m->prompt) mn_canvas_add(c, MN_DISC, 0xFFFFFFFF, tx, ty, 0.43f, 0.43f);
    mn_canvas_add(c, MN_DISC, target_colours[m->colour[i]], tx, ty, 0.36f, 0.36f);
  }
  mn_canvas_add(c, MN_DISC, 0x0F131AFF, x, y, 0.38f, 0.38f);
  mn_canvas_add(c, MN_TRIANGLE, 0xF5F7FAFF, x - 0.25f, y - 0.25f, 0.5f, 0.5f);
  mn_canvas_data(c, 1.5707964f * (float)(m->heading - 1));
}

/* x, y: column and row of layout.  heading: quarter turns from north, clockwise.  targets: x and y of
** each; target_vectors: cells ahead and to the right; layout: 0 wall, 1 corridor, 2 room, row by row. */
static int truth(const memory_maze *m, const mn_io *io, const char **names, float *values) {
  const world *w = (const world *)io->shared;
  const level *l = level_of(m, w);
  float *out = values;
  *names = w->names;
  *out++ = (float)(m->col - 1);
  *out++ = (float)(m->row - 1);
  *out++ = m->heading;
  *out++ = m->prompt;
  for (int i = 0; i < w->targets; i++) *out++ = m->colour[i];
  for (int i = 0; i < w->targets; i++) {
    *out++ = (float)(l->target[i] % w->width - 1);
    *out++ = (float)(l->target[i] / w->width - 1);
  }
  for (int i = 0; i < w->targets; i++) {
    int ahead, right;
    target_vector(m, w, l, i, &ahead, &right);
    *out++ = (float)ahead;
    *out++ = (float)right;
  }
  *out++ = l->spawns;
  *out++ = l->rejected;
  for (int row = 1; row <= w->size; row++)
    for (int col = 1; col <= w->size; col++) {
      const int is = cells_of(l, w)[row * w->width + col];
      *out++ = (float)(is == WALL ? 0 : is == OPEN ? 1 : 2);
    }
  return (int)(out - values);
}

MN_ENV(memory_maze, .version = 0,
       .doc = "find the coloured target that is asked for, again and again, in a maze never seen before",
       .params = "size=9[7..31] targets=0[0..6] observation=grid|vector view=7[3..7] actions=4[4..6] "
                 "levels=0[0..100000] level_seed=0[0..999999999] cue_frames=0[0..1000000] "
                 "minimap=0[0..1] randomize_colors=0[0..1]",
       .actions = "noop forward left right forward_left forward_right",
       .spaces = spaces, .prepare = prepare, .reset = reset, .step = step, .draw = draw, .truth = truth);
