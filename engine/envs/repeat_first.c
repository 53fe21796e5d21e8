/* repeat_first.c -- name the suit of the very first card at every step: the memory keeps one thing while
** others of its kind pass.  RepeatFirst of POPGym: easy 1 deck, medium 8, hard 16.
** Observation: the suit of the card that is dealt. */
#include "worlds/cards.h"

enum { LEVEL, DECKS };           /* parameters */

typedef struct repeat_first {
  quiz q;
  uint16_t left[CARDS_SUITS];    /* suits still in the deck */
  uint16_t n_left;
  uint8_t first, now;
} repeat_first;

MN_FN int decks_of(const double *param) { return quiz_setting(param, DECKS, 1, 8, 16); }

MN_FN void spaces(const double *param, mn_space *out) {
  (void)param;
  out->dtype = MN_U8;
  out->ndim = 1;
  out->shape[0] = 1;
  out->codes = out->n_actions = CARDS_SUITS;
  out->bytes = sizeof(repeat_first);
}

MN_FN void observe(repeat_first *m, mn_io *io) { io->pixels[0] = m->now; }

MN_FN void deal(repeat_first *m, mn_io *io) {
  m->now = (uint8_t)cards_draw(m->left, CARDS_SUITS, m->n_left--, io->bits[0]);
  observe(m, io);
}

MN_FN void reset(repeat_first *m, mn_io *io) {
  const int decks = decks_of(io->param);
  m->n_left = (uint16_t)(CARDS_DECK * decks);
  m->q.questions = m->n_left - 1;
  cards_fill(m->left, CARDS_SUITS, decks);
  deal(m, io);
  m->first = m->now;
  m->q.answer = m->first;
}

MN_FN void step(repeat_first *m, mn_io *io) {
  quiz_mark(&m->q, io);
  deal(m, io);
}

/* The first card, and apart from it the one that is seen. */
static inline void draw(const repeat_first *m, const mn_io *io, mn_canvas *c) {
  (void)io;
  cards_show(c, 0, 0, m->first);
  quiz_frame(c, 0, 0, 0xF0E442FF);
  cards_show(c, 2, 0, m->now);
  quiz_frame(c, 2, 0, 0x56B4E9FF);
  quiz_bar(&m->q, 3, 1.6f, c);
}

/* left: how many of each suit are still in the deck. */
static inline int truth(const repeat_first *m, const mn_io *io, const char **names, float *values) {
  (void)io;
  *names = QUIZ_TRUTH "left[4]";
  int n = quiz_truth(&m->q, values);
  for (int k = 0; k < CARDS_SUITS; k++) values[n++] = m->left[k];
  return n;
}

/* Another first card; it is seen where it was just dealt. */
MN_FN bool set(repeat_first *m, const mn_io *io, int fact, double value) {
  const int suit = (int)value;
  (void)io, (void)fact;
  if (suit == m->first) return true;
  if (!cards_exchange(m->left, m->first, suit)) return false;
  if (m->q.asked == 0) m->now = (uint8_t)suit;
  m->first = (uint8_t)suit;
  m->q.answer = (int16_t)suit;
  return true;
}

static inline bool valid(const repeat_first *m, const mn_io *io) {
  const int decks = decks_of(io->param), questions = CARDS_DECK * decks - 1;
  return m->first < CARDS_SUITS && m->now < CARDS_SUITS && quiz_valid(&m->q, questions, m->first) &&
         m->n_left == questions - m->q.asked && cards_valid(m->left, CARDS_SUITS, decks, m->n_left);
}

/* The card that is dealt. */
static inline void see(const mn_io *io, mn_canvas *c) {
  quiz_table(c);
  cards_show(c, 0, 0, io->pixels[0]);
}

/* The first question shows its own answer; at the others the present suit is a little less probable than another, by less than that is
** worth.  So the best without memory names what it sees. */
static inline void reference(const double *param, const void *shared, mn_reference *out) {
  const double cards = CARDS_DECK * decks_of(param), questions = cards - 1;
  (void)shared;
  quiz_reference(CARDS_SUITS, (1 + (questions - 1) * (cards / CARDS_SUITS - 1) / (cards - 1)) / questions, out);
}

MN_ENV(repeat_first, .rules = "Cards are dealt one after another: at every card name the suit of the very first one; "
                              "each right answer pays, each wrong one costs as much.", .see = see, .reference = reference,
       .version = 0,
       .doc = "name the suit of the first card at every step (POPGym)",
       .about = "level     easy decks=1    medium decks=8    hard decks=16; 0: the level's own",
       .params = "level=easy|medium|hard decks=0[0..16]", .actions = CARDS_SUIT_NAMES,
       .settable = "answer=spades|diamonds|clubs|hearts", .to_know = "answer=action",
       .observes = "suit",
       .spaces = spaces, .reset = reset, .step = step, .draw = draw, .truth = truth, .valid = valid, .set = set, .observe = observe)
