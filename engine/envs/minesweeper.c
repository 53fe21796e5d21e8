/* minesweeper.c -- view all cells that hold no mine: the memory must hold which were viewed, and the counts seen there.
** MineSweeper of POPGym: 4 x 4 with 2 mines, 6 x 6 with 6, 8 x 8 with 10; as many steps as there are clear cells.
** Observation: the mines of the 3 x 3 cells around the one viewed, itself included.  Which it was is the previous action. */
#include <stdio.h>
#include "worlds/qa_episode.h"
#include "worlds/bits.h"

enum { LEVEL };                  /* parameters */
enum { SIDE = 8, MOST = SIDE * SIDE };

typedef struct minesweeper {
  uint64_t mine, viewed;         /* a bit a cell, row by row, rows of SIDE */
  int16_t side, mines, clear;    /* clear: cells without a mine, not viewed yet */
  int16_t last;                  /* the cell chosen; -1: none */
} minesweeper;

MN_FN int side_of(const double *param) { return 4 + 2 * (int)param[LEVEL]; }
MN_FN int mines_of(const double *param) { return param[LEVEL] == 0 ? 2 : param[LEVEL] == 1 ? 6 : 10; }
MN_FN int bit_of(const minesweeper *m, int cell) { return cell / m->side * SIDE + cell % m->side; }

MN_FN void spaces(const double *param, mn_space *out) {
  const int side = side_of(param), mines = mines_of(param);
  out->dtype = MN_U8;
  out->ndim = 1;
  out->shape[0] = 1;
  out->codes = mines + 1 < 10 ? mines + 1 : 10;
  out->n_actions = side * side;
  out->time_limit = side * side - mines;
  out->bytes = sizeof(minesweeper);
  out->no_bits = true;
}

/* Mines around a cell and on it: what lies beyond the board has none. */
MN_FN int around(const minesweeper *m, int cell) {
  const uint64_t three = ((7ull << cell % m->side) >> 1 & 0xFF) << cell / m->side * SIDE;
  return mn_ones_in(m->mine & (three | three << SIDE | three >> SIDE));
}

MN_FN void observe(minesweeper *m, mn_io *io) { io->pixels[0] = (uint8_t)(m->last < 0 ? 0 : around(m, m->last)); }

MN_FN void reset(minesweeper *m, mn_io *io) {
  m->side = (int16_t)side_of(io->param);
  m->mines = (int16_t)mines_of(io->param);
  m->clear = (int16_t)(m->side * m->side - m->mines);
  m->last = -1;
  for (int left = m->mines, drawn = 0; left > 0; drawn++) {
    const uint64_t bit = 1ull << bit_of(m, mn_below(drawn < 4 ? io->bits[drawn] : mn_rand(io), m->side * m->side));
    left -= (m->mine & bit) == 0;
    m->mine |= bit;
  }
  observe(m, io);
}

MN_FN void step(minesweeper *m, mn_io *io) {
  const uint64_t bit = 1ull << bit_of(m, io->action);
  const float all = (float)(m->side * m->side - m->mines);
  const bool mine = (m->mine & bit) != 0, before = (m->viewed & bit) != 0, fresh = !mine & !before;
  const float pays[3] = { 1 / all, -0.5f / (all - 2), -0.5f - 1 / all };         /* looked up, not branched on: cells are unpredictable */
  m->last = (int16_t)io->action;
  m->viewed |= bit & -(uint64_t)fresh;
  m->clear = (int16_t)(m->clear - fresh);
  io->reward = pays[2 * mine + before];
  io->terminated = mine || m->clear == 0;
  io->score = 1 - (float)m->clear / all;
  observe(m, io);
}

/* ---- the picture: a cell is 1 x 1 ---- */

static inline void tile(mn_canvas *c, int cell, int side, uint32_t color) {
  mn_canvas_add(c, MN_RECT, color, (float)(cell % side) + 0.04f, (float)(cell / side) + 0.04f, 0.92f, 0.92f);
}

static inline void count(mn_canvas *c, float x, float y, float size, int n) {
  static const uint32_t colors[] = { 0x6B7A90FF, 0x56B4E9FF, 0x009E73FF, 0xF0E442FF, 0xE69F00FF, 0xD55E00FF };
  const char text[] = { (char)('0' + n), 0 };
  mn_canvas_text(c, colors[n < 5 ? n : 5], x, y, size, text);
}

/* Viewed cells with their counts, closed cells, mines as discs; a yellow frame around the last. */
static inline void draw(const minesweeper *m, const mn_io *io, mn_canvas *c) {
  (void)io;
  for (int cell = 0; cell < m->side * m->side; cell++) {
    const float x = (float)(cell % m->side), y = (float)(cell / m->side);
    const uint64_t bit = 1ull << bit_of(m, cell);
    tile(c, cell, m->side, m->viewed & bit ? 0x1A2028FF : 0x55657DFF);
    if (m->viewed & bit) count(c, x + 0.3f, y + 0.74f, 0.65f, around(m, cell));
    if (m->mine & bit) mn_canvas_add(c, MN_DISC, 0xD55E00FF, x + 0.5f, y + 0.5f, 0.26f, 0);
    if (cell != m->last) continue;
    mn_canvas_add(c, MN_FRAME, 0xF0E442FF, x, y, 1, 1);
    mn_canvas_data(c, 0.08f);
  }
  const float y = (float)m->side + 0.2f, all = (float)(m->side * m->side - m->mines);
  mn_canvas_add(c, MN_RECT, 0x2C3645FF, 0, y, (float)m->side, 0.25f);
  mn_canvas_add(c, MN_RECT, 0x009E73FF, 0, y, (float)m->side * (1 - (float)m->clear / all), 0.25f);
}

