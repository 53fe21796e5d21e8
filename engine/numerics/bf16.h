/* bf16.h -- bfloat16, the upper half of a float32, and what a machine's instructions make of it, bit for bit.
** Denormals are zero, in and out; rounding is to the nearest, ties to even; a NaN stays one. */
#ifndef MN_BF16_H
#define MN_BF16_H
#include <stdint.h>
#include "bf16_gemm.h"
#include "fast_math.h"

enum { PANEL = 32 };
enum { SIDE = 16, DEEP = 32 };    /* of AMX's tiles: rows, and columns of floats; the products in a tile's depth */
enum { SOME = 64, DEPTH = MN_BF16_DEPTH };  /* rows and depth of A that are converted at a time; a panel's piece stays in the first cache */

/* A denormal as the zero of its sign. */
static inline float mn_no_denormal(float x) { return mn_bits_of(x) & 0x7f800000 ? x : mn_float_of(mn_bits_of(x) & 0x80000000); }

/* VCVTNEPS2BF16: float32 to bfloat16. */
static inline uint16_t mn_to_bf16(float x) {
  const uint32_t u = mn_bits_of(mn_no_denormal(x));
  if ((u & 0x7fffffff) > 0x7f800000) return (uint16_t)(u >> 16 | 0x40);
  return (uint16_t)((u + 0x7fff + (u >> 16 & 1)) >> 16);
}

static inline float mn_from_bf16(uint16_t x) { return mn_no_denormal(mn_float_of((uint32_t)x << 16)); }

/* One multiplication and addition, rounded once. */
static inline float mn_bf16_fma(float a, float b, float sum) { return mn_no_denormal(__builtin_fmaf(a, b, mn_no_denormal(sum))); }

/* VDPBF16PS, one element: a pair of products, the odd one first (Intel's manual, volume 2). */
static inline float mn_bf16_dot(float sum, const uint16_t *a, const uint16_t *b) {
  return mn_bf16_fma(mn_from_bf16(a[0]), mn_from_bf16(b[0]), mn_bf16_fma(mn_from_bf16(a[1]), mn_from_bf16(b[1]), sum));
}

#endif
