/* position.c -- the number of steps of its episode before each row.
** `tick` carries the count across calls.  A count that would reach `most` is reduced by `back`: floats count
** to 2^24, and ops that use only remainders are not affected. */
#include "op.h"

static int shape(mn_call *c) {
  double most = OPT(c, 0), back = OPT(c, 1);
  if (!(most >= 1 && most <= 1 << 23) || most != (int)most)
    return mn_fail(c->ctx, "position: most is %g, expected a whole number from 1 to 2^23", most);
  if (!(back >= 1 && back <= most) || back != (int)back)
    return mn_fail(c->ctx, "position: back is %g, expected a whole number from 1 to most = %g", back, most);
  return 0;
}

static void forward(mn_call *c) {
  int B = DIM(c, 'B'), most = (int)OPT(c, 0), back = (int)OPT(c, 1);
  const uint8_t *done = c->in[1].u8;
  for (int b = 0; b < B; b++) {
    float tick = c->t0 ? c->out[1].data[b] : c->in[2].data[b];
    int next = !(tick > 0) ? 0 : tick < (float)most ? (int)tick : most - 1;
    for (long t = c->t0; t < c->t1; t++) {
      int P = done && done[t * B + b] ? 0 : next;
      c->out[0].i32[t * B + b] = P;
      next = P + 1 == most ? most - back : P + 1;
    }
    c->out[1].data[b] = (float)next;
  }
}

const mn_op mn_op_position = {
  .sig = "like[T,B,...] done?[T,B]:bit tick[B] -> pos[T,B]:i32 ~tick'[B] | most=8388608 back=4194304",
  .doc = "pos = steps since the episode began. Starts at tick; done: 0; a position that would reach `most` becomes most - back; only the shape of "
      "`like` is used",
  .time = MN_SCAN, .shape = shape, .forward = forward,
};
