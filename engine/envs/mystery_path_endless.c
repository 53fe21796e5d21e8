/* mystery_path_endless.c -- a hidden path without an end: find it by falling off it, and go all of it again after each fall, from memory.
** Endless Mystery Path of memory-gym (1.0.2, endless_mystery_path.py): pieces of 7 x 7 cells, each with a path of mystery_path.h from the left to the
** right, and one more cell between them.  The camera follows, so how far along the path the agent is its memory alone holds.
** It dies where it fell before, by a fall to the left of the farthest column it reached, and when stamina brings no cell that is new since its last
** fall.  (memory-gym means to forget places of falls with each new farthest column, but never does.)  Where a path turns back to the left no action
** leads on: 1 piece of 250, of 1,500.  Here the path ends: after MOST pieces.
** Observation: numbers (row, where in its cell, heading, a fall, the path behind the agent in its own column and 6 to the left), or pixels. */
#include <stddef.h>
#include <string.h>
#include "worlds/bits.h"
#include "worlds/memory_gym.h"
#include "worlds/mystery_path.h"

enum { OBSERVATION, PAST, FEEDBACK, STAMINA, FALL, PROGRESS, FULL };             /* parameters */
enum { SIDE = MYSTERY_SIDE, TILE = MYSTERY_TILE, BETWEEN = MYSTERY_CELLS };      /* BETWEEN: the cell behind a piece */
enum { MOST = 16, WIDE = SIDE + 1, FIRST = 3, BEHIND = 5 };                      /* pieces; columns of one; pieces made by a reset; columns seen */
enum { ROW, WITHIN = ROW + SIDE, HEADING = WITHIN + 2, FELL = HEADING + 3, PATH = FELL + 1, NUMBERS = PATH + SIDE * SIDE };
enum { STAY, RIGHT, UP, DOWN };
enum { FACING_UP = 0, FACING_DOWN = 4, FACING_RIGHT = 6, CAMERA = 66 };          /* eighths of a turn; column of the picture where the agent is */

typedef struct path_piece {      /* a bit a cell, row by row; BETWEEN is one of the path, too */
  uint64_t path, paid, fresh;    /* paid: pays no more; fresh: brought stamina since the last fall */
  uint64_t across, on;           /* the cell before one: to its right or below it (on), in its row (across) */
  uint16_t fallen[WIDE];         /* a column each; a bit a row, from the one above the first */
  uint8_t  start, end;           /* rows */
  uint8_t  unused[6];
} path_piece;

typedef struct mystery_path_endless {
  int16_t  x, y;                 /* of the agent, in pixels from the upper left corner of the first piece */
  uint16_t tiles, fails;         /* cells of the path that were reached; falls */
  uint8_t  heading, fell, stamina, farthest;     /* farthest: column */
  uint8_t  pieces, at, cell, unused;             /* at, cell: the piece and cell of the path where it is or was last */
  path_piece piece[MOST];
} mystery_path_endless;

MN_FN void spaces(const double *param, mn_space *out) {
  if (param[OBSERVATION]) {
    out->dtype = MN_U8;
    out->ndim = 3;
    out->shape[0] = out->shape[1] = GYM_PIXELS;
    out->shape[2] = 3;
  } else {
    out->dtype = MN_F32;
    out->ndim = 1;
    out->shape[0] = NUMBERS;
  }
  out->n_actions = 4;
  out->bytes = sizeof(mystery_path_endless);
  out->no_bits = true;
}

static inline size_t used(const void *self) {
  const mystery_path_endless *m = (const mystery_path_endless *)self;
  return offsetof(mystery_path_endless, piece) + m->pieces * sizeof(path_piece);
}

/* ---- the path ---- */

