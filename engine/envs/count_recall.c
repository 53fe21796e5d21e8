/* count_recall.c -- deals two decks side by side and asks at every step: how often has the first deck shown the card
** that the second shows now?  The memory must count.  CountRecall of POPGym: easy 1 deck of two
** colours, medium 2 of four suits, hard 4 of thirteen ranks.
** Observation: the card that is dealt, the card that is asked for.  Action: the count. */
#include <stdio.h>
#include "worlds/cards.h"

enum { LEVEL, DECKS, CARDS };    /* parameters */
enum { BY_LEVEL, BY_COLOR, BY_SUIT, BY_RANK };

typedef struct count_recall {
  quiz q;
  uint16_t left[CARDS_RANKS], queries_left[CARDS_RANKS];
  uint16_t n_left, each, kinds;  /* each: cards of a kind */
  uint8_t card, query;
} count_recall;

MN_FN int decks_of(const double *param) { return quiz_setting(param, DECKS, 1, 2, 4); }
MN_FN int kinds_of(const double *param) {
  const int by = quiz_setting(param, CARDS, BY_COLOR, BY_SUIT, BY_RANK);
  return by == BY_COLOR ? CARDS_COLORS : by == BY_SUIT ? CARDS_SUITS : CARDS_RANKS;
}

MN_FN void spaces(const double *param, mn_space *out) {
  out->dtype = MN_U8;
  out->ndim = 1;
  out->shape[0] = 2;
  out->codes = kinds_of(param);
  out->n_actions = CARDS_DECK / kinds_of(param) * decks_of(param) + 1;
  out->bytes = sizeof(count_recall);
}

MN_FN void observe(count_recall *m, mn_io *io) {
  io->pixels[0] = m->card;
  io->pixels[1] = m->query;
}

MN_FN void deal(count_recall *m, mn_io *io) {
  m->card = (uint8_t)cards_draw(m->left, m->kinds, m->n_left, io->bits[0]);
  m->query = (uint8_t)cards_draw(m->queries_left, m->kinds, m->n_left, io->bits[1]);
  m->n_left--;
  m->q.answer = (int16_t)(m->each - m->left[m->query]);
  observe(m, io);
}

MN_FN void reset(count_recall *m, mn_io *io) {
  const int decks = decks_of(io->param);
  m->kinds = (uint16_t)kinds_of(io->param);
  m->n_left = (uint16_t)(CARDS_DECK * decks);
  m->each = m->n_left / m->kinds;
  m->q.questions = m->n_left - 1;
  cards_fill(m->left, m->kinds, decks);
  cards_fill(m->queries_left, m->kinds, decks);
  deal(m, io);
}

MN_FN void step(count_recall *m, mn_io *io) {
  quiz_mark(&m->q, io);
  deal(m, io);
}

/* A card, by its colour, suit or rank. */
static inline void card_show(int kinds, int kind, float x, float y, mn_canvas *c) {
  static const char *const ranks[] = { "A", "2", "3", "4", "5", "6", "7", "8", "9", "T", "J", "Q", "K" };
  if (kinds == CARDS_SUITS) cards_show(c, x, y, kind);
  else quiz_tile(c, x, y, 0xE8EDF4FF, kinds == CARDS_COLORS && kind ? 0xC8321EFF : 0x14181FFF,
                 kinds == CARDS_COLORS ? "\xE2\x97\x8F" : ranks[kind]);
}

/* A column for each kind, over its card: how often it was shown.  Blue: dealt now; yellow: asked for. */
static inline void draw(const count_recall *m, const mn_io *io, mn_canvas *c) {
  (void)io;
  const float wide = (float)QUIZ_ROW / (float)m->kinds, tall = 5, size = m->kinds == CARDS_COLORS ? 0.9f : m->kinds == CARDS_SUITS ? 0.52f : 0.4f;
  for (int k = 0; k < m->kinds; k++) {
    const float x = wide * (float)k, high = tall * (float)(m->each - m->left[k]) / (float)m->each;
    char count[16];
    mn_canvas_add(c, MN_RECT, 0x2C3645FF, x + 0.06f * wide, 0, 0.88f * wide, tall);
    mn_canvas_add(c, MN_RECT, k == m->query ? 0xF0E442FF : 0x6B7A90FF, x + 0.06f * wide, tall - high,
                  0.88f * wide, high);
    if (k == m->query)
      mn_canvas_add(c, MN_RECT, 0xF0E442FF, x + 0.06f * wide, tall + 0.06f, 0.88f * wide, 0.14f);
    if (k == m->card) {
      mn_canvas_add(c, MN_FRAME, 0x56B4E9FF, x + 0.06f * wide, 0, 0.88f * wide, tall);
      mn_canvas_data(c, 0.12f);
    }
    snprintf(count, sizeof count, "%d", m->each - m->left[k]);
    mn_canvas_text(c, 0x14181FFF, x + 0.12f * wide, tall - 0.12f, size, high > 1.2f * size ? count : "");
    const char *const words[] = { k == m->card ? "dealt" : NULL, k == m->query ? wide < 2 ? "?" : "how often?" : NULL };
    float base = 0.1f;
    for (int i = 0; i < 2; i++) {
      if (!words[i]) continue;
      base += (base > 0.1f ? 1.1f : 1) * size;
      mn_canvas_text(c, tall - high < base ? 0x14181FFF : i ? 0xF0E442FF : 0x56B4E9FF, x + 0.12f * wide, base, size, words[i]);
    }
    card_show(m->kinds, k, x + 0.5f * wide - 0.5f, tall + 0.3f, c);
  }
  quiz_bar(&m->q, QUIZ_ROW, tall + 1.9f, c);
}

