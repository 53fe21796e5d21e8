/* memory_maze_picture.h -- Memory Maze as its agent sees it, through a camera, and from above. */
#ifndef MN_MEMORY_MAZE_PICTURE_H
#define MN_MEMORY_MAZE_PICTURE_H
#include "memory_maze.h"

#define CAMERA_AHEAD 0.075f      /* of the ball's centre; on the grid it stands in the cell's */
enum { NEUTRAL = 0x808890 };     /* colour of the border while no target is shown */

MN_FN int32_t cue_colour(const memory_maze *m, const world *w) {
  return cue_is_shown(m, w) ? target_colour(m->colour[m->prompt]) : NEUTRAL;
}

/* What the camera sees; balls[w->targets] is filled, and borrowed. */
MN_FN mn_ray_view camera_of(const memory_maze *m, const world *w, const level *l, mn_ray_ball *balls) {
  const mn_roller pose = pose_of(m, w);
  const float ahead = w->mode == CONTINUOUS ? CAMERA_AHEAD : 0;
  mn_ray_view v;
  mn_roll_ahead(pose.heading, &v.forward_x, &v.forward_y);
  v.x = pose.x + ahead * v.forward_x;
  v.y = pose.y + ahead * v.forward_y;
  v.cells = colours_of(l, w);
  v.width = v.height = w->width;
  for (int i = 0; i < w->targets; i++) {
    balls[i].x = (float)(l->target[i] % w->width) + 0.5f;
    balls[i].y = (float)(l->target[i] / w->width) + 0.5f;
    balls[i].color = target_colour(m->colour[i]);
  }
  v.n_balls = w->targets;
  v.balls = balls;
  v.border = mn_ray_shade(cue_colour(m, w), 179);      /* 0.7 of it */
  return v;
}

MN_FN void observe_picture(const memory_maze *m, const world *w, const level *l, uint8_t *pixels) {
  mn_ray_ball balls[MAZE_TARGETS];
  const mn_ray_view v = camera_of(m, w, l, balls);
  mn_raycast(&v, pixels);
}

/* ---- from above: cell (row, col) without the border is the square from (col, row) ---- */

static inline uint32_t opaque(int32_t colour) { return (uint32_t)colour << 8 | 0xFF; }

static inline void draw_cells(const memory_maze *m, const world *w, const level *l, mn_canvas *c) {
  const uint64_t seen = seen_by(m, w, l);
  const uint8_t *cell = cells_of(l, w);
  for (int row = 0; row < w->width; row++)
    for (int col = 0; col < w->width; col++) {
      const int is = cell[row * w->width + col];
      const float x = (float)(col - 1), y = (float)(row - 1);
      mn_canvas_add(c, MN_RECT, opaque(cell_colour(l, is, row, col, w->width)), x, y, 1, 1);
      if (is != OPEN) mn_canvas_add(c, MN_RECT, is == WALL ? 0x6B7A90FF : 0x0F131A90, x, y, 1, 1);
      if (w->observation != PIXELS && mn_sight_sees(&w->sight, seen, m->heading, row - m->row, col - m->col))
        mn_canvas_add(c, MN_RECT, 0xFFFFFF38, x, y, 1, 1);
    }
}

/* The field of view, as rays to the walls, and to the right of the maze the picture itself. */
static inline void draw_camera(const memory_maze *m, const world *w, const level *l, mn_canvas *c) {
  enum { EVERY = 4 };
  mn_ray_ball balls[MAZE_TARGETS];
  const mn_ray_view v = camera_of(m, w, l, balls);
  mn_ray_hits hits;
  uint8_t pixels[MN_RAY_SIZE * MN_RAY_SIZE * 3];
  for (int i = 0; i < MN_RAY_RAYS; i += 16) mn_ray_walk(&v, i, &hits);
  for (int i = EVERY / 2; i < MN_RAY_RAYS; i += EVERY) {
    const float t = hits.depth[i], aside = t * mn_ray_aside(i);
    mn_canvas_add(c, MN_LINE, 0xFFFFFF30, v.x - 1, v.y - 1, v.x - 1 + t * v.forward_x - aside * v.forward_y,
                  v.y - 1 + t * v.forward_y + aside * v.forward_x);
    mn_canvas_data(c, 0.06f);
  }
  const float side = (float)w->size + 2.8f;
  mn_raycast(&v, pixels);
  mn_canvas_image(c, (float)w->size + 2, -1.4f, side, side, MN_RAY_SIZE, MN_RAY_SIZE, pixels);
}

