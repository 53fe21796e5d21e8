/* frame_stack.c -- stacks the last F inputs: y[t] = [x[t-F+1]; ...; x[t]], the oldest frame first.
** A frame of another episode counts as zeros.  A row is the previous one, shifted, so the row is also the state. */
#include <string.h>
#include "op.h"

static int shape(mn_call *c) {
  double frames = OPT(c, 0);
  if (!(frames >= 2 && frames <= 4096) || frames != (int)frames)
    return mn_fail(c->ctx, "frame_stack: frames is %g, expected a whole number from 2 to 4096", frames);
  int F = (int)frames, D = DIM(c, 'D');
  if (frames * D > 1e9) return mn_fail(c->ctx, "frame_stack: y would have %g values per row, expected at most 1e9", frames * D);
  if (c->in[2].data && DIM(c, 'P') != F - 1)
    return mn_fail(c->ctx, "frame_stack: axis 1 (P) of past is %d, expected %d: frames - 1", DIM(c, 'P'), F - 1);
  c->out[0].shape[2] = F * D;
  c->out[1].shape[1] = F - 1;
  return 0;
}

static bool fresh(const mn_call *c, long row) { return c->in[1].u8 && c->in[1].u8[row]; }

static void forward(mn_call *c) {
  long B = DIM(c, 'B'), D = DIM(c, 'D'), old = ((long)OPT(c, 0) - 1) * D;
  float *y = c->out[0].data;
  for (long t = c->t0; t < c->t1; t++)
    for (long b = 0; b < B; b++) {
      long row = t * B + b;
      const float *past = t ? y + (row - B) * (old + D) + D : c->in[2].data ? c->in[2].data + b * old : NULL;
      float *to = y + row * (old + D);
      if (past && !fresh(c, row)) memcpy(to, past, (size_t)old * sizeof *to);
      else memset(to, 0, (size_t)old * sizeof *to);
      memcpy(to + old, c->in[0].data + row * D, (size_t)D * sizeof *to);
    }
  for (long b = 0; b < B; b++)
    memcpy(c->out[1].data + b * old, y + ((c->t1 - 1) * B + b) * (old + D) + D, (size_t)old * sizeof *y);
}

/* `carry` is the gradient of the F-1 newest frames of the row before; the row's own is added as it comes. */
static void backward(mn_call *c) {
  long T = DIM(c, 'T'), B = DIM(c, 'B'), D = DIM(c, 'D'), old = ((long)OPT(c, 0) - 1) * D;
  const float *dy = c->out[0].grad, *dlast = c->out[1].grad;
  float *dx = c->in[0].grad, *dpast = c->in[2].grad, *carry = mn_scratch(c->ctx, 0, old + D);
  for (long b = 0; b < B; b++) {
    memset(carry, 0, (size_t)D * sizeof *carry);
    if (dlast) memcpy(carry + D, dlast + b * old, (size_t)old * sizeof *carry);
    else memset(carry + D, 0, (size_t)old * sizeof *carry);
    for (long t = T - 1; t >= 0; t--) {
      long row = t * B + b;
      for (long i = 0; dy && i < old + D; i++) carry[i] += dy[row * (old + D) + i];
      if (dx) memcpy(dx + row * D, carry + old, (size_t)D * sizeof *dx);
      if (fresh(c, row)) memset(carry, 0, (size_t)old * sizeof *carry);
      memmove(carry + D, carry, (size_t)old * sizeof *carry);
      memset(carry, 0, (size_t)D * sizeof *carry);
    }
    if (dpast) memcpy(dpast + b * old, carry + D, (size_t)old * sizeof *dpast);
  }
}

const mn_op mn_op_frame_stack = {
  .sig = "x[T,B,D] done?[T,B]:bit past?[B,P,D] -> y[T,B,?] past'[B,?,D] | frames=4",
  .doc = "y[t] = [x[t-frames+1]; ...; x[t]], zeros for frames of another episode (Mnih et al. 2015)",
  .time = MN_SCAN, .shape = shape, .forward = forward, .backward = backward,
};
