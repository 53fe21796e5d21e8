/* strided_copy.cuh -- copies values on the device: contiguous, or as rows with strides. */
#pragma once
#include "kernel.cuh"

static __device__ __forceinline__ float cu_plus(float a, float b) { return a + b; }
static __device__ __forceinline__ float4 cu_plus(float4 a, float4 b) {
  return { a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w };
}

/* Rows of n things of type V, `all` of them together; steps count such things too. */
template <class V>
CU_KERNEL cu_copy_kernel(V *to, long to_step, const V *from, long from_step, long rows, long all, cu_divisor n,
                         bool add) {
  CU_LOOP(i, all) {
    long at = i;
    const long r = rows == 1 ? 0 : n.divide(i, &at);
    V *y = to + r * to_step + at;
    const V x = from[r * from_step + at];
    *y = add ? cu_plus(*y, x) : x;
  }
}

/* `rows` rows of n numbers, row r from `from + r * from_step` to `to + r * to_step`; added where `add`.
** By fours where lengths and places allow it. */
static inline void cu_copy_rows(float *to, long to_step, const float *from, long from_step, long rows, long n, bool add) {
  if (n < 1 || rows < 1) return;
  if (cu_quads(4, to, from) && (n | to_step | from_step) % 4 == 0)
    CU_LAUNCH(cu_copy_kernel<float4>, cu_blocks(rows * n, 4), CU_THREADS, 0, (float4 *)to, to_step / 4,
              (const float4 *)from, from_step / 4, rows, rows * n / 4, cu_divisor(n / 4), add);
  else
    CU_LAUNCH(cu_copy_kernel<float>, cu_blocks(rows * n), CU_THREADS, 0, to, to_step, from, from_step, rows,
              rows * n, cu_divisor(n), add);
}

/* The same for elements of any type. */
template <class T> CU_KERNEL cu_move_kernel(T *to, long to_step, const T *from, long from_step, long all, cu_divisor n) {
  CU_LOOP(i, all) {
    long at;
    const long r = n.divide(i, &at);
    to[r * to_step + at] = from[r * from_step + at];
  }
}

static inline void cu_move_rows(int dtype, void *to, long to_step, const void *from, long from_step, long rows, long n) {
  if (n < 1 || rows < 1) return;
  if (mn_item(dtype) == 4) return cu_copy_rows((float *)to, to_step, (const float *)from, from_step, rows, n, false);
  CU_LAUNCH(cu_move_kernel<uint8_t>, cu_blocks(rows * n, 4), CU_THREADS, 0, (uint8_t *)to, to_step, (const uint8_t *)from, from_step,
            rows * n, cu_divisor(n));
}

static inline void cu_copy(float *to, const float *from, long n) { cu_copy_rows(to, 0, from, 0, 1, n, false); }

static inline void cu_zero(void *to, size_t bytes) {
  cu_failed(cudaMemsetAsync(to, 0, bytes, MN_STREAM), "zeroing");
}

/* A gradient that is always zero, where it is wanted. */
static inline void cu_zero_grad(const mn_arg *x) {
  if (x->grad) cu_zero(x->grad, sizeof(float) * (size_t)x->n);
}
