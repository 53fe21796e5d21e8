/* emu_host.h -- the CUDA runtime calls that host code uses, with host memory as the device's.
** Device memory is closed to everyone but kernels and copies, and a page that nobody may touch
** follows each allocation: a host that reads a device pointer, or a kernel that runs past the end,
** stops at once with a message, as it would (or should) on a GPU.  Kernel arguments that are pointers
** must point into device memory.  New memory is full of NaN. */
#pragma once
#include <unistd.h>
#include <csignal>
#include "emu_machine.h"

typedef int cudaError_t;
enum {
  cudaSuccess = 0, cudaErrorInvalidValue = 1, cudaErrorMemoryAllocation = 2,
  cudaErrorLaunchFailure = 719
};
enum cudaMemcpyKind {
  cudaMemcpyHostToDevice = 1, cudaMemcpyDeviceToHost, cudaMemcpyDeviceToDevice
};
typedef struct emu_stream *cudaStream_t;
#define cudaStreamPerThread ((cudaStream_t) nullptr)

namespace emu {

struct Region { char *pages; size_t page_bytes, bytes; };
inline std::map<char *, Region> &regions() {                /* by first byte */
  static std::map<char *, Region> r;
  return r;
}

/* The region that holds `p`, or the last one before it. */
inline const Region *region_near(const void *p, const char **first) {
  auto it = regions().upper_bound((char *)p);
  if (it == regions().begin()) return nullptr;
  *first = (--it)->first;
  return &it->second;
}

inline bool on_device(const void *p, size_t bytes) {
  const char *first;
  const Region *r = region_near(p, &first);
  return r && (const char *)p + bytes <= first + r->bytes;
}

/* Device memory is open while one of these lives. */
struct Opened {
  static void set(int protection) {
    for (auto &[first, r] : regions()) mprotect(r.pages, r.page_bytes, protection);
  }
  Opened() { set(PROT_READ | PROT_WRITE); }
  ~Opened() { set(PROT_NONE); }
};

/* Only what is safe in a handler; then the fault strikes again, with the handler gone. */
inline void on_fault(int sig, siginfo_t *info, void *) {
  char text[256];
  const char *first = nullptr;
  const Region *r = region_near(info->si_addr, &first);
  const ptrdiff_t at = r ? (char *)info->si_addr - first : 0;
  if (r && at < (ptrdiff_t)(r->page_bytes + PAGE)) {
    const Fiber *f = machine().running;
    char who[100] = "the host";
    if (f) snprintf(who, sizeof who, "%s thread %u", machine().kernel, f->id);
    int n = snprintf(text, sizeof text, "emu: global: byte %td of an allocation of %zu, by %s\n", at,
                     r->bytes, who);
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

template <class P> void check_argument(int i, const P &p) {
  if constexpr (std::is_pointer_v<P>)
    if (p && !on_device(p, 1)) report("global: argument %d is a host pointer", i);
}

template <class... P, class... A>
void launch(const char *name, dim3 grid, dim3 block, size_t shared, cudaStream_t,
            void (*kernel)(P...), A &&...args) {
  Machine &m = machine();
  std::tuple<P...> pack(std::forward<A>(args)...);
  m.kernel = name;
  m.reported.clear();
  if (!grid.count() || grid.y > 65535 || grid.z > 65535)
    return report("launch: a grid of %ux%ux%u blocks", grid.x, grid.y, grid.z);
  if (!block.count() || block.count() > MAX_BLOCK || block.z > 64)
    return report("launch: a block of %ux%ux%u threads", block.x, block.y, block.z);
  if (shared > SHARED_LIMIT)
    return report("launch: %zu bytes of shared memory, at most %d", shared, (int)SHARED_LIMIT);
  std::apply([](const P &...p) { int i = 0; (check_argument(i++, p), ...); }, pack);
  if (!m.reported.empty()) return;
  Opened memory;
  run_grid(name, grid, block, shared, [=] { std::apply(kernel, pack); });
}

}  // namespace emu

#define CU_LAUNCH(kernel, grid, block, shared, stream, ...) \
  emu::launch(#kernel, grid, block, shared, stream, kernel, __VA_ARGS__)

/* The end of the numbers touches the forbidden page, as near as 16-byte alignment allows. */
inline cudaError_t cudaMalloc(void **out, size_t bytes) {
  using namespace emu;
  watch_faults();
  const size_t padded = (bytes + 15) & ~(size_t)15, page_bytes = (padded + PAGE - 1) / PAGE * PAGE;
  *out = nullptr;
  if (!bytes || page_bytes < bytes) return cudaErrorInvalidValue;
  void *p = mmap(nullptr, page_bytes + PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (p == MAP_FAILED) return cudaErrorMemoryAllocation;
  char *first = (char *)p + page_bytes - padded;
  regions()[first] = { (char *)p, page_bytes, bytes };
  mprotect(p, page_bytes, PROT_READ | PROT_WRITE);
  for (size_t i = 0; i < padded; i += 4) memcpy(first + i, &NAN_BITS, 4);
  mprotect(p, page_bytes, PROT_NONE);
  *out = first;
  return cudaSuccess;
}

inline cudaError_t cudaFree(void *p) {
  auto it = emu::regions().find((char *)p);
  if (!p) return cudaSuccess;
  if (it == emu::regions().end()) return cudaErrorInvalidValue;
  munmap(it->second.pages, it->second.page_bytes + emu::PAGE);
  emu::regions().erase(it);
  return cudaSuccess;
}

inline cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind kind,
                                   cudaStream_t) {
  if (emu::on_device(to, bytes) != (kind != cudaMemcpyDeviceToHost) ||
      emu::on_device(from, bytes) != (kind != cudaMemcpyHostToDevice)) return cudaErrorInvalidValue;
  emu::Opened memory;
  memmove(to, from, bytes);
  return cudaSuccess;
}

inline cudaError_t cudaMemsetAsync(void *to, int value, size_t bytes, cudaStream_t) {
  if (!emu::on_device(to, bytes)) return cudaErrorInvalidValue;
  emu::Opened memory;
  memset(to, value, bytes);
  return cudaSuccess;
}

inline cudaError_t cudaGetDeviceCount(int *n) { *n = 1; return cudaSuccess; }

/* What emu.h found wrong in a kernel comes back as a failed launch. */
inline cudaError_t cudaGetLastError() {
  return emu::machine().errors.empty() ? cudaSuccess : cudaErrorLaunchFailure;
}
inline cudaError_t cudaStreamSynchronize(cudaStream_t) { return cudaGetLastError(); }
inline const char *cudaGetErrorString(cudaError_t e) {
  const std::vector<std::string> &errors = emu::machine().errors;
  if (e == cudaErrorLaunchFailure && !errors.empty()) return errors.front().c_str();
  return e == cudaErrorMemoryAllocation ? "out of memory"
       : e == cudaErrorInvalidValue     ? "invalid argument" : "no error";
}
