/* wkv.h -- runs along time for RWKV's matrix memories (wkv6, wkv7): a matrix S[K,V] per head, keys by values.
** Time is cut into pieces of at most sixteen steps that never cross a reset or a multiple of sixteen.  Within a piece
** an op uses small matrix products (chunk.h) and need not handle resets; after a reset the old
** matrix is never read, whatever it held.
**
** Outputs 0, 1 and 2 are y[T,B,H,V], S'[B,H,K,V], which holds the running state of a run by rows, and saved: the state
** before every sixteenth step, rows and columns padded with zeros to multiples of 16. */
#ifndef MN_WKV_H
#define MN_WKV_H
#include "prefetch.h"
#include "chunk.h"
#include "op.h"

typedef struct mn_wkv_op mn_wkv_op;

typedef struct mn_wkv {          /* one call, its sizes worked out */
  mn_call *c;
  const mn_wkv_op *op;
  int T, B, H, K, V, Kp, Vp;     /* Kp, Vp: K and V rounded up to 16 */
  int ahead;                     /* steps from a window to the next one: 16, backward -16 */
  float *sums;                   /* backward: [B*H, Kp], zero at first, for a gradient summed over time */
} mn_wkv;

struct mn_wkv_op {
  const char *name;
  int rows, done, state;         /* how many inputs, the first ones, have rows [T,B,H,..]; places of the other two */
  int key_rows, value_rows;      /* work beyond the state: arrays of [16,Kp] and [16,Vp] */
  /* Steps t .. t+n-1 of head bh, n <= 16: y, and from the padded state S the one after, which may be in its place. */
  void (*piece)(const mn_wkv *a, int bh, int t, int n, const float *S, float *to, float *work);
  /* One step on the state as it stands in S', [K,V]. */
  void (*step)(const mn_wkv *a, int bh, int t, float *S, float *work);
  /* Backward of `piece` from the state S before it: dS is the gradient of the state after it, becomes that before. */
  void (*piece_back)(const mn_wkv *a, int bh, int t, int n, const float *S, float *dS, float *work);
};

int  mn_wkv_shape(mn_call *c, const mn_wkv_op *op);
void mn_wkv_forward(mn_call *c, const mn_wkv_op *op);

/* Inputs' gradients; `sum`: place of an input [H,K] whose gradient the pieces add to `sums`, or -1. */
void mn_wkv_backward(mn_call *c, const mn_wkv_op *op, int sum);

/* Where head bh's numbers of step t lie in input i, [T,B,H,n]. */
static inline const float *mn_wkv_at(const mn_wkv *a, int i, int bh, int t, int n) {
  return a->c->in[i].data + ((long)t * a->B * a->H + bh) * n;
}

/* n rows of input i to [16,np], padded with zeros, missing rows filled; and back to its gradient, if that is wanted. */
void mn_wkv_load(const mn_wkv *a, int i, int bh, int t, int n, float fill, float *to);
void mn_wkv_store(const mn_wkv *a, int i, int bh, int t, int n, const float *from);

/* The same for output 0 and its gradient (zeros where none came). */
void mn_wkv_write_y(const mn_wkv *a, int bh, int t, int n, const float *y);
void mn_wkv_read_dy(const mn_wkv *a, int bh, int t, int n, float *dy);

/* What the window after that of step t will read and store. */
void mn_wkv_prefetch(const mn_wkv *a, int bh, int t, mn_prefetch *q);

/* ---- arithmetic of a piece (wkv_chunk.c); arrays are [16,n], n a multiple of 16, unless said otherwise ---- */

/* P_t = decay_0 ... decay_t, and what reads the old state: by_early_t = P_{t-1} early_t, with P_{-1} = 1, and
** by_late_t = P_t late_t, unless late is NULL. */
void mn_wkv_prefix(int n, const float *decay, const float *early, const float *late, float *P, float *by_early, float *by_late);

/* Backward of it: dearly and dlate are gradients of the products and become the readers'; dend [n]: the gradient of
** P_15 from elsewhere; ddecay: stored. */
void mn_wkv_prefix_back(int n, const float *decay, const float *P, const float *early, const float *late, const float *dend,
                        float *dearly, float *dlate, float *ddecay);

/* A key and its readers: early_t reads what step t-1 left, late_t (or NULL) what step t leaves. */
typedef struct mn_wkv_keys { int n; const float *decay, *key, *early, *late; } mn_wkv_keys;

/* take[t][s] = early_t . (key_s decay_{s+1} ... decay_{t-1}) for s < t, read[t][s] = late_t . (key_s decay_{s+1} ...
** decay_t) for s <= t, else 0: [16,16], each of them half of [16,32], two keys side by side.
** run: key_s decay_{s+1} ... decay_15. */
void mn_wkv_scores(const mn_wkv_keys *x, float *run, float *take, float *read);

/* Backward of it, given the gradients of take and read; where late is NULL there is no read, and take is [16,16] alone.
** dkey: in, gradient of run; out, of the key.  The others are added to. */
void mn_wkv_keys_back(const mn_wkv_keys *x, const float *take, const float *read, float *dkey, float *dearly, float *dlate,
                      float *ddecay);

/* to = diag(kept) S + A^T B, which may be in its place: S[Kp,Vp], A[rows,Kp], B[rows,Vp]. */
void mn_wkv_update(const mn_wkv *a, mn_prefetch *q, int rows, const float *kept, const float *A, const float *B, const float *S,
                   float *to);

/* out[i] = sum over j of S[i,j] dS[i,j]: the gradient of what is kept of every row. */
void mn_wkv_kept_back(const mn_wkv *a, const float *S, const float *dS, float *out);

#endif