MN_FN void add_piece(mystery_path_endless *m, mn_io *io) {
  path_piece *p = &m->piece[m->pieces];
  uint8_t from[MYSTERY_CELLS];
  p->start = m->pieces ? m->piece[m->pieces - 1].end : (uint8_t)mn_rand_below(io, SIDE);
  p->end = (uint8_t)mn_rand_below(io, SIDE);
  const int first = p->start * SIDE, last = p->end * SIDE + SIDE - 1;
  p->path = mystery_search(io, mystery_raise_walls(io, first, last), first, last, from);
  for (int cell = last; cell != first; cell = from[cell]) {
    const int back = from[cell] - cell;
    if (back == 1 || back == -1) p->across |= mystery_bit(cell);
    if (back > 0) p->on |= mystery_bit(cell);
  }
  p->path |= mystery_bit(BETWEEN);
  m->pieces++;
}

/* The column and row of a cell of the path. */
MN_FN int column_of(int at, int cell) { return at * WIDE + (cell == BETWEEN ? SIDE : cell % SIDE); }
MN_FN int row_of(const path_piece *p, int cell) { return cell == BETWEEN ? p->end : cell / SIDE; }

/* To the cell before; returns false at the start of the path. */
MN_FN bool step_back(const mystery_path_endless *m, int *at, int *cell) {
  const path_piece *p = &m->piece[*at];
  if (*cell == BETWEEN) {
    *cell = p->end * SIDE + SIDE - 1;
  } else if (*cell == p->start * SIDE) {
    if (*at == 0) return false;
    --*at;
    *cell = BETWEEN;
  } else {
    const int far = p->across >> *cell & 1 ? 1 : SIDE;
    *cell += p->on >> *cell & 1 ? far : -far;
  }
  return true;
}

/* ---- observations ---- */

MN_FN int cell_at(int pixel) { return pixel < 0 ? -1 : pixel / TILE; }

MN_FN void paint_tile(uint8_t *pixels, int x, int y) {
  for (int row = 0; row < TILE; row++) {
    gym_span(pixels, x, x + TILE, y + row, 0xD2D2D2);
    if (row > 0 && row < TILE - 1) gym_span(pixels, x + 1, x + TILE - 1, y + row, 0xFFFFFF);
  }
}

/* The path behind the agent, back to the first cell that is BEHIND + 1 columns to its left. */
MN_FN void show_path(const mystery_path_endless *m, mn_io *io) {
  const int column = cell_at(m->x), last = column - 1 - BEHIND > 0 ? column - 1 - BEHIND : 0;
  int at = m->at, cell = m->cell;
  for (int x = column - 1; x >= last && step_back(m, &at, &cell);) {
    const int y = row_of(&m->piece[at], cell);
    x = column_of(at, cell);
    if (io->param[OBSERVATION]) paint_tile(io->pixels, x * TILE - m->x + CAMERA, y * TILE);
    else if (x <= column && x > column - SIDE) io->obs[PATH + y * SIDE + SIDE - 1 + x - column] = 1;
    if (x == last) break;
  }
}

MN_FN void observe(mystery_path_endless *m, mn_io *io) {
  const int row = cell_at(m->y);
  const bool fell = m->fell && io->param[FEEDBACK] == 0;
  if (io->param[OBSERVATION]) {
    memset(io->pixels, 0, 3 * GYM_PIXELS * GYM_PIXELS);
    if (io->param[PAST] == 0) show_path(m, io);
    gym_paint_agent(io->pixels, CAMERA, m->y, m->heading);
    if (fell) gym_paint_cross(io->pixels, CAMERA, m->y);
    return;
  }
  for (int i = 0; i < NUMBERS; i++) io->obs[i] = 0;
  if (row >= 0 && row < SIDE) io->obs[ROW + row] = 1;
  io->obs[WITHIN] = (float)(m->x % TILE - TILE / 2) / (TILE / 2);
  io->obs[WITHIN + 1] = (float)(m->y - row * TILE - TILE / 2) / (TILE / 2);
  io->obs[HEADING + (m->heading == FACING_RIGHT ? 0 : m->heading == FACING_UP ? 1 : 2)] = 1;
  io->obs[FELL] = fell;
  if (io->param[PAST] == 0) show_path(m, io);
}

