/* dropout.c -- zeros elements at random and scales up those that stay, so that the mean is the same (Srivastava et al. 2014).
** The rate is a tensor: a plan reads it at every replay.  Backward draws the same numbers again. */
#include "draw.h"

/* y = x / (1 - p) where u >= p, else 0. */
static void keep(const mn_call *c, const float *x, float p, float *y, long from, long end) {
  uint32_t word[MN_DRAWN];
  const float scale = p < 1 ? 1 / (1 - p) : 0;
  for (long at = from; at < end; at += MN_DRAWN) {
    const long n = end - at < MN_DRAWN ? end - at : MN_DRAWN;
    mn_draw_words(c->in[1].i32, mn_first_drawn(c, &c->in[0]) + (uint64_t)at, n, word);
    MN_PRAGMA(omp simd)
    for (long i = 0; i < n; i++) y[at + i] = mn_unit(word[i]) >= p ? scale * x[at + i] : 0;
  }
}

static void forward_part(mn_call *c, float *y, long from, long end) { keep(c, c->in[0].data, c->out[1].data[0], y, from, end); }
static void backward_part(mn_call *c, float *dx, long from, long end) { keep(c, c->out[0].grad, c->out[1].data[0], dx, from, end); }

static void forward(mn_call *c) {
  c->out[1].data[0] = c->in[2].data[0];
  mn_in_parts(c, c->out[0].data, c->out[0].n, forward_part);
}

static void backward(mn_call *c) { mn_in_parts(c, c->in[0].grad, c->in[0].n, backward_part); }

const mn_op mn_op_dropout = {
  .sig = "x[...] key[4]:i32 ~p[1]:01 -> y[...] ~~rate[1]",
  .doc = "y = 0 with probability p, else x / (1 - p) (Srivastava et al. 2014); key: see random_key",
  .time = MN_PER_ROW, .forward = forward, .backward = backward,
};
