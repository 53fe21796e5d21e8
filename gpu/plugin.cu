/* plugin.cu -- memory and copies of a CUDA device, as engine/device.h asks for them.
** Compiled by nvcc into libmneme_cuda.so, and by g++ under emu.h into libmneme_emu.so.  Kernels need
** no list: each file exports its own mn_kernel_X.
** What the engine holds is managed memory, which both sides may touch in turn; scratch, which the
** host never sees, is the device's alone.  A stretch is reserved as long as the device's free memory
** and costs nothing before it is claimed.  Managed memory would spill into the host's when the
** device is full and make everything slow, so that is refused. */
#include <stdio.h>
#include <stdlib.h>
#include "kernel.cuh"

static char last_error[512];

static int check(cudaError_t e, const char *what) {
  if (e == cudaSuccess) return 0;
  snprintf(last_error, sizeof last_error, "%s: %s", what, cudaGetErrorString(e));
  cudaGetLastError();                                /* told here: not once more at the next wait */
  return -1;
}

static const char *error() { return last_error; }

static char kernel_errors[CU_STREAMS][512];          /* until somebody waits for the stream */

void cu_fail(const char *what, const char *why) {
  char *e = kernel_errors[cu_streams.in_use];
  if (!*e) snprintf(e, sizeof *kernel_errors, "%s: %s", what, why);
}

static int open_device() {
  int n = 0;
  if (check(cudaGetDeviceCount(&n), "looking for a GPU")) return -1;
  if (n < 1) {
    snprintf(last_error, sizeof last_error, "no GPU on this machine");
    return -1;
  }
  /* Ranks on one machine take its GPUs in turn (Open MPI says which of them this is). */
  const char *neighbour = getenv("OMPI_COMM_WORLD_LOCAL_RANK");
  if (mn_ranks() > 1 && neighbour && check(cudaSetDevice(atoi(neighbour) % n), "taking a GPU")) return -1;
  int card = 0, major = 0, minor = 0;
  if (check(cudaGetDevice(&card), "looking for a GPU")) return -1;
  if (check(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, card), "looking at the GPU")) return -1;
  if (check(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, card), "looking at the GPU")) return -1;
  if (10 * major + minor >= CU_OLDEST) return 0;
  snprintf(last_error, sizeof last_error, "a GPU of compute capability %d.%d, expected %d.%d or newer", major, minor,
           CU_OLDEST / 10, CU_OLDEST % 10);
  return -1;
}

/* ---- memory ---- */

static double free_bytes() {
  size_t unused = 0, all = 0;
  return check(cudaMemGetInfo(&unused, &all), "asking for free memory") ? 0 : (double)unused;
}

static void *managed(size_t bytes) {
  void *p = NULL;
  return check(cudaMallocManaged(&p, bytes), "memory") ? NULL : p;
}

static void *reserve(size_t *bytes) {
  const size_t page = 2 << 20;
  for (size_t size = (size_t)free_bytes() / page * page; size >= page; size = size / 2 / page * page) {
    void *p = managed(size);
    *bytes = size;
    if (p) return p;                                 /* else a smaller stretch may do */
  }
  return NULL;
}

static int claim(void *p, size_t bytes) {
  if ((double)bytes > free_bytes()) return -1;
  cudaMemLocation here = {};
  here.type = cudaMemLocationTypeDevice;
  if (check(cudaGetDevice(&here.id), "asking for the device")) return -1;
#if CUDART_VERSION >= 13000
  return check(cudaMemPrefetchAsync(p, bytes, here, 0, MN_STREAM), "memory");
#else
  return check(cudaMemPrefetchAsync(p, bytes, here.id, MN_STREAM), "memory");
#endif
}

static void *alloc(size_t bytes) {
  void *p = NULL;
  return check(cudaMalloc(&p, bytes), "memory") ? NULL : p;
}

static void free_memory(void *p) { check(cudaFree(p), "freeing memory"); }
static void give_back(void *p, size_t) { free_memory(p); }

/* ---- work ---- */

#ifndef __CUDACC__
static int waits;                /* that had something to wait for */
#endif

static int wait() {
#ifndef __CUDACC__
  waits += !emu::waited_for();
#endif
  char *e = kernel_errors[cu_streams.in_use];
  if (*e) {
    snprintf(last_error, sizeof last_error, "%s", e);
    *e = 0;
    return -1;
  }
  if (check(cudaGetLastError(), "launching a kernel")) return -1;
  return check(cudaStreamSynchronize(MN_STREAM), "running a kernel");
}

