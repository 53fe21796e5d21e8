/* selective_copy.c -- shows symbols scattered among blanks; then the agent names them in order.  The memory must select
** what to keep.  If the length is the number of symbols there are no blanks: the copy task.
** After Gu and Dao (2023), "Mamba", figure 2: easy 4 symbols in 20 steps, medium 8 in 72, hard 16 in 272;
** of 8 different ones.
** Observation: the symbol; or the code `symbols` for a blank, `symbols` + 1 for "name the next". */
#include <stddef.h>
#include "worlds/symbols.h"

enum { LEVEL, TOKENS, LENGTH, SYMBOLS };         /* parameters */
enum { MOST_TOKENS = 256 };

typedef struct selective_copy {
  quiz q;
  uint16_t symbols, blanks_left, shown, unused;
  uint8_t now;                   /* what the observation shows */
  uint8_t token[MOST_TOKENS];
} selective_copy;

MN_FN int tokens_of(const double *param) { return quiz_setting(param, TOKENS, 4, 8, 16); }
MN_FN int length_of(const double *param) { return quiz_setting(param, LENGTH, 20, 72, 272); }
MN_FN int symbols_of(const double *param) { return quiz_setting(param, SYMBOLS, 8, 8, 8); }

MN_FN void spaces(const double *param, mn_space *out) {
  out->dtype = MN_U8;
  out->ndim = 1;
  out->shape[0] = 1;
  out->n_actions = symbols_of(param);
  out->codes = symbols_of(param) + 2;
  out->bytes = (int)offsetof(selective_copy, token) + tokens_of(param);
}

static int prepare(mn_ctx *mn, const double *param, const char *text, void *shared) {
  (void)text, (void)shared;
  if (tokens_of(param) <= length_of(param)) return 0;
  return mn_fail(mn, "selective_copy: length=%d, expected at least the %d of tokens",
                 length_of(param), tokens_of(param));
}

/* Each place for the symbols has the same chance: the next one is a symbol as often as symbols are
** among what is left. */
MN_FN void show(selective_copy *m, mn_io *io) {
  const int tokens_left = m->q.questions - m->shown, left = tokens_left + m->blanks_left;
  m->q.answer = -1;
  if (left == 0) {
    if (m->q.asked < m->q.questions) m->q.answer = m->token[m->q.asked];
    m->now = (uint8_t)(m->symbols + 1);
  } else if (mn_below(io->bits[0], left) < tokens_left) {
    m->now = (uint8_t)mn_below(io->bits[1], m->symbols);
    m->token[m->shown++] = m->now;
  } else {
    m->now = (uint8_t)m->symbols;
    m->blanks_left--;
  }
  io->pixels[0] = m->now;
}

MN_FN void reset(selective_copy *m, mn_io *io) {
  m->symbols = (uint16_t)symbols_of(io->param);
  m->q.questions = (uint16_t)tokens_of(io->param);
  m->blanks_left = (uint16_t)(length_of(io->param) - tokens_of(io->param));
  show(m, io);
}

MN_FN void step(selective_copy *m, mn_io *io) {
  quiz_mark(&m->q, io);
  show(m, io);
}

/* The symbols in order; above them the current observation. */
static inline void draw(const selective_copy *m, const mn_io *io, mn_canvas *c) {
  (void)io;
  const int columns = quiz_columns(m->q.questions);
  const float middle = 0.5f * (float)(columns - 1);
  if (m->now < m->symbols) symbols_show(c, middle, 0, m->now);
  else quiz_tile(c, middle, 0, m->now == m->symbols ? 0x2C3645FF : 0xF0E442FF, 0x14181FFF,
                 m->now == m->symbols ? NULL : "?");
  quiz_frame(c, middle, 0, 0x56B4E9FF);
  float y = 0;
  for (int i = 0; i < m->q.questions; i++) {
    const float x = (float)(i % columns);
    y = 1.8f + 1.4f * (float)(i / columns);
    if (i < m->shown) symbols_show(c, x, y, m->token[i]);
    else quiz_tile(c, x, y, 0x2C3645FF, 0, NULL);
    if (m->q.answer >= 0 && i == m->q.asked) quiz_frame(c, x, y, 0xF0E442FF);
  }
  quiz_bar(&m->q, columns, y + 1.6f, c);
}

/* tokens: the symbols in the order they were shown, -1 for those to come and beyond the last. */
static inline int truth(const selective_copy *m, const mn_io *io, const char **names, float *values) {
  (void)io;
  *names = QUIZ_TRUTH "tokens[256]";
  int n = quiz_truth(&m->q, values);
  for (int i = 0; i < MOST_TOKENS; i++) values[n++] = i < m->shown ? (float)m->token[i] : -1.0f;
  return n;
}

static inline bool valid(const selective_copy *m, const mn_io *io) {
  const int tokens = tokens_of(io->param), symbols = symbols_of(io->param);
  const int blanks = length_of(io->param) - tokens, asks = m->now == symbols + 1;
  if (m->symbols != symbols || m->now > symbols + 1 || m->shown > tokens || m->blanks_left > blanks) return false;
  for (int i = 0; i < m->shown; i++)
    if (m->token[i] >= symbols) return false;
  if (asks ? m->shown < tokens || m->blanks_left || m->q.asked >= tokens : m->q.asked) return false;
  return quiz_valid(&m->q, tokens, asks ? m->token[m->q.asked] : -1);
}

/* A symbol, a blank, or the question. */
static inline void see(const mn_io *io, mn_canvas *c) {
  const int now = io->pixels[0], symbols = symbols_of(io->param);
  quiz_table(c);
  if (now < symbols) symbols_show(c, 0, 0, now);
  else quiz_tile(c, 0, 0, now == symbols ? 0x2C3645FF : 0xF0E442FF, 0x14181FFF, now == symbols ? NULL : "?");
}

/* Every question looks alike, and each symbol is as probable. */
static inline void reference(const double *param, const void *shared, mn_reference *out) {
  (void)shared;
  quiz_reference(symbols_of(param), 1 / (double)symbols_of(param), out);
}

MN_ENV(selective_copy, .rules = "Symbols come among blanks: keep them, and when a question mark comes name them in the order they came, one at each step; "
                                "each right answer pays, each wrong one costs as much.", .see = see, .reference = reference,
       .version = 0,
       .doc = "symbols among blanks; then name them in order",
       .about = "level   easy tokens=4 length=20    medium tokens=8 length=72    hard tokens=16 length=272; symbols=8;\n"
                "        0: the level's own\n"
                "length  steps before the answers; equal to tokens: no blanks, the copy task",
       .params = "level=easy|medium|hard tokens=0[0..256] length=0[0..4096] symbols=0[0..62]",
       .actions = SYMBOLS_NAMES, .to_know = "answer=action tokens=class",
       .observes = "symbol",
       .spaces = spaces, .prepare = prepare, .reset = reset, .step = step, .draw = draw,
       .truth = truth, .valid = valid)
