/* ball_dynamics.h -- how Memory Maze's ball rolls: it gathers speed and turn with a lag, and sticks to walls.
** Measured on the original (MuJoCo, four steps a second): from rest the ball covers 0.112, 0.219,
** 0.243, 0.248 and then 0.250 of a cell a step, after release 0.138, 0.031, 0.007; it turns by 14.1
** and then 18.4 degrees, after release by 2.9.  These are lags of first order, which differ for turns
** that begin and turns that end.  A wall stops the ball for good: it does not slide along. */
#ifndef MN_BALL_DYNAMICS_H
#define MN_BALL_DYNAMICS_H
#include "numerics/fast_math.h"
#include "numerics/random.h"

#define MN_ROLL_RADIUS 0.1f      /* of the ball, in cells */
#define MN_ROLL_SPEED  0.25f     /* cells a step */
#define MN_ROLL_TURN   (18.39f / 90)                 /* quarter turns a step */
enum { MN_ROLL_PARTS = 8 };      /* of a step, after each of which walls are looked for */

typedef struct mn_roller {
  float x, y;                    /* in cells: cell i spans i .. i + 1; y grows southwards */
  float heading;                 /* quarter turns from north, clockwise: 0 .. 4 */
  float speed, spin;             /* parts of their greatest: 0 .. 1, -1 .. 1 */
} mn_roller;

/* Which way a heading looks, as a vector of length 1; exact for whole quarters. */
MN_FN void mn_roll_ahead(float heading, float *east, float *south) {
  float north;
  mn_sincos_quarters((double)heading, east, &north);
  *south = -north;
}

/* Does a ball at x, y touch a wall?  cells[rows * width], all those on the border `wall`. */
MN_FN bool mn_roll_blocked(const uint8_t *cells, int width, uint8_t wall, float x, float y) {
  const int col = (int)x, row = (int)y, at = row * width + col;
  const float in_x = x - (float)col, in_y = y - (float)row;
  const int side = in_x < 0.5f ? -1 : 1, end = in_y < 0.5f ? -width : width;
  const float gap_x = in_x < 0.5f ? in_x : 1 - in_x, gap_y = in_y < 0.5f ? in_y : 1 - in_y;
  if (cells[at] == wall || (gap_x < MN_ROLL_RADIUS && cells[at + side] == wall)) return true;
  if (gap_y < MN_ROLL_RADIUS && cells[at + end] == wall) return true;
  const float corner = gap_x * gap_x + gap_y * gap_y;
  return corner < MN_ROLL_RADIUS * MN_ROLL_RADIUS && cells[at + side + end] == wall;
}

/* One step.  forward: 0 or 1; turn: -1 left, 0, 1 right.  The ball rolls along its mean heading. */
MN_FN void mn_roll(mn_roller *b, int forward, int turn, const uint8_t *cells, int width, uint8_t wall) {
  const float u = (float)forward, s = (float)turn;
  const float by = MN_ROLL_TURN * (s - (s - b->spin) * (turn ? 0.2333f : 0.1577f));
  const float way = MN_ROLL_SPEED * (u - (u - b->speed) * 0.552f) / MN_ROLL_PARTS;
  float east, south;
  mn_roll_ahead(b->heading + 0.5f * by, &east, &south);
  b->spin = s - (s - b->spin) * 0.016f;
  b->speed = u - (u - b->speed) * 0.225f;
  b->heading += by;
  b->heading += b->heading < 0 ? 4 : b->heading >= 4 ? -4 : 0;
  for (int i = 0; i < MN_ROLL_PARTS; i++) {
    const float x = b->x + way * east, y = b->y + way * south;
    if (mn_roll_blocked(cells, width, wall, x, y)) {
      b->speed = 0;
      return;
    }
    b->x = x;
    b->y = y;
  }
}

/* How near the way from one place straight to another comes to a third: its square. */
MN_FN float mn_roll_nearest(float from_x, float from_y, float to_x, float to_y, float x, float y) {
  const float dx = to_x - from_x, dy = to_y - from_y, length = dx * dx + dy * dy;
  const float part = ((x - from_x) * dx + (y - from_y) * dy) / mn_at_least(length, 1e-12f);
  const float at = mn_at_most(mn_at_least(part, 0.0f), 1.0f);
  const float off_x = from_x + at * dx - x, off_y = from_y + at * dy - y;
  return off_x * off_x + off_y * off_y;
}
#endif