/* The stream that work goes to from now on.  Numbers of one are for the host while another computes, so the GPU must
** bear that. */
static int use_stream(int k) {
  if (k == cu_streams.in_use) return 0;
  int device = 0, beside = 0;
  if (k < 0 || k >= CU_STREAMS) {
    snprintf(last_error, sizeof last_error, "stream %d: there are %d", k, (int)CU_STREAMS);
    return -1;
  }
  if (k && !cu_streams.at[k]) {
    if (check(cudaGetDevice(&device), "asking for the device")) return -1;
    if (check(cudaDeviceGetAttribute(&beside, cudaDevAttrConcurrentManagedAccess, device), "asking for the device")) return -1;
    if (!beside) {
      snprintf(last_error, sizeof last_error, "this GPU's memory is the host's only while it rests: it trains one seed at a time");
      return -1;
    }
    if (check(cudaStreamCreateWithFlags(&cu_streams.at[k], cudaStreamNonBlocking), "a stream")) return -1;
  }
  const cudaError_t left = cudaGetLastError();       /* of a launch on the stream that we leave */
  if (left != cudaSuccess) cu_fail("launching a kernel", cudaGetErrorString(left));
  cu_streams.in_use = k;
#ifndef __CUDACC__
  emu::gpu().stream = k;
#endif
  return 0;
}

static int move(void *to, const void *from, size_t bytes, cudaMemcpyKind kind, const char *what) {
  return check(cudaMemcpyAsync(to, from, bytes, kind, MN_STREAM), what);
}

static int copy_in(void *device, const void *host, size_t bytes) {
  return move(device, host, bytes, cudaMemcpyHostToDevice, "copying to the device");
}

static int copy_out(void *host, const void *device, size_t bytes) {
  if (move(host, device, bytes, cudaMemcpyDeviceToHost, "copying from the device")) return -1;
  return wait();
}

static int copy(void *to, const void *from, size_t bytes) {
  return move(to, from, bytes, cudaMemcpyDeviceToDevice, "copying on the device");
}

static int zero(void *p, size_t bytes) {
  return check(cudaMemsetAsync(p, 0, bytes, MN_STREAM), "zeroing");
}

static void *zeros(size_t bytes) {
  void *p = managed(bytes);
  if (!p || !zero(p, bytes)) return p;
  free_memory(p);
  return NULL;
}

enum { THREADS = 256, MOST = 1 << 16 };              /* threads of a block, blocks */

static __global__ void add_into(float *to, const float *from, long n) {
  const long step = (long)gridDim.x * THREADS;
  for (long i = (long)blockIdx.x * THREADS + threadIdx.x; i < n; i += step) to[i] += from[i];
}

static int add(float *to, const float *from, long n) {
  const long blocks = (n + THREADS - 1) / THREADS;
  CU_LAUNCH(add_into, (unsigned)(blocks < (long)MOST ? blocks : (long)MOST), THREADS, 0, MN_STREAM, to, from, n);
  return check(cudaGetLastError(), "launching a kernel");
}

/* ---- graphs ---- */

static int capture() {
  return check(cudaStreamBeginCapture(MN_STREAM, cudaStreamCaptureModeThreadLocal), "capturing a graph");
}

static void *captured() {
  cudaGraph_t graph = NULL;
  cudaGraphExec_t exec = NULL;
  if (check(cudaStreamEndCapture(MN_STREAM, &graph), "capturing a graph")) return NULL;
  const bool bad = check(cudaGraphInstantiate(&exec, graph, 0), "making a graph");
  cudaGraphDestroy(graph);
  return bad ? NULL : exec;
}

static int launch(void *graph) {
  return check(cudaGraphLaunch((cudaGraphExec_t)graph, MN_STREAM), "launching a graph");
}

static void forget(void *graph) { check(cudaGraphExecDestroy((cudaGraphExec_t)graph), "freeing a graph"); }

#ifdef __CUDACC__
#define NAME "cuda"
#else
#define NAME "emu"
#endif

extern "C" {
extern mn_device mn_plugin;
mn_device mn_plugin = {
  NAME, sizeof(mn_call), NULL,
  open_device, free_bytes, reserve, give_back, claim, zeros, alloc, free_memory,
  copy_in, copy_out, copy, zero, add, wait, use_stream, capture, captured, launch, forget, error,
};
}

#ifndef __CUDACC__
/* For tests: the order in which blocks and threads run (emu::Schedule), how much memory there is, how
** often somebody has waited for work, how many streams had work at a time, forgetting what was found
** wrong; and listening to what runs: the names of kernels, "cublas", "nccl", "copy" and "zero" since it
** was last asked, a line each (valid until the next call). */
extern "C" void mn_emu_order(int order);
extern "C" void mn_emu_memory(double bytes);
extern "C" int mn_emu_waits(void);
extern "C" int mn_emu_streams(void);
extern "C" void mn_emu_forget(void);
extern "C" const char *mn_emu_listen(int on);
extern "C" void mn_emu_order(int order) {
  wait();
  emu::machine().schedule = (emu::Schedule)order;
}
extern "C" int mn_emu_waits(void) { return waits; }
extern "C" int mn_emu_streams(void) { return emu::gpu().most_busy; }
extern "C" void mn_emu_memory(double bytes) { emu::gpu().memory = (size_t)bytes; }
extern "C" void mn_emu_forget(void) {
  wait();
  emu::take_errors();
}
extern "C" const char *mn_emu_listen(int on) {
  static std::string heard;
  wait();
  heard.swap(emu::gpu().done);
  emu::gpu().done.clear();
  emu::gpu().listening = on != 0;
  return heard.c_str();
}
#endif
