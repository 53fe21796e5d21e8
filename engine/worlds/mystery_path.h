/* mystery_path.h -- the board of both Mystery Paths: how the hidden path is made, the rewards, and what
** happens after a step off the path.  They differ in how the agent moves (mystery_path.c,
** mystery_path_grid.c); mystery_view.h makes the observations.
** Rules: Pleines et al., "Memory Gym" (memory-gym 1.0.2), among them two oddities of its search that
** shape the paths: it follows the first open cell that is cheaper than the oldest one, not the
** cheapest; and a cell that is reached again changes its way, but never its cost. */
#ifndef MN_MYSTERY_PATH_H
#define MN_MYSTERY_PATH_H
#include "env.h"

enum { MYSTERY_SIDE = 7, MYSTERY_CELLS = MYSTERY_SIDE * MYSTERY_SIDE };
enum { MYSTERY_TILE = 12, MYSTERY_PIXELS = MYSTERY_SIDE * MYSTERY_TILE };    /* of one tile; of all */
enum { MYSTERY_SEEN_VECTOR, MYSTERY_SEEN_PIXELS };
enum { MYSTERY_HARD, MYSTERY_EASY };
enum { MYSTERY_AUTO, MYSTERY_NO, MYSTERY_YES };

/* Parameters of both.  What is auto, or below 0, is as the level says. */
enum { MYSTERY_OBSERVATION, MYSTERY_LEVEL, MYSTERY_ORIGIN, MYSTERY_GOAL, MYSTERY_FEEDBACK,
       MYSTERY_PROGRESS, MYSTERY_FALL };
#define MYSTERY_PARAMS                                                                             \
  "observation=vector|pixels level=hard|easy show_origin=auto|no|yes show_goal=auto|no|yes "       \
  "visual_feedback=yes|no reward_path_progress=-1.0[-1..1] reward_fall_off=0.0[-1..1]"

#define MYSTERY_ABOUT                                                                              \
  "level                 easy: origin and goal are visible; hard: neither\n"                           \
  "show_origin, _goal    auto: by the level\n"                                                 \
  "reward_path_progress  of a new cell of the path; below 0: 0.1, but on the hard grid 0\n"         \
  "visual_feedback=no    a fall is not shown"

/* Cells are counted row by row from the upper left corner; sets of them are bits. */
typedef struct mystery {
  uint64_t path, walls;
  uint64_t visited, fallen;      /* in this episode: cells of the path, which pay no more; others */
  uint8_t  x, y;                 /* of the agent, in pixels of the picture */
  uint8_t  heading;              /* eighths of a turn, from up to the left */
  uint8_t  fell;                 /* 1: off the path; the next step returns it to the start */
  uint8_t  start, goal;          /* cells */
  uint16_t fails;                /* falls in this episode */
} mystery;

/* ---- sets of cells ---- */

#define MYSTERY_ALL   0x1FFFFFFFFFFFFull         /* 49 cells */
#define MYSTERY_LEFT  0x0040810204081ull         /* the leftmost column */
#define MYSTERY_TOP   0x7Full

MN_FN uint64_t mystery_bit(int cell) { return (uint64_t)1 << cell; }

/* These cells and their neighbours in the row; in the column. */
MN_FN uint64_t mystery_wide(uint64_t s) {
  const uint64_t right = MYSTERY_LEFT << (MYSTERY_SIDE - 1);
  return s | (s & ~right) << 1 | (s & ~MYSTERY_LEFT) >> 1;
}
MN_FN uint64_t mystery_tall(uint64_t s) {
  return (s | s << MYSTERY_SIDE | s >> MYSTERY_SIDE) & MYSTERY_ALL;
}

/* ---- making a path ---- */

