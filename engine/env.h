/* env.h -- the contract of an environment.  One environment is one file in engine/envs: see
** docs/write-an-environment.md.  The engine owns buffers, random numbers, resets and time limits; the
** file owns the rules.
**
** Env files keep to the common subset of C11 and CUDA C++17: functions are MN_FN with a typed self,
** initialisers in order, no compound literals, mathematics from engine/numerics/fast_math.h.  One environment is plain
** data without pointers, allocations or windows; the engine zeroes it, padding included, before each
** reset.  A reset or step depends on self, param, shared, action and random bits only, so an
** environment can be saved, rewound and branched.  Data that all environments read and none changes,
** such as a map or a pool of levels, is made once by prepare and kept in shared. */
#ifndef MN_ENV_H
#define MN_ENV_H
#include "mneme.h"
#include "canvas.h"
#include "numerics/random.h"

typedef struct mn_io {           /* inputs and outputs of one reset or step of one environment */
  const double *param;           /* in: values of .params, in order */
  const void *shared;            /* in: what prepare made; NULL without one */
  uint32_t bits[4];              /* in: 128 fresh random bits; more with mn_rand(io) */
  uint32_t key[6], more[4], draws;   /* the engine's: the position of mn_rand */
  int      action;               /* in: step only, 0 .. n_actions-1 */
  union { const int32_t *choices; const float *box; };   /* in: where the action is of several numbers: all of them, of a box clipped to its bounds */
  union { float *obs; uint8_t *pixels; };   /* out: fill every slot */
  float    reward;               /* out: 0 unless set */
  bool     terminated;           /* out: the episode has ended; the engine resets */
  float    score;                /* out: of an episode that ends here: 0 worst .. 1 solved */
  bool     rare;                 /* out: step only, with .keep: something else than .keep copies has changed */
} mn_io;

typedef struct mn_space {        /* what an agent sees and may do, for given params */
  int dtype, ndim, shape[MN_AXES];
  int n_actions, time_limit;     /* time_limit 0: none */
  mn_action_space actions;       /* instead of n_actions: several whole numbers, or a box of floats */
  int bytes;                     /* of one environment's self */
  int codes;                     /* of MN_U8: each element is one of 0 .. codes-1; 0: an intensity */
  size_t shared_bytes;           /* of what prepare fills */
  bool no_bits;                  /* steps read no io->bits (mn_rand they may), and the engine makes none for them */
} mn_space;

enum { MN_PARAMS = 24, MN_FACTS = 1024 };        /* most parameters; most values of truth */

