/* ranks.cuh -- numbers over all ranks (engine/ranks.c).  The exchange is the host's: the stream calls it in its
** turn, and a graph holds that call like any other work.  So numbers must lie in managed memory. */
#pragma once
#include <mutex>
#include <set>
#include <tuple>
#include "kernel.cuh"

/* What a call of the host is told, kept for as long as graphs may ask again: one for each set of numbers. */
struct cu_exchange {
  void *at;
  double n;
  bool more;
  bool operator<(const cu_exchange &o) const { return std::tie(at, n, more) < std::tie(o.at, o.n, o.more); }
};

static inline void cu_host_call(cudaHostFn_t call, cu_exchange x) {
  static std::mutex busy;
  static std::set<cu_exchange> told;
  const std::lock_guard<std::mutex> lock(busy);
  cu_failed(cudaLaunchHostFunc(MN_STREAM, call, (void *)&*told.insert(x).first), "numbers of all ranks");
}

/* The mean over ranks of n numbers, in place; more: they may wait for those of the next call. */
static inline void cu_ranks_mean(float *at, double n, bool more) {
  cu_host_call([](void *p) {
    const cu_exchange *x = (const cu_exchange *)p;
    mn_ranks_mean((float *)x->at, x->n, x->more);
  }, { at, n, more });
}

/* The sums over ranks of n numbers, in place. */
static inline void cu_ranks_sum(double *at, int n) {
  cu_host_call([](void *p) {
    const cu_exchange *x = (const cu_exchange *)p;
    mn_ranks_sum((double *)x->at, (int)x->n);
  }, { at, (double)n, false });
}
