/* minigrid_memory.c -- an object in a room is seen at first: at the end of a hallway go to the one that matches.
** MiniGrid-Memory (Chevalier-Boisvert et al. 2023): S7 .. S13 are size=7 .. 13, S13Random and S17Random have hallway=random.  The agent
** sees 7 x 7 cells ahead as Minigrid's line of sight has them; it may begin in the hallway, with the object behind it.
** Observation: codes of the 49 cells, far to near, left to right, and the heading. */
#include <math.h>
#include "env.h"

enum { SIZE, HALLWAY };          /* parameters */
enum { LEFT, RIGHT, FORWARD };   /* the other actions of Minigrid do nothing here */
enum { UNSEEN, EMPTY, WALL, KEY, BALL, CODES };
enum { VIEW = 7, CELLS = VIEW * VIEW, MOST = 17, FIRST_END = 4, ROWS = 3, OUT = CELLS };

typedef struct minigrid_memory {
  int16_t steps;
  uint8_t x, y, heading, end;    /* heading: east, south, west, north; end: the column where the hallway ends */
  uint8_t object, top;           /* KEY or BALL: in the room; at the upper end.  The lower one is the other */
} minigrid_memory;

typedef struct sight {           /* the view from a place */
  uint8_t cell[CELLS], at[3];    /* at: where in it the object, the upper and the lower one are, or OUT: the place of the heading */
} sight;

/* By end, row from the middle's upper neighbour, column, heading. */
typedef struct minigrid_views { sight from[MOST - FIRST_END][ROWS][MOST][4]; } minigrid_views;

MN_FN void spaces(const double *param, mn_space *out) {
  const int n = (int)param[SIZE];
  out->dtype = MN_U8;
  out->ndim = 1;
  out->shape[0] = CELLS + 1;
  out->codes = CODES;
  out->n_actions = 7;
  out->time_limit = 5 * n * n;
  out->bytes = sizeof(minigrid_memory);
  out->no_bits = true;
  out->shared_bytes = sizeof(minigrid_views);
}

MN_FN int across(int heading) { return (heading == 0) - (heading == 2); }
MN_FN int down(int heading) { return (heading == 1) - (heading == 3); }

/* Is it a wall?  Beyond the grid all is. */
MN_FN bool walled(int n, int end, int x, int y) {
  const int off = y < n / 2 ? n / 2 - y : y - n / 2;
  return (x <= 0) | (y <= 0) | (x >= n - 1) | (y >= n - 1) | (x == end + 2) | ((x == end) & (off > 0)) | ((x <= 4) & (off == 2)) |
         ((x == 4) & (off == 1)) | ((x > 4) & (x < end) & (off == 1));
}

/* Which of the three things lies there, or -1. */
MN_FN int thing_at(int n, int end, int x, int y) {
  const int first = (x == 1) & (y == n / 2 - 1), last = x == end + 1;
  return first + (last & (y == n / 2 - 2)) * 2 + (last & (y == n / 2 + 2)) * 3 - 1;
}

