/* running_max.c -- the largest logit of a token, or of its episode so far, which is subtracted before exp.
** When the maximum changes from c to c', everything written under c must shrink by exp(c - c').  It starts at -1e38 (for minus
** infinity), also after a reset.
** With `a` the maximum of before is first moved by it: the stabiliser m of xLSTM (Beck et al. 2024, eq. 15), where a is the logarithm of
** the forget gate, z of the input gate, and shrink the stabilised forget gate.  What rounding takes from a + c counts in shrink, which
** so is exact for large gates; and m is rounded up, so that shrink is at most 1.
** Where m cancels from what is computed with it, gradients through it cancel, too: they may be left out by detach, but with
** large gates they take rounding errors away. */
#include <string.h>
#include "numerics/fast_math.h"
#include "numerics/simd.h"
#include "op.h"

enum { Z, DONE, C, A };          /* inputs */
enum { TOP, SHRINK, LAST };

static const float FAR = -1e38f;

/* Does head bh begin again at row t? */
static bool begins(const mn_call *c, int t, long bh) {
  return OPT(c, 0) != 0 || (c->in[DONE].data && c->in[DONE].u8[(long)t * DIM(c, 'B') + bh / DIM(c, 'H')]);
}

static void walk(const mn_call *c, long bh) {
  const long heads = (long)DIM(c, 'B') * DIM(c, 'H'), M = DIM(c, 'M');
  const float *first = c->in[C].data, *a = c->in[A].data;
  float top = c->t0 ? c->out[LAST].data[bh] : first ? first[bh] : FAR;
  for (int t = c->t0; t < c->t1; t++) {
    const long row = t * heads + bh;
    const float old = begins(c, t, bh) ? FAR : top, by = a ? a[row] : 0, moved = old + by, lost = mn_lost_in_sum(old, by);
    top = mn_at_least(mn_vmax(c->in[Z].data + row * M, M), moved);
    if (moved - top + lost > 0) top += __builtin_fabsf(top) * 0x1p-23f;
    c->out[TOP].data[row] = top;
    c->out[SHRINK].data[row] = mn_expf(moved - top + lost);
  }
  c->out[LAST].data[bh] = top;
}

static void walk_back(const mn_call *c, long bh) {
  const long heads = (long)DIM(c, 'B') * DIM(c, 'H'), M = DIM(c, 'M');
  const float *top = c->out[TOP].data, *shrink = c->out[SHRINK].data, *dtop = c->out[TOP].grad, *dshrink = c->out[SHRINK].grad;
  const float *a = c->in[A].data, *first = c->in[C].data;
  float *dz = c->in[Z].grad, *da = c->in[A].grad, carry = c->out[LAST].grad ? c->out[LAST].grad[bh] : 0;
  for (int t = DIM(c, 'T') - 1; t >= 0; t--) {
    const long row = t * heads + bh;
    const float *z = c->in[Z].data + row * M, largest = mn_vmax(z, M);
    const bool fresh = begins(c, t, bh) || (t == 0 && !first);
    const float old = fresh ? FAR : t ? top[row - heads] : first[bh];
    const bool moves = old + (a ? a[row] : 0) > largest;               /* else one of z is the maximum: the first of equal ones */
    const float s = dshrink ? dshrink[row] * shrink[row] : 0, g = carry + (dtop ? dtop[row] : 0) - s, back = moves ? s + g : s;
    if (da) da[row] = back;
    if (dz) {
      long m = 0;
      while (m < M - 1 && z[m] != largest) m++;
      memset(dz + row * M, 0, sizeof(float) * (size_t)M);
      if (!moves) dz[row * M + m] = g;
    }
    carry = fresh ? 0 : back;
  }
  if (c->in[C].grad) c->in[C].grad[bh] = carry;
}

static void forward(mn_call *c) {
  const long heads = (long)DIM(c, 'B') * DIM(c, 'H');
  MN_FOR(c->ctx, (c->t1 - c->t0) * heads * DIM(c, 'M'), bh, 0, heads, 1, walk(c, bh));
}

static void backward(mn_call *c) {
  const long heads = (long)DIM(c, 'B') * DIM(c, 'H');
  MN_FOR(c->ctx, DIM(c, 'T') * heads * DIM(c, 'M'), bh, 0, heads, 1, walk_back(c, bh));
}

const mn_op mn_op_running_max = {
  .sig = "z[T,B,H,M] done?[T,B]:bit c?[B,H] a?[T,B,H] -> top[T,B,H] shrink[T,B,H] c'[B,H] | of=episode|token",
  .doc = "running maximum of z over a head's episode (of=token: of this token alone). top = c' = max(a + c, max z), shrink = exp(a + c - c'); "
         "a: xLSTM's stabiliser (Beck et al. 2024, eq. 15)",
  .time = MN_SCAN, .forward = forward, .backward = backward,
};