/* ---- rules ---- */

MN_FN void put_at_start(mystery_path_endless *m) {
  m->x = TILE / 2;
  m->y = (int16_t)(m->piece[0].start * TILE + TILE / 2);
}

MN_FN void reset(mystery_path_endless *m, mn_io *io) {
  for (int i = 0; i < FIRST; i++) add_piece(m, io);
  put_at_start(m);
  m->heading = FACING_RIGHT;
  m->stamina = (uint8_t)io->param[STAMINA];
  m->cell = (uint8_t)(m->piece[0].start * SIDE);
  observe(m, io);
}

/* The cell of the path in that column and row; -1: none. */
MN_FN int cell_of(const path_piece *p, int x, int y) {
  if (x == SIDE) return y == p->end ? BETWEEN : -1;
  return y >= 0 && y < SIDE && p->path >> (y * SIDE + x) & 1 ? y * SIDE + x : -1;
}

MN_FN void step(mystery_path_endless *m, mn_io *io) {
  if (m->fell) {
    put_at_start(m);
  } else if (io->action != STAY) {
    m->x = (int16_t)(m->x + 3 * (io->action == RIGHT));
    m->y = (int16_t)(m->y + 3 * (io->action == DOWN) - 3 * (io->action == UP));
    m->heading = io->action == RIGHT ? FACING_RIGHT : io->action == UP ? FACING_UP : FACING_DOWN;
  }
  const int column = cell_at(m->x), row = cell_at(m->y), at = column / WIDE;
  if (at > m->pieces - 2 && m->pieces < MOST) add_piece(m, io);
  path_piece *p = &m->piece[at];
  const int cell = cell_of(p, column % WIDE, row);
  m->fell = cell < 0;
  if (m->fell) {
    uint16_t *fallen = &p->fallen[column % WIDE];
    io->reward = (float)io->param[FALL];
    io->terminated = column < m->farthest || *fallen >> (row + 1) & 1;
    *fallen |= (uint16_t)(1 << (row + 1));
    m->fails++;
    m->stamina = (uint8_t)io->param[STAMINA];
    for (int i = 0; i < m->pieces; i++) m->piece[i].fresh = 0;
  } else {
    const uint64_t here = mystery_bit(cell);
    m->at = (uint8_t)at;
    m->cell = (uint8_t)cell;
    if (column > 0 || row != m->piece[0].start) {        /* the start pays nothing */
      if (!(p->paid & here)) {
        io->reward = (float)io->param[PROGRESS];
        m->tiles++;
      }
      if (!(p->fresh & here)) m->stamina = (uint8_t)io->param[STAMINA];
      p->paid |= here;
      p->fresh |= here;
    }
    if (column > m->farthest) m->farthest = (uint8_t)column;
  }
  m->stamina--;
  if (m->stamina == 0 || column == MOST * WIDE - 1) io->terminated = true;
  io->score = m->tiles < io->param[FULL] ? (float)m->tiles / (float)io->param[FULL] : 1;
  observe(m, io);
}

/* ---- pictures: a cell is 1 x 1 ---- */

static inline void tile(mn_canvas *c, float x, float y, uint32_t color) { mn_canvas_add(c, MN_RECT, color, x + 0.04f, y + 0.04f, 0.92f, 0.92f); }

static inline void cross(mn_canvas *c, float x, float y, uint32_t color) {
  for (int up = -1; up <= 1; up += 2) {
    mn_canvas_add(c, MN_LINE, color, x - 0.3f, y - 0.3f * (float)up, x + 0.3f, y + 0.3f * (float)up);
    mn_canvas_data(c, 0.12f);
  }
}

