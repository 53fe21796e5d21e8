/* signs.h -- random signs for memories that are right on average.
** A sign is a function of (seed, copy, tick, channel) and of nothing else, so a run that is resumed, replayed or
** computed again for its gradient meets the same ones. */
#ifndef MN_SIGNS_H
#define MN_SIGNS_H
#include <stdint.h>

/* nu[0..n-1] = +1 or -1: bit m of the Philox stream of key seed at counter (tick, copy, MN_FOR_SIGNS + block), each
** block 128 bits in the order of their words, low bits first; a 1 is +1. */
void mn_random_signs(double seed, uint32_t copy, uint64_t tick, int n, float *nu);

#endif