static inline void draw(const memory_maze *m, const mn_io *io, mn_canvas *c) {
  const world *w = (const world *)io->shared;
  const level *l = level_of(m, w);
  const mn_roller pose = pose_of(m, w);
  const float size = (float)w->size, x = pose.x - 1, y = pose.y - 1;
  mn_canvas_add(c, MN_RECT, opaque(cue_colour(m, w)), -1.4f, -1.4f, size + 2.8f, size + 2.8f);
  mn_canvas_add(c, MN_RECT, 0x202830FF, -1, -1, size + 2, size + 2);
  draw_cells(m, w, l, c);
  for (int i = 0; i < w->targets; i++) {
    const float tx = (float)(l->target[i] % w->width) - 0.5f, ty = (float)(l->target[i] / w->width) - 0.5f;
    if (i == m->prompt) mn_canvas_add(c, MN_DISC, 0xFFFFFFFF, tx, ty, 0.43f, 0.43f);
    mn_canvas_add(c, MN_DISC, opaque(target_colour(m->colour[i])), tx, ty, 0.36f, 0.36f);
    const char letter[2] = { (char)('A' + m->colour[i]), 0 };          /* colours alone are not for every eye */
    mn_canvas_text(c, 0x0F131AFF, tx - 0.15f, ty + 0.16f, 0.44f, letter);
  }
  if (w->observation == PIXELS) draw_camera(m, w, l, c);
  mn_canvas_add(c, MN_DISC, 0x0F131AFF, x, y, 0.38f, 0.38f);
  mn_canvas_add(c, MN_TRIANGLE, 0xF5F7FAFF, x - 0.27f, y - 0.2f, 0.56f, 0.4f);
  mn_canvas_data(c, 1.5707964f * (pose.heading - 1));
}

/* ---- what the agent sees ---- */

static inline void see_code(mn_canvas *c, int code, float x, float y) {
  if (code == UNSEEN) return;
  mn_canvas_add(c, MN_RECT, code == WALL ? 0x6B7A90FF : code == FLOOR ? 0x3A5465FF : 0x22333FFF, x, y, 0.97f, 0.97f);
  if (code >= TARGET && code < YOU) mn_canvas_add(c, MN_DISC, opaque(target_colour(code - TARGET)), x + 0.485f, y + 0.485f, 0.36f, 0.36f);
}

/* turned: quarter turns from looking up. */
static inline void see_agent(mn_canvas *c, float x, float y, float turned) {
  mn_canvas_add(c, MN_DISC, 0x0F131AFF, x, y, 0.38f, 0.38f);
  mn_canvas_add(c, MN_TRIANGLE, 0xF5F7FAFF, x - 0.27f, y - 0.2f, 0.56f, 0.4f);
  mn_canvas_data(c, 1.5707964f * (turned - 1));
}

/* A frame in the colour of the target asked for, and fog in it. */
static inline void see_frame(mn_canvas *c, uint32_t colour, float x, float y, float side) {
  mn_canvas_add(c, MN_RECT, colour, x - 0.3f, y - 0.3f, side + 0.6f, side + 0.6f);
  mn_canvas_add(c, MN_RECT, 0x0B0E13FF, x, y, side, side);
}