/* Minigrid's process_vis: row by row from the agent's, an open cell in sight shows its neighbours, first to the right, then to the left. */
static inline void look(int n, int end, int x, int y, int heading, sight *s) {
  bool seen[VIEW][VIEW] = { { false } }, open[VIEW][VIEW];
  for (int i = 0; i < 3; i++) s->at[i] = OUT;
  for (int k = 0; k < CELLS; k++) {
    const int ahead = VIEW - 1 - k / VIEW, right = k % VIEW - VIEW / 2;
    const int cx = x + ahead * across(heading) - right * down(heading), cy = y + ahead * down(heading) + right * across(heading);
    open[k / VIEW][k % VIEW] = !walled(n, end, cx, cy);
  }
  seen[VIEW - 1][VIEW / 2] = true;
  for (int j = VIEW - 1; j >= 0; j--) {
    for (int i = 0; i < VIEW - 1; i++) {
      if (!seen[j][i] || !open[j][i]) continue;
      seen[j][i + 1] = true;
      if (j > 0) seen[j - 1][i + 1] = seen[j - 1][i] = true;
    }
    for (int i = VIEW - 1; i > 0; i--) {
      if (!seen[j][i] || !open[j][i]) continue;
      seen[j][i - 1] = true;
      if (j > 0) seen[j - 1][i - 1] = seen[j - 1][i] = true;
    }
  }
  for (int k = 0; k < CELLS; k++) {
    const int ahead = VIEW - 1 - k / VIEW, right = k % VIEW - VIEW / 2;
    const int cx = x + ahead * across(heading) - right * down(heading), cy = y + ahead * down(heading) + right * across(heading);
    const int thing = thing_at(n, end, cx, cy);
    const bool sees = seen[k / VIEW][k % VIEW];
    s->cell[k] = !sees ? UNSEEN : open[k / VIEW][k % VIEW] ? EMPTY : WALL;
    if (sees && thing >= 0) s->at[thing] = (uint8_t)k;
  }
}

static int prepare(mn_ctx *mn, const double *param, const char *text, void *shared) {
  minigrid_views *v = (minigrid_views *)shared;
  const int n = (int)param[SIZE];
  (void)text;
  if (n % 2 == 0) return mn_fail(mn, "size=%d is even, expected 7, 9, 11, 13, 15 or 17", n);
  for (int end = FIRST_END; end <= n - 3; end++)
    for (int row = 0; row < ROWS; row++)
      for (int x = 0; x < n; x++)
        for (int h = 0; h < 4; h++) look(n, end, x, n / 2 - 1 + row, h, &v->from[end - FIRST_END][row][x][h]);
  return 0;
}

MN_FN void observe(minigrid_memory *m, mn_io *io) {
  const minigrid_views *v = (const minigrid_views *)io->shared;
  const sight *s = &v->from[m->end - FIRST_END][m->y - (int)io->param[SIZE] / 2 + 1][m->x][m->heading];
  const uint8_t thing[3] = { m->object, m->top, (uint8_t)(KEY + BALL - m->top) };
  for (int k = 0; k < CELLS; k++) io->pixels[k] = s->cell[k];
  for (int i = 0; i < 3; i++) io->pixels[s->at[i]] = thing[i];
  io->pixels[CELLS] = m->heading;
}

MN_FN void reset(minigrid_memory *m, mn_io *io) {
  const int n = (int)io->param[SIZE];
  m->end = (uint8_t)(n - 3);
  if (io->param[HALLWAY] != 0) m->end = (uint8_t)(FIRST_END + mn_below(io->bits[0], n - 6));
  m->x = (uint8_t)(1 + mn_below(io->bits[1], m->end));
  m->y = (uint8_t)(n / 2);
  m->object = io->bits[2] >> 31 ? BALL : KEY;
  m->top = io->bits[3] >> 31 ? BALL : KEY;
  observe(m, io);
}

MN_FN void step(minigrid_memory *m, mn_io *io) {
  const int n = (int)io->param[SIZE];
  const int ahead = io->action == FORWARD, x = m->x + ahead * across(m->heading), y = m->y + ahead * down(m->heading);
  const int free = !walled(n, m->end, x, y) & (thing_at(n, m->end, x, y) < 0);          /* no branches: actions are unpredictable */
  m->steps++;
  m->heading = (uint8_t)((m->heading + 3 * (io->action == LEFT) + (io->action == RIGHT)) & 3);
  m->x = (uint8_t)(m->x + free * (x - m->x));
  m->y = (uint8_t)(m->y + free * (y - m->y));
  if (m->x == m->end + 1 && m->y != n / 2) {
    const bool right = (m->object == m->top) == (m->y < n / 2);
    io->terminated = true;
    io->reward = right ? 1 - 0.9f * (float)m->steps / (float)(5 * n * n) : 0;
    io->score = (float)right;
  }
  observe(m, io);
}

