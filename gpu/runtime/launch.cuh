/* launch.cuh -- kernels and their launches.
** A kernel is a device function, CU_KERNEL name(arguments), for blocks of up to CU_THREADS threads.  CU_LAUNCH checks a
** launch against what a GPU takes, and does it: at once, or where work is put off (multi_seed.cuh) together with launches of
** other seeds that differ from it in arguments alone, as one grid whose z they are.  So kernels read x and y of blockIdx
** and gridDim, never z, and take what they index as const &: a copy would be each thread's own. */
#pragma once
#include <algorithm>
#include <memory>
#include <stddef.h>
#include <stdio.h>
#include <type_traits>
#include <vector>

/* At most: threads of a block, bytes of its shared memory; seeds that take turns, those of one grid; bytes of arguments. */
enum {
  CU_THREADS = 256, CU_BLOCK_SHARED = 48 << 10, CU_SEEDS = 64, CU_ABREAST = 16,
  CU_ARGS = CUDART_VERSION >= 12010 ? 32764 : 4096
};

/* The host side of a kernel could not do its work: the seed's next wait fails, and says this. */
void cu_fail(const char *what, const char *why);

/* ---- work ---- */

/* A piece of work for the stream.  `all` are n of them that are like this one, which is the first. */
struct cu_piece {
  virtual ~cu_piece() = default;
  virtual bool like(const cu_piece &) const { return false; }         /* it and the other could be done together */
  /* Pointers to operands that doing all together in a graph takes: they are copied to the device's memory, to `table`. */
  virtual void pointers(cu_piece *const *, int, std::vector<const void *> *) const {}
  virtual void run(cu_piece *const *all, int n, const void *const *table) = 0;      /* table NULL: in no graph */
};

bool cu_puts_off();
void cu_put_off(std::unique_ptr<cu_piece> w);        /* until a graph of it is launched, or somebody waits */

template <class W> void cu_do(W w) {
  cu_piece *me = &w;
  if (cu_puts_off()) cu_put_off(std::make_unique<W>(std::move(w)));
  else w.run(&me, 1, NULL);
}

/* Whatever else goes to the stream, one by one. */
template <class F> struct cu_call : cu_piece {
  F f;
  cu_call(F f_) : f(std::move(f_)) {}
  void run(cu_piece *const *, int, const void *const *) override { f(); }
};
template <class F> void cu_ask(F f) { cu_do(cu_call<F>(std::move(f))); }

/* ---- launches ---- */

