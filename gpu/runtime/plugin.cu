/* plugin.cu -- memory and copies of a CUDA device: implements engine/base/device.h.
** Compiled by nvcc into libmneme_cuda.so, and by g++ under emu.h into libmneme_emu.so.  Kernels need
** no list: each file exports its own mn_kernel_X.
** Tensors are in managed memory, which both sides access in turn; scratch, which the
** host never reads, is device memory. */
#include <stdio.h>
#include <stdlib.h>
#include <string>
#include "strided_copy.cuh"
#include "graphs.cuh"

static char last_error[512];

static int check(cudaError_t e, const char *what) {
  if (e == cudaSuccess) return 0;
  snprintf(last_error, sizeof last_error, "%s: %s", what, cudaGetErrorString(e));
  cudaGetLastError();                                /* reported here: clear it, so that it is not reported again at the next wait */
  return -1;
}

static const char *error() { return last_error; }

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
  int card = 0, major = 0, minor = 0, shares = 0;
  if (check(cudaGetDevice(&card), "looking for a GPU")) return -1;
  if (check(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, card), "looking at the GPU")) return -1;
  if (check(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, card), "looking at the GPU")) return -1;
  if (check(cudaDeviceGetAttribute(&shares, cudaDevAttrConcurrentManagedAccess, card), "looking at the GPU")) return -1;
  if (10 * major + minor < CU_OLDEST) {
    snprintf(last_error, sizeof last_error, "a GPU of compute capability %d.%d, expected %d.%d or newer", major, minor,
             CU_OLDEST / 10, CU_OLDEST % 10);
    return -1;
  }
  if (shares) return 0;
  snprintf(last_error, sizeof last_error, "a GPU that does not share managed memory with the host while it works (as under WSL)");
  return -1;
}

/* Work that is captured has no results to wait for, and would not know of memory that moves. */
static bool in_graph(const char *what) {
  if (cu_in_graph()) snprintf(last_error, sizeof last_error, "%s while a graph is made", what);
  return cu_in_graph();
}

/* ---- memory ---- */

static double free_bytes() {
  size_t unused = 0, all = 0;
  return check(cudaMemGetInfo(&unused, &all), "asking for free memory") ? 0 : (double)unused;
}

/* What is managed spills into the host's memory when the device's is full, and makes everything slow; a stretch of which
** nobody has used a page yet is not full either.  So there is never more of it than the device has, and all of it is there. */
static size_t on_its_way;                            /* bytes that are perhaps not among those in use yet */

static bool fits(size_t bytes) {
  if ((double)bytes <= free_bytes() - (double)on_its_way) return true;
  if (check(cudaStreamSynchronize(MN_STREAM), "memory")) return false;
  on_its_way = 0;
  return (double)bytes <= free_bytes();
}

static int to_device(void *p, size_t bytes) {
  cudaMemLocation here = {};
  here.type = cudaMemLocationTypeDevice;
  if (check(cudaGetDevice(&here.id), "asking for the device")) return -1;
#if CUDART_VERSION >= 13000
  return check(cudaMemPrefetchAsync(p, bytes, here, 0, MN_STREAM), "memory");
#else
  return check(cudaMemPrefetchAsync(p, bytes, here.id, MN_STREAM), "memory");
#endif
}

static void *managed(size_t bytes) {
  void *p = NULL;
  if (in_graph("taking memory")) return NULL;
  if (!fits(bytes)) {
    snprintf(last_error, sizeof last_error, "memory: out of memory");
    return NULL;
  }
  if (check(cudaMallocManaged(&p, bytes), "memory")) return NULL;
  on_its_way += bytes;
  if (!to_device(p, bytes)) return p;
  cudaFree(p);
  return NULL;
}

/* A quarter more than there is: few stretches, and little of the last that nobody uses.  If that is too much, what is needed. */
#ifdef __CUDACC__
enum { STRETCH = 2 << 20 };
#else
enum { STRETCH = 64 << 10 };                         /* the emulator opens and closes each page at every wait */
#endif

static void *reserve(size_t had, size_t *bytes) {
  const size_t page = STRETCH, need = (*bytes + page - 1) / page * page;
  for (size_t size : { cu_max(need, had / 4 / page * page), need }) {
    void *p = managed(size);
    *bytes = size;
    if (p) return p;
  }
  return NULL;
}

static void *alloc(size_t bytes) {
  void *p = NULL;
  return in_graph("taking memory") || check(cudaMalloc(&p, bytes), "memory") ? NULL : p;
}

