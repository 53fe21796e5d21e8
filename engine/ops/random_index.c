/* random_index.c -- draws an index from softmax(logits) for every row: the last axis is drawn from. */
#include "draw.h"
#include "policy.h"

static void draw(const mn_call *c, long from, long end) {
  const int A = DIM(c, 'A');
  const uint64_t first = mn_first_drawn(c, &c->out[0]);
  for (long r = from; r < end; r++)
    c->out[0].i32[r] = mn_drawn(c->in[0].data + r * A, A, mn_unit(mn_draw_word(c->in[1].i32, first + (uint64_t)r)));
}

static void forward(mn_call *c) {
  const long rows = c->out[0].n;
  MN_FOR(c->ctx, (double)c->in[0].n * 8, r, 0, rows, 64, draw(c, r, rows - r < 64 ? rows : r + 64));
}

const mn_op mn_op_random_index = {
  .sig = "logits[...,A] key[4]:i32 -> ~index[...]:i32",
  .doc = "index ~ softmax(logits), along the last axis; key: see random_key",
  .time = MN_PER_ROW, .forward = forward,
};
