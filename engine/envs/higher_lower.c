/* higher_lower.c -- will the next card be higher or lower?  A memory may count what is left in the deck.
** HigherLower of POPGym: 1, 2 or 3 decks; equal ranks neither pay nor cost.
** Observation: the rank of the present card, ace 0 .. king 12.  What counting adds is little: see reference. */
#include "worlds/cards.h"

enum { LEVEL, DECKS };           /* parameters */
enum { HIGHER, LOWER };

typedef struct higher_lower {
  uint16_t left[CARDS_RANKS];    /* of each rank, still in the deck */
  uint16_t cards, dealt;
  int16_t net;                   /* right less wrong */
  int16_t rank, before;          /* before: the card that was asked about; -1: none */
  uint16_t unused;
} higher_lower;

MN_FN int decks_of(const double *param) { return quiz_setting(param, DECKS, 1, 2, 3); }

MN_FN void spaces(const double *param, mn_space *out) {
  (void)param;
  out->dtype = MN_U8;
  out->ndim = 1;
  out->shape[0] = 1;
  out->codes = CARDS_RANKS;
  out->n_actions = 2;
  out->bytes = sizeof(higher_lower);
}

MN_FN void observe(higher_lower *m, mn_io *io) { io->pixels[0] = (uint8_t)m->rank; }

MN_FN void deal(higher_lower *m, mn_io *io) {
  m->before = m->rank;
  m->rank = (int16_t)cards_draw(m->left, CARDS_RANKS, m->cards - m->dealt, io->bits[0]);
  m->dealt++;
  observe(m, io);
}

MN_FN void reset(higher_lower *m, mn_io *io) {
  m->cards = (uint16_t)(CARDS_DECK * decks_of(io->param));
  cards_fill(m->left, CARDS_RANKS, m->cards / CARDS_DECK);
  m->rank = -1;
  deal(m, io);
}

MN_FN void step(higher_lower *m, mn_io *io) {
  deal(m, io);
  const int pays = m->rank == m->before ? 0 : (m->rank > m->before) == (io->action == HIGHER) ? 1 : -1;
  m->net = (int16_t)(m->net + pays);
  io->reward = (float)pays / (float)m->cards;
  io->terminated = m->dealt == m->cards;
  io->score = 0.5f + 0.5f * (float)m->net / (float)m->cards;
}

/* Cards left above the present one less those below it. */
MN_FN int balance(const higher_lower *m) {
  int n = 0;
  for (int r = 0; r < CARDS_RANKS; r++) n += r > m->rank ? m->left[r] : r < m->rank ? -(int)m->left[r] : 0;
  return n;
}

static const char *const HIGHER_LOWER_RANKS[] = { "A", "2", "3", "4", "5", "6", "7", "8", "9", "T", "J", "Q", "K" };

/* The present card, the one before it, and what is left of each rank, on the right side for the answer that is likelier. */
static inline void draw(const higher_lower *m, const mn_io *io, mn_canvas *c) {
  (void)io;
  mn_canvas_add(c, MN_RECT, 0x1A202800, 0, 0, 13, 5);
  if (m->before >= 0) quiz_tile(c, 4.4f, 0, 0x8FA3BFFF, 0x14181FFF, HIGHER_LOWER_RANKS[m->before]);
  quiz_tile(c, 6, 0, 0xE8EDF4FF, 0x14181FFF, HIGHER_LOWER_RANKS[m->rank]);
  for (int r = 0; r < CARDS_RANKS; r++) {
    const float high = 2.2f * (float)m->left[r] / (float)(4 * (m->cards / CARDS_DECK));
    const uint32_t color = r == m->rank ? 0x6B7A90FF : r > m->rank ? 0xE69F00FF : 0x56B4E9FF;
    mn_canvas_add(c, MN_RECT, 0x2C3645FF, (float)r + 0.1f, 1.8f, 0.8f, 2.2f);
    mn_canvas_add(c, MN_RECT, color, (float)r + 0.1f, 4 - high, 0.8f, high);
    mn_canvas_text(c, 0xE8EDF4FF, (float)r + 0.33f, 4.6f, 0.5f, HIGHER_LOWER_RANKS[r]);
  }
}