static void free_memory(void *p) { check(cudaFree(p), "freeing memory"); }
static void give_back(void *p, size_t) { free_memory(p); }

/* ---- work ---- */

#ifndef __CUDACC__
static int waits;                /* that had something to wait for */
#endif

static int wait() {
  if (in_graph("waiting")) return -1;
#ifndef __CUDACC__
  waits += !emu::waited_for();
#endif
  if (cu_failure(last_error, sizeof last_error)) return -1;
  if (check(cudaGetLastError(), "launching a kernel")) return -1;
  return check(cudaStreamSynchronize(MN_STREAM), "running a kernel");
}

static int copy_in(void *device, const void *host, size_t bytes) {
  if (cu_in_graph()) host = cu_graph_keep(host, bytes);
  return check(cudaMemcpyAsync(device, host, bytes, cudaMemcpyHostToDevice, MN_STREAM), "copying to the device");
}

static int copy_out(void *host, const void *device, size_t bytes) {
  if (check(cudaMemcpyAsync(host, device, bytes, cudaMemcpyDeviceToHost, MN_STREAM), "copying from the device")) return -1;
  return wait();
}

template <class V> CU_KERNEL copy_words(V *to, const V *from, long n) { CU_LOOP(i, n) to[i] = from[i]; }
template <class V> static void copy_as(void *to, const void *from, size_t bytes) {
  const long n = (long)(bytes / sizeof(V));
  CU_LAUNCH(copy_words<V>, cu_blocks(n), CU_THREADS, 0, (V *)to, (const V *)from, n);
}

static int copy(void *to, const void *from, size_t bytes) {
  const size_t odd = (uintptr_t)to | (uintptr_t)from | bytes;
  if (!bytes) return 0;
  if (odd % 16 == 0) copy_as<float4>(to, from, bytes);
  else if (odd % 4 == 0) copy_as<uint32_t>(to, from, bytes);
  else copy_as<uint8_t>(to, from, bytes);
  return 0;
}

static int zero(void *p, size_t bytes) {
  cu_zero(p, bytes);
  return 0;
}

static void *zeros(size_t bytes) {
  void *p = managed(bytes);
  if (p) cu_zero(p, bytes);
  return p;
}

CU_KERNEL add_into(float *to, const float *from, long n) { CU_LOOP(i, n) to[i] += from[i]; }

static int add(float *to, const float *from, long n) {
  CU_LAUNCH(add_into, cu_blocks(n), CU_THREADS, 0, to, from, n);
  return check(cudaGetLastError(), "launching a kernel");
}

/* ---- graphs ---- */

static void *captured() {
  cu_graph *g = cu_graph_end();
  if (!g) cu_failure(last_error, sizeof last_error);
  return g;
}
static void launch(void *graph) { cu_graph_launch((cu_graph *)graph); }
static void forget(void *graph) { cu_graph_free((cu_graph *)graph); }

#ifdef __CUDACC__
#define NAME "cuda"
#else
#define NAME "emu"
#endif

extern "C" {
extern mn_device mn_plugin;
mn_device mn_plugin = {
  NAME, sizeof(mn_call), NULL,
  open_device, free_bytes, reserve, give_back, zeros, alloc, free_memory,
  copy_in, copy_out, copy, zero, add, wait, cu_graph_begin, captured, launch, forget, error,
};
}

#ifndef __CUDACC__
/* For tests: the order in which blocks and threads run (emu::Schedule), how much memory there is, how many
** floats a slice of heads (CU_SLICE) has, how often somebody has waited for work, how much has been launched, forgetting what was found
** wrong; and listening to what runs: the names of kernels, "cublas", "nccl", "copy" and "zero" since it
** was last asked, a line each (valid until the next call). */
extern "C" void mn_emu_order(int order);
extern "C" void mn_emu_memory(double bytes);
extern "C" void mn_emu_slice(double floats);
extern "C" int mn_emu_waits(void);
extern "C" int mn_emu_launched(void);
extern "C" void mn_emu_forget(void);
extern "C" const char *mn_emu_listen(int on);
extern "C" void mn_emu_order(int order) {
  wait();
  emu::machine().schedule = (emu::Schedule)order;
}
extern "C" int mn_emu_waits(void) { return waits; }
extern "C" int mn_emu_launched(void) { return emu::gpu().launched; }
extern "C" void mn_emu_memory(double bytes) { emu::gpu().memory = (size_t)bytes; }
extern "C" void mn_emu_slice(double floats) { emu::gpu().slice = (long)floats; }
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
