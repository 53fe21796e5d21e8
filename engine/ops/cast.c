/* cast.c -- the same values as another type.  Floats become whole numbers by leaving out their fraction; a value that the type
** does not hold becomes the nearest that it holds, NaN becomes 0. */
#include "cast.h"
#include "numerics/broadcast.h"

static int shape(mn_call *c) {
  static const int type[] = { MN_F32, MN_I32, MN_U8 };
  c->out[0].dtype = type[(int)OPT(c, 0)];
  return 0;
}

#define EACH(to, value) for (long i = from; i < end; i++) y->to[i] = value

static void convert(mn_call *c, float *unused, long from, long end) {
  const mn_arg *x = &c->in[0], *y = &c->out[0];
  (void)unused;
  switch (x->dtype * 3 + y->dtype) {
  case MN_F32 * 3 + MN_F32: EACH(data, x->data[i]); break;
  case MN_F32 * 3 + MN_I32: EACH(i32, mn_float_to_i32(x->data[i])); break;
  case MN_F32 * 3 + MN_U8:  EACH(u8, mn_float_to_u8(x->data[i])); break;
  case MN_I32 * 3 + MN_F32: EACH(data, (float)x->i32[i]); break;
  case MN_I32 * 3 + MN_I32: EACH(i32, x->i32[i]); break;
  case MN_I32 * 3 + MN_U8:  EACH(u8, mn_i32_to_u8(x->i32[i])); break;
  case MN_U8 * 3 + MN_F32:  EACH(data, x->u8[i]); break;
  case MN_U8 * 3 + MN_I32:  EACH(i32, x->u8[i]); break;
  default:                  EACH(u8, x->u8[i]);
  }
}

static void copy_back(mn_call *c, float *to, long from, long end) {
  for (long i = from; i < end; i++) to[i] = c->out[0].grad[i];
}

static void forward(mn_call *c) { mn_in_parts(c, NULL, c->out[0].n, convert); }
static void backward(mn_call *c) { mn_in_parts(c, c->in[0].grad, c->in[0].n, copy_back); }

const mn_op mn_op_cast = {
  .sig = "x[...]:any -> y[...]:any | to=f32|i32|u8",
  .doc = "y = x as another type. From float: the fraction is left out (2.9 -> 2, -2.9 -> -2), values out of range become the nearest "
      "(u8: 0..255), NaN 0. No gradient through whole numbers",
  .time = MN_PER_ROW, .shape = shape, .forward = forward, .backward = backward,
};
