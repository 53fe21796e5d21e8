/* random.h -- counter-based random numbers: Philox4x32-10 (Salmon et al., SC 2011).
** A random number is a function of (seed, environment, step, purpose) only.  It does not depend on
** the number of environments, the thread, or whether the run was resumed; only counters are
** saved. */
#ifndef MN_RANDOM_H
#define MN_RANDOM_H
#include <stdint.h>
#ifdef __CUDACC__
#define MN_FN static inline __host__ __device__
#define MN_LARGE static __noinline__ __host__ __device__
#else
#define MN_FN static inline
#define MN_LARGE static inline       /* a GPU's compiler would copy it into all its callers, for minutes */
#endif

/* The last word of a counter, by what is drawn.  mn_random_* of scripts leave the highest bit 0, so they never meet the first three.
** Below MN_FOR_DRAWS they do not meet those of ops either, which have the same seed where a script gives them the same. */
#define MN_FOR_STEP   0x80000000u         /* + the further blocks of one step */
#define MN_FOR_RESET  0xC0000000u         /* + those of one reset */
#define MN_FOR_SIGNS  0xA0000000u         /* + 128 channels' block */
#define MN_FOR_ACTION 0x40000000u         /* softmax_sample */
#define MN_FOR_DRAWS  0x20000000u         /* | the high half of the block's number: ops that draw with a key */

enum { MN_ENVS_PER_BATCH = 64 };          /* environments that are stepped together */

/* Where the streams of MN_ENVS_PER_BATCH neighbouring environments stand.  Lane by lane, for the vector unit. */
typedef struct mn_streams {
  uint32_t key[2][MN_ENVS_PER_BATCH];     /* the seed */
  uint32_t step[2][MN_ENVS_PER_BATCH];    /* low and high half: resets and steps so far */
  uint32_t index[MN_ENVS_PER_BATCH];
} mn_streams;

/* Advance the environment in that lane to its next step. */
MN_FN void mn_stream_advance(mn_streams *s, int lane) { s->step[1][lane] += ++s->step[0][lane] == 0; }

/* Philox4x32-10: c[0..3], a counter, becomes the 128 bits of key k0, k1 there.  A round multiplies two words and mixes the
** halves of the products with the others and the key; the constants are the paper's. */
MN_FN void mn_philox_rounds(uint32_t k0, uint32_t k1, uint32_t c[4]) {
  for (int round = 0; round < 10; round++) {
    const uint64_t a = 0xD2511F53ull * c[0], b = 0xCD9E8D57ull * c[2];
    c[0] = (uint32_t)(b >> 32) ^ c[1] ^ k0;
    c[2] = (uint32_t)(a >> 32) ^ c[3] ^ k1;
    c[1] = (uint32_t)b;
    c[3] = (uint32_t)a;
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
}

/* out[4] = the 128 bits of key k[0..1] at counter k[2..5]. */
MN_FN void mn_philox(const uint32_t *k, uint32_t *out) {
  for (int i = 0; i < 4; i++) out[i] = k[2 + i];
  mn_philox_rounds(k[0], k[1], out);
}

/* Word i of what ops draw with one key, which is the seed's two halves and those of the number of the draw: see random_key. */
MN_FN void mn_draw_block(const int32_t *key, uint64_t block, uint32_t *word) {
  const uint32_t k[6] = { (uint32_t)key[0], (uint32_t)key[1], (uint32_t)block, (uint32_t)key[2], (uint32_t)key[3],
                          MN_FOR_DRAWS | (uint32_t)(block >> 32) };
  mn_philox(k, word);
}
MN_FN uint32_t mn_draw_word(const int32_t *key, uint64_t i) {
  uint32_t word[4];
  mn_draw_block(key, i / 4, word);
  return word[i % 4];
}

/* Words first .. first + n - 1, many at once. */
void mn_draw_words(const int32_t *key, uint64_t first, long n, uint32_t *word);

/* 0 <= u < 1, in steps of 2^-24. */
MN_FN float mn_unit(uint32_t word) { return (float)(word >> 8) * 0x1p-24f; }

/* The key of a seed: whole numbers 0 .. 2^53 are themselves, any other double its bit pattern. */
void mn_random_key(double seed, uint32_t key[2]);

/* bits[0..3][i] = 128 bits of lane i at its present step; of each of the first n lanes. */
MN_FN void mn_random_lane(const mn_streams *s, uint32_t purpose, int i, uint32_t bits[4][MN_ENVS_PER_BATCH]) {
  uint32_t at[4] = { s->step[0][i], s->step[1][i], s->index[i], purpose };
  mn_philox_rounds(s->key[0][i], s->key[1][i], at);
  for (int w = 0; w < 4; w++) bits[w][i] = at[w];
}
void mn_random_lanes(const mn_streams *s, uint32_t purpose, int n, uint32_t bits[4][MN_ENVS_PER_BATCH]);

/* Random signs, for unbiased approximations.  A sign is a function of (seed, environment, tick, channel) and of nothing
** else, so a run that is resumed, replayed or computed again for its gradient meets the same ones.
** nu[0..n-1] = +1 or -1: bit m of the Philox stream of key seed at counter (tick, index, MN_FOR_SIGNS + block), each
** block 128 bits in the order of their words, low bits first; a 1 is +1.  index: the environment's. */
void mn_random_signs(double seed, uint32_t index, uint64_t tick, int n, float *nu);

#endif