/* counts: how often each kind was shown; 0 for kinds there are not.  card, query: what is dealt, and asked for. */
static inline int truth(const count_recall *m, const mn_io *io, const char **names, float *values) {
  (void)io;
  *names = QUIZ_TRUTH "counts[13] card query";
  int n = quiz_truth(&m->q, values);
  for (int k = 0; k < CARDS_RANKS; k++) values[n++] = k < m->kinds ? (float)(m->each - m->left[k]) : 0;
  values[n++] = m->card;
  values[n++] = m->query;
  return n;
}

/* Another card that is dealt, or asked for: it changes places with one of its deck. */
MN_FN bool set(count_recall *m, const mn_io *io, int fact, double value) {
  uint8_t *of = fact == 0 ? &m->card : &m->query;
  const int kind = (int)value;
  (void)io;
  if (kind >= m->kinds) return false;
  if (kind != *of && !cards_exchange(fact == 0 ? m->left : m->queries_left, *of, kind)) return false;
  *of = (uint8_t)kind;
  m->q.answer = (int16_t)(m->each - m->left[m->query]);
  return true;
}

static inline bool valid(const count_recall *m, const mn_io *io) {
  const int decks = decks_of(io->param), kinds = kinds_of(io->param), cards = CARDS_DECK * decks;
  if (m->kinds != kinds || m->each != cards / kinds || m->card >= kinds || m->query >= kinds) return false;
  return quiz_valid(&m->q, cards - 1, m->each - m->left[m->query]) && m->n_left == cards - 1 - m->q.asked &&
         cards_valid(m->left, kinds, decks, m->n_left) && cards_valid(m->queries_left, kinds, decks, m->n_left);
}

/* The card that is dealt, and the one that is asked for. */
static inline void see(const mn_io *io, mn_canvas *c) {
  const int kinds = kinds_of(io->param);
  quiz_table(c);
  for (int i = 0; i < 2; i++) {
    const float x = i ? 1.6f : -1.6f;
    card_show(kinds, io->pixels[i], x, 0, c);
    if (i) quiz_frame(c, x, 0, 0xF0E442FF);
    mn_canvas_text(c, i ? 0xF0E442FF : 0xE8EDF4FF, x, 1.8f, 0.3f, i ? "how often?" : "dealt");
  }
}

/* Over an episode each count of a kind, from 0 to all but one, comes equally often: cards / (each + 1) times, or cards / each where the
** dealt card is of that kind, which then was dealt at least once.  The best without memory names one of them, by whether the two
** cards are of a kind. */
static inline void reference(const double *param, const void *shared, mn_reference *out) {
  const double kinds = kinds_of(param), cards = CARDS_DECK * decks_of(param), each = cards / kinds;
  (void)shared;
  quiz_reference((int)each + 1, (cards / each / kinds + cards / (each + 1) * (1 - 1 / kinds)) / (cards - 1), out);
}

MN_ENV(count_recall, .rules = "Two cards at each step, one dealt and one asked for: say how often the card asked for has been dealt, this step "
                              "included; each right number pays, each wrong one costs as much.", .see = see, .reference = reference,
       .version = 0,
       .doc = "how often has the queried card been dealt? (POPGym)",
       .about = "level     easy decks=1 cards=colors    medium decks=2 cards=suits    hard decks=4 cards=ranks\n"
                "decks     0: the level's own",
       .params = "level=easy|medium|hard decks=0[0..16] cards=of_level|colors|suits|ranks", .actions = "",
       .settable = "card=0[0..12] query=0[0..12]", .to_know = "answer=action counts=number",
       .observes = "card asked",
       .spaces = spaces, .reset = reset, .step = step, .draw = draw, .truth = truth, .valid = valid, .set = set, .observe = observe)
