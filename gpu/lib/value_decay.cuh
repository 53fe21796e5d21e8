/* value_decay.cuh -- what a token writes of a value, and what it keeps of the old one; every kernel of gated memories asks here. */
#pragma once

/* A value, gated where there is a gate. */
static __device__ __forceinline__ float cu_written(const float *v, const float *gate, long at) {
  return gate ? gate[at] * v[at] : v[at];
}

/* Values that fade are kept by `keep`, or (NULL) by what their gate leaves. */
static __device__ __forceinline__ float cu_kept(bool fade, const float *keep, const float *gate, long at) {
  return !fade ? 1.0f : keep ? keep[at] : 1.0f - gate[at];
}
