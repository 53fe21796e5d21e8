/* sorting.h -- sort and topk: the order of elements, the same for every device.
** An element is sorted as a key of 32 bits, whose order as a whole number is that of the values; equal keys keep their order.
** NaN is larger than any other value, as in torch and numpy; -0 equals 0. */
#ifndef MN_SORTING_H
#define MN_SORTING_H
#include "axis.h"
#include "numerics/fast_math.h"

/* By its bits alone: a processor that takes denormals for 0 would find more values equal. */
MN_MATH uint32_t mn_key_of_float(float value) {
  const uint32_t bits = mn_bits_of(value), sign = 0x80000000u, inf = 0x7f800000u;
  return (bits & ~sign) > inf ? ~0u : bits == sign ? sign : bits & sign ? ~bits : bits | sign;
}

MN_MATH uint32_t mn_key_of(int dtype, const void *x, long i) {
  return dtype == MN_F32 ? mn_key_of_float(((const float *)x)[i]) : dtype == MN_I32 ? (uint32_t)((const int32_t *)x)[i] ^ 0x80000000u
       : ((const uint8_t *)x)[i];
}

/* What is sorted: x[outer, size, inner] along its middle axis, of which the first K come out. */
typedef struct mn_sorting { long outer, size, inner, K; uint32_t flip; } mn_sorting;

static inline mn_sorting mn_sorting_of(const mn_call *c, int axis, bool descending) {
  const mn_span s = mn_span_of(&c->in[0], axis);
  const mn_sorting all = { s.outer, s.size, s.inner, c->out[0].shape[axis], descending ? ~0u : 0 };
  return all;
}

#endif
