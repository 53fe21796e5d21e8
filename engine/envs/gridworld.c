/* gridworld.c -- a maze that the user draws in characters: walls, keys and doors, traps, goals, and
** choices of which a cue shows the right one.  An early cue for a late choice needs memory.
** Observation: codes (gridmap.h) of the cells about the agent, rows from north to south, then of the
** keys it carries. */
#include "env.h"
#include "worlds/gridmap.h"

enum { MAP, VIEW, OCCLUSION, CUE_STEPS, STEP_REWARD };     /* parameters */
enum { UP, DOWN, LEFT, RIGHT };

typedef struct gridworld {
  int16_t x, y;
  int32_t steps;
  uint8_t keys;                  /* bits: the keys it carries */
  uint8_t right;                 /* the digit that pays, from 0 */
} gridworld;

/* Where no map is given. */
static const char example[] = "###########\n#S.S#..1..#\n#.?.A.....#\n#S.a#..2..#\n###########";

static void spaces(const double *param, mn_space *out) {
  const int view = (int)param[VIEW];
  out->dtype = MN_U8;
  out->ndim = 1;
  out->shape[0] = view * view + GRID_KEYS;
  out->codes = GRID_CODES;
  out->n_actions = 4;
  out->time_limit = 200;
  out->bytes = sizeof(gridworld);
  out->no_bits = true;
  out->shared_bytes = sizeof(grid_map);
}

static int prepare(mn_ctx *mn, const double *param, const char *text, void *shared) {
  if ((int)param[VIEW] % 2 == 0)
    return mn_fail(mn, "gridworld: view=%d, expected an odd number of cells: with the agent in the middle",
                   (int)param[VIEW]);
  if (mn_gridmap_read(mn, *text ? text : example, (grid_map *)shared)) return -1;
  ((grid_map *)shared)->example = !*text;
  return 0;
}

/* What is at a place now: keys that were taken and doors that stand open are floor. */
MN_FN int look(const gridworld *g, const mn_io *io, int x, int y) {
  const grid_map *m = (const grid_map *)io->shared;
  if (x < 0 || y < 0 || x >= m->width || y >= m->height) return GRID_UNSEEN;
  const int code = m->cell[y * m->width + x];
  if (code >= GRID_KEY && code < GRID_CHOICE)
    return g->keys >> (code - GRID_KEY) % GRID_KEYS & 1 ? GRID_FLOOR : code;
  if (code == GRID_CUE && m->choices && (io->param[CUE_STEPS] == 0 || g->steps < io->param[CUE_STEPS]))
    return GRID_SAYS + g->right;
  return code;
}

MN_FN int opaque(int code) {
  return code == GRID_WALL || code == GRID_UNSEEN || (code >= GRID_DOOR && code < GRID_CHOICE);
}

/* May the cell dx, dy away be seen?  The straight line between the centres crosses one cell a row (or
** column), or passes between two: then one of the two must be clear. */
MN_FN int in_sight(const gridworld *g, const mn_io *io, int dx, int dy) {
  const int ax = dx < 0 ? -dx : dx, ay = dy < 0 ? -dy : dy, n = ax > ay ? ax : ay;
  for (int i = 1; i < n; i++) {
    const int px = 2 * i * ax + n, py = 2 * i * ay + n;    /* twice n times the place, and a half */
    const int x = px / (2 * n), y = py / (2 * n);
    const int between_x = px % (2 * n) == 0, between_y = py % (2 * n) == 0;
    const int sx = dx < 0 ? -1 : 1, sy = dy < 0 ? -1 : 1;
    if (opaque(look(g, io, g->x + sx * x, g->y + sy * y)) &&
        opaque(look(g, io, g->x + sx * (x - between_x), g->y + sy * (y - between_y)))) return 0;
  }
  return 1;
}

MN_FN void observe(gridworld *g, mn_io *io) {
  const int view = (int)io->param[VIEW], half = view / 2, hides = io->param[OCCLUSION] != 0;
  uint8_t *seen = io->pixels;
  for (int dy = -half; dy <= half; dy++)
    for (int dx = -half; dx <= half; dx++)
      *seen++ = (uint8_t)(hides && !in_sight(g, io, dx, dy) ? GRID_UNSEEN : look(g, io, g->x + dx, g->y + dy));
  for (int k = 0; k < GRID_KEYS; k++) *seen++ = (uint8_t)(g->keys >> k & 1 ? GRID_KEY + k : GRID_UNSEEN);
}

MN_FN void reset(gridworld *g, mn_io *io) {
  const grid_map *m = (const grid_map *)io->shared;
  const int place = m->start[mn_below(io->bits[0], m->starts)];
  g->x = (int16_t)(place % m->width);
  g->y = (int16_t)(place / m->width);
  g->right = m->choices ? m->choice[mn_below(io->bits[1], m->choices)] : 0;
  observe(g, io);
}

