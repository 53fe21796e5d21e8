/* memory_maze.h -- Memory Maze's levels and environments: what its rules (memory_maze.c) and its pictures
** (memory_maze_picture.h) share. */
#ifndef MN_MEMORY_MAZE_H
#define MN_MEMORY_MAZE_H
#include "worlds/maze.h"
#include "worlds/raycast.h"
#include "worlds/ball_dynamics.h"
#include "worlds/line_of_sight.h"
#include <assert.h>

enum { SIZE, MODE, TARGETS, OBSERVATION, VIEW, ACTIONS, LEVELS, LEVEL_SEED, CUE_FRAMES, MINIMAP,
       RANDOMIZE_COLORS };                       /* parameters */
enum { GRID, CONTINUOUS };                       /* mode */
enum { CELLS, VECTOR, PIXELS };                  /* observation */
enum { UNSEEN, WALL, OPEN, FLOOR, TARGET, YOU = TARGET + MAZE_TARGETS };   /* codes; YOU + heading */

/* One maze as steps need it.  After it lie its walls, a word for each row (mn_sight_walls), and the
** codes of its cells, target i as TARGET + i, with room around for windows that reach over; last, where
** pictures are to be seen, the colours of its cells (mn_ray_view). */
typedef struct level {
  uint16_t target[MAZE_TARGETS], spawn[MAZE_ROOMS];
  uint8_t block[9], spawns;
  uint16_t rejected;
} level;
static_assert(sizeof(level) % 8 == 0, "words follow");

/* What all environments share; the pool of levels follows. */
typedef struct world {
  int size, width, mode, targets, actions, observation, levels, minimap, random_colours;
  uint32_t cue_frames;           /* observations that show a new prompt; 0: all */
  int cells_at, colours_at, level_bytes;         /* in a level: where codes and colours begin; all of it */
  float oracle;                  /* steps from target to target, for an agent that knows the maze */
  char names[112];                /* of truth */
  mn_sight sight;
} world;
static_assert(sizeof(world) % 8 == 0, "levels follow");

typedef struct memory_maze {     /* one environment; without a pool its level follows */
  int32_t level;                 /* in the pool */
  uint32_t steps, touched;       /* of this episode */
  uint32_t shown;                /* observations since the prompt changed */
  uint8_t row, col;              /* the cell it is in */
  uint8_t heading;               /* north, east, south, west; the nearest */
  uint8_t prompt;                /* the target asked for */
  uint8_t colour[MAZE_TARGETS + 2];   /* of each target, 0..5 */
  mn_roller body;                /* of mode=continuous */
} memory_maze;
static_assert(sizeof(memory_maze) % 8 == 0, "a level follows");

/* ---- sizes ---- */

MN_FN int wall_rows(int width, int view) { return width + 2 * mn_sight_margin(view); }

/* Cells of a window that reach over stand before the first row, after the last, or in a neighbouring
** row: they are never seen, and only must be there. */
MN_FN int overreach(int width, int view) { return mn_sight_margin(view) * (width + 1); }

MN_FN int cells_at(int width, int view) { return (int)sizeof(level) + 8 * wall_rows(width, view); }

MN_FN int colours_at(int width, int view) {
  return (cells_at(width, view) + width * width + 2 * overreach(width, view) + 7) / 8 * 8;
}

MN_FN int level_bytes(int width, int view, int observation) {
  return colours_at(width, view) + (observation == PIXELS ? (width * width + 1) / 2 * 8 : 0);
}

