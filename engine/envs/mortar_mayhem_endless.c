/* mortar_mayhem_endless.c -- a list of commands that grows by one: each is shown once, all are executed from the first, again and again.
** Endless Mortar Mayhem of memory-gym (1.0.2, endless_mortar_mayhem.py).  A command moves the target tile by at most one, round the edges; 18 steps
** later the agent must stand on it, for 0.1, or the episode ends; the other tiles burn for 6 steps.  Actions: its two, across and along, as nine.
** Observation: numbers (the tile and where in it, heading, the command that is shown, whether tiles burn and which is safe), or its pixels.
** memory-gym draws the agent where the previous episode left it while the first command is shown; here it is where it is.  And the list ends: at MOST. */
#include <string.h>
#include "worlds/memory_gym.h"

enum { OBSERVATION, ALLOWED, SHOW, BLANK, DELAY, BURN, FEEDBACK, FULL };                        /* parameters */
enum { SIDE = 6, TILE = 14, MOST = 64, COMMANDS = 9, OVER = 3 };                                /* OVER: pixels beyond the edge, before it comes back */
enum { COLUMN, ROW = COLUMN + SIDE, WITHIN = ROW + SIDE, HEADING = WITHIN + 2, COMMAND = HEADING + 8, BURNS = COMMAND + COMMANDS,
       SAFE_COLUMN, SAFE_ROW = SAFE_COLUMN + SIDE, NUMBERS = SAFE_ROW + SIDE };

typedef struct mortar_mayhem_endless {
  int8_t  x, y;                  /* of the agent, in pixels */
  uint8_t heading;               /* eighths of a turn, from up to the left */
  uint8_t target_x, target_y;    /* a tile */
  uint8_t count, next;           /* commands there are; the one to execute, or while tiles burn the one after it */
  uint8_t shown;                 /* 1 + the command that is observed; 0: none */
  uint8_t left;                  /* steps for which the rest of the showing takes */
  uint8_t burns;                 /* all tiles but the target */
  uint8_t waited, burned;        /* steps towards the check; of burning */
  uint8_t command[MOST];
} mortar_mayhem_endless;

/* -1, 0 or 1: the n-th of a table of numbers one greater, two bits each.  Shifts are lanes of a vector, looking up is not. */
MN_FN int sign_at(uint32_t table, int n) { return (int)(table >> 2 * n & 3) - 1; }
MN_FN int command_across(int command) { return sign_at(0x2946, command); }
MN_FN int command_down(int command) { return sign_at(0x8919, command); }

/* From 0 to MOST * (MOST + 1) / 2: executed in this episode. */
MN_FN int executed(int count, int next) { return count * (count - 1) / 2 + next; }

/* From -OVER to GYM_PIXELS + OVER this is their quotient, rounded down; -1 and SIDE: beyond the edge. */
MN_FN int tile_of(int pixel) { return pixel * ((1 << 16) / TILE + 1) >> 16; }

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
  out->n_actions = 9;
  out->bytes = sizeof(mortar_mayhem_endless);
  out->no_bits = true;
}

/* ---- observations ---- */

