/* concentration.c -- the game of pairs: all cards lie on their faces, two are turned over, and stay so if
** they match.  A memory of what lies where.  Concentration of POPGym: easy 1 deck of two colours, medium
** 2 of them, hard 1 deck of thirteen ranks.
** Observation: each card's kind, or `kinds` while it lies on its face.  The second card of a turn is seen
** with the first; then both are turned back unless they match.
** A pair pays 1 over all pairs; two that differ, and every card of a turn in which one is taken that
** lies open already, cost 1 over the longest game (what a perfect player needs, on average, were every
** pair unique). */
#include <stddef.h>
#include <stdio.h>
#include "worlds/cards.h"

enum { LEVEL, DECKS, CARDS };    /* parameters */
enum { BY_LEVEL, BY_COLOR, BY_RANK };
enum { MOST_DECKS = 4, MOST = MOST_DECKS * CARDS_DECK, KIND = 15, OPEN = 16, WIDE = 32 };

typedef struct concentration {
  int16_t cards, kinds, length;
  int16_t open, cost;            /* cards that lie open for good; cards that cost */
  int16_t first, second;         /* turned over last, -1: none */
  uint16_t waiting;              /* 1: the second card of a turn is due */
  uint8_t card[MOST];            /* kind, and OPEN */
} concentration;

MN_FN int cards_of(const double *param) { return CARDS_DECK * quiz_setting(param, DECKS, 1, 2, 1); }
MN_FN int kinds_of(const double *param) {
  return quiz_setting(param, CARDS, BY_COLOR, BY_COLOR, BY_RANK) == BY_COLOR ? CARDS_COLORS : CARDS_RANKS;
}
/* 2 n - n / (2 n - 1), rounded up */
MN_FN int length_of(int n) { return 2 * n - n / (2 * n - 1); }

MN_FN void spaces(const double *param, mn_space *out) {
  const int n = cards_of(param);
  out->dtype = MN_U8;
  out->ndim = 1;
  out->shape[0] = out->n_actions = n;
  out->codes = kinds_of(param) + 1;
  out->time_limit = length_of(n);
  out->bytes = (int)offsetof(concentration, card) + n;
  out->no_bits = true;
}

MN_FN void observe(concentration *m, mn_io *io) {
  const int n = m->cards;
  const uint8_t down = (uint8_t)m->kinds;
  for (int from = 0; from < n; from += WIDE) {             /* the last of them overlaps the one before: no rest is left to go one by one */
    const int at = from + WIDE < n ? from : n - WIDE;
#pragma omp simd
    for (int i = at; i < at + WIDE; i++) {
      const uint8_t open = (uint8_t)-(m->card[i] / OPEN);  /* all its bits, or none */
      io->pixels[i] = (uint8_t)((m->card[i] & KIND & open) | (down & ~open));
    }
  }
  if (m->first < 0) return;
  const int second = m->second < 0 ? m->first : m->second;
  io->pixels[m->first] = m->card[m->first] & KIND;
  io->pixels[second] = m->card[second] & KIND;
}

MN_FN void reset(concentration *m, mn_io *io) {
  uint16_t left[CARDS_RANKS];
  m->cards = (int16_t)cards_of(io->param);
  m->kinds = (int16_t)kinds_of(io->param);
  m->length = (int16_t)length_of(m->cards);
  m->first = m->second = -1;
  cards_fill(left, m->kinds, m->cards / CARDS_DECK);
  for (int i = 0; i < m->cards; i++)
    m->card[i] = (uint8_t)cards_draw(left, m->kinds, m->cards - i, mn_rand(io));
  observe(m, io);
}

/* One card is turned over: what the turn costs in cards, or -1 for a pair.  Of random cards no branch is foreseen, so there is none. */
MN_FN int turn(concentration *m, int at) {
  const int second = m->waiting, open = m->card[at] / OPEN;
  const int pair = second & !open & (at != m->first) & (m->card[at] == m->card[second ? m->first : at]);
  m->first = second ? m->first : (int16_t)at;
  m->second = second ? (int16_t)at : -1;
  m->waiting = (uint16_t)(!second & !open);
  m->open = (int16_t)(m->open + 2 * pair);
  return open * (1 + second) + !open * second * (2 - 3 * pair);
}

/* score: the return, or 0 if that is negative. */
MN_FN void step(concentration *m, mn_io *io) {
  const int cost = turn(m, io->action), opens = cost < 0 ? OPEN : 0;
  const float pair = 2 / (float)m->cards, fault = 1 / (float)m->length;
  m->cost = (int16_t)(m->cost + (cost > 0 ? cost : 0));
  io->reward = cost < 0 ? pair : -fault * (float)cost;
  io->terminated = m->open == m->cards;
  const float sum = (float)(m->open / 2) * pair - (float)m->cost * fault;
  io->score = sum > 0 ? sum : 0;
  observe(m, io);
  m->card[m->first] |= (uint8_t)opens;
  m->card[io->action] |= (uint8_t)opens;
}

