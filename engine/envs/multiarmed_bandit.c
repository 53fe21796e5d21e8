/* multiarmed_bandit.c -- arms that pay with chances of their own, new in each episode: the memory must learn them and then use the best.
** MultiarmedBandit of POPGym: 10, 20 or 30 arms, 200, 400 or 600 steps.
** Observation: did the arm pay?  Which it was is the previous action. */
#include <stdio.h>
#include "worlds/qa_episode.h"

enum { LEVEL };                  /* parameters */
enum { MOST = 30 };

typedef struct multiarmed_bandit {
  float chance[MOST];
  uint16_t pulls[MOST], wins[MOST];
  int16_t arms, won, last;       /* won: in all; last: -1: none */
  uint8_t win, unused;           /* win: what is observed */
} multiarmed_bandit;

MN_FN int arms_of(const double *param) { return 10 + 10 * (int)param[LEVEL]; }
MN_FN int limit_of(const double *param) { return 20 * arms_of(param); }

MN_FN void spaces(const double *param, mn_space *out) {
  out->dtype = MN_U8;
  out->ndim = 1;
  out->shape[0] = 1;
  out->codes = 2;
  out->n_actions = arms_of(param);
  out->time_limit = limit_of(param);
  out->bytes = sizeof(multiarmed_bandit);
}

MN_FN void observe(multiarmed_bandit *m, mn_io *io) { io->pixels[0] = m->win; }

MN_FN void reset(multiarmed_bandit *m, mn_io *io) {
  m->arms = (int16_t)arms_of(io->param);
  m->last = -1;
  for (int i = 0; i < m->arms; i++) m->chance[i] = (float)((i < 4 ? io->bits[i] : mn_rand(io)) >> 8) * 0x1p-24f;
  observe(m, io);
}

MN_FN void step(multiarmed_bandit *m, mn_io *io) {
  const float limit = (float)limit_of(io->param);
  m->last = (int16_t)io->action;
  m->win = (float)(io->bits[0] >> 8) * 0x1p-24f < m->chance[io->action];
  m->pulls[io->action]++;
  m->wins[io->action] = (uint16_t)(m->wins[io->action] + m->win);
  m->won = (int16_t)(m->won + m->win);
  io->reward = (m->win ? 1 : -1) / limit;
  io->score = (float)m->won < limit ? (float)m->won / limit : 1;
  observe(m, io);
}

MN_FN int best_of(const multiarmed_bandit *m) {
  int best = 0;
  for (int i = 1; i < m->arms; i++)
    if (m->chance[i] > m->chance[best]) best = i;
  return best;
}

/* Each arm: a column as high as its chance, how often it was pulled below it; the last one framed. */
static inline void draw(const multiarmed_bandit *m, const mn_io *io, mn_canvas *c) {
  const float high = 0.35f * (float)m->arms, limit = (float)limit_of(io->param);
  const int best = best_of(m);
  for (int i = 0; i < m->arms; i++) {
    const float x = (float)i, full = high * m->chance[i], pulled = 0.6f * high * (float)m->pulls[i] / limit;
    mn_canvas_add(c, MN_RECT, 0x2C3645FF, x + 0.1f, 0, 0.8f, high);
    mn_canvas_add(c, MN_RECT, i == best ? 0x009E73FF : 0x56B4E9FF, x + 0.1f, high - full, 0.8f, full);
    mn_canvas_add(c, MN_RECT, 0xE69F00FF, x + 0.1f, high + 0.25f, 0.8f, pulled);
    if (i != m->last) continue;
    mn_canvas_add(c, MN_FRAME, m->win ? 0xF0E442FF : 0xD55E00FF, x, -0.1f, 1, high + 0.2f);
    mn_canvas_data(c, 0.1f);
  }
  mn_canvas_add(c, MN_RECT, 0x2C364500, 0, high + 0.25f, (float)m->arms, 0.6f * high);
}