/* What MN_ENV takes; then reset, step, draw, truth, valid, set, observe, outcome.
**   rules     or NULL: one sentence for a person who plays: what the player observes, what to do, what pays
**   see       or NULL: draws an observation as a person reads it; of io it has param and obs alone, so that the picture holds
**             nothing that the agent does not see
**   reference or NULL: what random actions, no memory and a perfect memory get (mneme.h) with given params and shared; out comes
**             filled with NaN, its episodes with 0, and keeps that where a rule gives no number and none was measured.  On the host
**   used      or NULL: how many bytes of a self there are; the others are zero, and need not be copied in each step
**   keep      or NULL: copies to before, which was this self one step earlier, what most steps change; all of it is copied where a
**             step has set io->rare
**   steps     or NULL: steps a batch as `step` would one after another, side by side for the vector unit; step is then for a GPU alone
**   doc       one line;  about: or NULL: more lines, for `mneme help env NAME`
**   params    "corridor=160[2..256] noise=0.1[0..1] mode=grid|torus": a default with a point accepts any
**             number of its range, one without accepts integers; a word is passed as the index of its choice;
**             map="" is a text, at most one, which prepare reads (its value in param is 0)
**   actions   their names, in order, separated by blanks; spaces may offer the first n_actions of them,
**             or more, which are then named by their numbers.  Of several numbers: what each is, "left_wheel right_wheel"
**   settable  or NULL: the facts of truth that mn_vec_set can change, written like params; the
**             default only states whether the value must be an integer
**   to_know   or NULL: the facts of truth that a memory may know, for linear readings: "cue=class position=number"; of a list
**             each entry is one, and a class below 0 is not there yet
**   observes  or NULL: what the numbers of a flat observation are, in order: "cue=down,up place[8] noise[*]".  A size may
**             be a product of integers and parameters; [*]: what is left; alternatives, from "u8:" or "f32:" on, go by dtype
**   outcomes  or NULL: what an episode can have reached when it ends, a name each: "collect_wood place_table"; see outcome
**   needs     or NULL: what of the step before an agent must be told, as its setting previous takes it: "action"
**   spaces    fills *out for given params (checked, in order of .params); *out is zeroed before
**   prepare   or NULL: fills shared, space.shared_bytes bytes, zeroed before; returns -1 through mn_fail
**             for params or text that it cannot use.  Runs once, on the host */
struct mn_batch;
#define MN_ENV_FACTS                                                                               \
  const char *rules;                                                                               \
  void (*see)(const mn_io *io, mn_canvas *c);                                                      \
  void (*reference)(const double *param, const void *shared, mn_reference *out);                   \
  size_t (*used)(const void *self);                                                                \
  void (*keep)(const void *self, void *before);                                                    \
  void (*steps)(const struct mn_batch *b);                                                         \
  int version;                                                                                     \
  const char *doc, *about, *params, *actions, *settable, *to_know, *observes, *outcomes, *needs;               \
  void (*spaces)(const double *param, mn_space *out);                                              \
  int (*prepare)(mn_ctx *mn, const double *param, const char *text, void *shared);

int mn_fail(mn_ctx *mn, const char *fmt, ...) __attribute__((format(printf, 2, 3)));   /* for prepare; -1 */

typedef struct mn_facts { MN_ENV_FACTS } mn_facts;

typedef struct mn_batch {        /* up to MN_ENVS_PER_BATCH neighbouring environments, for the loops of MN_ENV */
  int n, stride;                 /* stride: bytes from one self to the next */
  uint32_t purpose;              /* MN_FOR_RESET or MN_FOR_STEP */
  size_t obs_bytes;
  char *self, *obs;
  const double *param;
  const void *shared;
  const int32_t *action;         /* one int each; NULL: several numbers each, at actions */
  const int32_t *actions;
  int action_size;
  const mn_streams *streams;
  const uint32_t (*bits)[MN_ENVS_PER_BATCH];
  int first;                     /* lane of the first environment in streams and bits */
  float *reward, *score;
  uint8_t *terminated, *rare;    /* rare: or NULL */
} mn_batch;

/* What step i of a batch came to, for .steps. */
MN_FN void mn_batch_end(const mn_batch *b, int i, float reward, bool terminated, float score) {
  b->reward[i] = reward;
  b->terminated[i] = terminated;
  b->score[i] = score;
  if (b->rare) b->rare[i] = false;
}

typedef struct mn_env {          /* what the engine sees; made by MN_ENV */
  const char *name;
  const mn_facts *facts;
  const char *(*lacks)(void);                    /* a required function that the file lacks; NULL: none */
  void (*reset)(const mn_batch *b);
  void (*step)(const mn_batch *b);
  void (*draw)(const void *self, const mn_io *io, mn_canvas *c);
  int  (*truth)(const void *self, const mn_io *io, const char **names, float *values);
  bool (*valid)(const void *self, const mn_io *io);
  bool (*set)(void *self, const mn_io *io, int fact, double value);   /* set and observe: */
  void (*observe)(const mn_batch *b);            /* only where settable is not NULL */
  void (*outcome)(const void *self, uint8_t *reached);                /* only where outcomes is not NULL */
} mn_env;

