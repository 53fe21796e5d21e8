/* mystery_view.h -- views of a Mystery Path: the agent's observation, as numbers or as the pixels of
** memory-gym; the drawing for people; and the facts for probes, which include the path. */
#ifndef MN_MYSTERY_VIEW_H
#define MN_MYSTERY_VIEW_H
#include "mystery_path.h"
#include "memory_gym.h"
#include <string.h>

/* ---- numbers: ones at the agent's column and row, after a fall, and at the column and row of the
** origin and of the goal where they are shown; what an environment adds comes behind ---- */

enum { MYSTERY_COLUMN, MYSTERY_ROW = MYSTERY_COLUMN + MYSTERY_SIDE,
       MYSTERY_FELL = MYSTERY_ROW + MYSTERY_SIDE, MYSTERY_START = MYSTERY_FELL + 1,
       MYSTERY_END = MYSTERY_START + 2 * MYSTERY_SIDE, MYSTERY_MORE = MYSTERY_END + 2 * MYSTERY_SIDE };

MN_FN bool mystery_shows_fall(const mystery *m, const mn_io *io) {
  return m->fell && io->param[MYSTERY_FEEDBACK] == 0;
}

MN_FN void mystery_point(float *obs, int cell) {
  obs[cell % MYSTERY_SIDE] = 1;
  obs[MYSTERY_SIDE + cell / MYSTERY_SIDE] = 1;
}

/* n: how many numbers in all */
MN_FN void mystery_tell(const mystery *m, const mn_io *io, int n) {
  for (int i = 0; i < n; i++) io->obs[i] = 0;
  mystery_point(io->obs + MYSTERY_COLUMN, mystery_cell(m));
  io->obs[MYSTERY_FELL] = (float)mystery_shows_fall(m, io);
  if (mystery_shows(io->param, MYSTERY_ORIGIN)) mystery_point(io->obs + MYSTERY_START, m->start);
  if (mystery_shows(io->param, MYSTERY_GOAL)) mystery_point(io->obs + MYSTERY_END, m->goal);
}

/* ---- pixels ---- */

MN_FN void mystery_paint_tile(uint8_t *pixels, int cell, uint32_t rgb) {
  const int x = cell % MYSTERY_SIDE * MYSTERY_TILE, y = cell / MYSTERY_SIDE * MYSTERY_TILE;
  for (int i = 0; i < MYSTERY_TILE; i++) gym_span(pixels, x, x + MYSTERY_TILE, y + i, rgb);
}

MN_FN void mystery_paint(const mystery *m, const mn_io *io) {
  memset(io->pixels, 0, 3 * MYSTERY_PIXELS * MYSTERY_PIXELS);
  if (mystery_shows(io->param, MYSTERY_ORIGIN)) mystery_paint_tile(io->pixels, m->start, 0x0000FF);
  if (mystery_shows(io->param, MYSTERY_GOAL)) mystery_paint_tile(io->pixels, m->goal, 0x00FF00);
  gym_paint_agent(io->pixels, m->x, m->y, m->heading);
  if (mystery_shows_fall(m, io)) gym_paint_cross(io->pixels, m->x, m->y);
}

/* n: numbers of the vector; 8-bit pixels otherwise */
MN_FN void mystery_spaces(const double *param, int n, int n_actions, int time_limit, mn_space *out) {
  if (param[MYSTERY_OBSERVATION] == MYSTERY_SEEN_PIXELS) {
    out->dtype = MN_U8;
    out->ndim = 3;
    out->shape[0] = out->shape[1] = MYSTERY_PIXELS;
    out->shape[2] = 3;
  } else {
    out->dtype = MN_F32;
    out->ndim = 1;
    out->shape[0] = n;
  }
  out->n_actions = n_actions;
  out->time_limit = time_limit;
  out->bytes = sizeof(mystery);
  out->no_bits = true;
}

/* ---- for people: cell x, y spans x .. x+1 and y .. y+1 ---- */

static inline void mystery_tile(mn_canvas *c, int cell, uint32_t color) {
  const float x = (float)(cell % MYSTERY_SIDE), y = (float)(cell / MYSTERY_SIDE);
  mn_canvas_add(c, MN_RECT, color, x + 0.04f, y + 0.04f, 0.92f, 0.92f);
}

static inline void mystery_cross(mn_canvas *c, float x, float y, uint32_t color) {
  const float half = 0.3f;
  for (int up = -1; up <= 1; up += 2) {
    mn_canvas_add(c, MN_LINE, color, x - half, y - half * (float)up, x + half, y + half * (float)up);
    mn_canvas_data(c, 0.12f);
  }
}

