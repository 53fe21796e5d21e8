/* permute.c -- puts the axes into another order. */
#include "walks.h"

static int shape(mn_call *c) {
  static const char *const name[MN_AXES] = { "a0", "a1", "a2", "a3", "a4", "a5" };
  const mn_arg *x = &c->in[0];
  mn_arg *y = &c->out[0];
  int given = 0, seen = 0;
  for (int i = 0; i < MN_AXES; i++) if (OPT(c, i) != MN_NO_AXIS) given++;
  if (given != x->ndim) return mn_fail(c->ctx, "permute: %d axes given, expected all %d of x, in their new order", given, x->ndim);
  for (int i = 0; i < x->ndim; i++) {
    const int a = mn_axis(c, "permute", name[i], OPT(c, i), x);
    if (a < 0) return -1;
    if (seen >> a & 1) return mn_fail(c->ctx, "permute: axis %d is given twice", a);
    seen |= 1 << a;
    y->shape[i] = x->shape[a];
    if (i == 0 && a) c->time = MN_WHOLE;
  }
  y->ndim = x->ndim;
  return 0;
}

static void forward(mn_call *c) {
  const mn_strides s = mn_permuted(c, false);
  mn_strided_copy(c->ctx, &s, mn_item(c->in[0].dtype), c->out[0].data, c->in[0].data);
}

static void backward(mn_call *c) {
  const mn_strides s = mn_permuted(c, true);
  mn_strided_copy(c->ctx, &s, sizeof(float), c->in[0].grad, c->out[0].grad);
}

const mn_op mn_op_permute = {
  .sig = "x[*]:any -> y[*]:any | a0=-100 a1=-100 a2=-100 a3=-100 a4=-100 a5=-100",
  .doc = "y = x with its axes in the order a0, a1, ...: axis i of y is axis a_i of x. Negative axes count from the end",
  .time = MN_PER_ROW, .shape = shape, .forward = forward, .backward = backward,
};