/* 32 more random bits, after io->bits.  They depend on the environment, the step and how many were drawn before. */
MN_FN uint32_t mn_rand(mn_io *io) {
  if (io->draws % 4 == 0) {
    io->key[5]++;
    mn_philox(io->key, io->more);
  }
  return io->more[io->draws++ % 4];
}

/* One of 0 .. n-1 from 32 random bits, or from the next 32 of io; all equally likely, to within n / 2^32. */
MN_FN int mn_below(uint32_t bits, int n) { return (int)((uint64_t)bits * (uint32_t)n >> 32); }
MN_FN int mn_rand_below(mn_io *io, int n) { return mn_below(mn_rand(io), n); }

/* The inputs of a reset or step of the environment in that lane, without its random bits. */
MN_FN mn_io mn_io_at(const mn_streams *s, int lane, uint32_t purpose, const double *param, const void *shared,
                     char *obs) {
  mn_io io;
  io.param = param;
  io.shared = shared;
  for (int w = 0; w < 2; w++) io.key[w] = s->key[w][lane];
  for (int w = 0; w < 2; w++) io.key[2 + w] = s->step[w][lane];
  io.key[4] = s->index[lane];
  io.key[5] = purpose;
  io.draws = 0;
  io.action = 0;
  io.choices = NULL;
  io.pixels = (uint8_t *)obs;
  io.reward = 0;
  io.terminated = false;
  io.score = 0;
  io.rare = false;
  return io;
}

MN_FN mn_io mn_io_of(const mn_batch *b, int i) {
  const int lane = b->first + i;
  mn_io io = mn_io_at(b->streams, lane, b->purpose, b->param, b->shared, b->obs + (size_t)i * b->obs_bytes);
  for (int w = 0; w < 4; w++) io.bits[w] = b->bits[w][lane];
  return io;
}

