/* battleship.c -- find ships by shots at a hidden board: the memory must hold which cells were shot at, and where it hit.
** Battleship of POPGym: ships of 2, 3, 3 and 4 cells on a board of 8, 10 or 12 a side; as many shots as there are cells.
** Observation: hit or not; a cell that was hit before is no hit.  Which cell it was is the previous action. */
#include <stdio.h>
#include "worlds/qa_episode.h"
#include "worlds/bits.h"

enum { LEVEL };                  /* parameters */
enum { SIDE = 12, SHIPS = 4, CELLS = 12, MOST = SIDE * SIDE };       /* largest board; cells of all ships */

typedef struct battleship {
  uint16_t ship[SIDE], shot[SIDE];               /* a bit a column */
  int16_t side, hits, shots, last;               /* last: the cell shot at; -1: none */
  uint8_t hit, unused[3];                        /* what is observed */
} battleship;

MN_FN int side_of(const double *param) { return 8 + 2 * (int)param[LEVEL]; }

MN_FN void spaces(const double *param, mn_space *out) {
  const int side = side_of(param);
  out->dtype = MN_U8;
  out->ndim = 1;
  out->shape[0] = 1;
  out->codes = 2;
  out->n_actions = out->time_limit = side * side;
  out->bytes = sizeof(battleship);
  out->no_bits = true;
}

MN_FN void observe(battleship *m, mn_io *io) { io->pixels[0] = m->hit; }

/* A start, an axis and a direction, drawn again until the ship lies on free cells of the board. */
MN_FN void place(battleship *m, mn_io *io, int size, uint32_t bits) {
  for (;; bits = mn_rand(io)) {
    const int drawn = mn_below(bits, 4 * m->side * m->side), cell = drawn >> 2, back = drawn & 1 ? size - 1 : 0;
    const int row = cell / m->side - (drawn & 2 ? back : 0), col = cell % m->side - (drawn & 2 ? 0 : back);
    const int high = drawn & 2 ? size : 1, wide = drawn & 2 ? 1 : size;
    if (row < 0 || col < 0 || row + high > m->side || col + wide > m->side) continue;
    const uint16_t cells = (uint16_t)(((1 << wide) - 1) << col);
    int taken = 0;
    for (int r = row; r < row + high; r++) taken |= m->ship[r] & cells;
    if (taken) continue;
    for (int r = row; r < row + high; r++) m->ship[r] |= cells;
    return;
  }
}

MN_FN void reset(battleship *m, mn_io *io) {
  const int sizes[SHIPS] = { 2, 3, 3, 4 };
  m->side = (int16_t)side_of(io->param);
  m->last = -1;
  for (int i = 0; i < SHIPS; i++) place(m, io, sizes[i], io->bits[i]);
  observe(m, io);
}

MN_FN bool hits_at(const battleship *m, int cell) { return (m->ship[cell / m->side] & ~m->shot[cell / m->side]) >> cell % m->side & 1; }

MN_FN void shoot(battleship *m, int cell) {
  m->hit = hits_at(m, cell);
  m->shot[cell / m->side] |= (uint16_t)(1 << cell % m->side);
  m->hits = (int16_t)(m->hits + m->hit);
  m->shots++;
  m->last = (int16_t)cell;
}

MN_FN void step(battleship *m, mn_io *io) {
  const int all = m->side * m->side;
  shoot(m, io->action);
  io->reward = m->hit ? 1 / (float)CELLS : -1 / (float)(all - CELLS);
  io->terminated = m->hits == CELLS;
  const float lost = (float)(m->shots - m->hits) / (float)(all - CELLS), got = (float)m->hits / CELLS;
  io->score = got > lost - 1 ? 0.5f + 0.5f * (got - lost) : 0;
  observe(m, io);
}

/* ---- the picture: a cell is 1 x 1 ---- */

static inline void tile(mn_canvas *c, int cell, int side, uint32_t color) {
  mn_canvas_add(c, MN_RECT, color, (float)(cell % side) + 0.04f, (float)(cell / side) + 0.04f, 0.92f, 0.92f);
}

/* Water, ships; a red disc where one was hit, a ring where a shot missed; a yellow frame around the last. */
static inline void draw(const battleship *m, const mn_io *io, mn_canvas *c) {
  (void)io;
  for (int cell = 0; cell < m->side * m->side; cell++) {
    const float x = (float)(cell % m->side), y = (float)(cell / m->side);
    const bool ship = m->ship[cell / m->side] >> cell % m->side & 1, shot = m->shot[cell / m->side] >> cell % m->side & 1;
    tile(c, cell, m->side, ship ? 0x8FA3BFFF : 0x17344FFF);
    if (shot) mn_canvas_add(c, MN_DISC, ship ? 0xD55E00FF : 0xE8EDF4A0, x + 0.5f, y + 0.5f, ship ? 0.34f : 0.14f, 0);
    if (cell != m->last) continue;
    mn_canvas_add(c, MN_FRAME, 0xF0E442FF, x, y, 1, 1);
    mn_canvas_data(c, 0.08f);
  }
  const float y = (float)m->side + 0.2f, unit = (float)m->side / (float)(m->side * m->side);
  mn_canvas_add(c, MN_RECT, 0x2C3645FF, 0, y, (float)m->side, 0.3f);
  mn_canvas_add(c, MN_RECT, 0x9A4A12FF, 0, y, unit * (float)m->shots, 0.3f);
  mn_canvas_add(c, MN_RECT, 0xD55E00FF, 0, y, unit * (float)m->hits, 0.3f);
}

