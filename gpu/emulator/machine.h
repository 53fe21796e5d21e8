/* machine.h -- blocks of fibers: how emu.h runs threads, barriers and warp operations.
** What every access and every switch goes through is in machine.cpp, compiled once and optimised;
** kernels are compiled as they are written. */
#pragma once
#include <sys/mman.h>
#include <algorithm>
#include <cmath>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>
#if !defined(__x86_64__) || defined(MN_EMU_UCONTEXT)
#include <ucontext.h>
#define MN_EMU_UCONTEXT 1
#endif


struct dim3 {
  unsigned x, y, z;
  constexpr dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
  constexpr size_t count() const { return (size_t)x * y * z; }
};

namespace emu {

enum { WARP = 32, STACK = 128 << 10, PAGE = 4096 };
enum { KEPT = 2 };               /* reports of one kind in one launch */
enum Schedule { FORWARD, REVERSE, SHUFFLED };    /* order of fibers in a block, and of blocks */
enum State { READY, AT_BARRIER, AT_WARP, EXITED };
enum WarpOp { SYNC, SHUFFLE, SHUFFLE_UP, SHUFFLE_DOWN, SHUFFLE_XOR, BALLOT };
enum Kind { READ, WRITE, ATOMIC };
static const uint32_t NAN_BITS = 0x7fbadbad;

struct Stack {                   /* where a fiber, or the host, resumes */
  char *base = nullptr;
  size_t size = 0;
#ifdef MN_EMU_UCONTEXT
  ucontext_t context;
#else
  void *top = nullptr;
#endif
};

struct Fiber {                   /* one GPU thread */
  Stack stack;
  unsigned id = 0;
  dim3 at;
  State state = READY;
  int line = 0;                  /* of the barrier or warp operation where it waits */
  WarpOp op = SYNC;
  unsigned mask = 0;
  int arg = 0, width = WARP;
  uint64_t value = 0;
  unsigned known[WARP] = {};     /* vector clock: its own time, and of others the last it met */
  unsigned lane() const { return id % WARP; }
};

struct Access { unsigned thread, time; Kind kind; };
struct Word {                    /* accesses to a shared word since the last barrier */
  unsigned epoch = 0;
  bool written = false, reported = false;
  std::vector<Access> writes, reads;
};

struct Machine {
  Schedule schedule = SHUFFLED;
  uint64_t seed = 1;
  bool quiet = false;            /* keep errors, do not print them */
  std::vector<std::string> errors;                     /* until take_errors() */

  const char *kernel = "";
  dim3 grid, block, block_at;
  std::function<void()> body;
  std::vector<Fiber> fibers;
  Fiber *running = nullptr;      /* nullptr: host code runs */
  Stack host;
  std::vector<unsigned> order;   /* of the fibers in this round, */
  size_t turn = 0;               /* and how many of them have had their turn */
  bool from_host = false;        /* the last change of stacks left the host's */
  std::vector<unsigned char> shared;
  std::vector<Word> words;
  unsigned epoch = 0;            /* barriers passed in this block */
  std::map<const char *, int> reported;                /* in this launch, by kind */
};

extern Machine the_machine __attribute__((visibility("hidden")));
inline Machine &machine() { return the_machine; }

__attribute__((format(printf, 1, 2))) void report(const char *fmt, ...);

inline std::vector<std::string> take_errors() { return std::exchange(machine().errors, {}); }

/* The running fiber waits at a barrier (or for a warp operation) of this line. */
void wait(State state, int line);

/* A warp operation of the running fiber on up to 64 bits. */
uint64_t warp_bits(WarpOp op, unsigned mask, uint64_t v, int arg, int width, int line);

template <class T> T warp_op(WarpOp op, unsigned mask, T v, int arg, int width, int line) {
  static_assert(sizeof(T) <= 8 && std::is_trivially_copyable_v<T>, "a shuffle moves 4 or 8 bytes");
  uint64_t bits = 0;
  memcpy(&bits, &v, sizeof v);
  bits = warp_bits(op, mask, bits, arg, width, line);
  memcpy(&v, &bits, sizeof v);
  return v;
}

/* Run every block of a launch.  Arguments are converted and copied once, as a real launch does. */
void run_grid(const char *name, dim3 grid, dim3 block, size_t shared, std::function<void()> body);

/* An access of the running fiber to shared memory; true if it may go on. */
bool touch(size_t at, size_t bytes, Kind kind);

}  // namespace emu
