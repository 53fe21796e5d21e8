/* tril.c -- the part of each matrix below and on a diagonal. */
#include "triangle.h"

static int shape(mn_call *c) { return mn_triangle_shape(c); }
static void forward(mn_call *c) { mn_triangle(c, false, c->out[0].data, c->in[0].data); }
static void backward(mn_call *c) { mn_triangle(c, false, c->in[0].grad, c->out[0].grad); }

const mn_op mn_op_tril = {
  .sig = "x[*]:any -> y[*]:any | diagonal=0",
  .doc = "y[..., i, j] = x[..., i, j] where j - i <= diagonal, else 0",
  .time = MN_PER_ROW, .shape = shape, .forward = forward, .backward = backward,
};