/* The cells ahead, up the way it looks; beside them the map, where there is one. */
static inline void see_cells(const mn_io *io, mn_canvas *c) {
  const int view = (int)io->param[VIEW], size = (int)io->param[SIZE], n = view * view;
  const uint8_t *obs = io->pixels, cue = obs[n];
  see_frame(c, cue == UNSEEN ? opaque(NEUTRAL) : opaque(target_colour(cue - TARGET)), 0, 0, (float)view);
  for (int i = 0; i < n; i++) see_code(c, obs[i], (float)(i % view), (float)(i / view));
  see_agent(c, 0.5f * (float)view, (float)view - 0.5f, 0);
  if (!(io->param[MINIMAP] > 0)) return;
  const float unit = (float)view / (float)size, left = (float)view + 1;
  mn_canvas_add(c, MN_RECT, 0x0B0E13FF, left, 0, (float)view, (float)view);
  for (int i = 0; i < size * size; i++) {
    const int code = obs[n + 1 + i];
    const float x = left + unit * (float)(i % size), y = unit * (float)(i / size);
    const uint32_t colour = code >= YOU ? 0xF5F7FAFF : code >= TARGET ? opaque(target_colour(code - TARGET)) :
                            code == WALL ? 0x6B7A90FF : code == FLOOR ? 0x3A5465FF : 0x22333FFF;
    mn_canvas_add(c, MN_RECT, colour, x, y, 0.97f * unit, 0.97f * unit);
    if (code >= YOU) {
      mn_canvas_add(c, MN_TRIANGLE, 0x0F131AFF, x + 0.2f * unit, y + 0.25f * unit, 0.6f * unit, 0.5f * unit);
      mn_canvas_data(c, 1.5707964f * (float)(code - YOU - 1));
    }
  }
}

/* Numbers, seen as they lie in the maze: the agent, how far it is to the walls, and the targets in sight. */
static inline void see_numbers(const mn_io *io, int targets, mn_canvas *c) {
  const float size = (float)io->param[SIZE], *obs = io->obs, east = obs[2], south = obs[3];
  const float x = obs[0] * size + 0.5f * size, y = obs[1] * size + 0.5f * size;
  const float *target = obs + 8;
  uint32_t colour = opaque(NEUTRAL);
  for (int i = 0; i < targets; i++)
    if (target[4 * i] > 0) colour = opaque(target_colour(i));
  see_frame(c, colour, 0, 0, size);
  for (int i = 0; i < 4; i++) {
    const float way = obs[4 + i] * size + 0.5f;            /* ahead, right, behind, left */
    const float dx = i == 0 ? east : i == 1 ? -south : i == 2 ? -east : south, dy = i == 0 ? south : i == 1 ? east : i == 2 ? -south : -east;
    mn_canvas_add(c, MN_LINE, 0x3A5465FF, x, y, x + way * dx, y + way * dy);
    mn_canvas_data(c, 0.5f);
  }
  for (int i = 0; i < targets; i++) {
    const float ahead = target[4 * i + 2] * size, right = target[4 * i + 3] * size;
    if (target[4 * i + 1] > 0)
      mn_canvas_add(c, MN_DISC, opaque(target_colour(i)), x + ahead * east - right * south, y + ahead * south + right * east, 0.36f, 0.36f);
  }
  mn_canvas_add(c, MN_DISC, 0x0F131AFF, x, y, 0.38f, 0.38f);
  mn_canvas_add(c, MN_LINE, 0xF5F7FAFF, x, y, x + 0.34f * east, y + 0.34f * south);
  mn_canvas_data(c, 0.14f);
}

static inline void see(const mn_io *io, mn_canvas *c) {
  const int observation = (int)io->param[OBSERVATION];
  if (observation == PIXELS) mn_canvas_image(c, 0, 0, 1, 1, MN_RAY_SIZE, MN_RAY_SIZE, io->pixels);
  else if (observation == VECTOR) see_numbers(io, targets_of(io->param), c);
  else see_cells(io, c);
}
#endif
