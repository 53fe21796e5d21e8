/* kv_slots.c -- a cache of keys and values at the positions of an episode.
** Position p below `pinned` is in slot p; later positions use the other slots in turn, and the newest stay.
** If the episode began within these rows, slots that it has not reached are zero. */
#include <string.h>
#include "attention/episode_attention.h"

static int shape(mn_call *c) {
  int S = DIM(c, 'S');
  double pinned = OPT(c, 0);
  if (!(pinned >= 0 && pinned <= S) || pinned != (int)pinned)
    return mn_fail(c->ctx, "kv_slots: pinned is %g, expected a whole number from 0 to %d (S)", pinned, S);
  return 0;
}

enum { KEPT = -1, EMPTY = -2 };

/* Where slot s of environment b comes from: a row, or the slot as it was. */
static int origin(const mn_call *c, int s, int b) {
  int S = DIM(c, 'S'), pinned = (int)OPT(c, 0), last = c->t1 - 1;
  int P = c->in[1].i32[(long)last * DIM(c, 'B') + b], p = s;
  if (P < 0) return KEPT;
  if (s >= pinned) {           /* the newest position, up to P, that lies in this slot */
    int ring = S - pinned, newest = P >= pinned ? (P - pinned) % ring : 0, here = s - pinned;
    p = P < pinned ? pinned + here : P - newest + here - (here > newest ? ring : 0);
    if (P >= pinned && p < pinned) p = P + 1;
  }
  bool began = P <= last;
  if (p > P) return began ? EMPTY : KEPT;
  int row = last - (P - p);
  return row >= 0 ? row : KEPT;
}

static void each_slot(const mn_call *c, int b, bool back) {
  int S = DIM(c, 'S'), B = DIM(c, 'B');
  size_t n = (size_t)DIM(c, 'H') * (size_t)DIM(c, 'D');
  for (int s = 0; s < S; s++) {
    int from = origin(c, s, b);
    long slot = ((long)b * S + s) * (long)n, row = ((long)from * B + b) * (long)n;
    float *kept = c->out[0].data + slot, *dx = c->in[0].grad, *dmemory = c->in[2].grad;
    if (!back && from == EMPTY) memset(kept, 0, sizeof *kept * n);
    else if (!back) memcpy(kept, from == KEPT ? c->in[2].data + slot : c->in[0].data + row, sizeof *kept * n);
    else {
      const float *g = c->out[0].grad + slot;
      if (from >= 0 && dx) memcpy(dx + row, g, sizeof *dx * n);
      if (from == KEPT && dmemory) memcpy(dmemory + slot, g, sizeof *dmemory * n);
    }
  }
}

static void forward(mn_call *c) {
  MN_FOR(c->ctx, c->out[0].n, b, 0, DIM(c, 'B'), 1, each_slot(c, (int)b, false));
}

static void backward(mn_call *c) {
  for (int i = 0; i <= 2; i += 2)
    if (c->in[i].grad) memset(c->in[i].grad, 0, sizeof(float) * (size_t)c->in[i].n);
  MN_FOR(c->ctx, c->out[0].n, b, 0, DIM(c, 'B'), 1, each_slot(c, (int)b, true));
}

const mn_op mn_op_kv_slots = {
  .sig = "x[T,B,H,D] pos[T,B]:i32 memory[B,S,H,D] -> memory'[B,S,H,D] | pinned=0",
  .doc = "cache of x by position in the episode (see position). Position p is in slot p below `pinned`, else in slot pinned + (p - pinned) % (S - "
      "pinned), the newest; unreached slots are 0 if the episode began in these rows",
  .time = MN_FINAL, .shape = shape, .forward = forward, .backward = backward,
};
