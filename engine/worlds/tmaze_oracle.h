/* tmaze_oracle.h -- the T-Mazes of Ni et al. (2023), "When do transformers shine in RL?": a corridor with two goals at its end, and an
** oracle at its other end, which tells which goal pays, once.  In the passive one the agent starts at the oracle; in the active one a
** step in front of it, and must go back first.  The horizon is just long enough for the shortest way: the episode ends there
** whatever happened, and every step behind that way costs.
** Observation: flag, value.  At the oracle 0 and the side of the goal (-1, 1) the first time; in the corridor 0, 0; at the junction and
** at a goal 1 and the side where the agent is. */
#ifndef MN_TMAZE_ORACLE_H
#define MN_TMAZE_ORACLE_H
#include "env.h"

enum { ORACLE_CORRIDOR };        /* parameter */
enum { ORACLE_RIGHT, ORACLE_UP, ORACLE_LEFT, ORACLE_DOWN };
enum { ORACLE_MOST = 2000 };

typedef struct tmaze_oracle {
  int16_t x, steps;              /* x: 0 the oracle; the junction is at the corridor's length behind the start */
  int8_t  y, goal;               /* 1 up, -1 down */
  uint8_t told, shown;           /* has the oracle told the goal; does the present observation show it */
} tmaze_oracle;

MN_FN void oracle_spaces(mn_space *out) {
  out->dtype = MN_F32;
  out->ndim = 1;
  out->shape[0] = 2;
  out->n_actions = 4;
  out->bytes = sizeof(tmaze_oracle);
  out->no_bits = true;
}

MN_FN void oracle_observe(tmaze_oracle *m, mn_io *io, int back) {
  const int end = (int)io->param[ORACLE_CORRIDOR] + back;
  io->obs[0] = (float)(m->x == end);
  io->obs[1] = m->shown ? m->goal : m->x == end ? m->y : 0;
}

MN_FN void oracle_look(tmaze_oracle *m, mn_io *io, int back) {
  m->shown = m->x == 0 && !m->told;
  m->told |= m->shown;
  oracle_observe(m, io, back);
}

MN_FN void oracle_reset(tmaze_oracle *m, mn_io *io, int back) {
  m->x = (int16_t)back;
  m->goal = io->bits[0] >> 31 ? 1 : -1;
  oracle_look(m, io, back);
}

/* back: steps from the start to the oracle */
MN_FN void oracle_step(tmaze_oracle *m, mn_io *io, int back) {
  const int corridor = (int)io->param[ORACLE_CORRIDOR], end = corridor + back;
  const int dx = (io->action == ORACLE_RIGHT) - (io->action == ORACLE_LEFT), dy = (io->action == ORACLE_UP) - (io->action == ORACLE_DOWN);
  const int x = m->x + dx, y = m->y + dy;
  const bool open = y == 0 ? x >= 0 && x <= end : x == end && y >= -1 && y <= 1;
  if (open) {
    m->x = (int16_t)x;
    m->y = (int8_t)y;
  }
  m->steps++;
  io->terminated = m->steps == end + back + 1;
  io->score = (float)(io->terminated & (m->y == m->goal));
  io->reward = io->terminated ? io->score : m->x < m->steps - back ? -1.0f / (float)corridor : 0;
  oracle_look(m, io, back);
}

/* ---- pictures: cell i of the corridor spans x = i .. i+1 about y = 0 ---- */

/* goal: 0 if it is not known */
static inline void oracle_picture(int end, float x, int y, int goal, bool shown, mn_canvas *c) {
  const float tall = 0.7f * (1 + (float)end / 48), half = tall / 2, wall = 0.07f * tall, last = (float)end + 0.5f - half, left = 0.5f - half;
  mn_canvas_add(c, MN_RECT, 0x6B7A90FF, left - wall, -half - wall, last - left, tall + 2 * wall);
  mn_canvas_add(c, MN_RECT, 0x6B7A90FF, last - wall, -1.5f * tall - wall, tall + 2 * wall, 3 * tall + 2 * wall);
  mn_canvas_add(c, MN_RECT, 0x2C3645FF, left, -half, last + tall - left, tall);
  for (int side = -1; side <= 1; side += 2) {
    const float top = side > 0 ? -1.5f * tall : half;
    mn_canvas_add(c, MN_RECT, !goal ? 0x35425AFF : side == goal ? 0x009E73FF : 0x9A4A12FF, last, top, tall, tall);
    mn_canvas_text(c, 0xFFFFFFFF, last + 0.2f * tall, top + 0.68f * tall, 0.5f * tall, !goal ? "?" : side == goal ? "+1" : "0");
  }
  mn_canvas_add(c, MN_RECT, 0x35425AFF, left, -half, tall, tall);                /* the oracle's place, and above it what it tells */
  if (goal) {
    mn_canvas_add(c, MN_TRIANGLE, shown ? 0xF0E442FF : 0x6B6A3CFF, left, -half - 1.1f * tall, tall, tall);
    mn_canvas_data(c, goal > 0 ? -1.5707964f : 1.5707964f);
  } else {
    mn_canvas_add(c, MN_RECT, 0x2C3645FF, left, -half - 1.1f * tall, tall, tall);
  }
  mn_canvas_add(c, MN_DISC, 0x0F131AFF, x + 0.5f, -(float)y * tall, 0.38f * tall, 0.38f * tall);
  mn_canvas_add(c, MN_DISC, 0x56B4E9FF, x + 0.5f, -(float)y * tall, 0.31f * tall, 0.31f * tall);
}

