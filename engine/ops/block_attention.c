/* block_attention.c -- causal attention to blocks of one's episode, as lists say.
** Big Bird (Zaheer et al. 2020, section 2), step by step: the row at position P is of block P / b and sees the
** blocks that are listed for it, up to its own position. */
#include "../episode.h"

enum { SEE = EP_POS + 1, MK };

typedef struct setting { int N, R, block; } setting;

static setting setting_of(const mn_call *c) {
  return (setting){ DIM(c, 'N'), DIM(c, 'R'), DIM(c, 'S') / DIM(c, 'N') };
}

static int shape(mn_call *c) {
  int S = DIM(c, 'S'), N = DIM(c, 'N');
  if (S % N == 0) return 0;
  return mn_fail(c->ctx, "block_attention: axis 1 (S) of mk is %d, expected a multiple of %d blocks (N)", S, N);
}

/* The r-th run of blocks that block i of head h sees, within 0 .. i. */
static mn_range run_at(const mn_call *c, const setting *s, int h, int i, int r) {
  const int32_t *e = c->in[SEE].i32 + (((long)h * s->N + i) * s->R + r) * 2;
  long from = e[0] < 0 ? 0 : e[0], end = (long)e[0] + e[1] <= i ? (long)e[0] + e[1] : i + 1;
  return from < end ? (mn_range){ (int)from, (int)(end - from), 1 } : (mn_range){ 0, 0, 1 };
}

static void keys(const mn_episode *e, int b, int h, mn_keys *to) {
  *to = mn_episode_tokens(e->c, b, h, MK, e->c->in[MK].shape[1]);
}

static void sees(const mn_episode *e, int h, int P, mn_seen *to) {
  const setting *s = e->op;
  for (int r = 0; r < s->R; r++) {
    to[r] = (mn_seen){ 0, { 0, 0, 1 } };
    if (P < 0 || P >= s->N * s->block) continue;
    mn_range run = run_at(e->c, s, h, P / s->block, r);
    int from = run.from * s->block, n = run.n * s->block;
    if (run.n) to[r].at = (mn_range){ from, from + n > P ? P + 1 - from : n, 1 };
  }
}

static long most(const mn_call *c, const setting *s) {
  long top = 0;
  for (int h = 0; h < DIM(c, 'H'); h++)
    for (int i = 0; i < s->N; i++) {
      long n = 0;
      for (int r = 0; r < s->R; r++) n += (long)run_at(c, s, h, i, r).n * s->block;
      if (n > top) top = n;
    }
  return top;
}

static mn_episode episode_of(const mn_call *c, const setting *s) {
  return (mn_episode){ .c = c, .op = s, .n_keys = 1, .n_seen = s->R, .stride = 1, .align = s->block, .most = most(c, s),
                       .keys = keys, .sees = sees };
}

EPISODE_PASSES

const mn_op mn_op_block_attention = {
  .sig = EPISODE_INPUTS "see[H,N,R,2]:i32 mk[B,S,H,D] mv[B,S,H,D] -> y[T,B,H,D]",
  .doc = "softmax(q.k / sqrt(D)) v by position in the episode (see position, slots), in N blocks of S/N positions: a row "
         "of block i sees, up to its own position, the runs of blocks see[h,i] = (first, count); a block named twice "
         "counts twice (Big Bird: Zaheer et al. 2020, section 2)",
  .time = MN_SCAN, .shape = shape, .forward = forward, .backward = backward,
};