/* Walls bend the path.  Inside, a cell is one with a probability of 0.33, but for column and row 5,
** which are passed over; then 4 or 8 of the rim, none of them next to a wall of the inside, nor next
** to the start or the goal. */
MN_FN uint64_t mystery_raise_walls(mn_io *io, int start, int goal) {
  uint64_t walls = 0;
  for (int y = 1; y < 5; y++)
    for (int x = 1; x < 5; x++)
      if (mn_rand_below(io, 100) < 33) walls |= mystery_bit(y * MYSTERY_SIDE + x);
  const uint64_t right = MYSTERY_LEFT << (MYSTERY_SIDE - 1);
  const uint64_t bottom = MYSTERY_TOP << (MYSTERY_CELLS - MYSTERY_SIDE);
  const uint64_t ends = mystery_bit(start) | mystery_bit(goal);
  uint64_t rim = (MYSTERY_LEFT | right | MYSTERY_TOP | bottom) &
                 ~(mystery_wide(ends) | mystery_tall(ends) | mystery_tall(mystery_wide(walls)));
  int places = 0;
  for (uint64_t left = rim; left; left &= left - 1) places++;
  for (int n = mn_rand_below(io, 2) ? 8 : 4; n > 0 && places > 0; n--, places--) {
    uint64_t left = rim;
    for (int skip = mn_rand_below(io, places); skip > 0; skip--) left &= left - 1;
    const uint64_t one = left & ~(left - 1);
    walls |= one;
    rim &= ~one;
  }
  return walls;
}

MN_FN int mystery_square(int x) { return x * x; }

/* Search from start to goal, a step costing 1 to 8; the cells of the way found, and from: the one before each of them.  There is always
** one: round a wall at the rim, the inside is open. */
MN_FN uint64_t mystery_search(mn_io *io, uint64_t walls, int start, int goal, uint8_t *from) {
  const int8_t across[4] = { 1, -1, 0, 0 }, down[4] = { 0, 0, 1, -1 };
  uint8_t open[MYSTERY_CELLS];
  int16_t cost[MYSTERY_CELLS];
  float total[MYSTERY_CELLS];          /* cost, and the distance to the goal as the crow flies */
  uint64_t waiting = 0, closed = walls;
  uint32_t pool = 0, left = 0;         /* random bits at hand, three for a cost */
  int n = 1, cell = start;
  open[0] = from[start] = (uint8_t)start;
  cost[start] = 0;
  total[start] = 0;
  while (n > 0) {
    int pick = 0;
    for (int i = 1; i < n && !pick; i++) pick = total[open[i]] < total[open[0]] ? i : 0;
    cell = open[pick];
    if (cell == goal) break;
    for (n--; pick < n; pick++) open[pick] = open[pick + 1];
    waiting &= ~mystery_bit(cell);
    closed |= mystery_bit(cell);
    const int x = cell % MYSTERY_SIDE, y = cell / MYSTERY_SIDE;
    for (int way = 0; way < 4; way++) {
      const int nx = x + across[way], ny = y + down[way], next = ny * MYSTERY_SIDE + nx;
      if ((unsigned)nx >= MYSTERY_SIDE || (unsigned)ny >= MYSTERY_SIDE || closed >> next & 1)
        continue;
      if (left == 0) pool = mn_rand(io), left = 10;
      const int g = cost[cell] + 1 + (int)(pool & 7);
      pool >>= 3;
      left--;
      if (waiting >> next & 1) {
        if (g < cost[next]) from[next] = (uint8_t)cell;
        continue;
      }
      const int far = mystery_square(nx - goal % MYSTERY_SIDE) +
                      mystery_square(ny - goal / MYSTERY_SIDE);
      from[next] = (uint8_t)cell;
      cost[next] = (int16_t)g;
      total[next] = (float)g + __builtin_sqrtf((float)far);
      waiting |= mystery_bit(next);
      open[n++] = (uint8_t)next;
    }
  }
  uint64_t path = mystery_bit(start);
  for (; cell != start; cell = from[cell]) path |= mystery_bit(cell);
  return path;
}

/* ---- an episode ---- */

MN_FN void mystery_put_at_start(mystery *m) {
  m->x = (uint8_t)(m->start % MYSTERY_SIDE * MYSTERY_TILE + MYSTERY_TILE / 2);
  m->y = (uint8_t)(m->start / MYSTERY_SIDE * MYSTERY_TILE + MYSTERY_TILE / 2);
}

