/* causal_attention_blocks.h -- what forward and backward over blocks of rows share: a head's keys packed for products,
** blocks of rows of one episode, and their scores. */
#ifndef MN_CAUSAL_ATTENTION_BLOCKS_H
#define MN_CAUSAL_ATTENTION_BLOCKS_H
#include <string.h>
#include "numerics/fast_math.h"
#include "numerics/simd.h"
#include "causal_attention.h"

enum { SM_ROWS = 32, SM_GROUP = 8 };    /* rows of a block; of those that one product's kernel takes at once */

typedef struct mn_sm_keys {      /* the keys that the rows of one head see, or the values */
  int base, n, np;               /* number of the first; how many; rounded up to whole panels */
  float *across;                 /* keys side by side, [np/32][size rounded up to 32][32], and room for another 32 */
  float *along;                  /* keys below each other, [size/32][np][32] */
                                 /* bf16: [np/32][depth of size][32] and [size/32][np/2][32], of pairs */
} mn_sm_keys;

typedef struct mn_sm_block {     /* rows t .. t+n-1 of environment b, all of one episode, and head h */
  int b, h, t, n;
  int low;                       /* the first key that any of them sees */
  int c0, width;                 /* columns: keys base+c0 .. base+c0+width-1, c0 a multiple of 32 */
  int e0;                        /* the first position, a multiple of 32 */
} mn_sm_block;

/* Work space of one head, from one stretch of memory. */
typedef struct mn_sm_work {
  mn_sm_keys k, v;
  float *q, *qw, *score, *place; /* [32,K] scaled queries of keys and of positions; their scores */
  int ld_score, ld_place;        /* row lengths of the scores */
  float *zero;                   /* a row of zeros, in place of blocked keys */
  float *rows;                   /* [32, size rounded up to 32], before they are packed in pairs */
} mn_sm_work;

/* The next n floats of a work space, rounded up to whole cache lines.  Without memory they are only counted. */
static inline float *mn_sm_cut(float *memory, long *used, long n) {
  float *at = memory ? memory + *used : NULL;
  *used += mn_padded(n);
  return at;
}

/* Cut the work space of a head; `back`: with k along and v across in place of v along. */
mn_sm_work mn_sm_open(const mn_softmax *s, bool back, float *memory, long *used);

/* Pack the keys and values that head h of environment b needs for rows t0 .. t1-1. */
void mn_sm_pack(const mn_softmax *s, mn_sm_work *w, int b, int h);

/* Rows side by side in panels [size/32][count][32]; `at`: the place of the first among `depth` rows. */
void mn_sm_along(const float *const *row, int count, int size, long depth, long at, float *panels);

/* Rows n of a matrix with row length ld as panels [size/32][depth of n][32], in the call's precision. */
void mn_sm_panels(const mn_softmax *s, const float *rows, int ld, int n, int size, float *panels);

/* Rows that a block comes to later start on their way here: other environments' and heads' lie between them, so the machine
** does not foresee the next.  (Inlined: a call that only does this is left out by GCC.) */
MN_INLINE void mn_sm_fetch(const mn_softmax *s, const mn_sm_block *k, const float *rows, int size) {
  for (int i = 0; rows && i < k->n; i++)
    for (int d = 0; d < size; d += 16) __builtin_prefetch(rows + mn_softmax_at(s, k->t + i, k->b, k->h, size) + d);
}

/* The block that begins at row t. */
mn_sm_block mn_sm_next(const mn_softmax *s, const mn_sm_work *w, int b, int h, int t);

/* Columns that row i of a block sees: from .. to-1, counted from c0. */
static inline int mn_sm_from(const mn_softmax *s, const mn_sm_work *w, const mn_sm_block *k, int i) {
  return mn_softmax_low(s, k->t + i, k->b) - w->k.base - k->c0;
}
static inline int mn_sm_to(const mn_softmax *s, const mn_sm_work *w, const mn_sm_block *k, int i) {
  return s->M + k->t + i + 1 - w->k.base - k->c0;
}

/* Passes over a row's scores take whole vectors: columns mn_sm_first .. mn_sm_end-1. */
enum { SM_LANES = 16 };
static inline int mn_sm_first(int from) { return from / SM_LANES * SM_LANES; }
static inline int mn_sm_end(int to) { return (to + SM_LANES - 1) / SM_LANES * SM_LANES; }

/* e^x of x = score - the row's largest.  Below e^-80 a weight is 0, which changes no sum: numbers smaller than the
** ordinary ones take a hundred times as long. */
static inline float mn_sm_weight(float x) {
  int32_t n;
  float p = mn_expm1_reduced(mn_at_least(x, -80.0f), &n), scale = mn_power_of_2(n);
  return x < -80.0f ? 0 : MN_FMA(p, scale, scale);
}

/* Zeros where products read and a row does not see: a group's columns end less than SM_GROUP behind its own. */
static inline void mn_sm_unseen(float *row, int from, int to) {
  memset(row, 0, sizeof *row * (size_t)mn_sm_first(from));
  memset(row + mn_sm_end(to), 0, sizeof *row * SM_LANES);
}

/* Where in a row of `place` the position of column 0 stands, for row i of a block. */
static inline int mn_sm_shift(const mn_softmax *s, const mn_sm_work *w, const mn_sm_block *k, int i) {
  return s->T - 1 - k->t - i + w->k.base + k->c0 - k->e0;
}

/* out[n, keys] = rows[n, size] times packed keys, only where rows see keys. */
void mn_sm_scores(const mn_softmax *s, const mn_sm_work *w, const mn_sm_block *k, const mn_sm_keys *keys, int size,
                  const float *rows, float *out);

/* The scores of a block: q, qw (with positions), then score, of which each row's own columns are right.
** Blocked keys have minus infinity. */
void mn_sm_score(const mn_softmax *s, mn_sm_work *w, const mn_sm_block *k);

/* out[n, size rounded up to 32] = rows[n, columns] times panels that begin at the block's first column, at `depth`
** rows' distance from each other; row i's columns end where its group's do (`to` of the group's last row). */
void mn_sm_mix(const mn_softmax *s, const mn_sm_work *w, const mn_sm_block *k, int size, const float *rows, int ld,
               const float *panels, long depth, bool places, float *out);

#endif