/* White where a bit is set, the lowest on the left.  Slanting arrows are off the middle, as memory-gym turns them. */
MN_FN void paint_command(uint8_t *pixels, int command) {
  const uint32_t glyph[COMMANDS][24] = {
    { 0xc00, 0x1800, 0x3000, 0x6000, 0xc000, 0x18000, 0x30000, 0x60000, 0xc0000, 0x180000, 0x3fffff, 0x1fffff, 0xc0000, 0x60000, 0x30000,
      0x18000, 0xc000, 0x6000, 0x3000, 0x1800, 0xc00, 0, 0, 0 },
    { 0xc00, 0xc00, 0xc00, 0xc00, 0xc00, 0xc00, 0xc00, 0xc00, 0xc00, 0xc00, 0x200c02, 0x300c06, 0x180c0c, 0xc0c18, 0x60c30, 0x30c60,
      0x18cc0, 0xcd80, 0x6f00, 0x3e00, 0x1c00, 0x800, 0, 0 },
    { 0, 0xc00, 0x600, 0x300, 0x180, 0xc0, 0x60, 0x30, 0x18, 0xc, 0x3ffffe, 0x3fffff, 0x6, 0xc, 0x18, 0x30, 0x60, 0xc0, 0x180, 0x300, 0x600,
      0xc00, 0, 0 },
    { 0x400, 0xe00, 0x1f00, 0x3d80, 0x6cc0, 0xcc60, 0x18c30, 0x30c18, 0x60c0c, 0xc0c06, 0x180c03, 0x100c01, 0xc00, 0xc00, 0xc00, 0xc00,
      0xc00, 0xc00, 0xc00, 0xc00, 0xc00, 0xc00, 0, 0 },
    { 0x1f80, 0x7fe0, 0xf0f0, 0x1c038, 0x3000c, 0x7000e, 0x60006, 0xe0007, 0xc0003, 0xfffff, 0xfffff, 0xc0003, 0xe0007, 0x60006, 0x7000e,
      0x3000c, 0x1c038, 0xf0f0, 0x7fe0, 0x1f80, 0, 0, 0, 0 },
    { 0, 0, 0, 0, 0, 0, 0, 0x400100, 0x800380, 0xc00700, 0x400e00, 0xc01c00, 0xc03800, 0x407000, 0xc0e000, 0x81c000, 0xc38000, 0x470000,
      0xce0000, 0xdc0000, 0x780000, 0xfc9900, 0xffff00, 0 },
    { 0, 0, 0, 0, 0, 0, 0, 0x6ddb00, 0x7f7e80, 0x700000, 0x780000, 0x7c0000, 0x6e0000, 0x470000, 0x438000, 0x61c000, 0x40e000, 0x407000,
      0x603800, 0x601c00, 0x400e00, 0x400700, 0x600380, 0x100 },
    { 0, 0, 0, 0, 0, 0, 0, 0x400000, 0xe00300, 0x700300, 0x380100, 0x1c0300, 0xe0300, 0x70100, 0x38100, 0x1c300, 0xe100, 0x7100, 0x3b00,
      0x1f00, 0xf00, 0x700, 0xff7f00, 0x6ddb00 },
    { 0, 0, 0, 0, 0, 0, 0, 0, 0x7fff80, 0x6c9f80, 0xf00, 0x1d80, 0x3980, 0x7100, 0xe180, 0x1c080, 0x38180, 0x70100, 0xe0180, 0x1c0180,
      0x380100, 0x700180, 0xe00180, 0x400100 },
  };
  for (int y = 0; y < 24; y++)
    for (int x = 0; x < 25; x++)
      if (glyph[command][y] >> x & 1) gym_span(pixels, 31 + x, 32 + x, 31 + y, 0xFFFFFF);
}

MN_FN void paint(const mortar_mayhem_endless *m, const mn_io *io) {
  const bool red = m->burns && io->param[FEEDBACK] == 0;
  for (int i = 0; i < SIDE * SIDE; i++) {
    const int x = i % SIDE * TILE, y = i / SIDE * TILE;
    const bool hot = red && (i % SIDE != m->target_x || i / SIDE != m->target_y);
    for (int row = 0; row < TILE; row++) {
      const bool rim = row == 0 || row == TILE - 1;
      gym_span(io->pixels, x, x + TILE, y + row, hot ? 0x701824 : 0x1D3C6B);
      if (!rim) gym_span(io->pixels, x + 1, x + TILE - 1, y + row, hot ? 0x51121A : 0x152B4D);
    }
  }
  gym_paint_agent(io->pixels, m->x, m->y, m->heading);
  if (m->shown) paint_command(io->pixels, m->shown - 1);
}

/* What becomes numbers: which of them are 1, a bit each, from the first on; how far from the middle of its tile it is, pixels. */
typedef struct sight {
  uint32_t ones[2];
  int across, down;
} sight;

MN_FN uint32_t bit_if(int yes, int i) { return (1u << (i & 31)) & -(uint32_t)yes; }

/* shown: 1 + the command, or 0.  hot: tiles burn, and that is seen. */
MN_FN sight sight_of(int x, int y, int heading, int shown, int hot, int target_x, int target_y) {
  sight s;
  const int column = tile_of(x), row = tile_of(y);
  s.ones[0] = bit_if((column >= 0) & (column < SIDE), COLUMN + column) | bit_if((row >= 0) & (row < SIDE), ROW + row) |
              bit_if(1, HEADING + heading) | bit_if(shown > 0, COMMAND + shown - 1) | bit_if(hot, BURNS);
  s.ones[1] = bit_if(hot, SAFE_COLUMN + target_x) | bit_if(hot, SAFE_ROW + target_y);
  s.across = x - column * TILE - TILE / 2;
  s.down = y - row * TILE - TILE / 2;
  return s;
}

