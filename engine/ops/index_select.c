/* index_select.c -- rows, columns ... of a tensor by a list of their indices. */
#include "indexed.h"

static int shape(mn_call *c) {
  const mn_arg *x = &c->in[0];
  mn_arg *y = &c->out[0];
  const int axis = mn_axis(c, "index_select", "axis", OPT(c, 0), x);
  if (axis < 0) return -1;
  mn_same_shape(x, y);
  y->shape[axis] = c->in[INDEX].shape[0];
  if (axis == 0 || c->in[INDEX].timed) c->time = MN_WHOLE;
  return 0;
}

/* Numbers of the last axis, as most are taken: indices are looked at once. */
static bool take_numbers(mn_call *c, const mn_indexed *s) {
  if (s->inner != 1 || c->in[0].dtype != MN_F32) return false;
  for (long k = 0; k < s->K; k++) if (s->index[k] < 0 || s->index[k] >= s->size) return false;
  const float *x = c->in[0].data;
  float *y = c->out[0].data;
  MN_PARALLEL_ROWS(c->ctx, s->outer * s->K, s->outer)
  for (long o = 0; o < s->outer; o++) {
    const float *from = x + o * s->size;
    float *to = y + o * s->K;
    for (long k = 0; k < s->K; k++) to[k] = from[s->index[k]];
  }
  return true;
}

static void forward(mn_call *c) {
  const mn_indexed s = mn_indexed_of(c, true);
  if (take_numbers(c, &s)) return;
  mn_take_indexed(c, &s, c->in[0].dtype, c->out[0].data, c->in[0].data);
}

static void backward(mn_call *c) {
  const mn_indexed s = mn_indexed_of(c, true);
  mn_taken_backward(c, &s);
}

const mn_op mn_op_index_select = {
  .sig = "x[*]:any index[N]:<axis -> y[*]:any | axis=0",
  .doc = "y[..., n, ...] = x[..., index[n], ...]: entries of an axis in any order, as often as index names them. Indices count from 0",
  .time = MN_PER_ROW, .accumulates = true, .shape = shape, .forward = forward, .backward = backward,
};
