/* random_key.c -- the key of the next draw, from a generator that counts them: a leaf of two halves of the seed and two of the count.
** It counts in place, so that every replay of a plan draws other numbers. */
#include <string.h>
#include "op.h"

static void forward(mn_call *c) {
  int32_t *generator = c->in[0].i32;
  uint32_t count[2];
  memcpy(c->out[0].i32, generator, 4 * sizeof *generator);
  memcpy(count, generator + 2, sizeof count);
  count[1] += ++count[0] == 0;
  memcpy(generator + 2, count, sizeof count);
}

const mn_op mn_op_random_key = {
  .sig = "generator[4]:i32 -> ~key[4]:i32",
  .doc = "the key of the generator's next draw, for random_uniform, random_normal, random_index and dropout; the generator counts on",
  .time = MN_WHOLE, .off_tape = true, .writes = 1 << 0, .forward = forward,
};