MN_FN float part_of_tile(int pixels) { return (float)pixels / (TILE / 2); }

/* Two vectors and a third that begins within the second: a rest of 12 would be written one by one. */
MN_FN void write_numbers(uint32_t first, uint32_t rest, float across, float down, float *obs) {
  enum { WIDE = 16, FROM = NUMBERS - WIDE };
  const uint32_t last = first >> FROM | rest << (32 - FROM);
#pragma omp simd
  for (int i = 0; i < 2 * WIDE; i++) obs[i] = first & 1u << i ? 1 : 0;
#pragma omp simd
  for (int i = 0; i < WIDE; i++) obs[FROM + i] = last & 1u << i ? 1 : 0;
  obs[WITHIN] = across;
  obs[WITHIN + 1] = down;
}

MN_FN void observe(mortar_mayhem_endless *m, mn_io *io) {
  if (io->param[OBSERVATION]) {
    paint(m, io);
    return;
  }
  const sight s = sight_of(m->x, m->y, m->heading, m->shown, m->burns && io->param[FEEDBACK] == 0, m->target_x, m->target_y);
  write_numbers(s.ones[0], s.ones[1], part_of_tile(s.across), part_of_tile(s.down), io->obs);
}

/* ---- rules ---- */

/* All of it but the list, as numbers that can be lanes of vectors. */
typedef struct moment {
  int x, y, heading, target_x, target_y, count, next, shown, left, burns, waited, burned;
} moment;
enum { WORDS = 3 };              /* that it is in an environment, before the list; the lowest byte comes first */

MN_FN int byte_of(uint32_t word, int i) { return (int)(word >> 8 * i & 0xFF); }
MN_FN int with_sign(int byte) { return (byte ^ 0x80) - 0x80; }
MN_FN moment read_words(uint32_t a, uint32_t b, uint32_t c) {
  moment m;
  m.x = with_sign(byte_of(a, 0));
  m.y = with_sign(byte_of(a, 1));
  m.heading = byte_of(a, 2);
  m.target_x = byte_of(a, 3);
  m.target_y = byte_of(b, 0);
  m.count = byte_of(b, 1);
  m.next = byte_of(b, 2);
  m.shown = byte_of(b, 3);
  m.left = byte_of(c, 0);
  m.burns = byte_of(c, 1);
  m.waited = byte_of(c, 2);
  m.burned = byte_of(c, 3);
  return m;
}

MN_FN uint32_t word_of(int a, int b, int c, int d) {
  return (uint32_t)(a & 0xFF) | (uint32_t)(b & 0xFF) << 8 | (uint32_t)c << 16 | (uint32_t)d << 24;
}
MN_FN void write_words(const moment *m, uint32_t *a, uint32_t *b, uint32_t *c) {
  *a = word_of(m->x, m->y, m->heading, m->target_x);
  *b = word_of(m->target_y, m->count, m->next, m->shown);
  *c = word_of(m->left, m->burns, m->waited, m->burned);
}

typedef struct rule { int show, blank, delay, burn, full; bool burns_seen; } rule;

MN_FN rule rule_of(const double *param) {
  rule r;
  r.show = (int)param[SHOW];
  r.blank = (int)param[BLANK];
  r.delay = (int)param[DELAY];
  r.burn = (int)param[BURN];
  r.full = (int)param[FULL];
  r.burns_seen = param[FEEDBACK] == 0;
  return r;
}

/* yes is 0 or 1.  Made of bits, since a compiler makes branches of a choice between numbers. */
MN_FN int choose(int yes, int a, int b) { return b ^ ((a ^ b) & -yes); }

/* Beyond the edge it comes back on the other side. */
MN_FN int wrapped(int to, int low, int high) { return choose(to > high, low, choose(to < low, high, to)); }

MN_FN void aim(moment *m, int command, int now) {
  m->target_x = choose(now, wrapped(m->target_x + command_across(command), 0, SIDE - 1), m->target_x);
  m->target_y = choose(now, wrapped(m->target_y + command_down(command), 0, SIDE - 1), m->target_y);
}

/* A new command is shown, or the blank after it. */
MN_FN void show(moment *m, const rule *r, int newest, int now) {
  m->shown = choose(now & (m->left > r->blank), 1 + newest, 0);
  m->left -= now;
}

