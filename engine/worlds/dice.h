/* dice.h -- chance in a reset or step of an environment whose original draws with JAX: from Philox, or from the original's keys. */
#ifndef MN_DICE_H
#define MN_DICE_H
#include "env.h"
#include "worlds/bits.h"
#include "worlds/jax_random.h"

/* Philox draws words one after another.  With jax each draw has a key of its own, and keys are split as in the original. */
typedef struct dice { mn_io *io; mn_jax_key key; int used; bool jax; } dice;

MN_FN uint32_t dice_next_word(dice *d) { return d->used < 4 ? d->io->bits[d->used++] : mn_rand(d->io); }

/* The next n, which are taken whole blocks side by side. */
MN_FN void dice_next_words(dice *d, uint32_t *out, int n) {
  enum { LANES = 16 };
  mn_io *io = d->io;
  int i = 0;
  for (; i < n && (d->used < 4 || io->draws % 4); i++) out[i] = dice_next_word(d);
  while (n - i >= 4) {
    uint32_t some[4][LANES];
    const int blocks = n - i < 4 * LANES ? (n - i) / 4 : (int)LANES;
    for (int k = 0; k < LANES; k++) {
      uint32_t at[4] = { io->key[2], io->key[3], io->key[4], io->key[5] + 1 + (uint32_t)k };
      mn_philox_rounds(io->key[0], io->key[1], at);
      for (int word = 0; word < 4; word++) some[word][k] = at[word];
    }
    for (int k = 0; k < blocks; k++)
      for (int word = 0; word < 4; word++) out[i++] = some[word][k];
    io->key[5] += (uint32_t)blocks;
    io->draws += 4 * (uint32_t)blocks;
  }
  for (; i < n; i++) out[i] = dice_next_word(d);
}

/* The dice of this reset or step.  With jax the key is derived as in the original: base = PRNGKey(seed), or fold_in of it and i for
** environment i > 0.  The first reset uses base.  Step s splits fold_in(base, s) into two keys: one for the step, the other for the reset
** that follows where the step ends the episode. */
MN_FN dice dice_of(mn_io *io, bool jax, bool resets) {
  dice d;
  d.io = io;
  d.used = 0;
  d.jax = jax;
  d.key = mn_jax_seed(io->key[0], io->key[1]);
  if (!d.jax) return d;
  if (io->key[4]) d.key = mn_jax_fold_in(d.key, io->key[4]);
  if (io->key[2] || !resets) {
    d.key = mn_jax_fold_in(d.key, io->key[2]);
    const mn_jax_key second = mn_jax_split(&d.key);
    if (resets) d.key = second;
  }
  return d;
}

/* rng, other = dice_split(rng): dice with the other key.  Philox has none. */
MN_FN mn_jax_key dice_split(dice *d) {
  if (d->jax) return mn_jax_split(&d->key);
  return d->key;
}

MN_FN float dice_uniform_of(dice *d, mn_jax_key key, int n, int i) {
  return d->jax ? mn_jax_uniform(key, n, i) : (float)(dice_next_word(d) >> 9) * 0x1p-23f;
}
MN_FN float dice_uniform(dice *d, mn_jax_key key) { return dice_uniform_of(d, key, 1, 0); }

/* ---- places of a square map: a bit a column, a word a row ---- */

/* The place that has `left` others before it. */
MN_FN int dice_place_after(const uint64_t *place, int side, int left) {
  int row = 0;
  for (; left >= mn_ones_in(place[row]); row++) left -= mn_ones_in(place[row]);
  uint64_t bits = place[row];
  for (; left > 0; left--) bits &= bits - 1;
  return row * side + mn_lowest_of(bits);
}

/* One of n places; 0 where there is none. */
MN_LARGE int dice_choose(dice *d, mn_jax_key key, const uint64_t *place, int side, int n) {
  if (n == 0) return 0;
  if (d->jax) return mn_jax_choice(key, place, side, 1.0f / (float)n);
  return dice_place_after(place, side, mn_below(dice_next_word(d), n));
}
#endif