static inline void agent(mn_canvas *c, float x, float y, int heading) {
  mn_canvas_add(c, MN_DISC, 0x0F131AFF, x, y, 0.42f, 0.42f);
  mn_canvas_add(c, MN_DISC, 0xF0E442FF, x, y, 0.36f, 0.36f);
  mn_canvas_add(c, MN_TRIANGLE, 0x0F131AFF, x - 0.2f, y - 0.2f, 0.4f, 0.4f);
  mn_canvas_data(c, -1.5707964f - 0.7853982f * (float)heading);
}

/* Fifteen columns about the agent: the path, bright where it has been; crosses where it fell; a line at its farthest column; below, its stamina. */
static inline void draw(const mystery_path_endless *m, const mn_io *io, mn_canvas *c) {
  const int column = cell_at(m->x), left = column > 9 ? column - 9 : 0, last = m->pieces * WIDE;
  mn_canvas_add(c, MN_RECT, 0x00000000, -0.2f, -0.6f, 15.4f, 8.6f);
  for (int x = left; x < left + 15 && x < last; x++) {
    const path_piece *p = &m->piece[x / WIDE];
    for (int y = 0; y < SIDE; y++) {
      const int cell = cell_of(p, x % WIDE, y);
      const bool start = x == 0 && y == p->start;
      tile(c, (float)(x - left), (float)y, start ? 0x0072B2FF : cell < 0 ? 0x1B222DFF : p->paid >> cell & 1 ? 0x4C7FB5FF : 0x35557AFF);
    }
    for (int y = -1; y <= SIDE; y++)
      if (p->fallen[x % WIDE] >> (y + 1) & 1) cross(c, (float)(x - left) + 0.5f, (float)y + 0.5f, 0x8F4A1EFF);
  }
  if (m->farthest >= left) {
    const float x = (float)(m->farthest + 1 - left);
    mn_canvas_add(c, MN_LINE, 0x009E73FF, x, 0, x, SIDE);
    mn_canvas_data(c, 0.06f);
  }
  agent(c, (float)m->x / TILE - (float)left, (float)m->y / TILE, m->heading);
  if (m->fell) cross(c, (float)m->x / TILE - (float)left, (float)m->y / TILE, 0xFF4D3DFF);
  mn_canvas_add(c, MN_RECT, 0x2C3645FF, 0, 7.5f, 15, 0.3f);
  mn_canvas_add(c, MN_RECT, 0x56B4E9FF, 0, 7.5f, 15 * (float)m->stamina / (float)io->param[STAMINA], 0.3f);
}

/* Fog over all cells but the path behind; the agent in the last column but one. */
static inline void see(const mn_io *io, mn_canvas *c) {
  if (io->param[OBSERVATION]) {
    gym_see_pixels(io, c);
    return;
  }
  int row = -1, heading = FACING_RIGHT;
  for (int i = 0; i < SIDE; i++)
    if (io->obs[ROW + i] > 0) row = i;
  if (io->obs[HEADING + 1] > 0) heading = FACING_UP;
  if (io->obs[HEADING + 2] > 0) heading = FACING_DOWN;
  mn_canvas_add(c, MN_RECT, 0x00000000, -0.2f, -0.6f, 8.4f, 8.2f);
  for (int i = 0; i < SIDE * WIDE; i++) {
    const int x = i % WIDE, y = i / WIDE;
    tile(c, (float)x, (float)y, x < SIDE && io->obs[PATH + y * SIDE + x] > 0 ? 0x4C7FB5FF : 0x2C3645FF);
  }
  const float x = SIDE - 0.5f + 0.5f * io->obs[WITHIN], y = (float)(row < 0 ? (io->obs[WITHIN + 1] > 0 ? -1 : SIDE) : row) + 0.5f + 0.5f * io->obs[WITHIN + 1];
  agent(c, x, y, heading);
  if (io->obs[FELL] > 0) cross(c, x, y, 0xFF4D3DFF);
}

/* ---- facts ---- */

