/* delta_chunk.h -- sixteen tokens of a delta rule at once: a memory that writes the error of what it holds.
** With the state C[V,K] and, for the normaliser, s[K], one token is
**   u = write (v - e C k)     C' = keep C + u k^T     s' = keep s + write k     y = C' q / den(s'.q)
** where write and keep are one number a head, and e is 1 or keep: whether the old value is read
** before or after forgetting.  Inside a chunk the u solve a triangular system (Yang et al. 2024,
** Gated Delta Networks, section 3.3, without its inverse); decays are products over forward
** intervals, so that 0 and 1 are exact and nothing is divided.
**
** A step may have several keys, one after the other: each is a token.  The first forgets, the last is read after.
**
** The state is stored transposed, [Kp,Vp], with zeros beyond K and V: reading and writing it for sixteen
** tokens are then matrix products without copying. */
#ifndef MN_DELTA_CHUNK_H
#define MN_DELTA_CHUNK_H
#include "prefetch.h"
#include "galite_decay.h"

enum { IN_WRITE = IN_V + 1, IN_KEEP, IN_RESET, IN_C, IN_SUM };

typedef struct mn_delta {
  mn_attention a;                /* sizes and the denominator; its factors and gates are not used.  T counts tokens */
  bool after;                    /* e = keep */
  int keys;                      /* of a step */
} mn_delta;

typedef struct mn_delta_state { float *C, *s; } mn_delta_state;    /* [Kp,Vp] and [Kp] */

/* Is token t the first, the last of its step? */
static inline bool mn_delta_first(const mn_delta *d, int t) { return t % d->keys == 0; }
static inline bool mn_delta_last(const mn_delta *d, int t) { return t % d->keys == d->keys - 1; }

/* The rows of token t of head bh: of its step, [T,B,H,...], and of its key, [T,B,keys*H,...]. */
static inline long mn_delta_step(const mn_delta *d, int t, int bh) { return mn_token(&d->a, t / d->keys, bh); }
static inline long mn_delta_key(const mn_delta *d, int t, int bh) {
  const int H = d->a.H, b = bh / H, n = d->keys;
  return (((long)(t / n) * d->a.B + b) * n + t % n) * H + bh % H;
}

/* Does token t of head bh start a new episode? */
static inline bool mn_delta_reset(const mn_delta *d, int t, int bh) {
  const uint8_t *done = d->a.c->in[IN_RESET].u8;
  return done && mn_delta_first(d, t) && done[t / d->keys * d->a.B + bh / d->a.H];
}

/* Floats of work that both functions below need. */
long mn_delta_work(const mn_delta *d);

/* Tokens t .. t+n-1, n <= 16: read `from`, store `to` (never the same memory) and y.  q: what comes next will want. */
void mn_delta_chunk(const mn_delta *d, int bh, int t, int n, mn_delta_state from, mn_delta_state to,
                    mn_prefetch *q, float *work);

/* Backward of it: stores the inputs' gradients; grad is that of the state after the chunk and becomes
** that of the state before. */
void mn_delta_chunk_back(const mn_delta *d, int bh, int t, int n, mn_delta_state from,
                         mn_delta_state grad, mn_prefetch *q, float *work);

#endif