static inline void see(const mn_io *io, mn_canvas *c) {
  quiz_table(c);
  quiz_tile(c, 0, 0, 0xE8EDF4FF, 0x14181FFF, HIGHER_LOWER_RANKS[io->pixels[0]]);
}

/* answer: the likelier one, -1 where both are equal.  left: cards of each rank in the deck. */
static inline int truth(const higher_lower *m, const mn_io *io, const char **names, float *values) {
  (void)io;
  const int more = balance(m);
  *names = "rank answer net dealt left[13]";
  values[0] = m->rank;
  values[1] = more > 0 ? HIGHER : more < 0 ? LOWER : -1;
  values[2] = m->net;
  values[3] = m->dealt;
  for (int r = 0; r < CARDS_RANKS; r++) values[4 + r] = m->left[r];
  return 4 + CARDS_RANKS;
}

/* Another present card: it changes places with one of the deck. */
MN_FN bool set(higher_lower *m, const mn_io *io, int fact, double value) {
  const int rank = (int)value;
  (void)io, (void)fact;
  if (rank == m->rank) return true;
  if (!cards_exchange(m->left, m->rank, rank)) return false;
  m->rank = (int16_t)rank;
  return true;
}

static inline bool valid(const higher_lower *m, const mn_io *io) {
  const int cards = CARDS_DECK * decks_of(io->param), most = cards / CARDS_RANKS;
  if (m->cards != cards || m->dealt < 1 || m->dealt >= cards || m->net >= m->dealt || m->net <= -m->dealt) return false;
  if (m->rank < 0 || m->rank >= CARDS_RANKS || m->before < -1 || m->before >= CARDS_RANKS || (m->before < 0) != (m->dealt == 1)) return false;
  return cards_valid(m->left, CARDS_RANKS, cards / CARDS_DECK, cards - m->dealt) && m->left[m->rank] < most;
}

/* Who knows the present card alone says higher below the 7.  Against a card of the rest of the deck that wins |12 - 2 rank| * 4 decks of the
** n - 1 others.  Who counts says what more cards are left for: over 4,000 decks, to within 0.002. */
static inline void reference(const double *param, const void *shared, mn_reference *out) {
  const double n = CARDS_DECK * decks_of(param), counts[] = { 0.527, 0.514, 0.512 };
  (void)shared;
  out->chance = 0.5;
  /* a step wins on average: sum over ranks of |12 - 2 r| / 13 = 84 / 13, of 4 decks cards each; n - 1 steps of 1 / n */
  out->memoryless = 0.5 + 0.5 * (84.0 / 13) * (n / 13) / n;
  if (decks_of(param) > 3) return;
  out->best_return = counts[decks_of(param) - 1];
  out->best = 0.5 + 0.5 * out->best_return;
}

MN_ENV(higher_lower, .rules = "Cards are dealt one after another: say whether the next one will be higher or lower; right pays, wrong costs as much, "
                              "equal does neither.", .see = see, .reference = reference,
       .version = 0, .doc = "will the next card be higher or lower? who counts cards knows a little more (POPGym)",
       .about = "level     easy 1 deck    medium 2    hard 3; decks 0: the level's own\n"
                "score     (return + 1) / 2.  The range for memory is narrow: returns of 0.497 without one, 0.527, 0.514, 0.512 for who counts\n"
                "          cards; compare normalised scores, and many episodes.",
       .params = "level=easy|medium|hard decks=0[0..16]", .actions = "higher lower", .settable = "rank=0[0..12]",
       .to_know = "answer=action rank=class left=number", .observes = "rank",
       .spaces = spaces, .reset = reset, .step = step, .draw = draw, .truth = truth, .valid = valid, .set = set, .observe = observe)
