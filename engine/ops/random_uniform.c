/* random_uniform.c -- numbers between 0 and 1, one for each element of a tensor. */
#include "draw.h"

static void part(mn_call *c, float *u, long from, long end) {
  uint32_t word[MN_DRAWN];
  for (long at = from; at < end; at += MN_DRAWN) {
    const long n = end - at < MN_DRAWN ? end - at : MN_DRAWN;
    mn_draw_words(c->in[1].i32, mn_first_drawn(c, &c->in[0]) + (uint64_t)at, n, word);
    for (long i = 0; i < n; i++) u[at + i] = mn_unit(word[i]);
  }
}

static void forward(mn_call *c) { mn_in_parts(c, c->out[0].data, c->out[0].n, part); }

const mn_op mn_op_random_uniform = {
  .sig = "like[...] key[4]:i32 -> ~u[...]",
  .doc = "u uniform in [0, 1), of the shape of `like`; key: see random_key",
  .time = MN_PER_ROW, .forward = forward,
};