/* A board on which nothing is marked, and the count of the cell chosen. */
static inline void see(const mn_io *io, mn_canvas *c) {
  const int side = side_of(io->param);
  char number[16];
  for (int cell = 0; cell < side * side; cell++) {
    tile(c, cell, side, 0x2C3645FF);
    snprintf(number, sizeof number, "%d", cell);
    mn_canvas_text(c, 0x8FA3BFFF, (float)(cell % side) + 0.2f, (float)(cell / side) + 0.62f, 0.3f, number);
  }
  mn_canvas_add(c, MN_RECT, 0x1A2028FF, (float)side + 0.5f, 0.2f, 1.4f, 1.4f);
  count(c, (float)side + 0.9f, 1.3f, 1, io->pixels[0]);
  mn_canvas_text(c, 0xE8EDF4FF, (float)side + 0.5f, 2.1f, 0.35f, "mines there");
}

/* mines: 1 where one is; known: the count of a viewed cell, else -1.  Row by row; -1 beyond the board. */
static inline int truth(const minesweeper *m, const mn_io *io, const char **names, float *values) {
  (void)io;
  *names = "left last mines[64] known[64]";
  values[0] = m->clear;
  values[1] = m->last;
  for (int i = 0; i < MOST; i++) {
    const bool on = i < m->side * m->side;
    const uint64_t bit = on ? 1ull << bit_of(m, i) : 0;
    values[2 + i] = on ? (m->mine & bit) != 0 : -1.0f;
    values[2 + MOST + i] = m->viewed & bit ? (float)around(m, i) : -1;
  }
  return 2 + 2 * MOST;
}

/* One more cell is viewed, which nobody pays for: no mine, and not the last one that is left. */
MN_FN bool set(minesweeper *m, const mn_io *io, int fact, double value) {
  const int cell = (int)value;
  (void)io, (void)fact;
  if (cell == m->last) return true;
  if (cell < 0 || cell >= m->side * m->side || m->mine >> bit_of(m, cell) & 1) return false;
  const bool fresh = !(m->viewed >> bit_of(m, cell) & 1);
  if (fresh && m->clear == 1) return false;
  m->viewed |= 1ull << bit_of(m, cell);
  m->clear = (int16_t)(m->clear - fresh);
  m->last = (int16_t)cell;
  return true;
}

static inline bool valid(const minesweeper *m, const mn_io *io) {
  const int side = side_of(io->param);
  uint64_t board = 0;
  for (int r = 0; r < side; r++) board |= ((1ull << side) - 1) << r * SIDE;
  if (m->side != side || m->mines != mines_of(io->param) || (m->mine | m->viewed) & ~board || m->mine & m->viewed) return false;
  if (mn_ones_in(m->mine) != m->mines || m->clear < 1 || m->clear != side * side - m->mines - mn_ones_in(m->viewed)) return false;
  return m->last >= -1 && m->last < side * side && (m->last < 0 ? m->viewed == 0 : (m->viewed >> bit_of(m, m->last) & 1) != 0);
}

/* Of random actions, by levels.  Without memory, but with the last action: the best that a network without memory learned in 3M steps of PPO, over
** 10,000 games.  With one: the cell where a mine is least likely, by all counts, the corners first: exactly the best there is of 4 x 4 (all games searched),
** the best that is known of the others, over 8,000 games. */
static inline void reference(const double *param, const void *shared, mn_reference *out) {
  const double chance[] = { 0.3145, 0.1426, 0.0908 }, no_memory[] = { 0.555, 0.296, 0.175 };
  const double safest[] = { 477.0 / 560, 0.7338, 0.7488 };
  (void)shared;
  out->chance = chance[(int)param[LEVEL]];
  out->episodes = 200000;
  out->memoryless = no_memory[(int)param[LEVEL]];
  out->best = safest[(int)param[LEVEL]];
}

MN_ENV(minesweeper, .rules = "View all cells that hold no mine: each pays once, viewing one again costs a little, and a mine ends the game; you "
                             "see how many mines are on and around the cell you chose.", .see = see, .reference = reference,
       .version = 0, .doc = "view all cells but the mines: which were viewed, and what was the count there? (POPGym)",
       .about = "level     easy 4 x 4, 2 mines    medium 6 x 6, 6 mines    hard 8 x 8, 10 mines\n"
                "action    row * side + column\n"
                "The observation is a count, not where: an agent needs previous=action.",
       .params = "level=easy|medium|hard", .actions = "", .settable = "last=0[-1..63]",
       .to_know = "known=class", .observes = "count", .needs = "action",
       .spaces = spaces, .reset = reset, .step = step, .draw = draw, .truth = truth, .valid = valid, .set = set, .observe = observe)
