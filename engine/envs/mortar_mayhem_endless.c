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

MN_FN int command_across(int command) { return (command == 0) + (command == 5) + (command == 6) - (command == 2) - (command == 7) - (command == 8); }
MN_FN int command_down(int command) { return (command == 1) + (command == 5) + (command == 7) - (command == 3) - (command == 6) - (command == 8); }

/* From 0 to MOST * (MOST + 1) / 2: executed in this episode. */
MN_FN int executed(const mortar_mayhem_endless *m) { return m->count * (m->count - 1) / 2 + m->next; }

/* -1 and SIDE: beyond the edge. */
MN_FN int tile_of(int pixel) { return pixel < 0 ? -1 : pixel / TILE; }

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

MN_FN void observe(mortar_mayhem_endless *m, mn_io *io) {
  const int column = tile_of(m->x), row = tile_of(m->y);
  if (io->param[OBSERVATION]) {
    paint(m, io);
    return;
  }
  for (int i = 0; i < NUMBERS; i++) io->obs[i] = 0;
  if ((unsigned)column < SIDE) io->obs[COLUMN + column] = 1;
  if ((unsigned)row < SIDE) io->obs[ROW + row] = 1;
  io->obs[WITHIN] = (float)(m->x - column * TILE - TILE / 2) / (TILE / 2);
  io->obs[WITHIN + 1] = (float)(m->y - row * TILE - TILE / 2) / (TILE / 2);
  io->obs[HEADING + m->heading] = 1;
  io->obs[COMMAND + (m->shown ? m->shown - 1 : 0)] = (float)(m->shown > 0);
  if (m->burns && io->param[FEEDBACK] == 0) {
    io->obs[BURNS] = 1;
    io->obs[SAFE_COLUMN + m->target_x] = 1;
    io->obs[SAFE_ROW + m->target_y] = 1;
  }
}

/* ---- rules ---- */

/* One more command, whose first step of being shown comes with the next observation. */
MN_FN void add_command(mortar_mayhem_endless *m, mn_io *io, uint32_t bits) {
  m->command[m->count++] = (uint8_t)mn_below(bits, (int)io->param[ALLOWED]);
  m->left = (uint8_t)(io->param[SHOW] + io->param[BLANK]);
}

MN_FN void show(mortar_mayhem_endless *m, const mn_io *io) {
  m->shown = m->left > io->param[BLANK] ? (uint8_t)(1 + m->command[m->count - 1]) : 0;
  m->left--;
}

MN_FN void aim(mortar_mayhem_endless *m, int command) {
  m->target_x = (uint8_t)((m->target_x + SIDE + command_across(command)) % SIDE);
  m->target_y = (uint8_t)((m->target_y + SIDE + command_down(command)) % SIDE);
}

MN_FN void reset(mortar_mayhem_endless *m, mn_io *io) {
  const int tile = mn_below(io->bits[0], SIDE * SIDE);
  m->target_x = (uint8_t)(tile / SIDE);
  m->target_y = (uint8_t)(tile % SIDE);
  m->x = (int8_t)(m->target_x * TILE + TILE / 2 - 2 + mn_below(io->bits[1], 4));
  m->y = (int8_t)(m->target_y * TILE + TILE / 2 - 2 + mn_below(io->bits[2], 4));
  add_command(m, io, io->bits[3]);
  aim(m, m->command[0]);
  show(m, io);
  observe(m, io);
}

/* 3 pixels, slanting 2 along each axis (pygame rounds 2.12).  Beyond the edge it comes back on the other side. */
MN_FN int8_t walk(int at, int way, bool slanting) {
  const int to = at + (slanting ? 2 : 3) * way;
  return (int8_t)(to > GYM_PIXELS + OVER ? -OVER : to < -OVER ? GYM_PIXELS + OVER : to);
}

/* The agent moves; then the check, or the fire. */
MN_FN void act(mortar_mayhem_endless *m, mn_io *io) {
  const uint8_t headings[9] = { 0, 0, 4, 2, 1, 3, 6, 7, 5 };
  const int across = io->action / 3, along = io->action % 3;           /* 1: back, 2: forth */
  const int dx = (across == 2) - (across == 1), dy = (along == 2) - (along == 1);
  const bool slanting = (dx != 0) & (dy != 0);
  m->shown = 0;
  m->heading = io->action ? headings[io->action] : m->heading;
  m->x = walk(m->x, dx, slanting);
  m->y = walk(m->y, dy, slanting);
  const bool there = (tile_of(m->x) == m->target_x) & (tile_of(m->y) == m->target_y);
  if (!m->burns && m->waited == (int)io->param[DELAY]) {
    m->burns = 1;
    m->waited = 1;
    if (there) {
      io->reward = 0.1f;
      m->next++;
      if (m->next == m->count && m->count == MOST) {
        io->terminated = true;
      } else if (m->next == m->count) {
        uint32_t bits[4];
        mn_philox(io->key, bits);                                      /* the step's own: none are made for most steps, which want none */
        add_command(m, io, bits[0]);
        m->next = 0;
      }
    }
  }
  if (!m->burns) {
    m->waited++;
  } else if (m->burned == (int)io->param[BURN]) {
    m->burns = m->burned = 0;
    aim(m, m->command[m->next]);
  } else {
    if (!there) io->terminated = true;
    m->burned++;
  }
}

MN_FN void step(mortar_mayhem_endless *m, mn_io *io) {
  if (m->left > 0) show(m, io);                                        /* it watches, and cannot move */
  else act(m, io);
  const float score = (float)executed(m) / (float)io->param[FULL];
  io->score = score > 1 ? 1 : score;
  observe(m, io);
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
  *v++ = (float)executed(m);
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
    m->target_x = (uint8_t)((m->target_x + SIDE - command_across(before)) % SIDE);
    m->target_y = (uint8_t)((m->target_y + SIDE - command_down(before)) % SIDE);
    aim(m, now);
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
       .see = see, .reference = reference, .no_bits = true, .version = 0,
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
