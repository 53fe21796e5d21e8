/* galite_decay.h -- what the recurrent attention ops share: inputs as factors, gates, the read-out's
** denominator, checkpoints.  Used by linear_attention, joint_gate_attention, agalite and low_rank_attention.
**
** Their first fifteen inputs are the same, in this order.  A feature is given as its factors, and its
** outer product is made here, token by token, in rows padded to a multiple of 16, never stored:
**   q, k     [T,B,H,D], or with p_q, p_k [T,B,H,E] the feature p (x) x of size K = E*D, index e*D + d
** A token writes write_v*v under write_k*k, and keeps keep_v of the old values and keep_k of the old keys; absent: 1.
**   write_v  [T,B,H,V]
**   keep_v   [T,B,H,V], or one value a head
**   write_k  [T,B,H,K], or with p_write_k factors of any sizes whose product is K; or one value a head
**   keep_k   [T,B,H,K], or one value a head
** The usual gates are both at once, without storing what is kept:
**   beta     write_v = beta with keep_v = 1 - beta; or one value a head and nothing for keys: the scalar gate,
**            which acts as a key gate with the same value everywhere
**   gamma    write_k = gamma with keep_k = 1 - gamma, and p_gamma as p_write_k
** Then `done`, and `shrink` [T,B,H]: a factor on the old keys (on the whole matrix, for a matrix) before a
** token, besides its gates: the natural decay of one number a head. */
#ifndef MN_GALITE_DECAY_H
#define MN_GALITE_DECAY_H
#include <math.h>
#include "chunk_length.h"
#include "op.h"

enum { IN_Q, IN_K, IN_V, IN_BETA, IN_GAMMA, IN_P_Q, IN_P_K, IN_P_GAMMA, IN_DONE, IN_SHRINK,
       IN_WRITE_V, IN_KEEP_V, IN_WRITE_K, IN_P_WRITE_K, IN_KEEP_K, IN_STATE };

#define ATTENTION_INPUTS(gates) \
  "q[T,B,H,D] k[T,B,H,D] v[T,B,H,V] " gates \
  " p_q?[T,B,H,E] p_k?[T,B,H,E] p_gamma?[T,B,H,?]:01 done?[T,B]:bit " \
  "shrink?[T,B,H]:01 write_v?[T,B,H,?] keep_v?[T,B,H,?]:01 write_k?[T,B,H,?] p_write_k?[T,B,H,?] keep_k?[T,B,H,?]:01 "

typedef struct mn_stream { const float *at; long n; } mn_stream;         /* n floats a token */
enum { MN_STREAMS = 12 };

/* What a token keeps of an old value or key: what its gate leaves, 1 - gate; all; keep_v or keep_k, or that of its head. */
typedef enum mn_kept { MN_KEPT_REST, MN_KEPT_ALL, MN_KEPT_EACH, MN_KEPT_HEAD } mn_kept;

typedef struct mn_attention {  /* one call, its sizes worked out */
  const mn_call *c;
  int T, B, H, V, K;
  int Vp, Kp;                  /* V and K rounded up to 16 */
  int D, E;                    /* factors of q and k: K = D*E */
  int gate_v, gate_k, p_gate_k;                /* which inputs gate what is written: beta or write_v; gamma or write_k */
  int Dg, Eg;                  /* factors of the key's gate; 0: there is none, or it is scalar */
  bool scalar;                 /* the key's gate is one number a head */
  mn_kept kept_v, kept_k;
  bool normalise;
  float eps, den_clamp, scale; /* den = clamp(scale * s.q + eps); not normalised: den = scale */
  int inputs, outputs, grads;  /* how many there are of what a pass reads and stores by token: */
  mn_stream input[MN_STREAMS], output[2], grad[MN_STREAMS];
} mn_attention;

/* Check what the signature's letters cannot; fills a.  0, or -1 with the error.  `eps` is the place
** of the options eps, den_clamp and normalise, in this order. */
int mn_attention_open(mn_attention *a, const mn_call *c, const char *op, int eps);

/* For ops that have no scalar gate: beta of one value belongs to v, not to the keys. */
static inline void mn_attention_beta_of_values(mn_attention *a) {
  if (a->gate_k != IN_BETA) return;
  a->scalar = false;
  a->gate_k = IN_WRITE_K, a->kept_k = MN_KEPT_ALL;
  a->gate_v = IN_BETA, a->kept_v = MN_KEPT_REST;
}

/* Check that optional input i, if given, has size want at its axis; 0, or -1 with the error. */
int mn_attention_axis(const mn_call *c, const char *op, int i, const char *name, int axis,
                      int want);

/* Number of checkpoints of T rows. */
static inline int mn_chunks(int T) { return (T + MN_CHUNK - 1) / MN_CHUNK; }