/* Define mn_env_NAME.  NAME is also the type of self:
**   void reset(NAME *self, mn_io *io)      start an episode and observe; self comes zeroed
**   void step(NAME *self, mn_io *io)       act and observe
**   void draw(const NAME *self, const mn_io *io, mn_canvas *c)       of io: param and shared alone
**   int  truth(const NAME *self, const mn_io *io, const char **names, float *values)
**        privileged facts for probes: *names = "cue position layout[121]", separated by blanks, with a count
**        if a name has several values; returns the number of values, 1..MN_FACTS
**   bool valid(const NAME *self, const mn_io *io)     can resets and steps lead to this state within
**        an episode?  Saved bytes come from a file, which may hold anything: check everything that
**        reset, step, draw and truth rely on, as exactly as possible
** and if there is something settable:
**   bool set(NAME *self, const mn_io *io, int fact, double value)    gives a fact (numbered as in
**        settable) a value of its range; returns false, with nothing changed, if that is impossible now
**   void observe(NAME *self, mn_io *io)    observe again, as the last reset or step did; io has its bits
** and where there are outcomes:
**   void outcome(const NAME *self, uint8_t *reached)    of an episode that ends in this state: 1 for each one that it reached, else 0
** The macro defines the loops over environments in the environment's own file, so that reset and step are inlined. */
#define MN_ENV(NAME, ...)                                                                          \
  typedef struct mn_##NAME##_parts {                                                               \
    union { mn_facts facts; struct { MN_ENV_FACTS }; };                                            \
    void (*reset)(NAME *self, mn_io *io);                                                          \
    void (*step)(NAME *self, mn_io *io);                                                           \
    void (*draw)(const NAME *self, const mn_io *io, mn_canvas *c);                                 \
    int  (*truth)(const NAME *self, const mn_io *io, const char **names, float *values);           \
    bool (*valid)(const NAME *self, const mn_io *io);                                              \
    bool (*set)(NAME *self, const mn_io *io, int fact, double value);                              \
    void (*observe)(NAME *self, mn_io *io);                                                        \
    void (*outcome)(const NAME *self, uint8_t *reached);                                           \
  } mn_##NAME##_parts;                                                                             \
  static const mn_##NAME##_parts mn_##NAME##_is = { __VA_ARGS__ };                                 \
  static const char *mn_##NAME##_lacks(void) {                                                     \
    const mn_##NAME##_parts *is = &mn_##NAME##_is;                                                 \
    return !is->doc ? "doc" : !is->params ? "params" : !is->actions ? "actions" :                  \
           !is->spaces ? "spaces" : !is->reset ? "reset" : !is->step ? "step" :                    \
           !is->draw ? "draw" : !is->truth ? "truth" : !is->valid ? "valid" :                      \
           is->settable && !is->set ? "set" : is->settable && !is->observe ? "observe" : is->outcomes && !is->outcome ? "outcome" : NULL;     \
  }                                                                                                \
  static void mn_##NAME##_reset(const mn_batch *batch) {                                           \
    const mn_batch here = *batch, *b = &here;                                                      \
    for (int i = 0; i < b->n; i++) {                                                               \
      mn_io io = mn_io_of(b, i);                                                                   \
      mn_##NAME##_is.reset((NAME *)(void *)(b->self + (size_t)i * (size_t)b->stride), &io);        \
    }                                                                                              \
  }                                                                                                \
  static void mn_##NAME##_step(const mn_batch *batch) {                                            \
    const mn_batch here = *batch, *b = &here;    /* a copy: no store can change it */              \
    if (mn_##NAME##_is.steps) {                                                                    \
      mn_##NAME##_is.steps(b);                                                                     \
      return;                                                                                      \
    }                                                                                              \
    for (int i = 0; i < b->n; i++) {                                                               \
      mn_io io = mn_io_of(b, i);                                                                   \
      if (b->action) io.action = b->action[i];                                                     \
      else io.choices = b->actions + (size_t)i * (size_t)b->action_size;                           \
      mn_##NAME##_is.step((NAME *)(void *)(b->self + (size_t)i * (size_t)b->stride), &io);         \
      b->reward[i] = io.reward;                                                                    \
      b->terminated[i] = io.terminated;                                                            \
      b->score[i] = io.score;                                                                      \
      if (b->rare) b->rare[i] = io.rare;                                                           \
    }                                                                                              \
  }                                                                                                \
  static void mn_##NAME##_draw(const void *self, const mn_io *io, mn_canvas *c) {                  \
    mn_##NAME##_is.draw((const NAME *)self, io, c);                                                \
  }                                                                                                \
  static int mn_##NAME##_truth(const void *self, const mn_io *io, const char **names,              \
                               float *values) {                                                    \
    return mn_##NAME##_is.truth((const NAME *)self, io, names, values);                            \
  }                                                                                                \
  static bool mn_##NAME##_valid(const void *self, const mn_io *io) {                               \
    return mn_##NAME##_is.valid((const NAME *)self, io);                                           \
  }                                                                                                \
  static bool mn_##NAME##_set(void *self, const mn_io *io, int fact, double value) {               \
    return mn_##NAME##_is.set((NAME *)self, io, fact, value);                                      \
  }                                                                                                \
  static void mn_##NAME##_observe(const mn_batch *b) {                                             \
    mn_io io = mn_io_of(b, 0);                                                                     \
    mn_##NAME##_is.observe((NAME *)(void *)b->self, &io);                                          \
  }                                                                                                \
  static void mn_##NAME##_outcome(const void *self, uint8_t *reached) {                            \
    mn_##NAME##_is.outcome((const NAME *)self, reached);                                           \
  }                                                                                                \
  const mn_env mn_env_##NAME = { #NAME, &mn_##NAME##_is.facts, mn_##NAME##_lacks,                 \
                                 mn_##NAME##_reset, mn_##NAME##_step, mn_##NAME##_draw,            \
                                 mn_##NAME##_truth, mn_##NAME##_valid,                             \
                                 mn_##NAME##_set, mn_##NAME##_observe, mn_##NAME##_outcome };

#endif
