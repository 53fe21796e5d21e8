/* emu.h -- CUDA threads on the host, so that kernels can be tested where there is no GPU.
**
** g++ compiles a .cu file with this header in place of CUDA's.  Every thread of a block is a fiber
** with a stack of its own; blocks run one after another.  A fiber switches only at a barrier, at a
** warp operation and at its end, so a run is a function of the schedule: repeatable, and testable in
** several orders (emu::machine().schedule).  What a run reports, with kernel, block, thread, line:
**
**   race      two threads touch a word of shared memory, one writes it, and neither a barrier nor
**             a __syncwarp orders them (shuffles and votes order no memory)
**   barrier   threads wait at different __syncthreads, or some have exited
**   warp      a lane named in the mask never comes; the caller is not in its own mask; a shuffle
**             reads a lane that is not there
**   shared    access out of range or misaligned; reading a word that no thread of the block wrote
**             (memory starts as NaN in every block)
**   global    memory past its end, host pointers in kernels, the host on device memory, or on
**             managed memory that it has not waited for: host.h
**   capture   what may not happen while a graph is captured: stream.h
**
** What depends on the order of blocks or threads shows as different results of different schedules.
**
** Rules of the portable subset: shared memory is dynamic, reached through CU_SHARED and cu_smem<T>,
** of types of 4, 8 or 16 bytes that are read and written whole (no `auto`, no `.x` on an element);
** launches are CU_LAUNCH; every thread of a block reaches every barrier; fmaf where rounding matters.
** Not modelled: warps in lockstep, memory order between blocks, asynchronous copies, speed; that a
** kernel calls a function of the host only nvcc sees. */
#pragma once
#include "machine.h"
#include "shared.h"
#include "stream.h"

#define __device__
#define __host__
#define __forceinline__ inline
#define __noinline__
#define __shared__ static_assert(false, "shared memory is reached through CU_SHARED");

struct alignas(8) float2 { float x, y; };
struct alignas(16) float4 { float x, y, z, w; };

namespace emu {
inline double sinpi(double x) { return std::sin(3.14159265358979323846 * x); }
inline double cospi(double x) { return std::cos(3.14159265358979323846 * x); }

constexpr int width_of(int width = WARP) { return width; }
constexpr unsigned mask_of(unsigned mask = 0xffffffffu) { return mask; }
}  // namespace emu

template <class T> using cu_smem = emu::Shared<T>;
#define CU_SHARED(T, byte) (emu::Shared<T>{ (size_t)(byte) })

#define threadIdx (emu::machine().running->at)
#define blockIdx (emu::machine().block_at)
#define blockDim (emu::machine().block)
#define gridDim (emu::machine().grid)
#define __syncthreads() emu::wait(emu::AT_BARRIER, __LINE__)
#define EMU_WARP(op, mask, v, arg, ...) \
  emu::warp_op(emu::op, mask, v, arg, emu::width_of(__VA_ARGS__), __LINE__)
#define __syncwarp(...) ((void)EMU_WARP(SYNC, emu::mask_of(__VA_ARGS__), 0u, 0))
#define __shfl_sync(mask, v, lane, ...) EMU_WARP(SHUFFLE, mask, v, (int)(lane), __VA_ARGS__)
#define __shfl_up_sync(mask, v, by, ...) EMU_WARP(SHUFFLE_UP, mask, v, (int)(by), __VA_ARGS__)
#define __shfl_down_sync(mask, v, by, ...) EMU_WARP(SHUFFLE_DOWN, mask, v, (int)(by), __VA_ARGS__)
#define __shfl_xor_sync(mask, v, by, ...) EMU_WARP(SHUFFLE_XOR, mask, v, (int)(by), __VA_ARGS__)
#define __ballot_sync(mask, p) EMU_WARP(BALLOT, mask, (p) ? 1u : 0u, 0)
#define __any_sync(mask, p) (__ballot_sync(mask, p) != 0)
#define __all_sync(mask, p) (__ballot_sync(mask, !(p)) == 0)
#define atomicAdd emu::atomic_add
#define __clz(x) ((x) ? __builtin_clz((unsigned)(x)) : 32)
#define __ffs(x) __builtin_ffs(x)
#define __popc __builtin_popcount
#define cu_sinpi emu::sinpi
#define cu_cospi emu::cospi
