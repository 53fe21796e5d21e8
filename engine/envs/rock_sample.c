/* rock_sample.c -- rocks, some of them good: a sensor tells which, the less surely the farther away, and what it told must be remembered.
** RockSample(size, rocks) as pobax has it (Smith and Simmons 2004): the places of the rocks belong to the environment, by `layout`; which
** are good is drawn for each episode, and so is the start.  A check of a rock at distance d is right with a probability of
** (1 + 2^(-d / 20)) / 2.  A sample pays 10 of a good rock, which is then bad, and costs 10 of a bad one; the column on the right is
** the exit, for 10.
** Observation: ones at the row and the column; 1 (good) or -1 (bad) at the rock that was just checked. */
#include "env.h"
#include "worlds/bits.h"
#include <math.h>
#include <string.h>

enum { SIZE, ROCKS, LAYOUT };    /* parameters */
enum { NORTH, EAST, SOUTH, WEST, SAMPLE, CHECK };
enum { MOST_SIZE = 15, MOST_ROCKS = 16, FAR = 2 * (MOST_SIZE - 1) * (MOST_SIZE - 1), NO_ROCK = 255 };

typedef struct rock_sample {
  uint16_t good, drawn;          /* bits: rocks that are good now; that were at first */
  int16_t  got;                  /* the return so far, in tens */
  uint8_t  row, col;
  uint8_t  checked, told;        /* the rock that was just checked, counted from 1; is it said to be good */
} rock_sample;

typedef struct field {           /* shared */
  uint8_t row[MOST_ROCKS], col[MOST_ROCKS], at[MOST_SIZE * MOST_SIZE];   /* at: the rock in a cell, or NO_ROCK */
  float   right[FAR + 1];        /* how probably a check is right, by the square of the distance */
} field;

MN_FN void spaces(const double *param, mn_space *out) {
  out->dtype = MN_F32;
  out->ndim = 1;
  out->shape[0] = 2 * (int)param[SIZE] + (int)param[ROCKS];
  out->n_actions = CHECK + (int)param[ROCKS];
  out->time_limit = 1000;
  out->bytes = sizeof(rock_sample);
  out->shared_bytes = sizeof(field);
}

/* Different cells left of the exit, uniformly: rock i takes one of those that are still free, by word i of the layout's stream. */
static inline void lay(const double *param, uint8_t *row, uint8_t *col) {
  const int n = (int)param[SIZE], rocks = (int)param[ROCKS], cells = n * (n - 1);
  uint8_t free_cell[MOST_SIZE * MOST_SIZE];
  uint32_t word[4] = { 0 };
  for (int i = 0; i < cells; i++) free_cell[i] = (uint8_t)i;
  for (int i = 0; i < rocks; i++) {
    const uint32_t key[6] = { (uint32_t)param[LAYOUT], 0, (uint32_t)i / 4, 0, 0, 0 };
    if (i % 4 == 0) mn_philox(key, word);
    const int k = mn_below(word[i % 4], cells - i), cell = free_cell[k];
    free_cell[k] = free_cell[cells - 1 - i];
    row[i] = (uint8_t)(cell / (n - 1));
    col[i] = (uint8_t)(cell % (n - 1));
  }
}

static int prepare(mn_ctx *mn, const double *param, const char *text, void *shared) {
  field *f = (field *)shared;
  const int n = (int)param[SIZE], rocks = (int)param[ROCKS];
  (void)text;
  if (rocks > n * (n - 1)) return mn_fail(mn, "rocks=%d is more than size=%d has cells (%d)", rocks, n, n * (n - 1));
  lay(param, f->row, f->col);
  for (int i = 0; i < MOST_SIZE * MOST_SIZE; i++) f->at[i] = NO_ROCK;
  for (int i = 0; i < rocks; i++) f->at[f->row[i] * MOST_SIZE + f->col[i]] = (uint8_t)i;
  for (int i = 0; i <= FAR; i++) f->right[i] = (float)(0.5 * (1 + exp2(-sqrt(i) / 20)));
  return 0;
}

MN_FN void observe(rock_sample *m, mn_io *io) {
  const int n = (int)io->param[SIZE], rocks = (int)io->param[ROCKS];
  memset(io->obs, 0, sizeof(float) * (size_t)(2 * n + rocks));
  io->obs[m->row] = 1;
  io->obs[n + m->col] = 1;
  io->obs[2 * n + (m->checked ? m->checked - 1 : 0)] = (float)((m->checked > 0) * (2 * m->told - 1));    /* no branch: nobody foresees checks */
}