/* Arms of which nothing is known, and a lamp: yellow if the last one paid. */
static inline void see(const mn_io *io, mn_canvas *c) {
  char number[16];
  for (int i = 0; i < arms_of(io->param); i++) {
    const float x = (float)(i % 10), y = 1.4f * (float)(i / 10);
    mn_canvas_add(c, MN_RECT, 0x2C3645FF, x + 0.08f, y, 0.84f, 1.1f);
    snprintf(number, sizeof number, "%d", i);
    mn_canvas_text(c, 0xE8EDF4FF, x + 0.25f, y + 0.7f, 0.4f, number);
  }
  mn_canvas_add(c, MN_DISC, io->pixels[0] ? 0xF0E442FF : 0x2C3645FF, 11.2f, 0.6f, 0.6f, 0);
  mn_canvas_text(c, 0xE8EDF4FF, 10.6f, 1.9f, 0.45f, io->pixels[0] ? "it paid" : "nothing");
}

/* chance: of each arm; -1 beyond the last. */
static inline int truth(const multiarmed_bandit *m, const mn_io *io, const char **names, float *values) {
  (void)io;
  *names = "best last won chance[30] pulls[30] wins[30]";
  values[0] = (float)best_of(m);
  values[1] = m->last;
  values[2] = m->won;
  for (int i = 0; i < MOST; i++) {
    values[3 + i] = i < m->arms ? m->chance[i] : -1;
    values[3 + MOST + i] = i < m->arms ? m->pulls[i] : -1;
    values[3 + 2 * MOST + i] = i < m->arms ? m->wins[i] : -1;
  }
  return 3 + 3 * MOST;
}

/* Another arm becomes the best one: they change chances. */
MN_FN bool set(multiarmed_bandit *m, const mn_io *io, int fact, double value) {
  const int arm = (int)value, best = best_of(m);
  const float most = m->chance[best];
  (void)io, (void)fact;
  if (arm >= m->arms) return false;
  if (arm == best) return true;
  if (m->chance[arm] == most) return false;
  m->chance[best] = m->chance[arm];
  m->chance[arm] = most;
  return true;
}

static inline bool valid(const multiarmed_bandit *m, const mn_io *io) {
  int won = 0, pulled = 0;
  if (m->arms != arms_of(io->param) || m->last < -1 || m->last >= m->arms || m->win > 1) return false;
  for (int i = 0; i < MOST; i++) {
    if (!(m->chance[i] >= 0 && m->chance[i] < 1) || m->wins[i] > m->pulls[i]) return false;
    if (i >= m->arms && (m->chance[i] > 0 || m->pulls[i] > 0)) return false;
    won += m->wins[i];
    pulled += m->pulls[i];
  }
  return won == m->won && won <= 30000 && (m->last < 0 ? pulled == 0 && m->win == 0 : m->pulls[m->last] > 0);
}

/* Chances are uniform; the highest of n is n / (n + 1) on average: who knew them from the start would get that.
** Without memory: stay after a win, else the next arm; over 20,000 games.  With one: the arm of the largest mean + 0.7 deviation * sqrt(log(1 + steps
** left / pulls)) of its Beta distribution, over 8,000 games, +- 0.001; nothing better is known of either. */
static inline void reference(const double *param, const void *shared, mn_reference *out) {
  const double stay[] = { 0.7373, 0.7769, 0.7975 }, index[] = { 0.8613, 0.9115, 0.9287 };
  (void)shared;
  out->chance = 0.5;
  out->memoryless = stay[(int)param[LEVEL]];
  out->best = index[(int)param[LEVEL]];
  out->best_return = 2 * out->best - 1;
}

MN_ENV(multiarmed_bandit, .rules = "Each arm pays with a chance of its own, new in each game: find out which pays best, and pull it; a pull that pays "
                                   "gives as much as one that does not costs.", .see = see, .reference = reference,
       .version = 0, .doc = "find the arm that pays best, and pull it: how often did each pay? (POPGym)",
       .about = "level     easy 10 arms, 200 steps    medium 20, 400    hard 30, 600\n"
                "score     the share of pulls that paid; who knows the chances from the start gets n / (n + 1) of n arms, which no memory reaches\n"
                "The observation says whether it paid, not which arm: an agent needs previous=action.",
       .params = "level=easy|medium|hard", .actions = "", .settable = "best=0[0..29]",
       .to_know = "best=class pulls=number wins=number", .observes = "paid", .needs = "action",
       .spaces = spaces, .reset = reset, .step = step, .draw = draw, .truth = truth, .valid = valid, .set = set, .observe = observe)
