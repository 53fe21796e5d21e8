/* autoencode.c -- shows whole decks, then the agent names the suits backwards: its memory must hold all that it
** saw.  Autoencode of POPGym: easy 1 deck, medium 2, hard 3.
** Observation: 1 while watching, 0 while playing; the suit of the card.  Play begins with the last card,
** which is still visible when its suit is asked for; afterwards the suit is 0. */
#include <stddef.h>
#include "worlds/cards.h"

enum { LEVEL, DECKS };           /* parameters */

typedef struct autoencode {
  quiz q;
  uint16_t left[CARDS_SUITS];    /* suits still in the deck */
  uint16_t shown;
  uint8_t row[CARDS_MOST_DECKS * CARDS_DECK / 4];    /* what was shown, four to a byte */
} autoencode;

MN_FN int decks_of(const double *param) { return quiz_setting(param, DECKS, 1, 2, 3); }

MN_FN void spaces(const double *param, mn_space *out) {
  out->dtype = MN_U8;
  out->ndim = 1;
  out->shape[0] = 2;
  out->codes = out->n_actions = CARDS_SUITS;
  out->bytes = (int)offsetof(autoencode, row) + CARDS_DECK * decks_of(param) / 4;
}

MN_FN void observe(autoencode *m, mn_io *io) {
  io->pixels[0] = (uint8_t)(m->shown < m->q.questions);
  io->pixels[1] = (uint8_t)(m->q.asked ? 0 : cards_get(m->row, m->shown - 1));
}

/* The card that is shown, or asked for; after the last answer the first one. */
MN_FN int card_at(const autoencode *m) {
  const int next = m->shown - 1 - m->q.asked;
  return next < 0 ? 0 : next;
}

MN_FN void show(autoencode *m, mn_io *io) {
  const int cards = m->q.questions;
  if (m->shown < cards) {
    cards_put(m->row, m->shown, cards_draw(m->left, CARDS_SUITS, cards - m->shown, io->bits[0]));
    m->shown++;
  }
  m->q.answer = m->shown == cards && m->q.asked < cards ? (int16_t)cards_get(m->row, card_at(m)) : -1;
  observe(m, io);
}

MN_FN void reset(autoencode *m, mn_io *io) {
  const int decks = decks_of(io->param);
  m->q.questions = (uint16_t)(CARDS_DECK * decks);
  cards_fill(m->left, CARDS_SUITS, decks);
  show(m, io);
}

MN_FN void step(autoencode *m, mn_io *io) {
  quiz_mark(&m->q, io);
  show(m, io);
}

/* All cards, in rows; those that were named again lie on their faces. */
static inline void draw(const autoencode *m, const mn_io *io, mn_canvas *c) {
  (void)io;
  const int cards = m->q.questions, rows = cards / QUIZ_ROW, next = cards - 1 - m->q.asked;
  for (int i = 0; i < cards; i++) {
    const float x = (float)(i % QUIZ_ROW), y = 1.4f * (float)(i / QUIZ_ROW);
    if (i < m->shown && i <= next) cards_show(c, x, y, cards_get(m->row, i));
    else quiz_tile(c, x, y, 0x2C3645FF, 0, NULL);
    if (m->q.answer >= 0 ? i == next : i == m->shown - 1)
      quiz_frame(c, x, y, m->q.answer >= 0 ? 0xF0E442FF : 0x56B4E9FF);
  }
  quiz_bar(&m->q, QUIZ_ROW, 1.4f * (float)rows + 0.2f, c);
}

/* row: the cards in the order they were shown; -1 for those to come and beyond the last.  card: the one that is shown, or asked for. */
static inline int truth(const autoencode *m, const mn_io *io, const char **names, float *values) {
  (void)io;
  *names = QUIZ_TRUTH "row[832] card";
  int n = quiz_truth(&m->q, values);
  for (int i = 0; i < CARDS_MOST_DECKS * CARDS_DECK; i++)
    values[n++] = i < m->shown ? (float)cards_get(m->row, i) : -1.0f;
  values[n++] = (float)cards_get(m->row, card_at(m));
  return n;
}

/* Another card there: it changes places with one of the deck, or of those that will be asked for later. */
MN_FN bool set(autoencode *m, const mn_io *io, int fact, double value) {
  const int suit = (int)value, at = card_at(m), now = cards_get(m->row, at);
  int other = at - 1;
  (void)io, (void)fact;
  if (suit == now) return true;
  if (m->shown == m->q.questions) {
    while (other >= 0 && cards_get(m->row, other) != suit) other--;
    if (other < 0) return false;
    cards_change(m->row, other, now);
    m->q.answer = (int16_t)suit;
  } else if (!cards_exchange(m->left, now, suit)) {
    return false;
  }
  cards_change(m->row, at, suit);
  return true;
}

static inline bool valid(const autoencode *m, const mn_io *io) {
  const int decks = decks_of(io->param), cards = CARDS_DECK * decks, next = cards - 1 - m->q.asked;
  if (m->shown < 1 || m->shown > cards || next < 0 || (m->q.asked && m->shown < cards)) return false;
  return quiz_valid(&m->q, cards, m->shown == cards ? cards_get(m->row, next) : -1) &&
         cards_valid(m->left, CARDS_SUITS, decks, cards - m->shown);
}

/* The card while it watches; afterwards nothing but the last one. */
static inline void see(const mn_io *io, mn_canvas *c) {
  quiz_table(c);
  cards_show(c, 0, 0, io->pixels[1]);
  if (io->pixels[0]) mn_canvas_text(c, 0xE8EDF4FF, -2.2f, 0.8f, 0.4f, "watch");
  else mn_canvas_text(c, 0xF0E442FF, -2.2f, 0.8f, 0.4f, "name");
}

/* The first question shows its answer, the others show suit 0: the best without memory names the suit that it sees. */
static inline void reference(const double *param, const void *shared, mn_reference *out) {
  const double cards = CARDS_DECK * decks_of(param);
  (void)shared;
  quiz_reference(CARDS_SUITS, (1 + (cards - 1) / CARDS_SUITS) / cards, out);
}

MN_ENV(autoencode, .rules = "Watch the cards until all have been dealt, then name their suits backwards, beginning with the last card, which is still there; "
                            "each right answer pays, each wrong one costs as much.", .see = see, .reference = reference,
       .version = 0,
       .doc = "watch decks of cards, then name their suits in reverse order (POPGym)",
       .about = "level     easy decks=1    medium decks=2    hard decks=3; 0: the level's own",
       .params = "level=easy|medium|hard decks=0[0..16]", .actions = CARDS_SUIT_NAMES,
       .settable = "card=spades|diamonds|clubs|hearts", .to_know = "answer=action row=class",
       .observes = "recalling suit",
       .spaces = spaces, .reset = reset, .step = step, .draw = draw, .truth = truth, .valid = valid, .set = set, .observe = observe)
