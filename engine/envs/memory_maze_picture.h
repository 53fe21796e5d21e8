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
#endif