MN_FN void step(gridworld *g, mn_io *io) {
  const int x = g->x + (io->action == RIGHT) - (io->action == LEFT);
  const int y = g->y + (io->action == DOWN) - (io->action == UP);
  int there = look(g, io, x, y);
  g->steps++;
  io->reward = (float)io->param[STEP_REWARD];
  if (there >= GRID_SAYS) there = GRID_CUE;
  if (!opaque(there)) {
    const int won = there == GRID_GOAL || there == GRID_CHOICE + g->right;
    const int lost = there == GRID_TRAP || (there >= GRID_CHOICE && !won);
    g->x = (int16_t)x;
    g->y = (int16_t)y;
    if (there >= GRID_KEY && there < GRID_DOOR) g->keys |= (uint8_t)(1 << (there - GRID_KEY));
    io->reward += (float)(won - lost);
    io->terminated = won || lost;
    io->score = (float)won;
  }
  observe(g, io);
}

/* ---- the picture: a cell is 1 by 1 ---- */

static const uint32_t key_colours[GRID_KEYS] = { 0xE69F00FF, 0x56B4E9FF, 0xCC79A7FF, 0xF0E442FF };

static void draw_sign(mn_canvas *c, uint32_t colour, float x, float y, char sign) {
  const char text[2] = { sign, 0 };
  mn_canvas_add(c, MN_RECT, colour, x + 0.04f, y + 0.04f, 0.92f, 0.92f);
  mn_canvas_text(c, 0xFFFFFFFF, x + 0.33f, y + 0.76f, 0.7f, text);
}

static void draw_cell(const gridworld *g, mn_canvas *c, int code, float x, float y) {
  if (code == GRID_UNSEEN) return;
  mn_canvas_add(c, MN_RECT, code == GRID_WALL ? 0x6B7A90FF : 0x2C3645FF, x, y, 1, 1);
  if (code == GRID_GOAL) draw_sign(c, 0x009E73FF, x, y, 'G');
  if (code == GRID_TRAP) draw_sign(c, 0x9A4A12FF, x, y, '!');
  if (code == GRID_CUE) draw_sign(c, 0x6B6A3CFF, x, y, '?');
  if (code >= GRID_SAYS) draw_sign(c, 0xA89F1AFF, x, y, (char)('1' + code - GRID_SAYS));
  else if (code >= GRID_CHOICE)
    draw_sign(c, g->right == GRID_CHOICES ? 0x2F5D8CFF : code == GRID_CHOICE + g->right ? 0x009E73FF : 0x9A4A12FF, x, y, (char)('1' + code - GRID_CHOICE));
  else if (code >= GRID_DOOR)
    mn_canvas_add(c, MN_RECT, key_colours[code - GRID_DOOR], x + 0.06f, y + 0.06f, 0.88f, 0.88f);
  else if (code >= GRID_KEY) {
    mn_canvas_add(c, MN_DISC, key_colours[code - GRID_KEY], x + 0.3f, y + 0.5f, 0.18f, 0.18f);
    mn_canvas_add(c, MN_RECT, key_colours[code - GRID_KEY], x + 0.42f, y + 0.44f, 0.42f, 0.12f);
  }
}

static void draw(const gridworld *g, const mn_io *io, mn_canvas *c) {
  const grid_map *m = (const grid_map *)io->shared;
  const float half = (float)((int)io->param[VIEW] / 2), x = g->x, y = g->y;
  for (int i = 0; i < m->width * m->height; i++)
    draw_cell(g, c, look(g, io, i % m->width, i / m->width), (float)(i % m->width), (float)(i / m->width));
  mn_canvas_add(c, MN_FRAME, 0xFFFFFF60, x - half, y - half, 2 * half + 1, 2 * half + 1);
  mn_canvas_data(c, 0.05f);
  mn_canvas_add(c, MN_DISC, 0x0F131AFF, x + 0.5f, y + 0.5f, 0.4f, 0.4f);
  mn_canvas_add(c, MN_DISC, 0x56B4E9FF, x + 0.5f, y + 0.5f, 0.33f, 0.33f);
  for (int k = 0, at = 0; k < GRID_KEYS; k++)
    if (g->keys >> k & 1)
      mn_canvas_add(c, MN_DISC, key_colours[k], x + 0.25f + 0.17f * (float)at++, y + 0.5f, 0.1f, 0.1f);
}

/* right: the choice that pays, as drawn (0: the map has none).  keys: bits, a = 1, b = 2, c = 4, d = 8. */
static int truth(const gridworld *g, const mn_io *io, const char **names, float *values) {
  const grid_map *m = (const grid_map *)io->shared;
  *names = "x y right keys width height";
  values[0] = g->x;
  values[1] = g->y;
  values[2] = (float)(m->choices ? g->right + 1 : 0);
  values[3] = g->keys;
  values[4] = (float)m->width;
  values[5] = (float)m->height;
  return 6;
}