static inline void oracle_draw(const tmaze_oracle *m, const mn_io *io, int back, mn_canvas *c) {
  oracle_picture((int)io->param[ORACLE_CORRIDOR] + back, m->x, m->y, m->goal, m->shown, c);
}

/* In the corridor nothing tells where: the agent is drawn in its middle. */
static inline void oracle_see(const mn_io *io, int back, mn_canvas *c) {
  const int end = (int)io->param[ORACLE_CORRIDOR] + back;
  const bool there = io->obs[0] > 0;
  const int side = (int)io->obs[1];
  oracle_picture(end, there ? (float)end : side ? 0 : 0.5f * (float)end, there ? side : 0, there ? 0 : side, true, c);
}

/* cue: the action that leads from the junction to the goal.  distance: steps to the junction, by the oracle where that has not told. */
static inline int oracle_truth(const tmaze_oracle *m, const mn_io *io, int back, const char **names, float *values) {
  const int end = (int)io->param[ORACLE_CORRIDOR] + back;
  *names = "cue position side told distance step";
  values[0] = m->goal > 0 ? ORACLE_UP : ORACLE_DOWN;
  values[1] = m->x;
  values[2] = m->y;
  values[3] = m->told;
  values[4] = (float)(m->told ? end - m->x : end + m->x);
  values[5] = m->steps;
  return 6;
}

static inline bool oracle_valid(const tmaze_oracle *m, const mn_io *io, int back) {
  const int end = (int)io->param[ORACLE_CORRIDOR] + back;
  return m->x >= 0 && m->x <= end && m->y >= -1 && m->y <= 1 && (m->y == 0 || m->x == end) && (m->goal == 1 || m->goal == -1) &&
         m->told <= 1 && m->shown <= m->told && (!m->shown || m->x == 0) && (m->x > 0 || m->told) && m->steps >= 0 && m->steps <= end + back + 1;
}

#define ORACLE_SETTABLE "cue=right|up|left|down position=0[0..2001]"

/* cue, then position: along the corridor; the oracle tells there what it has not told. */
static inline bool oracle_set(tmaze_oracle *m, const mn_io *io, int back, int fact, double value) {
  if (fact == 0) {
    if (value != ORACLE_UP && value != ORACLE_DOWN) return false;
    m->goal = value == ORACLE_UP ? 1 : -1;
  } else if (value != m->x) {
    if (value > io->param[ORACLE_CORRIDOR] + back) return false;
    m->x = (int16_t)value;
    m->y = 0;
    m->shown = m->x == 0 && !m->told;
    m->told |= m->shown;
  }
  return true;
}

/* Without memory any turn; random actions: the probabilities of the places at the horizon, step by step. */
static inline void oracle_reference(const double *param, int back, mn_reference *out) {
  const int end = (int)param[ORACLE_CORRIDOR] + back, steps = end + back + 1;
  double at[ORACLE_MOST + 2], goals = 0;
  for (int i = 0; i <= end; i++) at[i] = i == back;
  for (int step = 0; step < steps; step++) {
    const double junction = at[end], home = 0.25 * goals;
    double before = 0.25 * at[0];                /* left of the oracle is no place */
    goals = 0.75 * goals + 0.5 * junction;
    for (int i = 0; i <= end; i++) {
      const double here = at[i], stays = i == end ? 0.25 : 0.5;
      at[i] = stays * here + before + (i < end ? 0.25 * at[i + 1] : home);
      before = 0.25 * here;
    }
  }
  out->chance = goals / 2;
  out->memoryless = 0.5;
  out->best = out->best_return = 1;
}

/* Both environments: NAME, the steps back to the oracle, and what they say of themselves. */
#define ORACLE_ENV(NAME, BACK, RULES, DOC)                                                                                               \
  typedef tmaze_oracle NAME;                                                                                                            \
  MN_FN void spaces(const double *param, mn_space *out) { (void)param; oracle_spaces(out); }                                            \
  MN_FN void reset(NAME *m, mn_io *io) { oracle_reset(m, io, BACK); }                                                                   \
  MN_FN void step(NAME *m, mn_io *io) { oracle_step(m, io, BACK); }                                                                     \
  MN_FN void observe(NAME *m, mn_io *io) { oracle_observe(m, io, BACK); }                                                               \
  static inline void draw(const NAME *m, const mn_io *io, mn_canvas *c) { oracle_draw(m, io, BACK, c); }                                \
  static inline void see(const mn_io *io, mn_canvas *c) { oracle_see(io, BACK, c); }                                                    \
  static inline int truth(const NAME *m, const mn_io *io, const char **names, float *values) { return oracle_truth(m, io, BACK, names, values); } \
  static inline bool valid(const NAME *m, const mn_io *io) { return oracle_valid(m, io, BACK); }                                        \
  static inline bool set(NAME *m, const mn_io *io, int fact, double value) { return oracle_set(m, io, BACK, fact, value); }              \
  static inline void reference(const double *param, const void *shared, mn_reference *out) { (void)shared; oracle_reference(param, BACK, out); } \
  MN_ENV(NAME, .rules = RULES, .see = see, .reference = reference, .version = 0, .doc = DOC,                            \
         .params = "corridor=100[1..2000]", .actions = "right up left down",                                                            \
         .settable = ORACLE_SETTABLE, .to_know = "cue=action@distance position=number", .observes = "flag value",                        \
         .spaces = spaces, .reset = reset, .step = step, .draw = draw, .truth = truth, .valid = valid, .set = set, .observe = observe)
#endif