#define CU_KERNEL static __device__ __forceinline__ void
#define CU_LAUNCH(kernel, grid, block, shared, ...) CU_LAUNCH_BY(1, kernel, grid, block, shared, __VA_ARGS__)
/* With so few registers a thread that a multiprocessor holds `resident` blocks of CU_THREADS. */
#define CU_LAUNCH_BY(resident, kernel, grid, block, shared, ...) \
  cu_launch<kernel, resident>(#kernel, grid, block, shared, kernel, __VA_ARGS__)

/* The arguments of a launch, as its kernel has them. */
template <class... P> struct cu_args;
template <> struct cu_args<> {
  template <auto kernel, class... Q> __device__ __forceinline__ void give(const Q &...before) const { kernel(before...); }
  template <class F, class... Q> void unpacked(F f, const Q &...before) const { f(before...); }
};
template <class A, class... P> struct cu_args<A, P...> {
  A first;
  cu_args<P...> rest;
  cu_args() = default;
  template <class B, class... Q> cu_args(const B &b, const Q &...q) : first(static_cast<A>(b)), rest(q...) {}
  template <auto kernel, class... Q> __device__ __forceinline__ void give(const Q &...before) const {
    rest.template give<kernel>(before..., first);
  }
  template <class F, class... Q> void unpacked(F f, const Q &...before) const { rest.unpacked(f, before..., first); }
};

/* Those of several seeds. */
template <class Args, int N> struct cu_batch { Args at[N]; };

/* One has its arguments where a kernel's own are: the compiler makes the most of it there. */
#ifdef __CUDACC__
template <auto kernel, int RESIDENT, class... P> static __global__ void __launch_bounds__(CU_THREADS, RESIDENT) cu_one(P... p) {
  kernel(p...);
}
template <auto kernel, int RESIDENT, class Args, int N>
static __global__ void __launch_bounds__(CU_THREADS, RESIDENT) cu_many(const __grid_constant__ cu_batch<Args, N> each) {
  each.at[blockIdx.z].template give<kernel>();
}
#endif

template <auto kernel, int RESIDENT, class Args> struct cu_launched : cu_piece {
  static constexpr int FIT = CU_ARGS / sizeof(Args), MOST = FIT < 1 ? 1 : FIT < CU_ABREAST ? FIT : CU_ABREAST;
  const char *name;
  dim3 grid, block;
  size_t shared;
  Args args;

  cu_launched(const char *name_, dim3 grid_, dim3 block_, size_t shared_, Args args_)
    : name(name_), grid(grid_), block(block_), shared(shared_), args(args_) {}

  bool like(const cu_piece &w) const override {
    const auto *o = dynamic_cast<const cu_launched *>(&w);
    return o && o->grid.x == grid.x && o->grid.y == grid.y && o->block.x == block.x && o->block.y == block.y
           && o->block.z == block.z && o->shared == shared;
  }
#ifdef __CUDACC__
  void one() const {
    args.unpacked([&](const auto &...a) {
      cu_one<kernel, RESIDENT, std::decay_t<decltype(a)>...><<<grid, block, shared, MN_STREAM>>>(a...);
    });
  }
  void many(const cu_batch<Args, MOST> &each, dim3 whole) const {
    cu_many<kernel, RESIDENT, Args, MOST><<<whole, block, shared, MN_STREAM>>>(each);
  }
#else
  static void body(const Args &mine) { mine.template give<kernel>(); }
  void one() const { emu::launch(name, grid, block, shared, &args, body); }
  void many(const cu_batch<Args, MOST> &each, dim3 whole) const { emu::launch(name, whole, block, shared, each.at, body); }
#endif
  void run(cu_piece *const *all, int n, const void *const *) override {
    const auto at = [&](int i) { return static_cast<cu_launched *>(all[std::min(i, n - 1)]); };
    for (int i = 0; i < n; i += MOST) {
      if (MOST == 1 || n - i == 1) {
        at(i)->one();
        continue;
      }
      cu_batch<Args, MOST> each;
      for (int k = 0; k < MOST; k++) each.at[k] = at(i + k)->args;
      many(each, dim3(grid.x, grid.y, (unsigned)std::min(+MOST, n - i)));
    }
  }
};

/* Is a launch beyond a limit?  Then `why` says which.  Sizes of a problem become sizes of a launch. */
static inline bool cu_beyond_limits(char (&why)[100], dim3 grid, dim3 block, size_t shared) {
  const unsigned long threads = 1ul * block.x * block.y * block.z;
  if (!grid.x || !grid.y || grid.x >> 31 || grid.y > 65535 || grid.z != 1)
    snprintf(why, sizeof why, "%u x %u x %u blocks, a launch has up to 2147483647 x 65535 x 1", grid.x, grid.y, grid.z);
  else if (!threads || threads > CU_THREADS || block.z > 64)
    snprintf(why, sizeof why, "%u x %u x %u threads, a block has up to %d, 64 of them deep", block.x, block.y, block.z, (int)CU_THREADS);
  else if (shared > CU_BLOCK_SHARED) snprintf(why, sizeof why, "%zu bytes of shared memory, a block is given %d", shared, (int)CU_BLOCK_SHARED);
  else return false;
  return true;
}

template <auto kernel, int RESIDENT, class... P, class... A>
void cu_launch(const char *name, dim3 grid, dim3 block, size_t shared, void (*)(P...), const A &...a) {
  char why[100];
  typedef cu_args<std::decay_t<P>...> Args;
  if (cu_beyond_limits(why, grid, block, shared)) cu_fail(name, why);
  else cu_do(cu_launched<kernel, RESIDENT, Args>(name, grid, block, shared, Args(a...)));
}