/* Does the map have that choice, counted from 1? */
MN_FN bool is_choice(const grid_map *m, double choice) {
  bool there = false;
  for (int i = 0; i < m->choices; i++) there |= m->choice[i] + 1 == choice;
  return there;
}

/* May one stand there, and the episode go on? */
MN_FN bool is_ground(const gridworld *g, const mn_io *io, int x, int y) {
  const int is = look(g, io, x, y);
  return !opaque(is) && is != GRID_GOAL && is != GRID_TRAP && (is < GRID_CHOICE || is >= GRID_SAYS);
}

static bool valid(const gridworld *g, const mn_io *io) {
  const grid_map *m = (const grid_map *)io->shared;
  return (m->choices ? is_choice(m, g->right + 1) : g->right == 0) && g->keys < 1 << GRID_KEYS && g->steps >= 0 &&
         g->steps < 1 << 30 && is_ground(g, io, g->x, g->y);
}

/* Which choice is right, of those there are; or where the agent stands: on nothing that ends an episode. */
MN_FN bool set(gridworld *g, const mn_io *io, int fact, double value) {
  if (fact == 0) {
    const bool there = is_choice((const grid_map *)io->shared, value);
    if (there) g->right = (uint8_t)(value - 1);
    return there;
  }
  const int x = fact == 1 ? (int)value : g->x, y = fact == 2 ? (int)value : g->y;
  if (!is_ground(g, io, x, y)) return false;
  g->x = (int16_t)x;
  g->y = (int16_t)y;
  return true;
}

/* The cells in sight, fog over the others, and the keys carried. */
static void see(const mn_io *io, mn_canvas *c) {
  const int view = (int)io->param[VIEW];
  const gridworld nobody = { .right = GRID_CHOICES };
  const float middle = 0.5f * (float)view;
  mn_canvas_add(c, MN_RECT, 0x0F131AFF, 0, 0, (float)view, (float)view);
  for (int i = 0; i < view * view; i++) draw_cell(&nobody, c, io->pixels[i], (float)(i % view), (float)(i / view));
  mn_canvas_add(c, MN_DISC, 0x0F131AFF, middle, middle, 0.4f, 0.4f);
  mn_canvas_add(c, MN_DISC, 0x56B4E9FF, middle, middle, 0.33f, 0.33f);
  for (int k = 0, at = 0; k < GRID_KEYS; k++)
    if (io->pixels[view * view + k])
      mn_canvas_add(c, MN_DISC, key_colours[k], middle - 0.25f + 0.17f * (float)at++, middle, 0.1f, 0.1f);
}

/* Of the example.  With view=5 all rooms are in sight, but from the second one no cue, and only the door leads there: no way tells which. */
static void reference(const double *param, const void *shared, mn_reference *out) {
  if (!((const grid_map *)shared)->example) return;
  out->chance = 0.3637;
  out->episodes = 100000;
  if (param[VIEW] == 5) out->memoryless = 0.5;
  out->best = 1;
}

MN_ENV(gridworld, .rules = "Walk to the goal G or to the choice that the cue names, for +1; a trap or another choice costs 1 and ends the episode, "
                           "and doors open to who carries their key.", .see = see, .reference = reference,
       .version = 0,
       .doc = "your own maze, drawn in characters: keys, doors, traps, goals, cues and choices",
       .about = "map    # wall   . floor   blank: nothing   S start (several: one is drawn)   G goal: +1 and over\n"
                "       ! trap: -1 and over   a-d key   A-D its door\n"
                "       1-6 choices: one of those drawn pays +1, the others -1, and the episode ends   ? cue: which one\n"
                "view   cells per side of the observation, the agent in the middle; occlusion=1: walls block the view\n"
                "cue_steps    the cue is shown only during the first N steps; 0: always\n"
                "The observation holds codes: 0 hidden, 1 wall, 2 floor, 3 goal, 4 trap, 5 silent cue, 6-9 keys, 10-13 doors,\n"
                "14-19 choices, 20-25 the cue naming a choice; after the cells, the keys carried.",
       .params = "map=\"\" view=5[3..15] occlusion=1[0..1] cue_steps=0[0..1000000] step_reward=0.0[-1..1]",
       .actions = "up down left right", .settable = "right=1[1..6] x=0[0..63] y=0[0..63]",
       .to_know = "right=class x=number y=number",
       .observes = "view[view*view] keys[4]",
       .spaces = spaces, .prepare = prepare, .reset = reset, .step = step, .draw = draw, .truth = truth, .valid = valid,
       .set = set, .observe = observe)