MN_FN int targets_of(const double *param) {
  return param[TARGETS] > 0 ? (int)param[TARGETS] : maze_rule_of((int)param[SIZE]).targets;
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

MN_FN const int32_t *colours_of(const level *l, const world *w) {
  return (const int32_t *)(const void *)((const char *)l + w->colours_at);
}

/* 0xRRGGBB.  Targets: as in memory-maze, a part of 220.  Walls: the mean of its textures. */
MN_FN int32_t target_colour(int i) {
  const int32_t colour[MAZE_TARGETS] = { 0xC52C23, 0x73C566, 0x2DA2FB, 0x6C7AE7, 0xFFE044, 0xFF947C };
  return colour[i];
}

MN_FN int32_t cell_colour(const level *l, int is, int row, int col, int width) {
  const int32_t colour[MAZE_WALL_COLOURS] = { 0x2074B1, 0xA94167, 0xA6C59C, 0x55784B,
                                              0x4450B0, 0xD57B68, 0x8F201A, 0xC4A926 };
  if (is != WALL) return is == OPEN ? 0x36596D : 0x6F94AA;
  return colour[l->block[3 * maze_third(row, width) + maze_third(col, width)]] | MN_RAY_SOLID;
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
  if (w->observation != PIXELS) return;
  int32_t *colour = (int32_t *)(void *)((char *)l + w->colours_at);
  for (int row = 0; row < width; row++)
    for (int col = 0; col < width; col++)
      colour[row * width + col] = cell_colour(l, cell[row * width + col], row, col, width);
}

/* Is it a maze as make_level leaves it: walled in, and its words and colours those of its cells? */
MN_FN bool level_valid(const level *l, const world *w) {
  const int width = w->width, margin = mn_sight_margin(w->sight.view), over = overreach(width, w->sight.view);
  const uint8_t *cell = cells_of(l, w);
  if (l->spawns < w->targets || l->spawns > MAZE_ROOMS) return false;
  for (int i = 0; i < 9; i++)
    if (l->block[i] >= MAZE_WALL_COLOURS) return false;
  for (int i = 0; i < w->targets; i++)
    if (l->target[i] >= width * width || cell[l->target[i]] != TARGET + i) return false;
  for (int i = 1; i <= over; i++)
    if (cell[-i] || cell[width * width + i - 1]) return false;
  for (int row = -margin; row < width + margin; row++) {
    uint64_t wall = ~0ull;
    for (int col = 0; col < width && row >= 0 && row < width; col++) {
      const int is = cell[row * width + col];
      const bool rim = row == 0 || col == 0 || row == width - 1 || col == width - 1;
      if (is < WALL || is >= TARGET + w->targets || (rim && is != WALL)) return false;
      if (is != WALL) wall &= ~(1ull << (col + margin));
      if (w->observation == PIXELS && colours_of(l, w)[row * width + col] != cell_colour(l, is, row, col, width)) return false;
    }
    if (walls_of(l)[row + margin] != wall) return false;
  }
  return true;
}

/* ---- where an environment is, and what it may know ---- */

/* Cell i spans i .. i + 1, the border included. */
MN_FN mn_roller pose_of(const memory_maze *m, const world *w) {
  if (w->mode == CONTINUOUS) return m->body;
  mn_roller pose;
  pose.x = (float)m->col + 0.5f;
  pose.y = (float)m->row + 0.5f;
  pose.heading = m->heading;
  pose.speed = pose.spin = 0;
  return pose;
}

/* How far ahead and to the right of the agent a target is. */
MN_FN void target_vector(const mn_roller *pose, const world *w, const level *l, int i, float *ahead, float *right) {
  const float south = (float)(l->target[i] / w->width) + 0.5f - pose->y;
  const float east = (float)(l->target[i] % w->width) + 0.5f - pose->x;
  float u, v;
  mn_roll_ahead(pose->heading, &u, &v);
  *ahead = south * v + east * u;
  *right = south * u - east * v;
}

MN_FN uint64_t seen_by(const memory_maze *m, const world *w, const level *l) {
  const uint64_t walls = mn_sight_walls(&w->sight, walls_of(l), m->row, m->col, m->heading);
  return mn_sight_seen(&w->sight, walls, m->heading);
}

MN_FN bool cue_is_shown(const memory_maze *m, const world *w) {
  return !w->cue_frames || m->shown < w->cue_frames;
}
#endif