MN_FN void reset(rock_sample *m, mn_io *io) {
  const int n = (int)io->param[SIZE], cell = mn_below(io->bits[0], n * (n - 1));
  m->row = (uint8_t)(cell / (n - 1));
  m->col = (uint8_t)(cell % (n - 1));
  m->good = m->drawn = (uint16_t)(io->bits[1] >> (32 - (int)io->param[ROCKS]));
  observe(m, io);
}

MN_FN void step(rock_sample *self, mn_io *io) {
  rock_sample now = *self, *m = &now;            /* a copy: no store through obs can change it */
  const field *f = (const field *)io->shared;
  const int n = (int)io->param[SIZE], a = io->action;
  m->checked = 0;
  m->told = 0;
  m->row = (uint8_t)(m->row - ((a == NORTH) & (m->row > 0)) + ((a == SOUTH) & (m->row < n - 1)));
  m->col = (uint8_t)(m->col - ((a == WEST) & (m->col > 0)) + (a == EAST));
  io->terminated = m->col == n - 1;
  int pays = io->terminated;
  if (a == SAMPLE) {
    const int rock = f->at[m->row * MOST_SIZE + m->col];
    if (rock != NO_ROCK) {
      pays = m->good >> rock & 1 ? 1 : -1;
      m->good = (uint16_t)(m->good & ~(1u << rock));
    }
  }
  if (a >= CHECK) {
    const int rock = a - CHECK, down = f->row[rock] - m->row, right = f->col[rock] - m->col;
    const bool wrong = mn_unit(io->bits[0]) >= f->right[down * down + right * right];
    m->checked = (uint8_t)(rock + 1);
    m->told = (uint8_t)((m->good >> rock & 1) != wrong);
  }
  m->got = (int16_t)(m->got + pays);
  io->reward = (float)(10 * pays);
  if (m->got > 0) io->score = (float)m->got / (float)(1 + mn_ones_in(m->drawn));
  *self = now;
  observe(m, io);
}

/* ---- pictures: a cell is 1 by 1 ---- */

static inline void picture(const double *param, int row, int col, uint32_t known, uint32_t good, int checked, bool told, mn_canvas *c) {
  const int n = (int)param[SIZE], rocks = (int)param[ROCKS];
  uint8_t y[MOST_ROCKS], x[MOST_ROCKS];
  lay(param, y, x);
  for (int i = 0; i < n * n; i++)
    mn_canvas_add(c, MN_RECT, i % n == n - 1 ? 0x0B5B45FF : 0x1B222DFF, (float)(i % n) + 0.03f, (float)(i / n) + 0.03f, 0.94f, 0.94f);
  for (int i = 0; i < rocks; i++) {
    const char name[3] = { (char)(i < 10 ? '0' + i : '1'), (char)(i < 10 ? 0 : '0' + i - 10), 0 };
    const float left = (float)x[i], top = (float)y[i];
    mn_canvas_add(c, MN_DISC, !(known >> i & 1) ? 0x6B7A90FF : good >> i & 1 ? 0x009E73FF : 0x9A4A12FF, left + 0.5f, top + 0.5f, 0.4f, 0.4f);
    mn_canvas_text(c, 0xFFFFFFFF, left + (i < 10 ? 0.39f : 0.29f), top + 0.4f, 0.32f, name);
  }
  const float ax = (float)col + 0.5f, ay = (float)row + 0.5f;
  if (checked) {
    const int rock = checked - 1;
    const uint32_t color = told ? 0x56E0B0FF : 0xE87A33FF;
    mn_canvas_add(c, MN_LINE, color, ax, ay, (float)x[rock] + 0.5f, (float)y[rock] + 0.5f);
    mn_canvas_data(c, 0.06f);
    mn_canvas_add(c, MN_FRAME, color, (float)x[rock] + 0.03f, (float)y[rock] + 0.03f, 0.94f, 0.94f);
    mn_canvas_data(c, 0.07f);
  }
  mn_canvas_add(c, MN_DISC, 0x0F131AFF, ax, ay + 0.18f, 0.25f, 0.25f);
  mn_canvas_add(c, MN_DISC, 0xF0E442FF, ax, ay + 0.18f, 0.2f, 0.2f);
}

static inline void draw(const rock_sample *m, const mn_io *io, mn_canvas *c) {
  picture(io->param, m->row, m->col, 0xFFFF, m->good, m->checked, m->told, c);
}