/* What the agent has found out stands out: its cells of the path are brighter, others are crossed. */
static inline void mystery_draw(const mystery *m, const mn_io *io, mn_canvas *c) {
  const float x = (float)m->x / MYSTERY_TILE, y = (float)m->y / MYSTERY_TILE;
  const uint32_t floor = 0x1B222DFF, wall = 0x4A5568FF, path = 0x35557AFF, been = 0x4C7FB5FF;
  (void)io;
  mn_canvas_add(c, MN_RECT, 0x00000000, -0.06f, -0.06f, MYSTERY_SIDE + 0.12f, MYSTERY_SIDE + 0.12f);
  for (int i = 0; i < MYSTERY_CELLS; i++) {
    const uint64_t here = mystery_bit(i);
    mystery_tile(c, i, m->visited & here ? been : m->path & here ? path :
                       m->walls & here ? wall : floor);
  }
  mystery_tile(c, m->start, 0x0072B2FF);
  mystery_tile(c, m->goal, 0x009E73FF);
  for (int i = 0; i < MYSTERY_CELLS; i++)
    if (m->fallen >> i & 1)
      mystery_cross(c, (float)(i % MYSTERY_SIDE) + 0.5f, (float)(i / MYSTERY_SIDE) + 0.5f, 0x8F4A1EFF);
  mn_canvas_add(c, MN_DISC, 0x0F131AFF, x, y, 0.42f, 0.42f);
  mn_canvas_add(c, MN_DISC, 0xF0E442FF, x, y, 0.36f, 0.36f);
  mn_canvas_add(c, MN_TRIANGLE, 0x0F131AFF, x - 0.2f, y - 0.2f, 0.4f, 0.4f);
  mn_canvas_data(c, -1.5707964f - 0.7853982f * (float)m->heading);
  if (m->fell) mystery_cross(c, x, y, 0xFF4D3DFF);
}

/* Steps along the path from where the agent is to the goal; from the start if it fell, for there it
** will be put. */
static inline int mystery_distance(const mystery *m) {
  const uint64_t from = mystery_bit(m->fell ? m->start : mystery_cell(m));
  uint64_t reached = mystery_bit(m->goal);
  int n = 0;
  for (; !(reached & from); n++) reached |= (mystery_wide(reached) | mystery_tall(reached)) & m->path;
  return n;
}

MN_FN float *mystery_list(float *to, uint64_t cells) {
  for (int i = 0; i < MYSTERY_CELLS; i++) *to++ = (float)(cells >> i & 1);
  return to;
}

/* x, y: in cells, whole in their middles.  fails: falls so far.  Lists: 1 for each such cell, row by
** row; visited and fallen are what the agent has found out, and may remember. */
static inline int mystery_truth(const mystery *m, const mn_io *io, const char **names,
                                float *values) {
  float *v = values;
  (void)io;
  *names = "x y heading fell fails start_x start_y goal_x goal_y distance path[49] walls[49] "
           "visited[49] fallen[49]";
  *v++ = (float)(m->x - MYSTERY_TILE / 2) / MYSTERY_TILE;
  *v++ = (float)(m->y - MYSTERY_TILE / 2) / MYSTERY_TILE;
  *v++ = (float)m->heading;
  *v++ = (float)m->fell;
  *v++ = (float)m->fails;
  *v++ = (float)(m->start % MYSTERY_SIDE);
  *v++ = (float)(m->start / MYSTERY_SIDE);
  *v++ = (float)(m->goal % MYSTERY_SIDE);
  *v++ = (float)(m->goal / MYSTERY_SIDE);
  *v++ = (float)mystery_distance(m);
  v = mystery_list(v, m->path);
  v = mystery_list(v, m->walls);
  v = mystery_list(v, m->visited);
  v = mystery_list(v, m->fallen);
  return (int)(v - values);
}
/* ---- what the agent sees ---- */

/* The place that mystery_point set, or -1. */
static inline int mystery_pointed(const float *obs) {
  int col = -1, row = -1;
  for (int i = 0; i < MYSTERY_SIDE; i++) {
    if (obs[i] > 0) col = i;
    if (obs[MYSTERY_SIDE + i] > 0) row = i;
  }
  return col < 0 || row < 0 ? -1 : row * MYSTERY_SIDE + col;
}

/* Fog over all cells; the agent, at x, y in cells; a cross after a fall; origin and goal where they are shown.
** heading: in eighths of a turn. */
static inline void mystery_see(const mn_io *io, float x, float y, int heading, mn_canvas *c) {
  const int start = mystery_pointed(io->obs + MYSTERY_START), goal = mystery_pointed(io->obs + MYSTERY_END);
  mn_canvas_add(c, MN_RECT, 0x0F131AFF, -0.06f, -0.06f, MYSTERY_SIDE + 0.12f, MYSTERY_SIDE + 0.12f);
  for (int i = 0; i < MYSTERY_CELLS; i++) mystery_tile(c, i, i == start ? 0x0072B2FF : i == goal ? 0x009E73FF : 0x2C3645FF);
  mn_canvas_add(c, MN_DISC, 0x0F131AFF, x, y, 0.42f, 0.42f);
  mn_canvas_add(c, MN_DISC, 0xF0E442FF, x, y, 0.36f, 0.36f);
  mn_canvas_add(c, MN_TRIANGLE, 0x0F131AFF, x - 0.2f, y - 0.2f, 0.4f, 0.4f);
  mn_canvas_data(c, -1.5707964f - 0.7853982f * (float)heading);
  if (io->obs[MYSTERY_FELL] > 0) mystery_cross(c, x, y, 0xFF4D3DFF);
}

#endif
