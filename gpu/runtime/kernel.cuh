/* kernel.cuh -- what a kernel file includes.  gpu/ops/X.cu holds the kernels of engine/ops/X.c, whose header defines
** what they compute, or of several similar ops.  A file compiles separately, with nvcc for a GPU
** and with g++ for the host under emu.h; MN_KERNEL(X, forward, backward) exports those of op X.  Put types
** into an unnamed namespace if another file could use their name: the linker would treat two types of one name
** as the same. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
extern "C" {
#include "base/device.h"
}

#ifdef __CUDACC__
#include <cuda_runtime.h>
template <class T> using cu_smem = T *;
extern __shared__ __align__(16) unsigned char cu_shared_bytes[];
#define CU_SHARED(T, byte) (reinterpret_cast<T *>(cu_shared_bytes + (byte)))
#define cu_sinpi sinpi
#define cu_cospi cospi
#else
#include "emulator/emu.h"
#endif

/* Work keeps its order: all of a thread's goes to one stream. */
#define MN_STREAM cudaStreamPerThread
#include "launch.cuh"

#define MN_KERNEL(op, fwd, bwd) MN_KERNEL_FUSED(op, fwd, bwd, NULL)
#define MN_KERNEL_FUSED(op, fwd, bwd, all) \
  extern "C" { \
    extern const mn_kernel mn_kernel_##op; \
    const mn_kernel mn_kernel_##op = { fwd, bwd, all, NULL }; \
  }

#ifdef __CUDACC__
#define CU_UNROLL _Pragma("unroll")
#else
#define CU_UNROLL
#endif

/* Shared memory of floats as float4: it must begin at a multiple of 16 bytes. */
#ifdef __CUDACC__
static __device__ __forceinline__ float4 *cu_smem_quads(float *p) { return reinterpret_cast<float4 *>(p); }
#else
static inline cu_smem<float4> cu_smem_quads(cu_smem<float> p) { return { p.at }; }
#endif

/* ---- loops over elements ---- */

enum { CU_BLOCKS = 1 << 15 };

template <class T> static __host__ __device__ __forceinline__ T cu_min(T a, T b) { return b < a ? b : a; }
template <class T> static __host__ __device__ __forceinline__ T cu_max(T a, T b) { return a < b ? b : a; }
static inline long cu_parts(long n, long size) { return (n + size - 1) / size; }

/* How many blocks of CU_THREADS threads to launch for n elements, of which each thread takes `each` or,
** where that would be too many blocks, more; at least one. */
static inline unsigned cu_blocks(long n, long each = 1) {
  return (unsigned)cu_max(cu_min(cu_parts(n, each * CU_THREADS), (long)CU_BLOCKS), 1L);
}

/* for each i of 0 .. n-1, shared out over all threads of a grid: neighbours have neighbouring i. */
#define CU_LOOP(i, n) \
  for (long i = (long)blockIdx.x * blockDim.x + threadIdx.x, by_ = (long)gridDim.x * blockDim.x; i < (n); i += by_)

/* How many groups of four floats n numbers make, all of these arrays being aligned for float4; else 0.
** The rest, from 4 * cu_quads(...) on, goes one by one.  NULL is aligned. */
template <class... P> static inline long cu_quads(long n, const P *...at) {
  return ((... | (uintptr_t)at) & 15) ? 0 : n / 4;
}

/* Division by a number that the host knows, as a multiplication (Granlund and Montgomery, PLDI 1994): an
** integer division costs a GPU some twenty instructions.  Whatever is above 2^31 is really divided; by such
** a number everything below is 0, which magic 0 and shift 31 give. */
struct cu_divisor {
  long by;
  uint32_t magic, shift;
  cu_divisor(long d = 1) : by(d), magic(0), shift(31) {               /* 1 <= d */
    if (d >> 31) return;
    for (shift = 0; (1ul << shift) < (uint64_t)d;) shift++;
    magic = (uint32_t)(((1ull << 32) * ((1ull << shift) - (uint64_t)d)) / (uint64_t)d + 1);
  }
  /* n / by for n >= 0; *rest = n % by */
  __device__ __forceinline__ long divide(long n, long *rest) const {
    const uint32_t low = (uint32_t)n;
    const uint32_t high = (uint32_t)(((uint64_t)low * magic) >> 32);
    const long q = n >> 31 ? n / by : (long)((high + low) >> shift);
    *rest = n - q * by;
    return q;
  }
};

/* ---- sums ---- */

/* Sum over a warp; every lane gets it.  All 32 lanes must come. */
static __device__ __forceinline__ float cu_warp_sum(float x) {
  for (int by = 16; by > 0; by >>= 1) x += __shfl_xor_sync(0xffffffffu, x, by);
  return x;
}

/* Sum over a block, warp by warp; every thread gets it.  All threads must come; part: a float for each warp. */
static __device__ __forceinline__ float cu_block_sum(float x, cu_smem<float> part) {
  x = cu_warp_sum(x);
  __syncthreads();
  if (threadIdx.x % 32 == 0) part[(int)threadIdx.x / 32] = x;
  __syncthreads();
  float all = 0.0f;
  for (int w = 0; w < (int)blockDim.x / 32; w++) all += part[w];
  return all;
}

/* ---- what goes wrong on the host ---- */

static inline bool cu_failed(cudaError_t e, const char *what) {
  if (e == cudaSuccess) return false;
  cudaGetLastError();            /* reported here: clear it, so that it is not reported again as a failed launch */
  cu_fail(what, cudaGetErrorString(e));
  return true;
}