/* Every card; those that the agent does not see are shaded. */
static inline void draw(const concentration *m, const mn_io *io, mn_canvas *c) {
  (void)io;
  static const char *const ranks[] = { "A", "2", "3", "4", "5", "6", "7", "8", "9", "T", "J", "Q", "K" };
  for (int i = 0; i < m->cards; i++) {
    const float x = (float)(i % QUIZ_ROW), y = 1.4f * (float)(i / QUIZ_ROW);
    const int kind = m->card[i] & KIND, two = m->kinds == CARDS_COLORS;
    const bool now = i == m->first || i == m->second, seen = now || m->card[i] & OPEN;
    const uint32_t ink = two && kind ? 0xC8321EFF : 0x14181FFF, paper = seen ? 0xE8EDF4FF : 0x55657DFF;
    quiz_tile(c, x, y, paper, ink, two ? "\xE2\x97\x8F" : ranks[kind]);
    if (now) quiz_frame(c, x, y, m->waiting ? 0xF0E442FF : 0x56B4E9FF);
  }
  const float y = 1.4f * (float)(m->cards / QUIZ_ROW) + 0.2f;
  mn_canvas_add(c, MN_RECT, 0x2C3645FF, 0, y, QUIZ_ROW, 0.3f);
  mn_canvas_add(c, MN_RECT, 0x009E73FF, 0, y, (float)QUIZ_ROW * (float)m->open / (float)m->cards, 0.3f);
}

/* cards, open: kinds, and 1 where they lie open for good; -1 beyond the last. */
static inline int truth(const concentration *m, const mn_io *io, const char **names, float *values) {
  (void)io;
  *names = "found waiting first cards[208] open[208]";
  values[0] = (float)(m->open / 2);
  values[1] = m->waiting;
  values[2] = m->waiting ? m->first : -1;
  for (int i = 0; i < MOST; i++) {
    values[3 + i] = i < m->cards ? (float)(m->card[i] & KIND) : -1;
    values[3 + MOST + i] = i < m->cards ? (float)(m->card[i] / OPEN) : -1;
  }
  return 3 + 2 * MOST;
}

/* Another card is the first of its turn, one that lies on its face; -1: none, the turn begins again. */
MN_FN bool set(concentration *m, const mn_io *io, int fact, double value) {
  const int at = (int)value, now = m->waiting ? m->first : -1;
  (void)io, (void)fact;
  if (at == now) return true;
  if (at >= m->cards || (at >= 0 && m->card[at] & OPEN)) return false;
  m->first = (int16_t)at;
  m->second = -1;
  m->waiting = at >= 0;
  return true;
}

static inline bool valid(const concentration *m, const mn_io *io) {
  const int n = cards_of(io->param), kinds = kinds_of(io->param);
  int open = 0;
  if (m->cards != n || m->kinds != kinds || m->length != length_of(n)) return false;
  for (int i = 0; i < n; i++) {
    if (m->card[i] > (OPEN | KIND) || (m->card[i] & KIND) >= kinds) return false;
    open += m->card[i] / OPEN;
  }
  if (m->first < -1 || m->first >= n || m->second < -1 || m->second >= n || m->waiting > 1) return false;
  return m->open == open && open % 2 == 0 && open < n &&
         (m->first < 0 ? m->second < 0 && !m->waiting : !m->waiting || m->second < 0);
}

/* Every card as it lies: open, or on its face. */
static inline void see(const mn_io *io, mn_canvas *c) {
  static const char *const ranks[] = { "A", "2", "3", "4", "5", "6", "7", "8", "9", "T", "J", "Q", "K" };
  const int cards = cards_of(io->param), kinds = kinds_of(io->param);
  for (int i = 0; i < cards; i++) {
    const float x = (float)(i % QUIZ_ROW), y = 1.4f * (float)(i / QUIZ_ROW);
    const int kind = io->pixels[i], two = kinds == CARDS_COLORS;
    char number[16];
    if (kind < kinds) {
      quiz_tile(c, x, y, 0xE8EDF4FF, two && kind ? 0xC8321EFF : 0x14181FFF, two ? "\xE2\x97\x8F" : ranks[kind]);
    } else {
      quiz_tile(c, x, y, 0x2C3645FF, 0, NULL);
      snprintf(number, sizeof number, "%d", i);
      mn_canvas_text(c, 0x8FA3BFFF, x + 0.28f, y + 0.8f, 0.3f, number);
    }
  }
}

/* Of random actions, by decks: with thirteen ranks none of them scored.  Without memory, any card that lies face down is as good as another; who
** remembers all takes a pair that is known, else a card that was never seen: over 20,000 and 5,000 games of each level. */
static inline void reference(const double *param, const void *shared, mn_reference *out) {
  const double of_colors[] = { 0.00114, 0.000135, 0.000003, 0.000002 };
  const double no_memory[] = { 0.4520, 0.4678, 0 }, all[] = { 0.8136, 0.8130, 0.6978 };
  (void)shared;
  out->chance = kinds_of(param) == CARDS_COLORS ? of_colors[cards_of(param) / CARDS_DECK - 1] : 0;
  out->episodes = 10000;
  if (param[DECKS] != 0 || param[CARDS] != 0) return;
  out->memoryless = no_memory[(int)param[LEVEL]];
  out->best = all[(int)param[LEVEL]];
}

MN_ENV(concentration, .rules = "Turn over two cards at each turn: a pair stays open and pays, two that differ are turned back and cost, "
                               "and so does turning over what lies open; find all pairs.", .see = see, .reference = reference,
       .version = 0, .doc = "find pairs of cards: the game Concentration (POPGym)",
       .about = "level     easy decks=1 cards=colors    medium decks=2 cards=colors    hard decks=1 cards=ranks\n"
                "decks     0: the level's own",
       .params = "level=easy|medium|hard decks=0[0..4] cards=of_level|colors|ranks", .actions = "",
       .settable = "first=0[-1..207]", .to_know = "cards=class open=class first=class",
       .observes = "card[*]",
       .spaces = spaces, .reset = reset, .step = step, .draw = draw, .truth = truth, .valid = valid, .set = set, .observe = observe)