/* What a step comes to.  adds: one more command, number count - 1, which is still to be drawn and shown from the next step on. */
typedef struct result {
  int hit, ends, adds, done;     /* done: commands executed in this episode */
} result;

MN_FN float score_of(int done, const rule *r) { return done < r->full ? (float)done / (float)r->full : 1; }

/* One step, without branches.  newest: the last command of the list; due: number m->next of it.  While a command is shown the agent watches, and
** cannot move.  Else it goes 3 pixels, slanting 2 along each axis (pygame rounds 2.12), and then there is the check, or the fire. */
MN_FN result play(moment *m, const rule *r, int action, int newest, int due) {
  result o;
  const int acts = m->left == 0, act = action & -acts, last = m->count == MOST;
  const int dx = sign_at(0x2A015, act), dy = sign_at(0x21861, act), pixels = 3 - (dx & dy & 1);
  show(m, r, newest, 1 - acts);
  m->heading = choose(act != 0, 0x5F99500 >> 3 * act & 7, m->heading);
  m->x = wrapped(m->x + pixels * dx, -OVER, GYM_PIXELS + OVER);
  m->y = wrapped(m->y + pixels * dy, -OVER, GYM_PIXELS + OVER);
  const int there = (tile_of(m->x) == m->target_x) & (tile_of(m->y) == m->target_y);
  const int check = acts & (1 - m->burns) & (m->waited == r->delay), hit = check & there;
  m->next += hit;
  o.done = executed(m->count, m->next);
  const int all = hit & (m->next == m->count), adds = all & (1 - last);
  m->count += adds;
  m->next &= adds - 1;
  m->left = choose(adds, r->show + r->blank, m->left);
  const int burns = acts & (check | m->burns), out = burns & (m->burned == r->burn);
  m->waited = choose(check, 1, m->waited + (acts & (1 - burns)));
  m->burns = (m->burns | check) & (1 - out);
  m->burned = (m->burned + burns) & (out - 1);
  aim(m, due, out);
  o.hit = hit;
  o.ends = (all & last) | (burns & (1 - out) & (1 - there));
  o.adds = adds;
  return o;
}

MN_FN void add_command(mortar_mayhem_endless *m, int number, const double *param, uint32_t bits) {
  m->command[number] = (uint8_t)mn_below(bits, (int)param[ALLOWED]);
}
/* The bits of most steps are not made: they want none. */
MN_FN void draw_command(mortar_mayhem_endless *m, const mn_io *io) {
  uint32_t bits[4];
  mn_philox(io->key, bits);
  add_command(m, m->count - 1, io->param, bits[0]);
}

MN_FN void reset(mortar_mayhem_endless *self, mn_io *io) {
  const rule r = rule_of(io->param);
  const int tile = mn_below(io->bits[0], SIDE * SIDE);
  uint32_t word[WORDS];
  moment m = read_words(0, 0, 0);
  m.target_x = tile / SIDE;
  m.target_y = tile % SIDE;
  m.x = m.target_x * TILE + TILE / 2 - 2 + mn_below(io->bits[1], 4);
  m.y = m.target_y * TILE + TILE / 2 - 2 + mn_below(io->bits[2], 4);
  add_command(self, 0, io->param, io->bits[3]);
  m.count = 1;
  m.left = r.show + r.blank;
  aim(&m, self->command[0], true);
  show(&m, &r, self->command[0], true);
  write_words(&m, &word[0], &word[1], &word[2]);
  memcpy(self, word, sizeof word);
  observe(self, io);
}

MN_FN void step(mortar_mayhem_endless *self, mn_io *io) {
  const rule r = rule_of(io->param);
  uint32_t word[WORDS];
  memcpy(word, self, sizeof word);
  moment m = read_words(word[0], word[1], word[2]);
  const result o = play(&m, &r, io->action, self->command[m.count - 1], self->command[m.next]);
  write_words(&m, &word[0], &word[1], &word[2]);
  memcpy(self, word, sizeof word);
  if (o.adds) draw_command(self, io);
  io->reward = o.hit ? 0.1f : 0;
  io->terminated = o.ends;
  io->score = score_of(o.done, &r);
  observe(self, io);
}

MN_FN mortar_mayhem_endless *at(const mn_batch *b, int i) { return (mortar_mayhem_endless *)(void *)(b->self + (size_t)i * (size_t)b->stride); }

