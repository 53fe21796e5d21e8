/* random_normal.c -- standard normal numbers, one for each element of a tensor: Box and Muller 1958, whose pair is that of two
** neighbouring words. */
#include "draw.h"
#include "numerics/fast_math.h"

static void part(mn_call *c, float *z, long from, long end) {
  uint32_t word[MN_DRAWN + 2];
  const uint64_t first = mn_first_drawn(c, &c->in[0]);
  for (long at = from; at < end; at += MN_DRAWN) {
    const long n = end - at < MN_DRAWN ? end - at : MN_DRAWN;
    const uint64_t begin = (first + (uint64_t)at) & ~1ull;               /* whole pairs */
    const long skipped = (long)(first + (uint64_t)at - begin);
    mn_draw_words(c->in[1].i32, begin, (skipped + n + 1) & ~1l, word);
    for (long i = -skipped; i < n; i += 2) {
      float pair[2];
      mn_normals(word[i + skipped], word[i + skipped + 1], &pair[0], &pair[1]);
      if (i >= 0) z[at + i] = pair[0];
      if (i + 1 < n) z[at + i + 1] = pair[1];
    }
  }
}

static void forward(mn_call *c) { mn_in_parts(c, c->out[0].data, c->out[0].n, part); }

const mn_op mn_op_random_normal = {
  .sig = "like[...] key[4]:i32 -> ~z[...]",
  .doc = "z standard normal, of the shape of `like`; key: see random_key",
  .time = MN_PER_ROW, .forward = forward,
};
