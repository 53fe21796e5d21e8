/* running_max.c -- the largest logit of a token, or of its episode so far, which is subtracted before exp.
** When the maximum grows from c to c', everything written under c must shrink by exp(c - c').  It is a
** constant for gradients, and starts at -1e38 (for minus infinity), also after a reset.
** With `a` the maximum of before is first moved by it: the stabiliser m of xLSTM (Beck et al. 2024, eq. 15), where a is the logarithm of
** the forget gate, z of the input gate, and shrink the stabilised forget gate.  What rounding takes from a + c counts in shrink, which
** so is exact for large gates; and m is rounded up, so that shrink is at most 1. */
#include "numerics/fast_math.h"
#include "numerics/simd.h"
#include "op.h"

static const float FAR = -1e38f;

static void walk(const mn_call *c, long bh) {
  long heads = (long)DIM(c, 'B') * DIM(c, 'H'), M = DIM(c, 'M'), b = bh / DIM(c, 'H');
  const float *first = c->in[2].data, *a = c->in[3].data;
  const uint8_t *done = c->in[1].u8;
  bool alone = OPT(c, 0) != 0;
  float top = c->t0 ? c->out[2].data[bh] : first ? first[bh] : FAR;
  for (int t = c->t0; t < c->t1; t++) {
    if (alone || (done && done[t * DIM(c, 'B') + b])) top = FAR;
    const float by = a ? a[t * heads + bh] : 0, moved = top + by, lost = mn_lost_in_sum(top, by);
    top = mn_at_least(mn_vmax(c->in[0].data + (t * heads + bh) * M, M), moved);
    if (moved - top + lost > 0) top += __builtin_fabsf(top) * 0x1p-23f;
    c->out[0].data[t * heads + bh] = top;
    c->out[1].data[t * heads + bh] = mn_expf(moved - top + lost);
  }
  c->out[2].data[bh] = top;
}

static void forward(mn_call *c) {
  long heads = (long)DIM(c, 'B') * DIM(c, 'H');
  MN_FOR(c->ctx, (c->t1 - c->t0) * heads * DIM(c, 'M'), bh, 0, heads, 1, walk(c, bh));
}

const mn_op mn_op_running_max = {
  .sig = "z[T,B,H,M] done?[T,B]:bit c?[B,H] a?[T,B,H] -> ~top[T,B,H] ~shrink[T,B,H] ~c'[B,H] | of=episode|token",
  .doc = "running maximum of z over a head's episode (of=token: of this token alone). top = c' = max(a + c, max z), shrink = exp(a + c - c'); no "
         "gradient; a: xLSTM's stabiliser (Beck et al. 2024, eq. 15)",
  .time = MN_SCAN, .forward = forward,
};