/* The action that leads along the path; -1: it fell, or the path turns back. */
static inline int ahead_of(const mystery_path_endless *m) {
  const path_piece *p = &m->piece[m->at];
  const int ways[4] = { 1, -SIDE, SIDE, -1 }, action[4] = { RIGHT, UP, DOWN, -1 };
  if (m->fell) return -1;
  if (m->cell == BETWEEN || m->cell == p->end * SIDE + SIDE - 1) return RIGHT;
  for (int i = 0; i < 4; i++) {
    int at = m->at, cell = m->cell + ways[i];
    const int next = cell;
    if (cell < 0 || cell >= BETWEEN || !(p->path >> cell & 1) || next == p->start * SIDE) continue;
    if (step_back(m, &at, &cell) && cell == m->cell) return action[i];
  }
  return -1;
}

/* x, y: in cells, whole in their middles.  path: of the agent's piece, 7 rows of 8 columns: which cell of the path it is, from 1; 0: beside it. */
static inline int truth(const mystery_path_endless *m, const mn_io *io, const char **names, float *values) {
  const int column = cell_at(m->x);
  const path_piece *p = &m->piece[column / WIDE];
  float *v = values;
  (void)io;
  *names = "x y column heading fell fails tiles stamina farthest pieces ahead path[56]";
  *v++ = (float)(m->x - TILE / 2) / TILE;
  *v++ = (float)(m->y - TILE / 2) / TILE;
  *v++ = (float)column;
  *v++ = m->heading;
  *v++ = m->fell;
  *v++ = m->fails;
  *v++ = m->tiles;
  *v++ = m->stamina;
  *v++ = m->farthest;
  *v++ = m->pieces;
  *v++ = (float)ahead_of(m);
  for (int i = 0; i < SIDE * WIDE; i++) v[i] = 0;
  int at = column / WIDE, cell = BETWEEN;
  for (int n = mn_ones_in(p->path); n > 0; n--) {
    v[row_of(p, cell) * WIDE + column_of(0, cell)] = (float)n;
    step_back(m, &at, &cell);
  }
  return (int)(v - values) + SIDE * WIDE;
}

/* Onto the first cell of the path in another column of the pieces that are there; or other stamina. */
MN_FN bool set(mystery_path_endless *m, const mn_io *io, int fact, double value) {
  const int to = (int)value;
  if (fact == 1) {
    if (to > io->param[STAMINA]) return false;
    m->stamina = (uint8_t)to;
    return true;
  }
  if (to == cell_at(m->x)) return true;
  if (to >= m->pieces * WIDE) return false;
  int at = m->pieces - 1, cell = BETWEEN, found_at = at, found = cell;
  do {
    if (column_of(at, cell) == to) found_at = at, found = cell;
  } while (step_back(m, &at, &cell));
  path_piece *p = &m->piece[found_at];
  m->x = (int16_t)(to * TILE + TILE / 2);
  m->y = (int16_t)(row_of(p, found) * TILE + TILE / 2);
  m->at = (uint8_t)found_at;
  m->cell = (uint8_t)found;
  m->fell = 0;
  if (to > m->farthest) m->farthest = (uint8_t)to;
  return true;
}

