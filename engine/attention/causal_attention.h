/* causal_attention.h -- causal softmax attention with a carried memory, for one call of the op `attention`.
** Carried keys are numbered 0 .. M-1, oldest first; the key of row t is M+t.  Row t sees one run
** of keys that ends with its own and begins where its episode began, or at the window's edge; of the carried
** keys only those that are not blocked.  Keys outside that run are never used in arithmetic, so they may
** hold any values.
**   score(t, j) = ((q_t + u) . k_j + (q_t + w) . r_{M+t-j}) / sqrt(K)     y_t = sum_j softmax_j(score) v_j
** (the second term where r is given: Dai et al. 2019, Transformer-XL, section 3.3). */
#ifndef MN_SOFTMAX_H
#define MN_SOFTMAX_H
#include "numerics/packed_gemm.h"

/* Inputs and outputs of the op, in the order of its signature. */
enum { SM_Q, SM_K, SM_V, SM_MK, SM_MV, SM_MASK, SM_DONE, SM_U, SM_W, SM_R };
enum { SM_Y, SM_STATS, SM_START, SM_CARRIED, SM_PACKED };

typedef struct mn_softmax {      /* one call, its sizes worked out */
  const mn_call *c;
  int T, B, H, K, V, M;
  int E;                         /* M + T: how many keys there are */
  int window;                    /* how many keys before its own a row sees */
  float scale;                   /* 1 / sqrt(K) */
} mn_softmax;

/* Check what letters cannot say and fill s; 0, or -1 with the error, which begins with the name of the op. */
int mn_softmax_open(mn_softmax *s, const mn_call *c, const char *op);

/* Before rows are computed: where their episodes begin, and at t0 = 0 which carried keys are blocked, and the
** positions r in panels. */
void mn_softmax_prepare(const mn_softmax *s);

/* Forward and backward of the rows that are asked for: blocks of rows against packed keys, or one by one. */
void mn_softmax_blocks(const mn_softmax *s);
void mn_softmax_steps(const mn_softmax *s);
void mn_softmax_backward(const mn_softmax *s);

static inline int mn_round32(int n) { return (n + MN_PANEL - 1) / MN_PANEL * MN_PANEL; }

/* Head h of environment b's key (or value) number j, n numbers; `carried` and `rows` say which inputs hold them. */
static inline long mn_softmax_at(const mn_softmax *s, int row, int b, int h, int n) {
  return (((long)row * s->B + b) * s->H + h) * n;
}
static inline const float *mn_softmax_key(const mn_softmax *s, int carried, int rows, int j, int b, int h, int n) {
  return j < s->M ? s->c->in[carried].data + mn_softmax_at(s, j, b, h, n)
                  : s->c->in[rows].data + mn_softmax_at(s, j - s->M, b, h, n);
}

/* Is carried key j of environment b blocked? */
static inline bool mn_softmax_blocked(const mn_softmax *s, int j, int b) {
  const float *mask = s->c->in[SM_MASK].data;
  return mask && mask[(long)j * s->B + b] != 0;
}

/* Row at which row t's episode began, or -1. */
static inline int mn_softmax_start(const mn_softmax *s, int t, int b) {
  return s->c->out[SM_START].i32[(long)t * s->B + b];
}

/* The first key that row t of environment b sees. */
static inline int mn_softmax_low(const mn_softmax *s, int t, int b) {
  int start = mn_softmax_start(s, t, b), low = start < 0 ? s->c->out[SM_CARRIED].i32[2 * b] : s->M + start;
  int edge = s->M + t - s->window;
  return edge > low ? edge : low;
}

/* Is there a blocked key among the carried ones that rows without a reset see? */
static inline bool mn_softmax_holes(const mn_softmax *s, int b) { return s->c->out[SM_CARRIED].i32[2 * b + 1]; }

/* Scores that are not finite numbers would leave NaN: the most that one may be. */
#define MN_SCORE_MOST 1e38f

#endif
