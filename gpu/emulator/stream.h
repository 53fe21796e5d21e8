/* stream.h -- launches, copies and graphs.  Work runs only when the host waits for it.  Until then
** the host cannot access the memory involved, and arguments are copied at the launch, as on a GPU.
** A graph is a list of work, run at each of its launches; what a capture forbids (waiting, allocating,
** freeing) is reported.  Kernel arguments that are pointers must point into device memory, when the
** kernel is launched and when it runs. */
#pragma once
#include "host.h"

typedef struct emu_graph { std::vector<emu::Work> work; } *cudaGraph_t, *cudaGraphExec_t;
enum cudaStreamCaptureMode { cudaStreamCaptureModeThreadLocal = 1 };

/* What emu.h found wrong in a kernel comes back as a failed launch. */
inline cudaError_t cudaGetLastError() {
  return emu::machine().errors.empty() ? cudaSuccess : cudaErrorLaunchFailure;
}
inline const char *cudaGetErrorString(cudaError_t e) {
  const std::vector<std::string> &errors = emu::machine().errors;
  if (e == cudaErrorLaunchFailure && !errors.empty()) return errors.front().c_str();
  return e == cudaErrorMemoryAllocation          ? "out of memory"
       : e == cudaErrorInvalidValue              ? "invalid argument"
       : e == cudaErrorStreamCaptureUnsupported  ? "operation not permitted when stream is capturing"
                                                 : "no error";
}

namespace emu {

inline void enqueue(Work work) {
  Gpu &g = gpu();
  if (g.capture) return g.capture->push_back(std::move(work));
  const bool first = g.pending.empty();
  g.pending.push_back(std::move(work));
  if (first) protect_managed(false);
}

/* The same under a name that listeners hear when it runs, in a graph too. */
inline void enqueue(const char *name, Work work) {
  enqueue([name, work = std::move(work)] {
    gpu().launched++;
    if (gpu().listening) gpu().done.append(name).append("\n");
    work();
  });
}

inline void run_pending() {
  if (gpu().pending.empty()) return;
  std::vector<Work> work;
  work.swap(gpu().pending);
  Opened memory;
  for (Work &w : work) w();
}

template <class P> void check_argument(int i, const P &p) {
  if constexpr (std::is_pointer_v<P>)
    if (p && !on_device((const void *)p, 1))
      report("global: argument %d is a host pointer, or its memory has been freed", i);
}

/* True if every pointer of a launch points to device memory. */
template <class Args> bool check_arguments(const char *name, const Args &args) {
  Machine &m = machine();
  m.kernel = name;
  m.reported.clear();
  int i = 0;
  args.unpacked([&](const auto &...p) { (check_argument(i++, p), ...); });
  return m.reported.empty();
}

/* A grid of which each thread runs body(args). */
template <class Args> void launch(const char *name, dim3 grid, dim3 block, size_t shared, const Args &args, void (*body)(const Args &)) {
  if (!check_arguments(name, args)) return;
  enqueue(name, [=] {
    if (check_arguments(name, args)) run_grid(name, grid, block, shared, [&] { body(args); });
  });
}

}  // namespace emu

inline cudaError_t cudaStreamSynchronize(cudaStream_t) {
  if (emu::in_capture("the host waits")) return cudaErrorStreamCaptureUnsupported;
  emu::run_pending();
  return cudaGetLastError();
}

inline cudaError_t cudaFree(void *p) {
  if (emu::in_capture("memory is freed")) return cudaErrorStreamCaptureUnsupported;
  if (!p) return cudaSuccess;
  auto it = emu::regions().find((char *)p);
  if (it == emu::regions().end()) return cudaErrorInvalidValue;
  emu::run_pending();
  munmap(it->second.pages, it->second.page_bytes + emu::PAGE);
  emu::gpu().used -= it->second.known;
  emu::regions().erase(it);
  return cudaSuccess;
}

/* What comes from ordinary host memory is read at once, what goes there is waited for. */
inline cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind kind,
                                   cudaStream_t) {
  using namespace emu;
  if (kind == cudaMemcpyDeviceToHost ? !for_host(to) : !on_device(to, bytes)) return cudaErrorInvalidValue;
  if (kind == cudaMemcpyHostToDevice ? !for_host(from) : !on_device(from, bytes)) return cudaErrorInvalidValue;
  if (kind == cudaMemcpyDeviceToHost) {
    if (in_capture("the host waits")) return cudaErrorStreamCaptureUnsupported;
    run_pending();
    Opened memory;
    memmove(to, from, bytes);
  } else if (kind == cudaMemcpyHostToDevice) {
    const std::string now((const char *)from, bytes);
    enqueue("copy", [=] { memcpy(to, now.data(), bytes); });
  } else enqueue("copy", [=] { memmove(to, from, bytes); });
  return cudaSuccess;
}