/* Side by side; only what goes to and from each environment is one after another. */
static inline void steps(const mn_batch *b) {
  enum { N = MN_ENVS_PER_BATCH };
  const rule r = rule_of(b->param);
  const bool pixels = b->param[OBSERVATION] != 0;
  uint32_t word[WORDS][N], first[N], rest[N];
  int newest[N], due[N], hit[N], ends[N], adds[N], done[N], across[N], down[N];
  float part[2][N];
  for (int i = 0; i < b->n; i++) {
    const mortar_mayhem_endless *m = at(b, i);
    for (int w = 0; w < WORDS; w++) memcpy(&word[w][i], (const char *)m + 4 * w, 4);
    newest[i] = m->command[m->count - 1];
    due[i] = m->command[m->next];
  }
#pragma omp simd
  for (int i = 0; i < b->n; i++) {
    moment m = read_words(word[0][i], word[1][i], word[2][i]);
    const result o = play(&m, &r, b->action[i], newest[i], due[i]);
    write_words(&m, &word[0][i], &word[1][i], &word[2][i]);
    hit[i] = o.hit, ends[i] = o.ends, adds[i] = o.adds, done[i] = o.done;
    const sight s = sight_of(m.x, m.y, m.heading, m.shown, m.burns & r.burns_seen, m.target_x, m.target_y);
    first[i] = s.ones[0], rest[i] = s.ones[1], across[i] = s.across, down[i] = s.down;
  }
#pragma omp simd
  for (int i = 0; i < b->n; i++) {
    part[0][i] = part_of_tile(across[i]);
    part[1][i] = part_of_tile(down[i]);
    b->reward[i] = hit[i] ? 0.1f : 0;
    b->score[i] = score_of(done[i], &r);
  }
  for (int i = 0; i < b->n; i++) b->terminated[i] = (uint8_t)ends[i];
  if (b->rare) memset(b->rare, 0, (size_t)b->n);
  for (int i = 0; i < b->n; i++) {
    mortar_mayhem_endless *m = at(b, i);
    for (int w = 0; w < WORDS; w++) memcpy((char *)m + 4 * w, &word[w][i], 4);
    if (adds[i] | pixels) {
      mn_io io = mn_io_of(b, i);
      if (adds[i]) draw_command(m, &io);
      if (pixels) paint(m, &io);
    }
    if (!pixels) write_numbers(first[i], rest[i], part[0][i], part[1][i], (float *)(void *)(b->obs + (size_t)i * b->obs_bytes));
  }
}

/* ---- pictures: a tile is 1 x 1 ---- */

/* An arrow of length 1 about its middle; a ring: stay. */
static inline void arrow(mn_canvas *c, int command, float x, float y, float size, uint32_t color) {
  const float dx = (float)command_across(command), dy = (float)command_down(command), half = 0.4f * size * (dx * dy != 0 ? 0.7f : 1);
  if (dx == 0 && dy == 0) {
    mn_canvas_add(c, MN_DISC, color, x, y, 0.3f * size, 0.3f * size);
    return;
  }
  mn_canvas_add(c, MN_LINE, color, x - half * dx, y - half * dy, x + half * dx, y + half * dy);
  mn_canvas_data(c, 0.12f * size);
  for (int side = -1; side <= 1; side += 2) {            /* the barbs: back along the arrow, turned by 45 degrees */
    const float back = 0.35f * size * (dx * dy != 0 ? 0.7f : 1), turn = (float)side;
    mn_canvas_add(c, MN_LINE, color, x + half * dx, y + half * dy, x + half * dx - back * (dx - turn * dy), y + half * dy - back * (dy + turn * dx));
    mn_canvas_data(c, 0.12f * size);
  }
}

static inline void board(mn_canvas *c, bool hot, int safe_x, int safe_y) {
  for (int i = 0; i < SIDE * SIDE; i++) {
    const bool safe = i % SIDE == safe_x && i / SIDE == safe_y;
    mn_canvas_add(c, MN_RECT, hot && !safe ? 0x70222EFF : 0x1D3C6BFF, (float)(i % SIDE) + 0.04f, (float)(i / SIDE) + 0.04f, 0.92f, 0.92f);
  }
}

