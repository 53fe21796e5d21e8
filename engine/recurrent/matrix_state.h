/* matrix_state.h -- runs along time for the ops whose state is a matrix C[V,K] and a sum of keys s[K].
** linear_attention and joint_gate_attention differ in how sixteen tokens change the matrix.  This file has what
** they share: where the state is stored, when it is checkpointed, and the checks of a call.
**
** Outputs: y, C', s', saved.  C' and s' hold the running state of a run by rows.  saved[head][i] holds
** the state before token i*16*span, rows and columns padded with zeros to multiples of 16: backward
** needs nothing else of the past, however forward was run.  It recomputes the states between, which
** takes less time than writing and reading them, because they do not fit the caches. */
#ifndef MN_MATRIX_STATE_H
#define MN_MATRIX_STATE_H
#include "galite_decay.h"

#define MATRIX_STATE "C?[B,H,V,?] s?[B,H,?] -> y[T,B,H,V] C'[B,H,V,?] s'[B,H,?] ~~saved[?,?]"

typedef struct mn_chunk_state { float *C, *s; } mn_chunk_state;     /* [Vp,Kp] and [Kp] */

/* Tokens t .. t+n-1 of head bh, n <= 16; and what to prefetch meanwhile. */
typedef struct mn_tokens {
  int bh, t, n;
  bool back;                     /* a backward pass: gradients will be stored */
  int next;                      /* the inputs of that many tokens from here; -1: none */
  const float *state;            /* for each token that many floats of a checkpoint */
  long each;
} mn_tokens;

/* Chunks from one checkpoint to the next, of each op: kernels on every device keep to them; and the most of any. */
enum { MN_LINEAR_SPAN = 4, MN_JOINT_SPAN = 2, MN_SPAN = 4 };

typedef struct mn_matrix_kernels {
  const char *name;
  int span;                      /* chunks from one checkpoint to the next */
  /* Read `from`, store `to` (never the same memory) and y. */
  void (*chunk)(const mn_attention *a, const mn_tokens *at, mn_chunk_state from, mn_chunk_state to,
                float *work);
  /* The same without y. */
  void (*advance)(const mn_attention *a, const mn_tokens *at, mn_chunk_state from, mn_chunk_state to,
                  float *work);
  /* One token on rows of C[V,K] in place, from its keys and values; num is C q. */
  void (*step)(const mn_attention *a, long token, float keep, float *C, const float *q,
               const float *write, const float *decay, float *num, float *work);
  /* Backward of `chunk`: grad is that of the state after it, and becomes that of the state before. */
  void (*chunk_back)(const mn_attention *a, const mn_tokens *at, mn_chunk_state from,
                     mn_chunk_state grad, float *work);
  int key_rows, value_rows;      /* work: arrays of [16,Kp] (mn_key_row) and [16,Vp] */
} mn_matrix_kernels;

int  mn_matrix_shape(mn_call *c, const mn_matrix_kernels *k);
void mn_matrix_forward(mn_call *c, const mn_matrix_kernels *k);
void mn_matrix_backward(mn_call *c, const mn_matrix_kernels *k);

/* y of n tokens: num[16,Vp] over the denominators of z[16]. */
void mn_write_y(const mn_attention *a, int bh, int t, int n, const float *num, const float *z);

/* Gradients of num, and of z unless dz is NULL, from that of y; zeros for the rows n..15. */
void mn_read_dy(const mn_attention *a, int bh, int t, int n, const float *z, float *dnum,
                float *dz);

/* Prefetch an eighth (0..7) of the memory that `at` names.  Call it between pieces of arithmetic: only a limited number of
** cache lines can be outstanding at once, and more would stall. */
void mn_prefetch_token(const mn_attention *a, const mn_tokens *at, int eighth);

/* How far apart the rows of [16,Kp] lie in a work space: at multiples of 1 KiB they would share too few places of the
** first-level cache. */
static inline long mn_key_row(const mn_attention *a) { return a->Kp % 256 ? a->Kp : a->Kp + 16; }

/* Keys of the tokens, each array [16,Kp] with such rows; rows n..15 leave any state as it is. */
void mn_load_keys(const mn_attention *a, const mn_tokens *at, float *q, float *write, float *decay);

#endif
