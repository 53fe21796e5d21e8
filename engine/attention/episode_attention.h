/* episode_attention.h -- attention to positions of the row's own episode, for ops that run along time.
** A row's position P counts from its episode's start, so the key of position p is that of row t-(P-p),
** or, before row 0, a carried one.  An op states which positions a row sees; this file finds their keys, groups
** rows and distributes gradients.
** Keys that a row does not see are never used in arithmetic, so they may hold any values. */
#ifndef MN_EPISODE_ATTENTION_H
#define MN_EPISODE_ATTENTION_H
#include "op.h"
#include "key_ranges.h"
#include "attention_weights.h"

/* The first inputs of these ops; y is their first output. */
enum { EP_Q, EP_K, EP_V, EP_POS };
enum { EP_KEYS = 2 };                      /* most kinds of keys that one of them reads */
#define EPISODE_INPUTS "q[T,B,H,D] k[T,B,H,D] v[T,B,H,D] pos[T,B]:i32 "

/* Keys and values of one head by position: position p is row p + base of the sequence, or, before row 0, a
** carried slot: p itself below `pinned`, above it the rest of the slots in turn. */
typedef struct mn_keys {
  const float *k, *v, *old_k, *old_v;      /* row 0, slot 0 */
  float *dk, *dv, *dold_k, *dold_v;        /* backward; stored whole; NULL: not wanted */
  long step, old_step;                     /* floats from one row, or slot, to the next */
  int rows, slots, pinned;
} mn_keys;

static inline int mn_slot(int p, int pinned, int slots) {
  return p < pinned ? p : pinned + (p - pinned) % (slots - pinned);
}

typedef struct mn_seen { int of; mn_range at; } mn_seen;         /* positions, of the op's keys number `of` */

typedef struct mn_episode {
  const mn_call *c;
  const void *op;                          /* for `keys` and `sees` */
  int n_keys, n_seen;                      /* n_keys: at most EP_KEYS */
  int stride, align;                       /* rows of a tile are `stride` apart and within `align` positions (0: any) */
  long most;                               /* keys that a tile may see */
  void (*keys)(const struct mn_episode *e, int b, int h, mn_keys *to);         /* n_keys of them */
  void (*sees)(const struct mn_episode *e, int h, int P, mn_seen *to);         /* n_seen of them, n = 0: nothing */
  /* For keys number `of`, the base where tokens have base t - P; NULL: the same. */
  int  (*base)(const struct mn_episode *e, int of, int base);
  /* For weights: what the key of position p among number `of` stands for, seen from position P; NULL: that step. */
  void (*stands)(const struct mn_episode *e, int of, int P, int p, mn_weight *to);
} mn_episode;

/* The keys and values of tokens, the carried ones being inputs mk and mk+1 [B,S,H,D]. */
mn_keys mn_episode_tokens(const mn_call *c, int b, int h, int mk, int pinned);

void mn_episode_forward(const mn_episode *e);
void mn_episode_backward(const mn_episode *e);

/* What the last row that is asked for gives to each key, in the first output [1,B,H,N,3]: see attention_weights.h. */
void mn_episode_weights(const mn_episode *e);

/* forward and backward of an op that is nothing else: `setting` is its own, from setting_of(c), and with it
** episode_of(c, &s) defines what the rows see; and forward of an op that outputs the weights. */
#define EPISODE_PASS(name, what, setting, setting_of, episode_of) \
  static void name(mn_call *c) { \
    setting s = setting_of(c); \
    mn_episode e = episode_of(c, &s); \
    what(&e); \
  }
#define EPISODE_PASSES(...) \
  EPISODE_PASS(forward, mn_episode_forward, __VA_ARGS__) \
  EPISODE_PASS(backward, mn_episode_backward, __VA_ARGS__)
#define EPISODE_WEIGHTS(...) EPISODE_PASS(forward, mn_episode_weights, __VA_ARGS__)

#endif