static inline void agent(mn_canvas *c, float x, float y, int heading) {
  mn_canvas_add(c, MN_DISC, 0x0F131AFF, x, y, 0.42f, 0.42f);
  mn_canvas_add(c, MN_DISC, 0xF0E442FF, x, y, 0.36f, 0.36f);
  mn_canvas_add(c, MN_TRIANGLE, 0x0F131AFF, x - 0.2f, y - 0.2f, 0.4f, 0.4f);
  mn_canvas_data(c, -1.5707964f - 0.7853982f * (float)heading);
}

/* The board, its target framed; beside it the list: white what is done, yellow what is next, grey what is to come; below, how near the check is. */
static inline void draw(const mortar_mayhem_endless *m, const mn_io *io, mn_canvas *c) {
  const float near = m->burns ? 1 : (float)m->waited / (float)io->param[DELAY];
  const int due = m->burns && m->left == 0 && m->next > 0 ? m->next - 1 : m->next;
  mn_canvas_add(c, MN_RECT, 0x00000000, -0.3f, -0.3f, 11.2f, 7.2f);
  board(c, m->burns, m->target_x, m->target_y);
  mn_canvas_add(c, MN_FRAME, 0x009E73FF, (float)m->target_x + 0.04f, (float)m->target_y + 0.04f, 0.92f, 0.92f);
  mn_canvas_data(c, 0.1f);
  agent(c, (float)m->x / TILE, (float)m->y / TILE, m->heading);
  if (m->shown) arrow(c, m->shown - 1, 3, 3, 2, 0xFFFFFFFF);
  for (int i = 0; i < m->count; i++)
    arrow(c, m->command[i], 6.8f + 0.55f * (float)(i % 8), 0.4f + 0.75f * (float)(i / 8), 0.5f, i < due ? 0xE8EDF4FF : i == due ? 0xF0E442FF : 0x6B7A90FF);
  mn_canvas_add(c, MN_RECT, 0x2C3645FF, 0, 6.2f, SIDE, 0.3f);
  mn_canvas_add(c, MN_RECT, m->burns ? 0xD55E00FF : 0x56B4E9FF, 0, 6.2f, SIDE * near, 0.3f);
}

static inline int pointed(const float *obs) {
  for (int i = 0; i < SIDE; i++)
    if (obs[i] > 0) return i;
  return -1;
}

static inline void see(const mn_io *io, mn_canvas *c) {
  if (io->param[OBSERVATION]) {
    gym_see_pixels(io, c);
    return;
  }
  const int column = pointed(io->obs + COLUMN), row = pointed(io->obs + ROW);
  int heading = 0;
  for (int i = 0; i < 8; i++)
    if (io->obs[HEADING + i] > 0) heading = i;
  mn_canvas_add(c, MN_RECT, 0x00000000, -0.6f, -0.6f, 7.2f, 7.2f);
  board(c, io->obs[BURNS] > 0, pointed(io->obs + SAFE_COLUMN), pointed(io->obs + SAFE_ROW));
  if (column >= 0 && row >= 0) agent(c, (float)column + 0.5f + 0.5f * io->obs[WITHIN], (float)row + 0.5f + 0.5f * io->obs[WITHIN + 1], heading);
  for (int i = 0; i < COMMANDS; i++)
    if (io->obs[COMMAND + i] > 0) arrow(c, i, 3, 3, 2, 0xFFFFFFFF);
}

/* ---- facts ---- */

/* x, y: in tiles, whole in their middles.  shown: the command that is observed, -1: none; newest: the last of the list.  command: the list, -1 behind
   its end. */
static inline int truth(const mortar_mayhem_endless *m, const mn_io *io, const char **names, float *values) {
  float *v = values;
  (void)io;
  *names = "x y heading target_x target_y shown newest count next executed burns waited command[64]";
  *v++ = (float)(m->x - TILE / 2) / TILE;
  *v++ = (float)(m->y - TILE / 2) / TILE;
  *v++ = m->heading;
  *v++ = m->target_x;
  *v++ = m->target_y;
  *v++ = (float)m->shown - 1;
  *v++ = m->command[m->count - 1];
  *v++ = m->count;
  *v++ = m->next;
  *v++ = (float)executed(m->count, m->next);
  *v++ = m->burns;
  *v++ = m->waited;
  for (int i = 0; i < MOST; i++) *v++ = i < m->count ? (float)m->command[i] : -1;
  return (int)(v - values);
}