/* From the end of each piece's path back to its start, over all of its cells. */
static inline bool valid(const mystery_path_endless *m, const mn_io *io) {
  const uint64_t all = MYSTERY_ALL | mystery_bit(BETWEEN);
  if (m->pieces < FIRST || m->pieces > MOST || m->fell > 1 || m->stamina < 1 || m->stamina > io->param[STAMINA]) return false;
  if (m->x < TILE / 2 || m->y < -TILE || m->y >= (SIDE + 1) * TILE || m->tiles > MOST * (MYSTERY_CELLS + 1)) return false;
  if (m->heading != FACING_UP && m->heading != FACING_DOWN && m->heading != FACING_RIGHT) return false;
  for (int i = 0; i < MOST; i++) {
    const path_piece *p = &m->piece[i];
    const uint64_t none = p->path | p->paid | p->fresh | p->across | p->on;
    if (i >= m->pieces) {
      if (none || p->start || p->end) return false;
      for (int x = 0; x < WIDE; x++)
        if (p->fallen[x]) return false;
      continue;
    }
    if (p->start >= SIDE || p->end >= SIDE || (i > 0 && p->start != m->piece[i - 1].end) || (none & ~all)) return false;
    if ((p->paid | p->fresh) & ~p->path) return false;
    uint64_t walked = mystery_bit(BETWEEN);
    int at = i, cell = BETWEEN;
    while (at == i && step_back(m, &at, &cell) && at == i) {
      if (cell < 0 || cell >= BETWEEN || (walked >> cell & 1)) return false;
      walked |= mystery_bit(cell);
    }
    if (walked != p->path) return false;
    for (int x = 0; x < WIDE; x++) {
      if (p->fallen[x] >> (SIDE + 2)) return false;
      for (int y = -1; y <= SIDE; y++)
        if ((p->fallen[x] >> (y + 1) & 1) && cell_of(p, x, y) >= 0) return false;
    }
  }
  const int column = cell_at(m->x), row = cell_at(m->y), at = column / WIDE;
  if (at >= m->pieces || column >= MOST * WIDE - 1 || m->farthest >= MOST * WIDE - 1 || m->farthest / WIDE >= m->pieces || m->at >= m->pieces) return false;
  if (m->cell > BETWEEN || !(m->piece[m->at].path >> m->cell & 1)) return false;
  const int cell = cell_of(&m->piece[at], column % WIDE, row);
  if (m->fell) return cell < 0 && m->piece[at].fallen[column % WIDE] >> (row + 1) & 1;
  return cell >= 0 && m->at == at && m->cell == cell;
}

/* Random actions reach 1.0655 cells.  Who remembers path and falls, and tries the cells of a column before the next one, reached 0.9996 of 100,
** +- 0.0003, over 1,000 episodes, though some paths turn back, and 176 cells on average.  Without memory: to the right, or with a
** chance of 0.2 up or down and then to the right, not onto the path that is seen: over 6,000 episodes, +- 0.0003. */
static inline void reference(const double *param, const void *shared, mn_reference *out) {
  (void)shared;
  if (param[STAMINA] != 20 || param[FULL] < 50) return;
  out->chance = 1.0655 / param[FULL];
  out->episodes = 100000;
  if (param[FULL] == 100 && param[FEEDBACK] == 0) out->best = 0.9996;
  if (param[PAST] == 0) out->memoryless = 2.20 / param[FULL];
}

MN_ENV(mystery_path_endless, .rules = "A hidden path leads to the right: find it by falling off it, remember all of it, for each fall takes you back to its "
                                      "start; each new cell pays, and falling twice at one place, or before your farthest column, ends it.",
       .see = see, .reference = reference, .used = used, .version = 0,
       .doc = "find a hidden path without an end by falling off it, and walk all of it again from memory (Memory Gym)",
       .about = "show_past_path=no   the path behind the agent is hidden\n"
                "visual_feedback=no  a fall is not shown\n"
                "stamina_level       steps to reach a cell of the path that is new since the last fall\n"
                "score               cells of the path as a share of full, at most 1; no time limit, but the path ends after 128 columns",
       .params = "observation=vector|pixels show_past_path=yes|no visual_feedback=yes|no stamina_level=20[4..255] reward_fall_off=0.0[-1..1] "
                 "reward_path_progress=0.1[0..1] full=100[1..128]",
       .actions = "stay right up down",
       .settable = "column=0[0..126] stamina=20[1..255]", .to_know = "ahead=class column=number farthest=number",
       .observes = "row[7] within=across,down heading=right,up,down fell path[49]",
       .spaces = spaces, .reset = reset, .step = step, .draw = draw, .truth = truth, .valid = valid, .set = set, .observe = observe)
