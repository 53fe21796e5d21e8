/* repeat_previous.c -- name the suit that was shown k - 1 cards ago, at every step: a memory that shifts.
** RepeatPrevious of POPGym: easy k=4 with 1 deck, medium k=32 with 2, hard k=64 with 3.
** Observation: the suit of the card that is dealt. */
#include <stddef.h>
#include "worlds/cards.h"

enum { LEVEL, K, DECKS };        /* parameters */

typedef struct repeat_previous {
  quiz q;
  uint16_t left[CARDS_SUITS];    /* suits still in the deck */
  uint16_t cards, shown, k, unused;
  uint8_t row[CARDS_MOST_DECKS * CARDS_DECK / 4];    /* what was shown, four to a byte */
} repeat_previous;

MN_FN int k_of(const double *param) { return quiz_setting(param, K, 4, 32, 64); }
MN_FN int cards_of(const double *param) { return CARDS_DECK * quiz_setting(param, DECKS, 1, 2, 3); }

MN_FN void spaces(const double *param, mn_space *out) {
  out->dtype = MN_U8;
  out->ndim = 1;
  out->shape[0] = 1;
  out->codes = out->n_actions = CARDS_SUITS;
  out->bytes = (int)offsetof(repeat_previous, row) + cards_of(param) / 4;
}

static int prepare(mn_ctx *mn, const double *param, const char *text, void *shared) {
  (void)text, (void)shared;
  if (k_of(param) < cards_of(param)) return 0;
  return mn_fail(mn, "repeat_previous: k=%d, expected less than the %d cards", k_of(param),
                 cards_of(param));
}

MN_FN void observe(repeat_previous *m, mn_io *io) { io->pixels[0] = (uint8_t)cards_get(m->row, m->shown - 1); }
MN_FN void ask(repeat_previous *m) { m->q.answer = m->shown < m->k ? -1 : (int16_t)cards_get(m->row, m->shown - m->k); }

MN_FN void deal(repeat_previous *m, mn_io *io) {
  const int suit = cards_draw(m->left, CARDS_SUITS, m->cards - m->shown, io->bits[0]);
  cards_put(m->row, m->shown++, suit);
  ask(m);
  io->pixels[0] = (uint8_t)suit;
}

MN_FN void reset(repeat_previous *m, mn_io *io) {
  m->k = (uint16_t)k_of(io->param);
  m->cards = (uint16_t)cards_of(io->param);
  m->q.questions = m->cards - m->k;
  cards_fill(m->left, CARDS_SUITS, m->cards / CARDS_DECK);
  deal(m, io);
}

MN_FN void step(repeat_previous *m, mn_io *io) {
  quiz_mark(&m->q, io);
  deal(m, io);
}

/* The cards that matter, oldest first; in rows from the top. */
static inline void draw(const repeat_previous *m, const mn_io *io, mn_canvas *c) {
  (void)io;
  const int columns = quiz_columns(m->k), rows = (m->k + columns - 1) / columns, from = m->shown - m->k;
  for (int i = 0; i < m->k; i++) {
    const float x = (float)(i % columns), y = 1.4f * (float)(i / columns);
    if (from + i >= 0) cards_show(c, x, y, cards_get(m->row, from + i));
    else quiz_tile(c, x, y, 0x2C3645FF, 0, NULL);
    if (i == 0) quiz_frame(c, x, y, m->q.answer < 0 ? 0x6B7A90FF : 0xF0E442FF);
    if (i == m->k - 1) quiz_frame(c, x, y, 0x56B4E9FF);
  }
  quiz_bar(&m->q, columns, 1.4f * (float)rows + 0.2f, c);
}

/* recent: the last 64 cards, newest first; -1 where there were none.  card: the newest. */
static inline int truth(const repeat_previous *m, const mn_io *io, const char **names, float *values) {
  (void)io;
  *names = QUIZ_TRUTH "recent[64] card";
  int n = quiz_truth(&m->q, values);
  for (int i = 1; i <= 64; i++)
    values[n++] = m->shown < i ? -1.0f : (float)cards_get(m->row, m->shown - i);
  values[n++] = (float)cards_get(m->row, m->shown - 1);
  return n;
}

/* Another newest card: it changes places with one of the deck. */
MN_FN bool set(repeat_previous *m, const mn_io *io, int fact, double value) {
  const int suit = (int)value, newest = m->shown - 1, now = cards_get(m->row, newest);
  (void)io, (void)fact;
  if (suit == now) return true;
  if (!cards_exchange(m->left, now, suit)) return false;
  cards_change(m->row, newest, suit);
  ask(m);
  return true;
}

static inline bool valid(const repeat_previous *m, const mn_io *io) {
  const int cards = cards_of(io->param), k = k_of(io->param), asks = m->shown >= k;
  if (m->cards != cards || m->k != k || m->shown < 1 || m->shown >= cards) return false;
  return quiz_valid(&m->q, cards - k, asks ? cards_get(m->row, m->shown - k) : -1) &&
         m->q.asked == (asks ? m->shown - k : 0) &&
         cards_valid(m->left, CARDS_SUITS, cards / CARDS_DECK, cards - m->shown);
}

/* The card that is dealt. */
static inline void see(const mn_io *io, mn_canvas *c) {
  quiz_table(c);
  cards_show(c, 0, 0, io->pixels[0]);
}

/* The present card is the answer for k=1; else the best without memory names any other suit, of which more cards are left. */
static inline void reference(const double *param, const void *shared, mn_reference *out) {
  const double cards = cards_of(param);
  (void)shared;
  quiz_reference(CARDS_SUITS, k_of(param) == 1 ? 1 : cards / CARDS_SUITS / (cards - 1), out);
}

MN_ENV(repeat_previous, .rules = "Cards are dealt one after another: name the suit of the card k - 1 before this one (easy: 3, medium: 31, hard: 63), "
                                 "once there are that many; each right answer pays, each wrong one costs as much.", .see = see, .reference = reference,
       .version = 0,
       .doc = "name the suit shown k - 1 cards ago (POPGym)",
       .about = "level     easy k=4 decks=1    medium k=32 decks=2    hard k=64 decks=3; 0: the level's own",
       .params = "level=easy|medium|hard k=0[0..831] decks=0[0..16]", .actions = CARDS_SUIT_NAMES,
       .settable = "card=spades|diamonds|clubs|hearts", .to_know = "answer=action recent=class",
       .observes = "suit",
       .spaces = spaces, .prepare = prepare, .reset = reset, .step = step, .draw = draw,
       .truth = truth, .valid = valid, .set = set, .observe = observe)
