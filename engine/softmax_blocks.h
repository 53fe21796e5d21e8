/* softmax_blocks.h -- what forward and backward over blocks of rows share: a head's keys packed for products,
** blocks of rows of one episode, and their scores. */
#ifndef MN_SOFTMAX_BLOCKS_H
#define MN_SOFTMAX_BLOCKS_H
#include "softmax.h"

enum { SM_ROWS = 32, SM_GROUP = 8 };    /* rows of a block; of those that one product's kernel takes at once */

typedef struct mn_sm_keys {      /* the keys that the rows of one head see, or the values */
  int base, n, np;               /* number of the first; how many; rounded up to whole panels */
  float *across;                 /* keys beside each other, [np/32][size][32] */
  float *along;                  /* keys below each other, [size/32][np][32] */
} mn_sm_keys;

typedef struct mn_sm_block {     /* rows t .. t+n-1 of copy b, all of one episode, and head h */
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
} mn_sm_work;

/* The next n floats of a work space, rounded up to whole cache lines.  Without memory they are only counted. */
static inline float *mn_sm_cut(float *memory, long *used, long n) {
  float *at = memory ? memory + *used : NULL;
  *used += (n + 15) / 16 * 16;
  return at;
}

/* Cut the work space of a head; `back`: with k along and v across in place of v along. */
mn_sm_work mn_sm_open(const mn_softmax *s, bool back, float *memory, long *used);

/* Pack the keys and values that head h of copy b needs for rows t0 .. t1-1. */
void mn_sm_pack(const mn_softmax *s, mn_sm_work *w, int b, int h);

/* Rows beside each other in panels [size/32][count][32]; `at`: the place of the first among `depth` rows. */
void mn_sm_along(const float *const *row, int count, int size, long depth, long at, float *panels);

/* The block that begins at row t. */
mn_sm_block mn_sm_next(const mn_softmax *s, const mn_sm_work *w, int b, int h, int t);

/* Columns that row i of a block sees: from .. to-1, counted from c0. */
static inline int mn_sm_from(const mn_softmax *s, const mn_sm_work *w, const mn_sm_block *k, int i) {
  return mn_softmax_low(s, k->t + i, k->b) - w->k.base - k->c0;
}
static inline int mn_sm_to(const mn_softmax *s, const mn_sm_work *w, const mn_sm_block *k, int i) {
  return s->M + k->t + i + 1 - w->k.base - k->c0;
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

/* out[n, size rounded up to 32] = rows[n, columns] times panels that begin at the block's first column, `depth`
** rows each; row i's columns end where its group's do (`to` of the group's last row). */
void mn_sm_mix(const mn_softmax *s, const mn_sm_work *w, const mn_sm_block *k, int size, const float *rows, int ld,
               const float *panels, long depth, bool places, float *out);

#endif
