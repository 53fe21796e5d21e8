/* labyrinth.h -- mazes of corridors one cell wide, seen 3 x 3 cells at a time, as POPGym's two labyrinths have them.
** The maze is mazelib's HuntAndKill: a walk opens rooms (cells of odd row and column) until it has no closed neighbour; then a room is drawn,
** and if it is open, a walk begins there; as many draws as there are cells, so rarely a room stays closed.
** The view is not centred at the border: rows and columns beyond it are left out, and the rest is filled with wall at the bottom and on the
** right.  centred=1 fills where it is missing. */
#ifndef MN_LABYRINTH_H
#define MN_LABYRINTH_H
#include "env.h"
#include "worlds/bits.h"

enum { LABYRINTH_LEVEL, LABYRINTH_CENTRED };     /* parameters */
#define LABYRINTH_PARAMS "level=easy|medium|hard centred=0[0..1]"
enum { LABYRINTH_SIDE = 19, LABYRINTH_MOST = LABYRINTH_SIDE * LABYRINTH_SIDE, LABYRINTH_LIMIT = 1023, LABYRINTH_VIEW = 9 };
enum { LABYRINTH_FREE, LABYRINTH_WALL, LABYRINTH_START, LABYRINTH_GOAL, LABYRINTH_CODES = 5 };      /* POPGym's fifth code is never seen */
enum { LABYRINTH_LEFT, LABYRINTH_RIGHT, LABYRINTH_UP, LABYRINTH_DOWN, LABYRINTH_NONE };

typedef struct labyrinth {
  uint32_t open[LABYRINTH_SIDE], visited[LABYRINTH_SIDE];      /* a bit a column; the start is open, so is the goal */
  int16_t side, row, col, start, goal;           /* start, goal: row * side + column; goal -1: none */
  int16_t cells, found;                          /* open cells but the start; those of them visited */
  int16_t steps;
  uint8_t last, unused[3];
} labyrinth;

MN_FN int labyrinth_side(const double *param) { return 11 + 4 * (int)param[LABYRINTH_LEVEL]; }

MN_FN void labyrinth_spaces(const double *param, mn_space *out) {
  (void)param;
  out->dtype = MN_U8;
  out->ndim = 1;
  out->shape[0] = LABYRINTH_VIEW + 1;
  out->codes = LABYRINTH_CODES;
  out->n_actions = LABYRINTH_NONE;
  out->time_limit = LABYRINTH_LIMIT;
  out->bytes = sizeof(labyrinth);
  out->no_bits = true;
}

MN_FN bool labyrinth_is_open(const labyrinth *m, int row, int col) { return m->open[row] >> col & 1; }

MN_FN int labyrinth_cell(const labyrinth *m, int row, int col) {
  if (row < 0 || col < 0 || row >= m->side || col >= m->side || !labyrinth_is_open(m, row, col)) return LABYRINTH_WALL;
  const int at = row * m->side + col;
  return at == m->start ? LABYRINTH_START : at == m->goal ? LABYRINTH_GOAL : LABYRINTH_FREE;
}

MN_FN void labyrinth_observe(labyrinth *m, mn_io *io) {
  const bool centred = io->param[LABYRINTH_CENTRED] == 1;
  const int row = m->row > 0 || centred ? m->row - 1 : 0, col = m->col > 0 || centred ? m->col - 1 : 0;
  for (int i = 0; i < LABYRINTH_VIEW; i++) {
    const int r = row + i / 3, c = col + i % 3;          /* POPGym's view ends one cell after the agent: in its second row at a border */
    const bool beyond = r > m->row + 1 || c > m->col + 1;
    io->pixels[i] = (uint8_t)(beyond ? (int)LABYRINTH_WALL : labyrinth_cell(m, r, c));
  }
  io->pixels[LABYRINTH_VIEW] = m->last;
}

