/* kv_chunk_slots.c -- a cache of an episode's compressed chunks, as `kv_slots` is of its tokens.
** Key r of chunk u is in slot (u*R + r) % W.  If the episode began within these rows, slots that it has not reached
** are zero. */
#include <string.h>
#include "attention/episode_attention.h"

static int shape(mn_call *c) {
  int T = DIM(c, 'T'), C = DIM(c, 'C'), W = DIM(c, 'W');
  double chunk = OPT(c, 0);
  if (!(chunk >= 1 && chunk < 1 << 30) || chunk != (int)chunk)
    return mn_fail(c->ctx, "kv_chunk_slots: chunk is %g, expected a whole number from 1 to 2^30 - 1", chunk);
  int ends = (T + (int)chunk - 1) / (int)chunk;
  if (C % ends) return mn_fail(c->ctx, "kv_chunk_slots: axis 2 (C) of chunks is %d, expected a multiple of %d ends of chunks", C, ends);
  if (W % (C / ends)) return mn_fail(c->ctx, "kv_chunk_slots: axis 2 (W) of short is %d, expected a multiple of %d keys of a chunk", W, C / ends);
  return 0;
}

enum { KEPT = -1, EMPTY = -2 };

/* Where slot s of environment b comes from: a place among `chunks`, or the slot as it was. */
static int origin(const mn_call *c, int s, int b) {
  int chunk = (int)OPT(c, 0), T = DIM(c, 'T'), W = DIM(c, 'W'), R = DIM(c, 'C') / ((T + chunk - 1) / chunk);
  int last = c->t1 - 1, P = c->in[0].i32[(long)last * DIM(c, 'B') + b];
  if (P < 0) return KEPT;
  int kept = W / R, full = (int)(((long)P + 1) / chunk), here = s / R;   /* chunk `full` is the one being filled */
  int u = full - 1 - ((full - 1 - here) % kept + kept) % kept;
  if (full == 0 || u < 0) return P <= last ? EMPTY : KEPT;
  long row = last - (P - ((long)u * chunk + chunk - 1));
  return row >= 0 ? (int)(row / chunk) * R + s % R : KEPT;
}

static void each_slot(const mn_call *c, int b, bool back) {
  int W = DIM(c, 'W'), C = DIM(c, 'C');
  size_t n = (size_t)DIM(c, 'H') * (size_t)DIM(c, 'D');
  float *dchunks = c->in[1].grad, *dshort = c->in[2].grad;
  for (int s = 0; s < W; s++) {
    int from = origin(c, s, b);
    for (long kv = 0; kv < 2; kv++) {
      long slot = ((2L * b + kv) * W + s) * (long)n, place = ((2L * b + kv) * C + from) * (long)n;
      if (back) {
        const float *g = c->out[0].grad + slot;
        if (from >= 0 && dchunks) memcpy(dchunks + place, g, sizeof *g * n);
        if (from == KEPT && dshort) memcpy(dshort + slot, g, sizeof *g * n);
      } else if (from == EMPTY) memset(c->out[0].data + slot, 0, sizeof(float) * n);
      else memcpy(c->out[0].data + slot, from == KEPT ? c->in[2].data + slot : c->in[1].data + place, sizeof(float) * n);
    }
  }
}

static void forward(mn_call *c) {
  MN_FOR(c->ctx, c->out[0].n, b, 0, DIM(c, 'B'), 1, each_slot(c, (int)b, false));
}

static void backward(mn_call *c) {
  for (int i = 1; i <= 2; i++)
    if (c->in[i].grad) memset(c->in[i].grad, 0, sizeof(float) * (size_t)c->in[i].n);
  MN_FOR(c->ctx, c->out[0].n, b, 0, DIM(c, 'B'), 1, each_slot(c, (int)b, true));
}

const mn_op mn_op_kv_chunk_slots = {
  .sig = "pos[T,B]:i32 chunks[B,2,C,H,D] short[B,2,W,H,D] -> short'[B,2,W,H,D] | chunk=1",
  .doc = "the last W keys and values of full chunks of an episode. From `chunks`, which longshort_attention filled in these rows, and `short` from "
      "before; unreached slots are 0 if the episode began in these rows",
  .time = MN_FINAL, .shape = shape, .forward = forward, .backward = backward,
};
