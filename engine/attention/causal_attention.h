/* causal_attention.h -- causal softmax attention with a carried memory, for one call of the op `attention`.
** Carried keys are numbered 0 .. M-1, oldest first; the key of row t is M+t.  Row t sees one run
** of keys that ends with its own and begins where its episode began, or at the window's edge; of the carried
** keys only those that are not blocked.  Keys outside that run are never used in arithmetic, so they may
** hold any values.
**   score(t, j) = ((q_t + u) . k_j + (q_t + w) . r_{M+t-j}) / sqrt(K)     y_t = sum_j softmax_j(score) v_j
** (the second term where r is given: Dai et al. 2019, Transformer-XL, section 3.3). */
#ifndef MN_CAUSAL_ATTENTION_H
#define MN_CAUSAL_ATTENTION_H
#include "numerics/packed_gemm.h"

/* Inputs and outputs of the op, in the order of its signature. */
enum { SM_Q, SM_K, SM_V, SM_MK, SM_MV, SM_MASK, SM_DONE, SM_U, SM_W, SM_R };
enum { SM_Y, SM_STATS, SM_START, SM_CARRIED, SM_PACKED, SM_HALVES };

typedef struct mn_softmax {      /* one call, its sizes worked out */
  const mn_call *c;
  int T, B, H, K, V, M;
  int E;                         /* M + T: how many keys there are */
  int window;                    /* how many keys before its own a row sees */
  float scale;                   /* 1 / sqrt(K) */
  bool shared;                   /* input_attention: all heads see the same keys, which are the values, too; SM_V: their queries, [T,B,H,V] */
  const mn_bf16 *bf16;           /* precision=bf16: how its products are computed, else NULL */
} mn_softmax;

/* Check what letters cannot say and fill s; 0, or -1 with the error, which begins with the name of the op. */
int mn_softmax_open(mn_softmax *s, const mn_call *c, const char *op);

/* A call of input_attention (or of its weights) in the places of one of attention: keys and values are x, those carried `old`. */
int mn_softmax_open_shared(mn_softmax *s, mn_call *in_place, const mn_call *c, const char *op);

/* The weights that row t1-1 gives to each key: out[0] of an op for display. */
void mn_softmax_weights(const mn_softmax *s);

/* Before rows are computed: where their episodes begin, and at t0 = 0 which carried keys are blocked, and the
** positions r in panels. */
void mn_softmax_prepare(const mn_softmax *s);

/* Forward and backward of the rows that are asked for: blocks of rows against packed keys, or one by one. */
void mn_softmax_blocks(const mn_softmax *s);
void mn_softmax_steps(const mn_softmax *s);
void mn_softmax_backward(const mn_softmax *s);

static inline int mn_round32(int n) { return (n + MN_PANEL - 1) / MN_PANEL * MN_PANEL; }

/* Where head h of environment b begins in row `row` of an input [rows,B,H,n]. */
static inline long mn_softmax_at(const mn_softmax *s, int row, int b, int h, int n) {
  return (((long)row * s->B + b) * s->H + h) * n;
}
/* Head h of environment b's key (or value) j, n values: the first M are in input `carried`, the others in input `rows`. */
static inline const float *mn_softmax_key(const mn_softmax *s, int carried, int rows, int j, int b, int h, int n) {
  if (s->shared) return s->c->in[j < s->M ? SM_MK : SM_K].data + ((long)(j < s->M ? j : j - s->M) * s->B + b) * s->V;
  return j < s->M ? s->c->in[carried].data + mn_softmax_at(s, j, b, h, n)
                  : s->c->in[rows].data + mn_softmax_at(s, j - s->M, b, h, n);
}

/* precision=bf16 by rows, where it was chosen before the op was recorded: keys and values once more, as bfloat16, of one
** environment after another: [B,E,H,K], then [B,E,H,V]. */
static inline bool mn_softmax_has_halves(const mn_softmax *s) { return s->bf16 && s->c->by_rows && s->c->out[SM_HALVES].n > 1; }
static inline uint16_t *mn_softmax_half(const mn_softmax *s, bool values, int j, int b) {
  uint16_t *half = (uint16_t *)s->c->out[SM_HALVES].data;
  if (!values) return half + ((long)b * s->E + j) * s->H * s->K;
  return half + (long)s->B * s->E * s->H * s->K + ((long)b * s->E + j) * s->H * s->V;
}

/* Rows m0 .. m1-1 of a product with panels that were packed in the call's precision. */
static inline void mn_softmax_product(const mn_softmax *s, int m0, int m1, int N, int K, const float *A, int lda, bool transposed,
                                      const float *panels, float *C, int ldc, bool add) {
  (s->bf16 ? s->bf16->rows : mn_gemm_panel_rows)(m0, m1, N, K, A, lda, transposed, panels, C, ldc, add);
}

/* Floats of a panel's column of that depth. */
static inline long mn_softmax_depth(const mn_softmax *s, long rows) { return s->bf16 ? mn_bf16_depth(rows) : rows; }

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
