/* memory_chain.c -- bits are shown at the beginning, and one of them is asked for at the end of a chain of empty steps.
** bsuite's memory_chain, whose sweeps memory_len and memory_size set memory_length and num_bits.  An observation is made before
** its step is counted, as there: so the bits are shown twice, by reset and by the first step, and the question comes one step
** after the observation that holds it.
** Observation: the share of time left, which bit is asked for (0 before the question), the bits as -1 and 1 (0 when not shown). */
#include "env.h"
#include <math.h>

enum { LENGTH, BITS };           /* parameters */
enum { TIME, QUERY, CONTEXT };   /* where they begin in the observation */
enum { MOST = 64 };

typedef struct memory_chain {
  uint64_t context;              /* bit i: that of number i */
  int16_t  steps;                /* done */
  uint8_t  query;
} memory_chain;

MN_FN void spaces(const double *param, mn_space *out) {
  out->dtype = MN_F32;
  out->ndim = 1;
  out->shape[0] = CONTEXT + (int)param[BITS];
  out->n_actions = 2;
  out->bytes = sizeof(memory_chain);
  out->no_bits = true;
}

MN_FN void observe(memory_chain *m, mn_io *io) {
  const int length = (int)io->param[LENGTH], n = (int)io->param[BITS], now = m->steps - (m->steps > 0);
  io->obs[TIME] = 1 - (float)now / (float)length;
  io->obs[QUERY] = now == length - 1 ? (float)m->query : 0;
  for (int i = 0; i < n; i++) io->obs[CONTEXT + i] = now ? 0 : (m->context >> i & 1 ? 1 : -1);
}

MN_FN void reset(memory_chain *m, mn_io *io) {
  const int n = (int)io->param[BITS];
  m->context = ((uint64_t)io->bits[1] << 32 | io->bits[0]) >> (MOST - n);
  m->query = (uint8_t)mn_below(io->bits[2], n);
  observe(m, io);
}

MN_FN int answer_of(const memory_chain *m) { return (int)(m->context >> m->query & 1); }

MN_FN void step(memory_chain *m, mn_io *io) {
  const bool right = io->action == answer_of(m);
  m->steps++;
  io->terminated = m->steps > (int)io->param[LENGTH];
  io->reward = io->terminated ? (right ? 1 : -1) : 0;
  io->score = (float)(io->terminated & right);
  observe(m, io);
}

/* ---- pictures: the bits in a row, below them the chain with the agent on it ---- */

/* bits: NULL if they are not known; asked: which one is asked for, or -1. */
static inline void picture(const mn_io *io, const uint64_t *bits, bool shown, int asked, float done, mn_canvas *c) {
  const int n = (int)io->param[BITS], cols = n < 8 ? n : 8, rows = (n + cols - 1) / cols;
  const float wide = 8, left = 4 - 0.5f * (float)cols, below = (float)rows + 0.7f;
  for (int i = 0; i < n; i++) {
    const float x = left + (float)(i % cols), y = (float)(i / cols);
    const bool up = bits && *bits >> i & 1;
    mn_canvas_add(c, MN_RECT, 0x1B222DFF, x + 0.05f, y + 0.05f, 0.9f, 0.9f);
    if (bits) {
      mn_canvas_add(c, MN_TRIANGLE, up ? (shown ? 0xF0E442FF : 0x6B6A3CFF) : shown ? 0x56B4E9FF : 0x35557AFF, x + 0.25f, y + 0.25f, 0.5f, 0.5f);
      mn_canvas_data(c, up ? -1.5707964f : 1.5707964f);
    } else {
      mn_canvas_text(c, 0x6B7A90FF, x + 0.36f, y + 0.68f, 0.5f, "?");
    }
    if (i == asked) {
      mn_canvas_add(c, MN_FRAME, 0xFFFFFFFF, x + 0.02f, y + 0.02f, 0.96f, 0.96f);
      mn_canvas_data(c, 0.06f);
    }
  }
  mn_canvas_add(c, MN_RECT, 0x35425AFF, 0, below, wide, 0.12f);
  mn_canvas_add(c, MN_RECT, 0x6B7A90FF, wide, below - 0.3f, 0.08f, 0.72f);
  mn_canvas_add(c, MN_DISC, 0x56B4E9FF, wide * done, below + 0.06f, 0.22f, 0.22f);
}

static inline void draw(const memory_chain *m, const mn_io *io, mn_canvas *c) {
  const float length = (float)io->param[LENGTH];
  picture(io, &m->context, m->steps <= 1, m->query, fminf((float)m->steps / length, 1), c);
}

/* The bits while they are shown, the frame while one is asked for. */
static inline void see(const mn_io *io, mn_canvas *c) {
  const int n = (int)io->param[BITS], length = (int)io->param[LENGTH];
  const float time = io->obs[TIME];
  const bool shown = io->obs[CONTEXT] != 0, asked = time * (float)length < 1.5f && time > 0;
  uint64_t bits = 0;
  for (int i = 0; i < n; i++) bits |= (uint64_t)(io->obs[CONTEXT + i] > 0) << i;
  picture(io, shown ? &bits : NULL, shown, asked ? (int)io->obs[QUERY] : -1, 1 - time, c);
}

/* answer: the action that pays at the end.  distance: steps until then. */
static inline int truth(const memory_chain *m, const mn_io *io, const char **names, float *values) {
  *names = "answer query step distance context[64]";
  values[0] = (float)answer_of(m);
  values[1] = m->query;
  values[2] = m->steps;
  values[3] = fmaxf((float)io->param[LENGTH] - m->steps, 0);
  for (int i = 0; i < MOST; i++) values[4 + i] = i < (int)io->param[BITS] ? (float)(m->context >> i & 1) : -1;
  return 4 + MOST;
}

static inline bool valid(const memory_chain *m, const mn_io *io) {
  const int n = (int)io->param[BITS];
  return m->query < n && (n == MOST || m->context >> n == 0) && m->steps >= 0 && m->steps <= (int)io->param[LENGTH] + 1;
}

/* answer */
static inline bool set(memory_chain *m, const mn_io *io, int fact, double value) {
  (void)io, (void)fact;
  m->context = (m->context & ~((uint64_t)1 << m->query)) | (uint64_t)value << m->query;
  return true;
}

/* Of length 1 the bits are still in sight when the question comes. */
static inline void reference(const double *param, const void *shared, mn_reference *out) {
  (void)shared;
  out->chance = 0.5;
  out->memoryless = param[LENGTH] == 1 ? 1 : 0.5;
  out->best = out->best_return = 1;
}

MN_ENV(memory_chain, .rules = "Bits are shown at first: remember them to the end of the chain, and say there whether the framed one was down or up, "
                              "for +1; the other answer costs 1.", .see = see, .reference = reference,
       .version = 0, .doc = "keep bits to the end of a chain, where one is asked for (bsuite)",
       .about = "memory_length  empty steps, as bsuite counts: an episode has one step more\n"
                "num_bits       of which one is asked for",
       .params = "memory_length=20[1..10000] num_bits=1[1..64]", .actions = "down up",
       .settable = "answer=down|up", .to_know = "answer=action@distance",
       .observes = "time query context[*]",
       .spaces = spaces, .reset = reset, .step = step, .draw = draw, .truth = truth, .valid = valid, .set = set, .observe = observe)
