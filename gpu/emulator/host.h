/* host.h -- the CUDA runtime calls for memory that host code uses, with host memory as the GPU's.
** Only kernels and copies may access device memory.  The host may access managed memory, but not
** between the first launch and the next wait.  A protected page follows each
** allocation: a host that reads a device pointer or does not wait, or a kernel that runs past the end,
** stops at once with a message, as it would (or should) on a GPU.  New memory is filled with NaN; of
** a large managed allocation only the first megabyte and what is prefetched. */
#pragma once
#include <unistd.h>
#include <csignal>
#include <cwchar>
#include "machine.h"

typedef int cudaError_t;
enum {
  cudaSuccess = 0, cudaErrorInvalidValue = 1, cudaErrorMemoryAllocation = 2, cudaErrorInvalidDevice = 101,
  cudaErrorLaunchFailure = 719, cudaErrorStreamCaptureUnsupported = 900
};
enum cudaMemcpyKind {
  cudaMemcpyHostToDevice = 1, cudaMemcpyDeviceToHost, cudaMemcpyDeviceToDevice
};
typedef struct emu_stream *cudaStream_t;
#define cudaStreamPerThread ((cudaStream_t) nullptr)

namespace emu {

enum { FILLED = 1 << 20 };       /* bytes of new managed memory that are NaN without prefetching */

struct Region {
  char *pages;
  size_t page_bytes, bytes;
  bool managed;
  size_t known;                  /* bytes that have been initialised */
  bool open;
};
inline std::map<char *, Region> &regions() {                /* by first byte */
  static std::map<char *, Region> r;
  return r;
}

/* The order of all work: one stream.  While it is captured, work goes into a graph instead. */
typedef std::function<void()> Work;
struct Gpu {
  std::vector<Work> pending;     /* launched, not run yet */
  std::vector<Work> *capture = nullptr;
  int launched = 0;              /* kernels, copies and products that have run */
  int graphs = 0;                /* that have been made */
  bool listening = false;
  std::string done;              /* while listening: the name of each piece of work that has run, a line each */
  size_t memory = (size_t)sysconf(_SC_PHYS_PAGES) * PAGE, used = 0;  /* bytes that the GPU has */
  long slice = 12 << 20;         /* CU_SLICE of gpu/lib/chunk.cuh */
  Gpu() { if (const char *bytes = getenv("EMU_MEMORY")) memory = strtoull(bytes, nullptr, 10); }
};
inline Gpu &gpu() { static Gpu g; return g; }
inline bool waited_for() { return gpu().pending.empty() && !gpu().capture; }
inline bool for_host_now(const Region &r) { return r.managed && waited_for(); }

/* The region that holds `p`, or the last one before it. */
inline Region *region_near(const void *p, const char **first) {
  auto it = regions().upper_bound((char *)p);
  if (it == regions().begin()) return nullptr;
  *first = (--it)->first;
  return &it->second;
}

inline Region *region_of(const void *p, size_t bytes) {
  const char *first;
  Region *r = region_near(p, &first);
  return r && (const char *)p + bytes <= first + r->bytes ? r : nullptr;
}
inline bool on_device(const void *p, size_t bytes) { return region_of(p, bytes) != nullptr; }
inline bool for_host(const void *p) {
  const Region *r = region_of(p, 1);
  return !r || r->managed;
}

inline void protect(Region &r, bool open) {
  if (r.open != open) mprotect(r.pages, r.page_bytes, open ? PROT_READ | PROT_WRITE : PROT_NONE);
  r.open = open;
}
inline void protect_managed(bool open) {
  for (auto &[first, r] : regions()) if (r.managed) protect(r, open);
}

/* Opens all of it for the scope of this object. */
struct Opened {
  Opened() { for (auto &[first, r] : regions()) protect(r, true); }
  ~Opened() { for (auto &[first, r] : regions()) protect(r, for_host_now(r)); }
};

/* Only what is safe in a handler; then the fault strikes again, with the handler gone. */
inline void on_fault(int sig, siginfo_t *info, void *) {
  char text[300];
  const char *first = nullptr;
  const Region *r = region_near(info->si_addr, &first);
  const ptrdiff_t at = r ? (char *)info->si_addr - first : 0;
  if (r && at < (ptrdiff_t)(r->page_bytes + PAGE)) {
    const Fiber *f = machine().running;
    const bool early = !f && r->managed && at < (ptrdiff_t)r->bytes;
    char who[100] = "the host";
    if (f) snprintf(who, sizeof who, "%s thread %u", machine().kernel, f->id);
    int n = snprintf(text, sizeof text, "emu: global: byte %td of an allocation of %zu, by %s%s\n", at,
                     r->bytes, who, early ? ", which has not waited for what was launched" : "");
    if (write(2, text, (size_t)n) < 0) abort();
  }
  signal(sig, SIG_DFL);
}

inline void watch_faults() {
  static char stack[16 << 10];
  static bool watching = false;
  if (watching) return;
  watching = true;
  stack_t alternative = {};
  alternative.ss_sp = stack;
  alternative.ss_size = sizeof stack;
  sigaltstack(&alternative, nullptr);
  struct sigaction action = {};
  action.sa_sigaction = on_fault;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigaction(SIGSEGV, &action, nullptr);
}

/* What a capture forbids; true if one is under way. */
inline bool in_capture(const char *what) {
  if (!gpu().capture) return false;
  machine().kernel = "the host";
  machine().reported.clear();
  report("capture: %s while a graph is captured", what);
  return true;
}

/* Bytes up to `end` of a region begin to be used, as NaN. */
inline void know(char *first, Region &r, size_t end) {
  if (end <= r.known) return;
  protect(r, true);
  wmemset((wchar_t *)(first + r.known / 4 * 4), (wchar_t)NAN_BITS, (end - r.known / 4 * 4 + 3) / 4);
  protect(r, for_host_now(r));
  gpu().used += end - r.known;
  r.known = end;
}

/* The end of the numbers touches the forbidden page, as near as 16-byte alignment allows. */
inline cudaError_t allocate(void **out, size_t bytes, bool managed) {
  watch_faults();
  const size_t padded = (bytes + 15) & ~(size_t)15, page_bytes = (padded + PAGE - 1) / PAGE * PAGE;
  *out = nullptr;
  if (in_capture("memory is allocated")) return cudaErrorStreamCaptureUnsupported;
  if (!bytes || page_bytes < bytes) return cudaErrorInvalidValue;
  if (!managed && bytes > gpu().memory - std::min(gpu().memory, gpu().used))
    return cudaErrorMemoryAllocation;
  const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  void *p = mmap(nullptr, page_bytes + PAGE, PROT_NONE, flags, -1, 0);
  if (p == MAP_FAILED) return cudaErrorMemoryAllocation;
  char *first = (char *)p + page_bytes - padded;
  Region &r = regions()[first] = { (char *)p, page_bytes, bytes, managed, 0, false };
  know(first, r, managed ? std::min<size_t>(bytes, FILLED) : bytes);
  *out = first;
  return cudaSuccess;
}

}  // namespace emu

inline cudaError_t cudaMalloc(void **out, size_t bytes) { return emu::allocate(out, bytes, false); }
inline cudaError_t cudaMallocManaged(void **out, size_t bytes) {
  return emu::allocate(out, bytes, true);
}

inline cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *all) {
  const emu::Gpu &g = emu::gpu();
  *all = g.memory;
  *free_bytes = g.memory - std::min(g.memory, g.used);
  return cudaSuccess;
}
