/* gather.c -- elements along one axis by their indices, for each place off the axis its own. */
#include "indexed.h"

static int shape(mn_call *c) {
  const int had = c->in[INDEX].ndim, want = c->in[0].ndim;
  if (had == want - 1) return mn_fail(c->ctx, "gather: index has %d axes, expected %d as x (pick takes one element of each row)", had, want);
  if (mn_indexed_shape(c, 0)) return -1;
  mn_same_shape(&c->in[INDEX], &c->out[0]);
  return 0;
}

static void forward(mn_call *c) {
  const mn_indexed s = mn_indexed_of(c, false);
  mn_take_indexed(c, &s, c->in[0].dtype, c->out[0].data, c->in[0].data);
}

static void backward(mn_call *c) {
  const mn_indexed s = mn_indexed_of(c, false);
  mn_taken_backward(c, &s);
}

const mn_op mn_op_gather = {
  .sig = "x[*]:any index[*]:<axis -> y[*]:any | axis=-1",
  .doc = "y[i,j,k] = x[i,index[i,j,k],k], for axis 1 of three; y has the shape of index (torch.gather). Indices count from 0",
  .time = MN_PER_ROW, .accumulates = true, .shape = shape, .forward = forward, .backward = backward,
};
