/* bits.h -- counting bits, on the CPU and on a GPU. */
#ifndef MN_BITS_H
#define MN_BITS_H
#include "numerics/random.h"

MN_FN int mn_ones_in(uint64_t bits) {
#ifdef __CUDA_ARCH__
  return __popcll(bits);
#else
  return __builtin_popcountll(bits);
#endif
}

/* The place of the lowest 1; 64 where there is none. */
MN_FN int mn_lowest_of(uint64_t bits) { return mn_ones_in((bits & (0 - bits)) - 1); }

#endif