/* ---- pictures: a cell is 1 by 1 ---- */

static inline void picture_cell(mn_canvas *c, float x, float y, int code, bool bright) {
  const uint32_t paper[CODES] = { 0x0F131AFF, 0x2C3645FF, 0x6B7A90FF, 0x2C3645FF, 0x2C3645FF }, green = bright ? 0x2FD08CFF : 0x009E73FF;
  mn_canvas_add(c, MN_RECT, paper[code], x + 0.02f, y + 0.02f, 0.96f, 0.96f);
  if (code == BALL) mn_canvas_add(c, MN_DISC, green, x + 0.5f, y + 0.5f, 0.32f, 0.32f);
  if (code != KEY) return;
  mn_canvas_add(c, MN_DISC, green, x + 0.5f, y + 0.3f, 0.19f, 0.19f);
  mn_canvas_add(c, MN_DISC, paper[KEY], x + 0.5f, y + 0.3f, 0.09f, 0.09f);
  mn_canvas_add(c, MN_RECT, green, x + 0.45f, y + 0.45f, 0.1f, 0.42f);
  mn_canvas_add(c, MN_RECT, green, x + 0.53f, y + 0.6f, 0.15f, 0.08f);
  mn_canvas_add(c, MN_RECT, green, x + 0.53f, y + 0.76f, 0.15f, 0.08f);
}

/* turn: in quarters, from the east */
static inline void picture_agent(mn_canvas *c, float x, float y, int turn) {
  mn_canvas_add(c, MN_TRIANGLE, 0xF0E442FF, x + 0.15f, y + 0.15f, 0.7f, 0.7f);
  mn_canvas_data(c, 1.5707964f * (float)turn);
}

/* The cell that pays has a frame; what is out of sight is darker. */
static inline void draw(const minigrid_memory *m, const mn_io *io, mn_canvas *c) {
  const int n = (int)io->param[SIZE];
  const sight *s = &((const minigrid_views *)io->shared)->from[m->end - FIRST_END][m->y - n / 2 + 1][m->x][m->heading];
  for (int k = 0; k < n * n; k++) {
    const int x = k % n, y = k / n, thing = thing_at(n, m->end, x, y);
    const int code = walled(n, m->end, x, y) ? WALL : thing == 0 ? m->object : thing == 1 ? m->top : thing == 2 ? KEY + BALL - m->top : EMPTY;
    picture_cell(c, (float)x, (float)y, code, true);
  }
  for (int y = 0; y < n; y++)
    for (int x = 0; x < n; x++) {
      const int dx = x - m->x, dy = y - m->y, ahead = dx * across(m->heading) + dy * down(m->heading);
      const int right = dy * across(m->heading) - dx * down(m->heading);
      const bool in = ahead >= 0 && ahead < VIEW && right >= -VIEW / 2 && right <= VIEW / 2;
      if (!in || s->cell[(VIEW - 1 - ahead) * VIEW + right + VIEW / 2] == UNSEEN) mn_canvas_add(c, MN_RECT, 0x0F131A90, (float)x, (float)y, 1, 1);
    }
  mn_canvas_add(c, MN_FRAME, 0x56E0B0FF, (float)(m->end + 1) + 0.05f, (float)(n / 2 + (m->object == m->top ? -1 : 1)) + 0.05f, 0.9f, 0.9f);
  mn_canvas_data(c, 0.07f);
  picture_agent(c, (float)m->x, (float)m->y, m->heading);
}

/* As the agent sees it: ahead is up. */
static inline void see(const mn_io *io, mn_canvas *c) {
  for (int k = 0; k < CELLS; k++) picture_cell(c, (float)(k % VIEW), (float)(k / VIEW), io->pixels[k], true);
  picture_agent(c, VIEW / 2, VIEW - 1, 3);
}

