/* one_hot_codes.c -- y[..., code[...]] = 1, the rest 0, for codes as environments give them, in bytes.
** A code outside the range that the environment declared gives NaN, so that the mistake shows. */
#include <string.h>
#include "op.h"

static int shape(mn_call *c) {
  double codes = OPT(c, 0);
  if (!(codes >= 1 && codes <= 256) || codes != (int)codes)
    return mn_fail(c->ctx, "one_hot_codes: codes is %g, expected a whole number from 1 to 256", codes);
  c->out[0].shape[c->in[0].ndim] = (int)codes;
  return 0;
}

static void forward(mn_call *c) {
  long n = (long)OPT(c, 0);
  float *y = c->out[0].data;
  memset(y, 0, (size_t)(c->in[0].n * n) * sizeof *y);
  for (long r = 0; r < c->in[0].n; r++) {
    int code = c->in[0].u8[r];
    if (code < n) y[r * n + code] = 1;
    else y[r * n] = __builtin_nanf("");
  }
}

const mn_op mn_op_one_hot_codes = {
  .sig = "code[...]:u8 -> ~y[...,?] | codes=0",
  .doc = "y[..., code[...]] = 1, else 0, for codes 0..codes-1 in bytes; another code gives NaN",
  .time = MN_PER_ROW, .shape = shape, .forward = forward,
};