MN_FN void labyrinth_dig(labyrinth *m, mn_io *io) {
  const int rooms = m->side / 2;
  int row = 1 + 2 * mn_rand_below(io, rooms), col = 1 + 2 * mn_rand_below(io, rooms), left = rooms * rooms - 1;
  m->open[row] |= 1u << col;
  for (int draw = 0; left > 0; draw++) {
    while (labyrinth_is_open(m, row, col)) {
      int to[4], n = 0;
      if (col > 1 && !labyrinth_is_open(m, row, col - 2)) to[n++] = LABYRINTH_LEFT;
      if (col + 2 < m->side && !labyrinth_is_open(m, row, col + 2)) to[n++] = LABYRINTH_RIGHT;
      if (row > 1 && !labyrinth_is_open(m, row - 2, col)) to[n++] = LABYRINTH_UP;
      if (row + 2 < m->side && !labyrinth_is_open(m, row + 2, col)) to[n++] = LABYRINTH_DOWN;
      if (n == 0) break;
      const int way = n == 1 ? to[0] : to[mn_rand_below(io, n)];
      const int down = (way == LABYRINTH_DOWN) - (way == LABYRINTH_UP), right = (way == LABYRINTH_RIGHT) - (way == LABYRINTH_LEFT);
      m->open[row + down] |= 1u << (col + right);
      row += 2 * down;
      col += 2 * right;
      m->open[row] |= 1u << col;
      left--;
    }
    if (draw >= m->side * m->side) break;
    row = 1 + 2 * mn_rand_below(io, rooms);
    col = 1 + 2 * mn_rand_below(io, rooms);
  }
}

/* A maze, with an entrance in one outer wall, and another in the opposite one where there is a goal. */
MN_FN void labyrinth_enter(labyrinth *m, mn_io *io, bool goal) {
  m->side = (int16_t)labyrinth_side(io->param);
  labyrinth_dig(m, io);
  const int rooms = m->side / 2, end = m->side - 1, way = (int)(io->bits[0] >> 30);
  const int from = 1 + 2 * mn_below(io->bits[1], rooms), to = 1 + 2 * mn_below(io->bits[2], rooms), edge = way & 1 ? end : 0;
  m->row = (int16_t)(way & 2 ? from : edge);
  m->col = (int16_t)(way & 2 ? edge : from);
  m->start = (int16_t)(m->row * m->side + m->col);
  m->goal = (int16_t)(!goal ? -1 : way & 2 ? to * m->side + end - edge : (end - edge) * m->side + to);
  m->open[m->row] |= 1u << m->col;
  if (goal) m->open[m->goal / m->side] |= 1u << m->goal % m->side;
  for (int r = 0; r < m->side; r++) m->cells = (int16_t)(m->cells + mn_ones_in(m->open[r]));
  m->cells--;
  m->visited[m->row] |= 1u << m->col;
  m->last = LABYRINTH_NONE;
  labyrinth_observe(m, io);
}

/* Walk, or stay before a wall; was the cell new? */
MN_FN bool labyrinth_walk(labyrinth *m, mn_io *io) {
  const int a = io->action, end = m->side - 1;
  const int row = m->row + (a == LABYRINTH_DOWN) - (a == LABYRINTH_UP), col = m->col + (a == LABYRINTH_RIGHT) - (a == LABYRINTH_LEFT);
  if (row >= 0 && col >= 0 && row <= end && col <= end && labyrinth_is_open(m, row, col)) {
    m->row = (int16_t)row;
    m->col = (int16_t)col;
  }
  const uint32_t bit = 1u << m->col;
  const bool fresh = (m->visited[m->row] & bit) == 0;
  m->visited[m->row] |= bit;
  m->found = (int16_t)(m->found + fresh);
  m->last = (uint8_t)a;
  m->steps++;
  return fresh;
}

/* ---- the picture: a cell is 1 x 1 ---- */

static inline void labyrinth_tile(mn_canvas *c, float x, float y, int cell, bool visited) {
  const uint32_t colors[] = { visited ? 0x35608CFFu : 0x1A2028FFu, 0x6B7A90FF, 0x56B4E9FF, 0x009E73FF };
  mn_canvas_add(c, MN_RECT, colors[cell], x, y, 1, 1);
}

/* The maze, what was visited in blue, start and goal; the agent, and a frame around what it sees. */
static inline void labyrinth_draw(const labyrinth *m, const mn_io *io, mn_canvas *c) {
  const bool centred = io->param[LABYRINTH_CENTRED] == 1;
  for (int i = 0; i < m->side * m->side; i++) {
    const int row = i / m->side, col = i % m->side;
    labyrinth_tile(c, (float)col, (float)row, labyrinth_cell(m, row, col), m->visited[row] >> col & 1);
  }
  const int top = m->row > 0 || centred ? m->row - 1 : 0, left = m->col > 0 || centred ? m->col - 1 : 0;
  mn_canvas_add(c, MN_DISC, 0xE69F00FF, (float)m->col + 0.5f, (float)m->row + 0.5f, 0.35f, 0);
  mn_canvas_add(c, MN_FRAME, 0xF0E442FF, (float)left, (float)top, (float)(m->col + 2 - left), (float)(m->row + 2 - top));
  mn_canvas_data(c, 0.12f);
}

