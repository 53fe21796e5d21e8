/* block.h -- which positions a row of Big Bird sees: shared by block_attention and block_weights. */
#ifndef MN_BLOCK_H
#define MN_BLOCK_H
#include "attention/episode_attention.h"

#define BLOCK_INPUTS EPISODE_INPUTS "see[H,N,R,2]:i32 mk[B,S,H,D] mv[B,S,H,D]"

enum { BLOCK_SEE = EP_POS + 1, BLOCK_MK };

typedef struct mn_block { int N, R, block; } mn_block;

static inline mn_block mn_block_of(const mn_call *c) {
  return (mn_block){ DIM(c, 'N'), DIM(c, 'R'), DIM(c, 'S') / DIM(c, 'N') };
}

static inline int mn_block_check(const mn_call *c, const char *op) {
  int S = DIM(c, 'S'), N = DIM(c, 'N');
  if (S % N == 0) return 0;
  return mn_fail(c->ctx, "%s: axis 1 (S) of mk is %d, expected a multiple of %d blocks (N)", op, S, N);
}

/* The r-th run of blocks that block i of head h sees, within 0 .. i. */
static inline mn_range mn_block_run(const mn_call *c, const mn_block *s, int h, int i, int r) {
  const int32_t *e = c->in[BLOCK_SEE].i32 + (((long)h * s->N + i) * s->R + r) * 2;
  long from = e[0] < 0 ? 0 : e[0], end = (long)e[0] + e[1] <= i ? (long)e[0] + e[1] : i + 1;
  return from < end ? (mn_range){ (int)from, (int)(end - from), 1 } : (mn_range){ 0, 0, 1 };
}

static inline void mn_block_keys(const mn_episode *e, int b, int h, mn_keys *to) {
  *to = mn_episode_tokens(e->c, b, h, BLOCK_MK, e->c->in[BLOCK_MK].shape[1]);
}

static inline void mn_block_sees(const mn_episode *e, int h, int P, mn_seen *to) {
  const mn_block *s = e->op;
  for (int r = 0; r < s->R; r++) {
    to[r] = (mn_seen){ 0, { 0, 0, 1 } };
    if (P < 0 || P >= s->N * s->block) continue;
    mn_range run = mn_block_run(e->c, s, h, P / s->block, r);
    int from = run.from * s->block, n = run.n * s->block;
    if (run.n) to[r].at = (mn_range){ from, from + n > P ? P + 1 - from : n, 1 };
  }
}

/* How many keys a row sees at most. */
static inline long mn_block_most(const mn_call *c, const mn_block *s) {
  long top = 0;
  for (int h = 0; h < DIM(c, 'H'); h++)
    for (int i = 0; i < s->N; i++) {
      long n = 0;
      for (int r = 0; r < s->R; r++) n += (long)mn_block_run(c, s, h, i, r).n * s->block;
      if (n > top) top = n;
    }
  return top;
}

static inline mn_episode mn_block_episode(const mn_call *c, const mn_block *s) {
  return (mn_episode){ .c = c, .op = s, .n_keys = 1, .n_seen = s->R, .stride = 1, .align = s->block, .most = mn_block_most(c, s),
                       .keys = mn_block_keys, .sees = mn_block_sees };
}

#endif
