/* broadcast.cuh -- iterates over several tensors with broadcasting
** (engine/numerics/broadcast.h), and the sums of its backward pass. */
#pragma once
#include "runtime/kernel.cuh"
extern "C" {
#include "numerics/broadcast.h"
}

enum { CU_WALKED = MN_OPERANDS + 1 };       /* tensors of one walk: an op's operands, and its output */

/* Axes from the innermost out.  How far each tensor moves with a step along each is known to the host. */
struct cu_walk {
  int axes = 0;
  cu_divisor size[MN_AXES];
  long stride[CU_WALKED][MN_AXES] = {};

  /* One more axis, outside those that are there. */
  void add(long n, const long *strides) {
    for (int k = 0; k < CU_WALKED; k++) stride[k][axes] = strides[k];
    size[axes++] = cu_divisor(n);
  }
  /* Adds to `at` where element i of the walk lies in each tensor. */
  __device__ __forceinline__ void find(long i, long *at) const {
    CU_UNROLL
    for (int a = 0; a < MN_AXES; a++) {
      if (a >= axes) break;
      long place = i;
      if (a + 1 < axes) i = size[a].divide(i, &place);
      CU_UNROLL
      for (int k = 0; k < CU_WALKED; k++) at[k] += place * stride[k][a];
    }
  }
};

/* One number, or four neighbours; `moves`: does this tensor move along the innermost axis?  NULL is 0. */
static __device__ __forceinline__ void cu_load(const float *p, long at, bool, float *v) { *v = p ? p[at] : 0.0f; }
static __device__ __forceinline__ void cu_load(const float *p, long at, bool moves, float4 *v) {
  if (p && moves) { *v = *(const float4 *)(p + at); return; }
  const float x = p ? p[at] : 0.0f;
  *v = { x, x, x, x };
}

/* f(j, lane) for each lane of a V: the numbers of a float4 in turn. */
template <class F> static __device__ __forceinline__ float cu_each(const float &, F f) { return f(0); }
template <class F> static __device__ __forceinline__ float4 cu_each(const float4 &, F f) {
  return { f(0), f(1), f(2), f(3) };
}
static __device__ __forceinline__ float cu_lane(float v, int) { return v; }
static __device__ __forceinline__ float cu_lane(const float4 &v, int j) {
  return j == 0 ? v.x : j == 1 ? v.y : j == 2 ? v.z : v.w;
}
