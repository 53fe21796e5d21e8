/* strided.cuh -- the copies of engine/numerics/strided.h: a thread for each element. */
#pragma once
#include "broadcast.cuh"
extern "C" {
#include "numerics/strided.h"
}

template <class T> CU_KERNEL cu_strided_kernel(T *to, const T *from, long n, const cu_walk &walk, long start) {
  CU_LOOP(i, n) {
    long at[CU_WALKED] = { start };
    walk.find(i, at);
    to[i] = from[at[0]];
  }
}

static inline void cu_strided_copy(const mn_strides &strides, int dtype, void *to, const void *from) {
  const mn_strides s = mn_merged_strides(&strides);
  cu_walk walk;
  long n = 1;
  for (int i = s.axes - 1; i >= 0; i--) {
    const long step[CU_WALKED] = { s.stride[i] };
    walk.add(s.size[i], step);
    n *= s.size[i];
  }
  if (mn_item(dtype) == 4)
    CU_LAUNCH(cu_strided_kernel<float>, cu_blocks(n, 2), CU_THREADS, 0, (float *)to, (const float *)from, n, walk, s.start);
  else CU_LAUNCH(cu_strided_kernel<uint8_t>, cu_blocks(n, 2), CU_THREADS, 0, (uint8_t *)to, (const uint8_t *)from, n, walk, s.start);
}