/* Nine cells as they are observed, and an arrow: the last action. */
static inline void labyrinth_see(const mn_io *io, mn_canvas *c) {
  const float turn[] = { 3.1415927f, 0, -1.5707963f, 1.5707963f };
  for (int i = 0; i < LABYRINTH_VIEW; i++)
    labyrinth_tile(c, (float)(i % 3), (float)(i / 3), io->pixels[i] <= LABYRINTH_GOAL ? io->pixels[i] : (int)LABYRINTH_WALL, false);
  mn_canvas_add(c, MN_FRAME, 0xF0E442FF, 0, 0, 3, 3);
  mn_canvas_data(c, 0.05f);
  mn_canvas_add(c, MN_RECT, 0x1A202800, 3, 0, 1.6f, 3);
  if (io->pixels[LABYRINTH_VIEW] >= LABYRINTH_NONE) return;
  mn_canvas_add(c, MN_TRIANGLE, 0xE69F00FF, 3.4f, 1.1f, 0.8f, 0.8f);
  mn_canvas_data(c, turn[io->pixels[LABYRINTH_VIEW]]);
}

/* place: row * side + column; visited: 1 or 0, -1 for walls and beyond. */
#define LABYRINTH_TRUTH "place row column goal found cells visited[361]"
static inline int labyrinth_truth(const labyrinth *m, const mn_io *io, const char **names, float *values) {
  const int16_t facts[] = { (int16_t)(m->row * m->side + m->col), m->row, m->col, m->goal, m->found, m->cells };
  (void)io;
  *names = LABYRINTH_TRUTH;
  for (int i = 0; i < 6; i++) values[i] = facts[i];
  for (int i = 0; i < LABYRINTH_MOST; i++) {
    const int row = i / m->side, col = i % m->side;
    values[6 + i] = row < m->side && labyrinth_is_open(m, row, col) ? (float)(m->visited[row] >> col & 1) : -1;
  }
  return 6 + LABYRINTH_MOST;
}

/* Put somewhere else that was visited: not onto walls. */
#define LABYRINTH_SETTABLE "place=0[0..360]"
MN_FN bool labyrinth_set(labyrinth *m, const mn_io *io, int fact, double value) {
  const int row = (int)value / m->side, col = (int)value % m->side;
  (void)io, (void)fact;
  if (row >= m->side || !(m->open[row] >> col & 1) || (int)value == m->goal) return false;
  if (!(m->visited[row] >> col & 1)) {
    if (m->found + 1 >= m->cells) return false;          /* nothing would be left to find */
    m->visited[row] |= 1u << col;
    m->found++;
  }
  m->row = (int16_t)row;
  m->col = (int16_t)col;
  return true;
}

static inline bool labyrinth_valid(const labyrinth *m, const mn_io *io, bool goal) {
  const int side = labyrinth_side(io->param);
  int open = 0, visited = 0;
  if (m->side != side || m->row < 0 || m->col < 0 || m->row >= side || m->col >= side || m->last > LABYRINTH_NONE) return false;
  for (int r = 0; r < LABYRINTH_SIDE; r++) {
    if ((r >= side ? m->open[r] : m->open[r] >> side) || m->visited[r] & ~m->open[r]) return false;
    open += mn_ones_in(m->open[r]);
    visited += mn_ones_in(m->visited[r]);
  }
  if (m->start < 0 || m->start >= side * side || !labyrinth_is_open(m, m->start / side, m->start % side)) return false;
  if (goal ? m->goal < 0 || m->goal >= side * side || m->goal == m->start || !labyrinth_is_open(m, m->goal / side, m->goal % side) : m->goal != -1)
    return false;
  return m->cells == open - 1 && m->cells >= 1 && m->found == visited - 1 && m->found < m->cells && m->steps >= 0 &&
         (m->steps > 0) == (m->last < LABYRINTH_NONE) && m->visited[m->row] >> m->col & 1 && m->visited[m->start / side] >> m->start % side & 1 &&
         m->row * side + m->col != m->goal;
}
#define LABYRINTH_ABOUT "level     easy 11 x 11    medium 15 x 15    hard 19 x 19; 1,023 steps\n"                                          \
  "centred   0: as POPGym, whose view of 3 x 3 is cut at the border and filled with wall on the right and at the bottom; 1: around the agent\n" \
  "POPGym warns that its labyrinths can be solved without memory: keep them out of a mean over tasks of memory.\n"                          \
  "The last action is part of the observation."
#endif
