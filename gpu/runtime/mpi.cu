/* mpi.cu -- ranks_mean, and other exchanges between processes that train one agent.  If each process has its own
** GPU and NCCL is installed, values stay on the GPUs.  Otherwise the host exchanges them (engine/io/mpi.c): the stream
** calls it in order, a graph contains that call like other work, and the values are in managed memory.  Both sum
** in the order of ranks, which ncclAllReduce does not guarantee: they give the same bits, and so do equal runs. */
#include <mutex>
#include <set>
#include <stdlib.h>
#include <string.h>
#include <tuple>
#include "strided_copy.cuh"
#include "parameter_table.cuh"
#include "nccl.cuh"
#include "mpi.cuh"

/* ---- by the host ---- */

/* The arguments of a host call, kept as long as graphs may repeat it: one for each set of values. */
struct Exchange {
  void *at;
  double n;
  bool more;
  bool operator<(const Exchange &o) const { return std::tie(at, n, more) < std::tie(o.at, o.n, o.more); }
};

static void host_call(cudaHostFn_t call, Exchange x) {
  static std::mutex busy;
  static std::set<Exchange> told;
  const std::lock_guard<std::mutex> lock(busy);
  void *kept = (void *)&*told.insert(x).first;
  cu_failed(cudaLaunchHostFunc(MN_STREAM, call, kept), "numbers of all ranks");
}

static void host_mean(void *p) {
  const Exchange *x = (const Exchange *)p;
  mn_ranks_mean((float *)x->at, x->n, x->more);
}

static void host_sum(void *p) {
  const Exchange *x = (const Exchange *)p;
  mn_ranks_sum((double *)x->at, (int)x->n);
}

/* ---- by NCCL ---- */

static struct : cu_nccl {
  enum { UNKNOWN, NO, YES } used = UNKNOWN;
  ncclComm_t comm = NULL;                           /* NULL: joining failed, which the next wait reports */
} nccl;

static bool failed(ncclResult_t r) {
  if (r == ncclSuccess) return false;
  cu_fail("NCCL", nccl.GetErrorString(r));
  return true;
}

/* A rank's GPU, and whether NCCL is installed. */
struct Card {
  char id[16];
  int able;
};

/* Has every rank a GPU of its own, and NCCL? */
static bool all_able() {
  const int R = mn_ranks();
  Card mine = {}, *all = (Card *)calloc((size_t)R, sizeof *all);
  cudaDeviceProp device;
  int id;
  mine.able = cudaGetDevice(&id) == cudaSuccess && cudaGetDeviceProperties(&device, id) == cudaSuccess && nccl.find();
  if (mine.able) memcpy(mine.id, &device.uuid, sizeof mine.id);
  bool able = all && !mn_ranks_gather(NULL, &mine, all, sizeof mine, true);
  for (int r = 0; able && r < R; r++) {
    able = all[r].able;
    for (int s = 0; s < r; s++) able = able && memcmp(all[s].id, all[r].id, sizeof mine.id);
  }
  free(all);
  return able;
}

/* Do ranks exchange numbers by NCCL?  Asked by all of them at once, first outside of graphs. */
static bool by_nccl() {
  if (nccl.used == nccl.UNKNOWN) {
    nccl.used = all_able() ? nccl.YES : nccl.NO;
    if (nccl.used == nccl.YES) {
      ncclUniqueId id = {};
      setenv("NCCL_GRAPH_REGISTER", "0", 0);        /* scratch moves when it grows, which NCCL would have to know */
      if (mn_rank() == 0) failed(nccl.GetUniqueId(&id));
      mn_ranks_share(&id, sizeof id);
      if (failed(nccl.CommInitRank(&nccl.comm, mn_ranks(), id, mn_rank()))) nccl.comm = NULL;
    }
  }
  return nccl.used == nccl.YES;
}

/* Each rank's n numbers, one rank after another, in `all` of every rank.  `mine` may be its part of `all`. */
template <class T> static void gather(const T *mine, T *all, long n) {
  if (!nccl.comm) return;
  failed(nccl.AllGather(mine, all, (size_t)n, sizeof(T) == 8 ? ncclDouble : ncclFloat, nccl.comm, MN_STREAM));
}

