/* scatter_add.c -- adds elements along one axis where their indices say: gather backwards. */
#include "indexed.h"

enum { SRC = 2 };

static int shape(mn_call *c) {
  if (mn_indexed_shape(c, SRC)) return -1;
  mn_same_shape(&c->in[0], &c->out[0]);
  return 0;
}

static void add_part(mn_call *c, const mn_indexed *s, long o, long from, long end) {
  mn_add_indexed(s, c->out[0].data, c->in[SRC].data, o, from, end);
}

static void forward(mn_call *c) {
  const mn_indexed s = mn_indexed_of(c, false);
  memcpy(c->out[0].data, c->in[0].data, (size_t)c->in[0].n * sizeof(float));
  mn_in_columns(c, &s, add_part);
}

static void backward(mn_call *c) {
  const mn_indexed s = mn_indexed_of(c, false);
  if (c->in[0].grad) memcpy(c->in[0].grad, c->out[0].grad, (size_t)c->in[0].n * sizeof(float));
  if (c->in[SRC].grad) mn_take_indexed(c, &s, MN_F32, c->in[SRC].grad, c->out[0].grad);
}

const mn_op mn_op_scatter_add = {
  .sig = "x[*] index[*]:<axis src[*] -> y[*] | axis=-1",
  .doc = "y = x, then y[i,index[i,j,k],k] += src[i,j,k], for axis 1 of three; equal indices add up, in order (torch.scatter_add)",
  .time = MN_PER_ROW, .shape = shape, .forward = forward, .backward = backward,
};
