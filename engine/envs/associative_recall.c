/* associative_recall.c -- shows pairs of a key and a value, then keys: the agent names their values.
** Memories of outer products are made for this.  With more pairs than symbols, keys return with another
** value and the last one counts: a memory that only adds would answer with both.
** easy 4 pairs of 8 symbols, medium 16 of 32, hard 64 of 32.  As many questions as pairs.
** Keys come in shuffled rounds of all symbols, so that up to `symbols` pairs have different keys; the
** questions too, in rounds of all keys that were shown.
** Observation: key, value; where there is none, the code `symbols`. */
#include <stddef.h>
#include "worlds/symbols.h"

enum { LEVEL, PAIRS, SYMBOLS, QUESTIONS };       /* parameters */

typedef struct associative_recall {
  quiz q;
  uint64_t shown, round;         /* sets: keys that have a value; those still to come in this round */
  uint16_t pairs, symbols, at;   /* at: pairs shown so far */
  uint8_t key, value;            /* what the observation shows */
  uint8_t of[SYMBOLS_MOST + 2];  /* value of each key */
} associative_recall;

MN_FN int symbols_of(const double *param) { return quiz_setting(param, SYMBOLS, 8, 32, 32); }

MN_FN void spaces(const double *param, mn_space *out) {
  out->dtype = MN_U8;
  out->ndim = 1;
  out->shape[0] = 2;
  out->n_actions = symbols_of(param);
  out->codes = symbols_of(param) + 1;
  out->bytes = (int)offsetof(associative_recall, of) + symbols_of(param);
}

/* The next key of a round; when all have come, a new round of `all` begins. */
MN_FN int next_key(associative_recall *m, uint64_t all, uint32_t bits) {
  if (!m->round) m->round = all;
  const int key = symbols_draw(m->round, bits);
  m->round &= ~((uint64_t)1 << key);
  return key;
}

MN_FN void show(associative_recall *m, mn_io *io) {
  m->q.answer = -1;
  m->value = (uint8_t)m->symbols;
  if (m->at < m->pairs) {
    m->key = (uint8_t)next_key(m, symbols_first(m->symbols), io->bits[0]);
    m->value = (uint8_t)mn_below(io->bits[1], m->symbols);
    m->of[m->key] = m->value;
    m->shown |= (uint64_t)1 << m->key;
    if (++m->at == m->pairs) m->round = 0;
  } else if (m->q.asked < m->q.questions) {
    m->key = (uint8_t)next_key(m, m->shown, io->bits[0]);
    m->q.answer = m->of[m->key];
  } else {
    m->key = (uint8_t)m->symbols;
  }
  io->pixels[0] = m->key;
  io->pixels[1] = m->value;
}

MN_FN void reset(associative_recall *m, mn_io *io) {
  m->pairs = (uint16_t)quiz_setting(io->param, PAIRS, 4, 16, 64);
  m->symbols = (uint16_t)symbols_of(io->param);
  m->q.questions = (uint16_t)quiz_setting(io->param, QUESTIONS, m->pairs, m->pairs, m->pairs);
  show(m, io);
}

MN_FN void step(associative_recall *m, mn_io *io) {
  quiz_mark(&m->q, io);
  show(m, io);
}

/* Every key that was shown above its value, as they stand now; what is not there lies on its face. */
static inline void draw(const associative_recall *m, const mn_io *io, mn_canvas *c) {
  (void)io;
  const int columns = quiz_columns(m->symbols);
  float y = 0;
  for (int key = 0; key < m->symbols; key++) {
    const float x = (float)(key % columns);
    const bool known = m->shown >> key & 1, now = key == m->key;
    y = 3 * (float)(key / columns);
    symbols_show(c, x, y, key);
    if (known) symbols_show(c, x, y + 1.35f, m->of[key]);
    else quiz_tile(c, x, y + 1.35f, 0x2C3645FF, 0, NULL);
    if (now) quiz_frame(c, x, y, 0x56B4E9FF);
    if (now) quiz_frame(c, x, y + 1.35f, m->q.answer < 0 ? 0x56B4E9FF : 0xF0E442FF);
  }
  quiz_bar(&m->q, columns, y + 3.1f, c);
}

/* values: of each key, -1 where none was shown. */
static inline int truth(const associative_recall *m, const mn_io *io, const char **names,
                        float *values) {
  (void)io;
  *names = QUIZ_TRUTH "values[62]";
  int n = quiz_truth(&m->q, values);
  for (int key = 0; key < SYMBOLS_MOST; key++)
    values[n++] = m->shown >> key & 1 ? (float)m->of[key] : -1.0f;
  return n;
}

static inline bool valid(const associative_recall *m, const mn_io *io) {
  const int symbols = symbols_of(io->param), pairs = quiz_setting(io->param, PAIRS, 4, 16, 64);
  const int asks = m->value == symbols;
  const uint64_t all = m->at < pairs ? symbols_first(symbols) : m->shown;      /* what rounds are of */
  if (m->symbols != symbols || m->pairs != pairs || m->at < 1 || m->at > pairs || m->value > symbols) return false;
  if ((m->shown & ~symbols_first(symbols)) || (m->round & ~all) || m->key >= symbols || !(m->shown >> m->key & 1))
    return false;
  for (int key = 0; key < symbols; key++)
    if ((m->shown >> key & 1) && m->of[key] >= symbols) return false;
  return (asks ? m->at == pairs : !m->q.asked) &&
         quiz_valid(&m->q, quiz_setting(io->param, QUESTIONS, pairs, pairs, pairs), asks ? m->of[m->key] : -1);
}

/* A key, and its value or the question. */
static inline void see(const mn_io *io, mn_canvas *c) {
  const int symbols = symbols_of(io->param);
  quiz_table(c);
  for (int i = 0; i < 2; i++) {
    const float x = i ? 1.6f : -1.6f;
    if (io->pixels[i] < symbols) symbols_show(c, x, 0, io->pixels[i]);
    else quiz_tile(c, x, 0, i ? 0xF0E442FF : 0x2C3645FF, 0x14181FFF, i ? "?" : NULL);
    mn_canvas_text(c, 0xE8EDF4FF, x, 1.8f, 0.3f, i ? "value" : "key");
  }
}

/* A question shows a key alone, whose value may be any symbol. */
static inline void reference(const double *param, const void *shared, mn_reference *out) {
  (void)shared;
  quiz_reference(symbols_of(param), 1 / (double)symbols_of(param), out);
}

MN_ENV(associative_recall, .rules = "Keys are shown with their values, then keys alone: name the value that each key had last; "
                                    "each right answer pays, each wrong one costs as much.", .see = see, .reference = reference,
       .version = 0,
       .doc = "pairs are shown, then keys: name the value of each key",
       .about = "level      easy pairs=4 symbols=8    medium pairs=16 symbols=32    hard pairs=64 symbols=32;\n"
                "           0: the level's own\n"
                "pairs      more than symbols: keys recur with other values, and the last one counts\n"
                "questions  0: one per pair",
       .params = "level=easy|medium|hard pairs=0[0..1024] symbols=0[0..62] questions=0[0..1024]",
       .actions = SYMBOLS_NAMES, .to_know = "answer=action values=class",
       .observes = "key value",
       .spaces = spaces, .reset = reset, .step = step, .draw = draw, .truth = truth, .valid = valid)