/* The row of [T,B,H,...] that token t of head bh = b*H + h owns. */
static inline long mn_token(const mn_attention *a, int t, int bh) {
  return (long)t * a->B * a->H + bh;
}

/* Where input i holds, or its gradient receives, the n numbers of a token; NULL: it does not. */
static inline const float *mn_input_at(const mn_attention *a, int i, long token, int n) {
  const float *p = a->c->in[i].data;
  return p ? p + token * n : NULL;
}
static inline float *mn_grad_at(const mn_attention *a, int i, long token, int n) {
  float *p = a->c->in[i].grad;
  return p ? p + token * n : NULL;
}

/* 1, or 0 where token t starts a new episode and the state carried so far is dropped. */
static inline float mn_keep(const mn_attention *a, int t, int bh) {
  const uint8_t *done = a->c->in[IN_DONE].u8;
  return done && done[t * a->B + bh / a->H] ? 0.0f : 1.0f;
}

static inline float mn_shrink(const mn_attention *a, long token) {
  const float *shrink = a->c->in[IN_SHRINK].data;
  return shrink ? shrink[token] : 1.0f;
}

/* The denominator for s.q = z; *slope is its derivative (0 where it is clamped or not used). */
static inline float mn_den(const mn_attention *a, float z, float *slope) {
  *slope = 0;
  if (!a->normalise) return a->scale;
  float den = a->scale * z + a->eps;
  if (a->den_clamp > 0 && den > -a->den_clamp && den < a->den_clamp)
    return den < 0 ? -a->den_clamp : a->den_clamp;
  if (den == 0) return INFINITY;             /* no key meets q, and no eps: y is 0, not 0 / 0 */
  *slope = a->scale;
  return den;
}

/* The gradient of z = s.q, from the numerator's own with respect to q along q (`along` = dnum . num).  Worked out from
** the products that q's gradient is summed from, not from y, it is the same but for its rounding: then the two cancel
** along q, whose length hardly matters to y. */
static inline float mn_den_back(const mn_attention *a, float z, float along) {
  float slope, den = mn_den(a, z, &slope);
  return -slope * along / den;
}

/* Prefetch a token's inputs, and if `back` y and its gradient.  The
** rows of one head lie pages apart, where no hardware prefetcher follows, and share places of the
** first-level cache: what is not needed soon had better wait in the second.  mn_expect_grads: the same
** for the gradients that will be stored; mn_expect_y: for y. */
void mn_prefetch_inputs(const mn_attention *a, int t, int bh, bool back, bool soon);
void mn_expect_grads(const mn_attention *a, int t, int bh);
void mn_expect_y(const mn_attention *a, int t, int bh);

/* Are keys kept by inputs of their own, not by what their gate leaves? */
static inline bool mn_keys_apart(const mn_attention *a) {
  return a->kept_k != MN_KEPT_REST && (a->kept_k != MN_KEPT_ALL || a->Dg || a->scalar);
}

/* The key side of a token: q, what is written (g*k), what is kept (keep*shrink*(1-g)); Kp numbers
** each, padded with 0, 0 and 1. */
void mn_keys(const mn_attention *a, long token, float keep, float *q, float *write, float *decay);

/* From their gradients, the gradients of q, k, the gate, their factors, keep_k and shrink; work: 2*Kp numbers. */
void mn_keys_back(const mn_attention *a, long token, float keep, const float *dq,
                  const float *dwrite, const float *ddecay, float *work);

/* The features q and k alone, whatever the gates; Kp numbers each, padded with 0.  And back to their factors. */
void mn_features(const mn_attention *a, long token, float *q, float *k);
void mn_features_back(const mn_attention *a, long token, const float *dq, const float *dk);

/* What keep_v says of value i of a token: NULL, or its own number, or that of its head. */
static inline const float *mn_kept_value(const mn_attention *a, long token, int i) {
  const bool head = a->kept_v == MN_KEPT_HEAD;
  const float *p = mn_input_at(a, IN_KEEP_V, token, head ? 1 : a->V);
  return p && !head ? p + i : p;
}

/* The value side: b*v and keep*(1-b); Vp numbers each, padded with 0 and 1. */
void mn_values(const mn_attention *a, long token, float keep, float *write, float *decay);
void mn_values_back(const mn_attention *a, long token, float keep, const float *dwrite,
                    const float *ddecay);

/* y of a token from num [Vp] and z = s.q; and back: dnum [Vp], and the gradient of z from y where mn_den_back has
** nothing to work it out from. */
void  mn_divide(const mn_attention *a, long token, const float *num, float z);
void  mn_dnum(const mn_attention *a, long token, float z, float *dnum);
float mn_dz(const mn_attention *a, long token, float z);

#endif