/* object, top: 0 key, 1 ball; the object in the room, the one at the upper end.  goal: 0 up, 1 down. */
static inline int truth(const minigrid_memory *m, const mn_io *io, const char **names, float *values) {
  (void)io;
  *names = "object top goal x y heading end step";
  values[0] = (float)(m->object == BALL);
  values[1] = (float)(m->top == BALL);
  values[2] = (float)(m->object != m->top);
  values[3] = m->x;
  values[4] = m->y;
  values[5] = m->heading;
  values[6] = m->end;
  values[7] = m->steps;
  return 8;
}

static inline bool valid(const minigrid_memory *m, const mn_io *io) {
  const int n = (int)io->param[SIZE], off = m->y < n / 2 ? n / 2 - m->y : m->y - n / 2;
  if (io->param[HALLWAY] == 0 ? m->end != n - 3 : m->end < FIRST_END || m->end > n - 3) return false;
  return m->x < n && off <= 1 && !walled(n, m->end, m->x, m->y) && thing_at(n, m->end, m->x, m->y) < 0 && m->x <= m->end + 1 && m->heading < 4 &&
         (m->object == KEY || m->object == BALL) && (m->top == KEY || m->top == BALL) && m->steps >= 0 && m->steps <= 5 * n * n;
}

/* object, then top */
static inline bool set(minigrid_memory *m, const mn_io *io, int fact, double value) {
  (void)io;
  if (fact == 0) m->object = value != 0 ? BALL : KEY;
  else m->top = value != 0 ? BALL : KEY;
  return true;
}

/* Where the hallway is longer than the view, the object is out of sight at its end, and an agent comes there in one way only: without memory it
** is right in half of the episodes.  One who looks back from the end of a shorter one (to column 6) sees object and both ends at once: it walks into the
** lower end with a small chance as often as it faces that, else it looks back and turns to the upper end if that is right. */
static inline void reference(const double *param, const void *shared, mn_reference *out) {
  const double chance[][3] = { { 7, 0, 0.233 }, { 9, 0, 0.252 }, { 11, 0, 0.262 }, { 13, 0, 0.27 }, { 13, 1, 0.329 }, { 17, 1, 0.361 } };
  (void)shared;
  for (int i = 0; i < 6; i++)
    if (param[SIZE] == chance[i][0] && param[HALLWAY] == chance[i][1]) {
      out->chance = chance[i][2];
      out->episodes = 20000;
    }
  out->best = 1;
  const double n = param[SIZE], looks = 2.5 * n * n, missed = 3 / looks + 0.5 * exp(-6);      /* looks in an episode, at a chance of 6 / looks */
  const double ends = param[HALLWAY] == 0 ? 1 : n - 6, near = param[HALLWAY] == 0 ? n <= 9 : ends < 3 ? ends : 3;
  out->memoryless = 0.5 + near / ends * (0.5 - missed);
}

MN_ENV(minigrid_memory, .rules = "There is a key or a ball in the room where the hallway begins: look at it (turn around if you start in the hallway), then "
                                 "walk to the end of the hallway and turn to the one that is the same, for nearly +1.",
       .see = see, .reference = reference,
       .version = 0, .doc = "remember an object, and go to the same one at the end of a hallway (MiniGrid-Memory)",
       .about = "size     the grid's: S7 .. S13 are size=7 .. 13\n"
                "hallway  random: it ends anywhere from column 4 on, as in S13Random and S17Random",
       .params = "size=13[7..17] hallway=full|random", .actions = "left right forward pickup drop toggle done",
       .settable = "object=key|ball top=key|ball", .to_know = "object=class goal=class x=number heading=class",
       .observes = "cell[49] heading",
       .spaces = spaces, .prepare = prepare, .reset = reset, .step = step, .draw = draw, .truth = truth, .valid = valid,
       .set = set, .observe = observe)