/* Another command as the newest of the list; the target goes with it where that leads to it already. */
MN_FN bool set(mortar_mayhem_endless *m, const mn_io *io, int fact, double value) {
  const int before = m->command[m->count - 1], now = (int)value;
  (void)fact;
  if (now >= io->param[ALLOWED]) return false;
  if (!m->burns && m->next == m->count - 1) {
    m->target_x = (uint8_t)((m->target_x + SIDE - command_across(before) + command_across(now)) % SIDE);
    m->target_y = (uint8_t)((m->target_y + SIDE - command_down(before) + command_down(now)) % SIDE);
  }
  m->command[m->count - 1] = (uint8_t)now;
  if (m->shown) m->shown = (uint8_t)(1 + now);
  return true;
}

static inline bool valid(const mortar_mayhem_endless *m, const mn_io *io) {
  const int frames = (int)(io->param[SHOW] + io->param[BLANK]), edge = GYM_PIXELS + OVER;
  if (m->x < -OVER || m->x > edge || m->y < -OVER || m->y > edge || m->heading > 7 || m->target_x >= SIDE || m->target_y >= SIDE) return false;
  if (m->count < 1 || m->count > MOST || m->next >= m->count || m->left > frames || m->burns > 1 || m->burned > io->param[BURN]) return false;
  if (m->waited > io->param[DELAY] || (m->burned > 0) != m->burns) return false;
  if (m->burns && (tile_of(m->x) != m->target_x || tile_of(m->y) != m->target_y)) return false;
  for (int i = 0; i < MOST; i++)
    if (i < m->count ? m->command[i] >= io->param[ALLOWED] : m->command[i] != 0) return false;
  return m->shown == 0 || (m->next == 0 && m->shown == 1 + m->command[m->count - 1]);
}

/* Random actions execute 0.1056 commands; who remembers executes all.  While a command is shown nothing can be done about it, and afterwards it is
** not seen: without memory each new one is right with a chance of p = 1 / allowed, which standing still gets where that is a command.  Right K times
** in a row, K (K + 1) / 2 + K are executed. */
static inline void reference(const double *param, const void *shared, mn_reference *out) {
  const double p = 1 / param[ALLOWED], mean = p / (1 - p), square = p * (1 + p) / ((1 - p) * (1 - p));       /* of K and of its square */
  (void)shared;
  out->best = 1;
  if (param[ALLOWED] >= 5 && param[FULL] >= 20) out->memoryless = ((square + mean) / 2 + mean) / param[FULL];
  if (param[ALLOWED] != COMMANDS || param[DELAY] != 18 || param[BURN] != 6 || param[FULL] < 20) return;
  out->chance = 0.1056 / param[FULL];
  out->episodes = 100000;
}

MN_ENV(mortar_mayhem_endless, .rules = "A command is shown for a moment; then walk to the tile that all commands so far lead to, one after another from "
                                       "the first, and stand on it before the others burn: each pays 0.1, and then one more command is shown.",
       .see = see, .reference = reference, .steps = steps, .version = 0,
       .doc = "execute a list of commands that grows by one, from its first, for as long as it lasts (Memory Gym)",
       .about = "allowed_commands       4: right, down, left, up; 5: and stay; up to 9: and slanting ones\n"
                "command_show_duration  steps that a command is shown; command_show_delay: blank steps after it\n"
                "explosion_delay        steps to reach the tile; explosion_duration: steps that the others burn\n"
                "visual_feedback=no     burning tiles are not shown\n"
                "score                  executed commands as a share of full, at most 1; the return is 0.1 for each.  No time limit; it ends\n"
                "                       with a mistake, or when all lists up to 64 commands are executed, 2,080 commands",
       .params = "observation=vector|pixels allowed_commands=9[4..9] command_show_duration=3[1..20] command_show_delay=1[0..20] explosion_delay=18[6..100] "
                 "explosion_duration=6[1..30] visual_feedback=yes|no full=100[1..2080]",
       .actions = "stay up down left up_left down_left right up_right down_right", .settable = "newest=0[0..8]",
       .to_know = "target_x=class target_y=class command=class next=number",
       .observes = "column[6] row[6] within=across,down heading[8] command=right,down,left,up,stay,right_down,right_up,left_down,left_up burns safe[12]",
       .spaces = spaces, .reset = reset, .step = step, .draw = draw, .truth = truth, .valid = valid, .set = set, .observe = observe)