inline cudaError_t cudaMemsetAsync(void *to, int value, size_t bytes, cudaStream_t) {
  if (!emu::on_device(to, bytes)) return cudaErrorInvalidValue;
  emu::enqueue("zero", [=] { memset(to, value, bytes); });
  return cudaSuccess;
}

/* A call of the host in the stream's turn.  It may use managed memory, but nothing of CUDA. */
typedef void (*cudaHostFn_t)(void *);
inline cudaError_t cudaLaunchHostFunc(cudaStream_t, cudaHostFn_t call, void *data) {
  emu::enqueue([=] { call(data); });
  return cudaSuccess;
}

/* Pages come to the GPU: the numbers in them that nobody has made are NaN. */
struct cudaMemLocation { int type, id; };
enum { cudaMemLocationTypeDevice = 1 };
inline cudaError_t cudaMemPrefetchAsync(const void *p, size_t bytes, cudaMemLocation, unsigned, cudaStream_t) {
  const char *first = nullptr;
  emu::Region *r = emu::region_near(p, &first);
  if (emu::in_capture("memory is prefetched")) return cudaErrorStreamCaptureUnsupported;
  if (!emu::on_device(p, bytes)) return cudaErrorInvalidValue;
  emu::know((char *)first, *r, (size_t)((const char *)p - first) + bytes);
  return cudaSuccess;
}

/* ---- graphs ---- */

inline cudaError_t cudaStreamBeginCapture(cudaStream_t, cudaStreamCaptureMode) {
  if (emu::in_capture("a capture begins")) return cudaErrorStreamCaptureUnsupported;
  emu::protect_managed(false);
  emu::gpu().capture = new std::vector<emu::Work>;
  return cudaSuccess;
}

inline cudaError_t cudaStreamEndCapture(cudaStream_t, cudaGraph_t *graph) {
  std::vector<emu::Work> *work = std::exchange(emu::gpu().capture, nullptr);
  emu::protect_managed(emu::waited_for());
  *graph = nullptr;
  if (!work) return cudaErrorInvalidValue;
  *graph = new emu_graph{ std::move(*work) };
  delete work;
  return cudaGetLastError();
}

inline cudaError_t cudaGraphInstantiate(cudaGraphExec_t *exec, cudaGraph_t graph, unsigned long long) {
  *exec = new emu_graph(*graph);
  emu::gpu().graphs++;
  return cudaSuccess;
}

inline cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t) {
  if (emu::in_capture("a graph is launched")) return cudaErrorStreamCaptureUnsupported;
  for (const emu::Work &w : exec->work) emu::enqueue(w);
  return cudaSuccess;
}

inline cudaError_t cudaGraphDestroy(cudaGraph_t graph) { delete graph; return cudaSuccess; }
inline cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) {
  emu::run_pending();
  delete exec;
  return cudaSuccess;
}

/* Each process has one GPU of its own; all have the same one where EMU_ONE_GPU is set. */
struct cudaDeviceProp { struct { char bytes[16]; } uuid; };
inline cudaError_t cudaGetDeviceCount(int *n) { *n = 1; return cudaSuccess; }
inline cudaError_t cudaGetDevice(int *id) { *id = 0; return cudaSuccess; }
enum { cudaDevAttrComputeCapabilityMajor = 75, cudaDevAttrComputeCapabilityMinor = 76, cudaDevAttrConcurrentManagedAccess = 89 };
inline cudaError_t cudaDeviceGetAttribute(int *value, int which, int) {
  const char *given = getenv("EMU_CAPABILITY");
  const int capability = given ? atoi(given) : 90;
  *value = which == cudaDevAttrComputeCapabilityMajor ? capability / 10
           : which == cudaDevAttrComputeCapabilityMinor ? capability % 10
                                                        : !getenv("EMU_APART");
  return cudaSuccess;
}
inline cudaError_t cudaSetDevice(int id) { return id ? cudaErrorInvalidDevice : cudaSuccess; }
inline cudaError_t cudaGetDeviceProperties(cudaDeviceProp *about, int) {
  *about = {};
  snprintf(about->uuid.bytes, sizeof about->uuid.bytes, "%d", getenv("EMU_ONE_GPU") ? 0 : (int)getpid());
  return cudaSuccess;
}
#define CUDART_VERSION 13000