/* Where the rocks are never changes; of what they are worth only what the sensor tells now. */
static inline void see(const mn_io *io, mn_canvas *c) {
  const int n = (int)io->param[SIZE], rocks = (int)io->param[ROCKS];
  int row = 0, col = 0, checked = 0;
  for (int i = 0; i < n; i++) {
    if (io->obs[i] > 0) row = i;
    if (io->obs[n + i] > 0) col = i;
  }
  for (int i = 0; i < rocks; i++)
    if (io->obs[2 * n + i] != 0) checked = i + 1;
  picture(io->param, row, col, 0, 0, checked, checked && io->obs[2 * n + checked - 1] > 0, c);
}

/* goods: all rocks in a number, rock i in bit i.  good: rock by rock, -1 where there is none. */
static inline int truth(const rock_sample *m, const mn_io *io, const char **names, float *values) {
  *names = "row col goods sampled checked good[16]";
  values[0] = m->row;
  values[1] = m->col;
  values[2] = m->good;
  values[3] = (float)mn_ones_in((uint32_t)(m->drawn & ~m->good));
  values[4] = (float)m->checked - 1;
  for (int i = 0; i < MOST_ROCKS; i++) values[5 + i] = i < (int)io->param[ROCKS] ? (float)(m->good >> i & 1) : -1;
  return 5 + MOST_ROCKS;
}

static inline bool valid(const rock_sample *m, const mn_io *io) {
  const int n = (int)io->param[SIZE], rocks = (int)io->param[ROCKS];
  return m->row < n && m->col < n && !(m->drawn >> rocks) && !(m->good & ~m->drawn) && m->checked <= rocks && m->told <= (m->checked > 0) &&
         m->got >= -1000 && m->got <= 1 + mn_ones_in(m->drawn);
}

/* row, col, goods.  Rocks that are made good count as drawn good. */
static inline bool set(rock_sample *m, const mn_io *io, int fact, double value) {
  const int n = (int)io->param[SIZE];
  if (fact < 2 && value >= n - fact) return false;                /* the exit is no place to be */
  if (fact == 2 && value >= (double)(1 << (int)io->param[ROCKS])) return false;
  if (fact == 0) m->row = (uint8_t)value;
  if (fact == 1) m->col = (uint8_t)value;
  if (fact == 2) {
    m->good = (uint16_t)value;
    m->drawn |= m->good;
  }
  return true;
}

static inline void outcome(const rock_sample *m, uint8_t *reached) {
  reached[0] = m->good == 0;
}

/* A check next to nothing is certain: who walks to each rock, checks it there and samples the good ones gets all, within the time limit.
** That needs no memory: a round trip over all cells, on which each rock is checked where it lies; at the exit all rocks are checked one after
** another, each by what the sensor just said of the one before, and it leaves where none seems good.  Over 20,000 episodes of each. */
static inline void reference(const double *param, const void *shared, mn_reference *out) {
  const double chance[][4] = { { 5, 5, 0.2398, 0.995 }, { 7, 8, 0.1455, 0.996 }, { 11, 11, 0.1001, 0.979 }, { 15, 15, 0.0671, 0.909 } };
  (void)shared;
  for (int i = 0; i < 4; i++)
    if (param[LAYOUT] == 0 && param[SIZE] == chance[i][0] && param[ROCKS] == chance[i][1]) {
      out->chance = chance[i][2];
      out->memoryless = chance[i][3];
      out->episodes = 100000;
    }
  out->best = 1;
  out->best_return = 10 + 5 * param[ROCKS];
}

MN_ENV(rock_sample, .rules = "Some rocks are good: a check shows which, more surely the nearer you are; sample good ones for +10, a bad one costs 10 (a "
                             "sampled rock is bad); the green column on the right is the exit, for +10.",
       .see = see, .reference = reference,
       .version = 0, .doc = "check rocks from afar, remember which are good, sample those, and leave (RockSample)",
       .about = "size, rocks  published: 5 5, 7 8, 11 11, 15 15\n"
                "layout       which arrangement of the rocks: the same in all episodes",
       .params = "size=7[3..15] rocks=8[1..16] layout=0[0..1000000]",
       .actions = "north east south west sample check_0 check_1 check_2 check_3 check_4 check_5 check_6 check_7 check_8 check_9 check_10 check_11 "
                  "check_12 check_13 check_14 check_15",
       .settable = "row=0[0..14] col=0[0..14] goods=0[0..65535]", .to_know = "good=class row=number col=number",
       .observes = "row[size] col[size] check[*]", .outcomes = "all_good_sampled",
       .spaces = spaces, .prepare = prepare, .reset = reset, .step = step, .draw = draw, .truth = truth, .valid = valid,
       .set = set, .observe = observe, .outcome = outcome)