/* A board on which nothing is marked, and a lamp: red after a hit. */
static inline void see(const mn_io *io, mn_canvas *c) {
  const int side = side_of(io->param);
  char number[16];
  for (int cell = 0; cell < side * side; cell++) {
    tile(c, cell, side, 0x17344FFF);
    snprintf(number, sizeof number, "%d", cell);
    mn_canvas_text(c, 0x8FA3BFFF, (float)(cell % side) + 0.2f, (float)(cell / side) + 0.62f, 0.3f, number);
  }
  mn_canvas_add(c, MN_DISC, io->pixels[0] ? 0xD55E00FF : 0x2C3645FF, (float)side + 1.2f, 0.8f, 0.6f, 0);
  mn_canvas_text(c, 0xE8EDF4FF, (float)side + 0.75f, 2.1f, 0.5f, io->pixels[0] ? "hit" : "no hit");
}

/* ships: 1 where one lies; known: -1 not shot at, 0 missed, 1 hit.  Row by row; -1 beyond the board. */
static inline int truth(const battleship *m, const mn_io *io, const char **names, float *values) {
  (void)io;
  *names = "hits shots last ships[144] known[144]";
  values[0] = m->hits;
  values[1] = m->shots;
  values[2] = m->last;
  for (int i = 0; i < MOST; i++) {
    const bool on = i < m->side * m->side, ship = on && m->ship[i / m->side] >> i % m->side & 1;
    values[3 + i] = on ? ship : -1;
    values[3 + MOST + i] = on && m->shot[i / m->side] >> i % m->side & 1 ? ship : -1;
  }
  return 3 + 2 * MOST;
}

/* One more shot, which nobody pays for; none can be taken back, and the last ship cannot sink by it. */
MN_FN bool set(battleship *m, const mn_io *io, int fact, double value) {
  const int cell = (int)value;
  (void)io, (void)fact;
  if (cell == m->last) return true;
  if (cell < 0 || cell >= m->side * m->side || (m->hits == CELLS - 1 && hits_at(m, cell))) return false;
  shoot(m, cell);
  return true;
}

static inline bool valid(const battleship *m, const mn_io *io) {
  const int side = side_of(io->param);
  int ships = 0, hits = 0, shot = 0;
  if (m->side != side) return false;
  for (int r = 0; r < SIDE; r++) {
    if ((m->ship[r] | m->shot[r]) >> (r < side ? side : 0)) return false;
    ships += mn_ones_in(m->ship[r]);
    shot += mn_ones_in(m->shot[r]);
    hits += mn_ones_in(m->ship[r] & m->shot[r]);
  }
  if (ships != CELLS || hits != m->hits || hits >= CELLS || m->shots < shot || m->shots > 1 << 14 || (shot > 0) != (m->shots > 0)) return false;
  if (m->last < 0) return m->last == -1 && m->shots == 0 && m->hit == 0;
  return m->last < side * side && m->shot[m->last / side] >> m->last % side & 1 && m->hit <= (m->ship[m->last / side] >> m->last % side & 1);
}

/* As many random shots as cells reach each cell with this chance.  Without memory: one cell after the other, by the last action alone, over
** 100,000 boards; nothing better is known.  With one: the cell where a ship is likeliest, by all hits and misses, over 1,000 boards. */
static inline void reference(const double *param, const void *shared, mn_reference *out) {
  const double rows[] = { 0.5839, 0.5885, 0.5896 }, likeliest[] = { 0.8197, 0.8237, 0.8299 };
  const int cells = side_of(param) * side_of(param);
  double missed = 1;
  (void)shared;
  for (int i = 0; i < cells; i++) missed *= 1 - 1 / (double)cells;
  const double lost = (cells - CELLS * (1 - missed)) / (cells - CELLS);
  out->chance = 0.5 + 0.5 * (1 - missed - lost);
  out->memoryless = rows[(int)param[LEVEL]];
  out->best = likeliest[(int)param[LEVEL]];
  out->best_return = 2 * out->best - 1;
}

MN_ENV(battleship, .rules = "Four ships lie hidden on the board: shoot at one cell after another; the first hit of each cell pays, every other shot "
                            "costs, and only the lamp says whether the last one hit.", .see = see, .reference = reference,
       .version = 0, .doc = "sink hidden ships: which cells were shot at, and where was a hit? (POPGym)",
       .about = "level     easy 8 x 8    medium 10 x 10    hard 12 x 12; as many shots as cells\n"
                "score     (return + 1) / 2: hits / 12, less the share of the water that was shot at\n"
                "action    row * side + column\n"
                "The observation says hit or not, not where: an agent needs previous=action.",
       .params = "level=easy|medium|hard", .actions = "", .settable = "last=0[-1..143]",
       .to_know = "known=class", .observes = "hit", .needs = "action",
       .spaces = spaces, .reset = reset, .step = step, .draw = draw, .truth = truth, .valid = valid, .set = set, .observe = observe)
