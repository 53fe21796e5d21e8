/* kernel.cuh -- what a kernel file needs.  gpu/X.cu holds the kernels of engine/ops/X.c, which says
** what they must compute.  The file compiles alone, with nvcc for a GPU and with g++ for the host
** under emu.h, and ends with MN_KERNEL(X, forward, backward). */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
extern "C" {
#include "device.h"
}

#ifdef __CUDACC__
#include <cuda_runtime.h>
template <class T> using cu_smem = T *;
extern __shared__ __align__(16) unsigned char cu_shared_bytes[];
#define CU_SHARED(T, byte) (reinterpret_cast<T *>(cu_shared_bytes + (byte)))
#define CU_LAUNCH(kernel, grid, block, shared, stream, ...) \
  kernel<<<grid, block, shared, stream>>>(__VA_ARGS__)
#define cu_sinpi sinpi
#define cu_cospi cospi
#else
#include "emu.h"
#endif

/* One context per thread of control, so the thread's own stream keeps the order of its calls. */
#define MN_STREAM cudaStreamPerThread

#define MN_KERNEL(op, fwd, bwd) \
  extern "C" { \
    extern const mn_kernel mn_kernel_##op; \
    const mn_kernel mn_kernel_##op = { fwd, bwd }; \
  }

/* Sum over a warp; every lane gets it.  All 32 lanes must come. */
static __device__ __forceinline__ float cu_warp_sum(float x) {
  for (int by = 16; by > 0; by >>= 1) x += __shfl_xor_sync(0xffffffffu, x, by);
  return x;
}