/* Begin: from a random cell of a random side to one of the opposite side. */
MN_FN void mystery_enter(mystery *m, mn_io *io) {
  const int side = mn_rand_below(io, 4), end = MYSTERY_SIDE - 1;
  const int a = mn_rand_below(io, MYSTERY_SIDE), b = mn_rand_below(io, MYSTERY_SIDE);
  const int first = side & 1 ? end : 0, last = end - first;
  const bool lying = side < 2;
  m->start = (uint8_t)(lying ? a * MYSTERY_SIDE + first : first * MYSTERY_SIDE + a);
  m->goal = (uint8_t)(lying ? b * MYSTERY_SIDE + last : last * MYSTERY_SIDE + b);
  m->walls = mystery_raise_walls(io, m->start, m->goal);
  uint8_t from[MYSTERY_CELLS];
  m->path = mystery_search(io, m->walls, m->start, m->goal, from);
  m->visited = mystery_bit(m->start);
  mystery_put_at_start(m);
}

/* Walk that many pixels; the rim holds. */
MN_FN void mystery_walk(mystery *m, int dx, int dy) {
  const int lo = MYSTERY_TILE / 2, hi = MYSTERY_PIXELS - MYSTERY_TILE / 2;
  const int x = m->x + dx, y = m->y + dy;
  m->x = (uint8_t)(x < lo ? lo : x > hi ? hi : x);
  m->y = (uint8_t)(y < lo ? lo : y > hi ? hi : y);
}

MN_FN int mystery_cell(const mystery *m) {
  return m->y / MYSTERY_TILE * MYSTERY_SIDE + m->x / MYSTERY_TILE;
}

/* What comes of where the agent is now.  usual: what the level pays for a new cell of the path. */
MN_FN void mystery_judge(mystery *m, mn_io *io, float usual) {
  const int cell = mystery_cell(m);
  const uint64_t here = mystery_bit(cell);
  const double pays = io->param[MYSTERY_PROGRESS];
  const bool on = (m->path & here) != 0, solved = cell == m->goal;
  io->terminated = solved;
  io->score = (float)solved;
  if (solved) io->reward = 1;
  else if (!on) io->reward = (float)io->param[MYSTERY_FALL];
  else if (!(m->visited & here)) io->reward = pays < 0 ? usual : (float)pays;
  m->visited |= here & m->path;
  m->fallen |= here & ~m->path;
  m->fell = !on;
  m->fails = (uint16_t)(m->fails + !on);
}

/* Its path must be connected: the distance to the goal is counted along it. */
MN_FN bool mystery_valid(const mystery *m, const mn_io *io) {
  const int lo = MYSTERY_TILE / 2, hi = MYSTERY_PIXELS - MYSTERY_TILE / 2;
  (void)io;
  if (m->x < lo || m->x > hi || m->y < lo || m->y > hi || m->heading > 7 || m->fell > 1) return false;
  if (m->start >= MYSTERY_CELLS || m->goal >= MYSTERY_CELLS) return false;
  const uint64_t on = m->path & mystery_bit(mystery_cell(m));
  if ((m->path & m->walls) || ((m->path | m->walls) & ~MYSTERY_ALL)) return false;
  if ((m->visited & ~m->path) || (m->fallen & (m->path | ~MYSTERY_ALL)) || m->fell == (on != 0)) return false;
  uint64_t reached = mystery_bit(m->goal), before;
  do {
    before = reached;
    reached |= (mystery_wide(reached) | mystery_tall(reached)) & m->path;
  } while (reached != before);
  return reached == m->path && (m->path & mystery_bit(m->start));
}

/* ---- settings ---- */

MN_FN bool mystery_shows(const double *param, int what) {
  const int wish = (int)param[what];
  return wish == MYSTERY_YES || (wish == MYSTERY_AUTO && param[MYSTERY_LEVEL] == MYSTERY_EASY);
}
#endif