/* n numbers to every rank, of which `mine` holds those for each, one rank after another, and from every rank. */
static void exchange(const float *mine, float *all, long n) {
  if (!nccl.comm) return;
  if (failed(nccl.GroupStart())) return;
  for (int r = 0; r < mn_ranks(); r++) {
    failed(nccl.Send(mine + r * n, (size_t)n, ncclFloat, r, nccl.comm, MN_STREAM));
    failed(nccl.Recv(all + r * n, (size_t)n, ncclFloat, r, nccl.comm, MN_STREAM));
  }
  failed(nccl.GroupEnd());
}

/* Gradients into one row of numbers, or back. */
CU_KERNEL pack(const Leaves &all, float *row, bool back) {
  long from, end;
  int number;
  const Leaf l = leaf_of(all, (int)blockIdx.x, &from, &end, &number);
  float *there = row + l.before;
  for (long i = from + threadIdx.x; i < end; i += CU_THREADS)
    if (back) l.g[i] = there[i];
    else there[i] = l.g[i];
}

CU_KERNEL mean_of(const float *parts, float *mean, long n, int R) {
  CU_LOOP(i, n) {
    float sum = parts[i];
    for (int r = 1; r < R; r++) sum += parts[r * n + i];
    mean[i] = sum / (float)R;
  }
}

CU_KERNEL sum_of(const double *all, double *sum, int n, int R) {
  CU_LOOP(i, n) {
    sum[i] = all[i];
    for (int r = 1; r < R; r++) sum[i] += all[r * n + i];
  }
}

static void pack_all(mn_call *const *calls, int n, float *row, bool back) {
  for (int from = 0; from < n;) {
    Leaves all;
    for (; from < n && all.n < TABLE; from++) if (calls[from]->in[0].grad && calls[from]->in[0].n) all.add(calls[from]);
    if (all.n) CU_LAUNCH(pack, all.blocks, CU_THREADS, 0, all, row, back);
    row += all.numbers;
  }
}

/* Each rank takes the mean of its own stretch of all numbers, and hands it round: every number travels twice, however
** many ranks there are. */
static void mean_by_nccl(mn_call *const *calls, int n) {
  const int R = mn_ranks();
  long numbers = 0;
  for (int i = 0; i < n; i++) if (calls[i]->in[0].grad) numbers += calls[i]->in[0].n;
  const long part = cu_parts(numbers, 4L * R) * 4;
  float *row = mn_scratch(calls[0]->ctx, 0, 2 * R * part), *parts = row + R * part, *mean = row + mn_rank() * part;
  if (!numbers) return;
  pack_all(calls, n, row, false);
  if (R * part > numbers) cu_zero(row + numbers, sizeof(float) * (size_t)(R * part - numbers));
  exchange(row, parts, part);
  CU_LAUNCH(mean_of, cu_blocks(part), CU_THREADS, 0, (const float *)parts, mean, part, R);
  gather(mean, row, part);
  pack_all(calls, n, row, true);
}

/* ---- whichever it is ---- */

void cu_ranks_sum(mn_ctx *mn, int which, double *at, int n) {
  if (!by_nccl()) return host_call(host_sum, { at, (double)n, false });
  double *all = (double *)mn_scratch(mn, which, 2L * n * (mn_ranks() + 1)), *mine = all + (long)n * mn_ranks();
  cu_copy((float *)mine, (const float *)at, 2L * n);             /* NCCL sends memory that is the device's alone */
  gather(mine, all, n);
  CU_LAUNCH(sum_of, cu_blocks(n), CU_THREADS, 0, (const double *)all, at, n, mn_ranks());
}

static int ranks_mean_together(mn_call *const *calls, int n, bool back) {
  (void)back;                    /* there is no way back */
  if (mn_ranks() == 1) return n;
  if (by_nccl()) return mean_by_nccl(calls, n), n;
  for (int i = 0; i < n; i++) {
    const mn_arg *x = &calls[i]->in[0];
    host_call(host_mean, { x->grad, x->grad ? (double)x->n : 0, OPT(calls[i], 0) != 0 });
  }
  return n;
}

static void ranks_mean_forward(mn_call *c) { ranks_mean_together(&c, 1, false); }

MN_KERNEL_FUSED(ranks_mean, ranks_mean_forward, NULL, ranks_mean_together)
