/* launch.cuh -- kernels and their launches.
** A kernel is a device function, CU_KERNEL name(arguments), for blocks of up to CU_THREADS threads.  CU_LAUNCH checks a launch
** against a GPU's limits, and puts it on the stream.  Kernels take structs that they index as const &: by value, each thread
** would get its own copy. */
#pragma once
#include <algorithm>
#include <stddef.h>
#include <stdio.h>
#include <type_traits>

/* At most: threads of a block, bytes of its shared memory. */
enum { CU_THREADS = 256, CU_BLOCK_SHARED = 48 << 10 };

/* The host side of a kernel could not do its work: the next wait fails, and reports this. */
void cu_fail(const char *what, const char *why);

/* ---- launches ---- */

#define CU_KERNEL static __device__ __forceinline__ void
#define CU_LAUNCH(kernel, grid, block, shared, ...) CU_LAUNCH_BY(1, kernel, grid, block, shared, __VA_ARGS__)
/* With so few registers a thread that a multiprocessor holds `resident` blocks of CU_THREADS. */
#define CU_LAUNCH_BY(resident, kernel, grid, block, shared, ...) \
  cu_launch<kernel, resident>(#kernel, grid, block, shared, kernel, __VA_ARGS__)

#ifdef __CUDACC__
/* From Hopper on, a kernel's blocks come to a multiprocessor while the kernel before it still runs, and wait here until its
** results are there: the time of a launch passes beside its work ("programmatic dependent launch").  Every kernel waits, so
** each comes after all that were launched before it. */
template <auto kernel, int RESIDENT, class... P> static __global__ void __launch_bounds__(CU_THREADS, RESIDENT) cu_entry(P... p) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  cudaGridDependencySynchronize();
  cudaTriggerProgrammaticLaunchCompletion();
#endif
  kernel(p...);
}

/* May this kernel be launched early?  What was compiled for an older GPU, and translated by the driver, does not wait; and graphs
** have such launches from CUDA 12.3 on. */
static inline bool cu_early(const void *entry) {
  cudaFuncAttributes of = {};
  int driver = 0;
  cudaError_t e = cudaFuncGetAttributes(&of, entry);
  if (e == cudaSuccess) e = cudaDriverGetVersion(&driver);
  if (e != cudaSuccess) cu_fail("looking at a kernel", cudaGetErrorString(e));
  return of.ptxVersion >= 90 && CUDART_VERSION >= 12030 && driver >= 12030;
}
#else
/* The arguments of a launch, kept until it runs. */
template <class... P> struct cu_args;
template <> struct cu_args<> {
  template <auto kernel, class... Q> void give(const Q &...before) const { kernel(before...); }
  template <class F, class... Q> void unpacked(F f, const Q &...before) const { f(before...); }
};
template <class A, class... P> struct cu_args<A, P...> {
  A first;
  cu_args<P...> rest;
  cu_args() = default;
  template <class B, class... Q> cu_args(const B &b, const Q &...q) : first(static_cast<A>(b)), rest(q...) {}
  template <auto kernel, class... Q> void give(const Q &...before) const { rest.template give<kernel>(before..., first); }
  template <class F, class... Q> void unpacked(F f, const Q &...before) const { rest.unpacked(f, before..., first); }
};
#endif

/* Is a launch beyond a limit?  Then `why` says which.  Sizes of a problem become sizes of a launch. */
static inline bool cu_beyond_limits(char (&why)[100], dim3 grid, dim3 block, size_t shared) {
  const unsigned long threads = 1ul * block.x * block.y * block.z;
  if (!grid.x || !grid.y || grid.x >> 31 || grid.y > 65535 || !grid.z || grid.z > 65535)
    snprintf(why, sizeof why, "%u x %u x %u blocks, a launch has up to 2147483647 x 65535 x 65535", grid.x, grid.y, grid.z);
  else if (!threads || threads > CU_THREADS || block.z > 64)
    snprintf(why, sizeof why, "%u x %u x %u threads, a block has up to %d, 64 of them deep", block.x, block.y, block.z, (int)CU_THREADS);
  else if (shared > CU_BLOCK_SHARED) snprintf(why, sizeof why, "%zu bytes of shared memory, a block is given %d", shared, (int)CU_BLOCK_SHARED);
  else return false;
  return true;
}

template <auto kernel, int RESIDENT, class... P, class... A>
void cu_launch(const char *name, dim3 grid, dim3 block, size_t shared, void (*)(P...), const A &...a) {
  char why[100];
  if (cu_beyond_limits(why, grid, block, shared)) return cu_fail(name, why);
#ifdef __CUDACC__
  const auto entry = cu_entry<kernel, RESIDENT, std::decay_t<P>...>;
  static const bool may_be_early = cu_early((const void *)entry);
  cudaLaunchAttribute early[1] = {};
  early[0].id = cudaLaunchAttributeProgrammaticStreamSerialization;
  early[0].val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t how = {};
  how.gridDim = grid, how.blockDim = block, how.dynamicSmemBytes = shared, how.stream = MN_STREAM;
  how.attrs = early, how.numAttrs = may_be_early ? 1 : 0;
  cudaLaunchKernelEx(&how, entry, static_cast<std::decay_t<P>>(a)...);
#else
  typedef cu_args<std::decay_t<P>...> Args;
  emu::launch(name, grid, block, shared, Args(a...), +[](const Args &mine) { mine.template give<kernel>(); });
#endif
}
