/* machine.cpp -- blocks of fibers, warp operations and checked shared memory; see machine.h.
** One host thread runs all fibers, in an order that a test chooses. */
#include "shared.h"
#include <numeric>
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

namespace emu {

Machine the_machine;

void report(const char *fmt, ...) {
  Machine &m = machine();
  if (m.reported[fmt]++ >= KEPT) return;
  char text[400];
  int n = snprintf(text, sizeof text, "%s", m.kernel);
  if (!m.fibers.empty()) {
    const dim3 b = m.block_at;
    n += snprintf(text + n, sizeof text - (size_t)n, " block (%u,%u,%u)", b.x, b.y, b.z);
    if (m.running) n += snprintf(text + n, sizeof text - (size_t)n, " thread %u", m.running->id);
  }
  n += snprintf(text + n, sizeof text - (size_t)n, ": ");
  va_list ap;
  va_start(ap, fmt);
  vsnprintf(text + n, sizeof text - (size_t)n, fmt, ap);
  va_end(ap);
  m.errors.push_back(text);
  if (!m.quiet) fprintf(stderr, "emu: %s\n", text);
}

/* ---- fibers ---- */

#ifndef MN_EMU_UCONTEXT
/* Save what a call must preserve, change stacks, restore. */
__attribute__((naked, noinline)) static void change_stack(void ** /*save*/, void * /*load*/) {
  __asm__("pushq %rbp\n pushq %rbx\n pushq %r12\n pushq %r13\n pushq %r14\n pushq %r15\n"
          "movq %rsp, (%rdi)\n movq %rsi, %rsp\n"
          "popq %r15\n popq %r14\n popq %r13\n popq %r12\n popq %rbx\n popq %rbp\n ret\n");
}
#endif

/* The sanitizer must know on which stack we are; `leaving` for ever lets it forget this one. */
static void go(Stack &from, Stack &to, bool leaving = false) {
  (void)leaving;
#ifdef __SANITIZE_ADDRESS__
  void *fake = nullptr;
  __sanitizer_start_switch_fiber(leaving ? nullptr : &fake, to.base, to.size);
#endif
#ifdef MN_EMU_UCONTEXT
  swapcontext(&from.context, &to.context);
#else
  change_stack(&from.top, to.top);
#endif
#ifdef __SANITIZE_ADDRESS__
  __sanitizer_finish_switch_fiber(fake, nullptr, nullptr);
#endif
}

/* The next of this round that can run; nobody, and the host decides how to go on. */
static Fiber *next_ready() {
  Machine &m = machine();
  while (m.turn < m.order.size()) {
    Fiber &f = m.fibers[m.order[m.turn++]];
    if (f.state == READY) return &f;
  }
  return nullptr;
}

/* The running fiber waits, or has ended: the next one goes on, without a detour by the host. */
static void leave(bool for_ever = false) {
  Machine &m = machine();
  Stack &mine = m.running->stack;
  m.running = next_ready();
  m.from_host = false;
  go(mine, m.running ? m.running->stack : m.host, for_ever);
}

void wait(State state, int line) {
  Fiber *me = machine().running;
  me->state = state;
  me->line = line;
  leave();
}

static void start() {
  Machine &m = machine();
#ifdef __SANITIZE_ADDRESS__
  const void *base;
  size_t size;
  __sanitizer_finish_switch_fiber(nullptr, &base, &size);
  if (m.from_host) m.host.base = (char *)base, m.host.size = size;
#endif
  m.body();
  m.running->state = EXITED;
  leave(true);
  abort();
}

enum { SPREAD = 21 };

/* Stacks are mapped once and used again by every block; a page nobody may touch lies below each. */
static char *stack_of(unsigned id) {
  static std::vector<char *> stacks;
  while (stacks.size() <= id) {
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS;
    void *p = mmap(nullptr, STACK + PAGE, PROT_READ | PROT_WRITE, flags, -1, 0);
    if (p == MAP_FAILED || mprotect(p, PAGE, PROT_NONE)) { perror("emu: stack"); abort(); }
    stacks.push_back((char *)p + PAGE);
  }
  return stacks[id];
}

static void prepare(Fiber &f, unsigned id, dim3 block) {
  f.id = id;
  f.at = dim3(id % block.x, id / block.x % block.y, id / (block.x * block.y));
  f.known[f.lane()] = 1;
  f.stack.base = stack_of(id);
  f.stack.size = STACK;
#ifdef __SANITIZE_ADDRESS__
  __asan_unpoison_memory_region(f.stack.base, STACK);   /* a block given up left frames behind */
#endif
#ifdef MN_EMU_UCONTEXT
  getcontext(&f.stack.context);
  f.stack.context.uc_stack.ss_sp = f.stack.base;
  f.stack.context.uc_stack.ss_size = STACK;
  f.stack.context.uc_link = nullptr;
  makecontext(&f.stack.context, start, 0);
#else
  void **p = (void **)(f.stack.base + STACK - id % SPREAD * 192);   /* equal offsets would evict each other from the first cache */
  *--p = nullptr;                                       /* start never returns to it */
  *--p = (void *)start;
  f.stack.top = p - 6;                                  /* six registers, all zero */
  memset(f.stack.top, 0, 6 * sizeof(void *));
#endif
}

/* ---- warp operations ---- */

/* The lane that `f` reads, by the rules of __shfl_*_sync: itself past the end of its segment. */
static unsigned source_lane(const Fiber &f) {
  int lane = (int)f.lane(), begin = lane / f.width * f.width, end = begin + f.width, from = lane;
  if (f.op == SHUFFLE) from = begin + (f.arg & (f.width - 1));
  if (f.op == SHUFFLE_UP && lane - f.arg >= begin) from = lane - f.arg;
  if (f.op == SHUFFLE_DOWN && lane + f.arg < end) from = lane + f.arg;
  if (f.op == SHUFFLE_XOR && (lane ^ f.arg) < end) from = lane ^ f.arg;
  return (unsigned)from;
}

/* All of a mask have come: exchange, and let them go on.  Only __syncwarp joins clocks. */
static void exchange(Fiber *warp, unsigned lanes, unsigned mask, WarpOp op) {
  Machine &m = machine();
  uint64_t value[WARP], votes = 0;
  unsigned joined[WARP] = {};
  for (unsigned i = 0; i < lanes; i++) {
    Fiber &f = warp[i];
    value[i] = f.value;
    if (!(mask >> i & 1) || f.state != AT_WARP) continue;
    votes |= (f.value & 1) << i;
    for (unsigned j = 0; op == SYNC && j < WARP; j++) if (f.known[j] > joined[j]) joined[j] = f.known[j];
  }
  Fiber *going[WARP];
  unsigned n = 0;
  for (unsigned i = 0; i < lanes; i++)
    if ((mask >> i & 1) && warp[i].state == AT_WARP) going[n++] = &warp[i];
  for (unsigned i = 0; i < n; i++) {
    Fiber *f = going[i];
    if (op == BALLOT) f->value = votes;
    else if (op == SYNC) {
      memcpy(f->known, joined, sizeof joined);
      f->known[f->lane()]++;
    } else {
      unsigned from = source_lane(*f);
      bool there = from < lanes && (mask >> from & 1) && warp[from].state != EXITED;
      m.running = f;
      if (!there)
        report("warp: the shuffle at line %d reads lane %u, which is not there (mask 0x%08x)", f->line,
               from, mask);
      m.running = nullptr;
      f->value = there ? value[from] : (uint64_t)NAN_BITS << 32 | NAN_BITS;
    }
  }
  for (unsigned i = 0; i < n; i++) going[i]->state = READY;
}

/* A warp operation happens when every lane of its mask that has not exited waits at it. */
static bool resolve_warps() {
  Machine &m = machine();
  bool any = false;
  for (size_t first = 0; first < m.fibers.size(); first += WARP) {
    Fiber *warp = &m.fibers[first];
    unsigned lanes = (unsigned)std::min<size_t>(WARP, m.fibers.size() - first);
    unsigned missed = 0;                                /* a mask of which a lane is not there yet */
    for (unsigned i = 0; i < lanes; i++) {
      const unsigned mask = warp[i].mask;
      const WarpOp op = warp[i].op;
      bool ready = warp[i].state == AT_WARP && mask != missed;
      if (!ready) continue;
      for (unsigned j = 0; j < lanes && ready; j++)
        if ((mask >> j & 1) && warp[j].state != EXITED)
          ready = warp[j].state == AT_WARP && warp[j].mask == mask && warp[j].op == op;
      if (ready) exchange(warp, lanes, mask, op), any = true;
      else missed = mask;
    }
  }
  return any;
}

uint64_t warp_bits(WarpOp op, unsigned mask, uint64_t v, int arg, int width, int line) {
  Fiber &f = *machine().running;
  if (!(mask >> f.lane() & 1))
    return report("warp: the caller at line %d is not in its own mask 0x%08x", line, mask), v;
  if (width < 1 || width > WARP || (width & (width - 1)))
    return report("warp: width %d at line %d", width, line), v;
  f.op = op;
  f.mask = mask;
  f.arg = arg;
  f.width = width;
  f.value = v;
  wait(AT_WARP, line);
  return f.value;
}

/* ---- shared memory ---- */

/* Did something order `a` before the running thread, since the last barrier? */
static bool ordered(const Access &a, const Fiber &f) {
  return a.thread == f.id || (a.thread / WARP == f.id / WARP && f.known[a.thread % WARP] >= a.time);
}

static void check_word(size_t at, Kind kind) {
  static const char *const verb[] = { "reads", "writes", "adds to" };
  static const char *const past[] = { "read", "wrote", "added to" };
  Machine &m = machine();
  Fiber &f = *m.running;
  Word &w = m.words[at];
  if (w.epoch != m.epoch) w.epoch = m.epoch, w.writes.clear(), w.reads.clear();
  auto conflict = [&](const Access &a) {
    if (w.reported || ordered(a, f) || (kind == ATOMIC && a.kind == ATOMIC)) return;
    report("race: %s shared word %zu that thread %u %s, and no barrier orders them", verb[kind], at,
           a.thread, past[a.kind]);
    w.reported = true;
  };
  for (const Access &a : w.writes) conflict(a);
  if (kind != READ) for (const Access &a : w.reads) conflict(a);
  if (kind != WRITE && !w.written) {
    report("shared: %s word %zu, which no thread of this block has written", verb[kind], at);
    w.written = true;
  }
  const Access now = { f.id, f.known[f.lane()], kind };
  std::vector<Access> &log = kind == READ ? w.reads : w.writes;
  if (kind == WRITE) w.writes.clear(), w.reads.clear(), w.written = true;
  if (log.empty() || log.back().thread != now.thread || log.back().time != now.time)
    log.push_back(now);
}

/* True if the access may go on. */
bool touch(size_t at, size_t bytes, Kind kind) {
  Machine &m = machine();
  if (at % bytes || at + bytes > m.shared.size() || at + bytes < at) {
    report("shared: %zu bytes at byte %zd of %zu", bytes, (ssize_t)at, m.shared.size());
    return false;
  }
  for (size_t w = at / 4; w < (at + bytes) / 4; w++) check_word(w, kind);
  return true;
}

/* ---- blocks ---- */

static void arrange(std::vector<unsigned> &order) {
  Machine &m = machine();
  std::iota(order.begin(), order.end(), 0u);
  if (m.schedule == REVERSE) std::reverse(order.begin(), order.end());
  if (m.schedule == SHUFFLED)
    for (size_t i = order.size(); i > 1; i--) {
      m.seed = m.seed * 6364136223846793005u + 1442695040888963407u;
      std::swap(order[i - 1], order[(m.seed >> 33) % i]);
    }
}

/* Nobody can run: all wait at one barrier and pass it, or something is wrong.  False: give up. */
static bool pass_barrier() {
  Machine &m = machine();
  size_t waiting = 0, exited = 0;
  int line = 0, other = 0;
  const Fiber *stuck = nullptr;
  for (Fiber &f : m.fibers) {
    exited += f.state == EXITED;
    if (f.state == AT_WARP && !stuck) stuck = &f;
    if (f.state != AT_BARRIER) continue;
    waiting++;
    if (!line) line = f.line;
    if (f.line != line) other = f.line;
  }
  if (stuck) {
    report("warp: deadlock: thread %u waits at line %d for mask 0x%08x (%zu at a barrier, %zu exited)",
           stuck->id, stuck->line, stuck->mask, waiting, exited);
    return false;
  }
  if (other)
    report("barrier: threads wait at different __syncthreads, lines %d and %d", line, other);
  if (exited)
    report("barrier: __syncthreads at line %d, but %zu of %zu threads have exited", line, exited,
           m.fibers.size());
  if (other || exited) return false;
  for (Fiber &f : m.fibers) f.state = READY;
  m.epoch++;
  return true;
}

static bool run_block() {
  Machine &m = machine();
  m.order.resize(m.fibers.size());
  for (;;) {
    arrange(m.order);
    m.turn = 0;
    Fiber *first = next_ready();
    if (first) {
      m.running = first;
      m.from_host = true;
      go(m.host, first->stack);
      m.running = nullptr;
    }
    size_t exited = 0;
    for (const Fiber &f : m.fibers) exited += f.state == EXITED;
    if (exited == m.fibers.size()) return true;
    if (!resolve_warps() && !first && !pass_barrier()) return false;
  }
}

void run_grid(const char *name, dim3 grid, dim3 block, size_t shared, std::function<void()> body) {
  Machine &m = machine();
  m.kernel = name;
  m.grid = grid;
  m.block = block;
  m.body = std::move(body);
  std::vector<unsigned> order(grid.count());
  arrange(order);
  for (unsigned b : order) {
    m.block_at = dim3(b % grid.x, b / grid.x % grid.y, b / (grid.x * grid.y));
    m.epoch = 0;
    m.shared.resize((shared + 3) / 4 * 4);
    for (size_t i = 0; i < m.shared.size(); i += 4) memcpy(&m.shared[i], &NAN_BITS, 4);
    m.words.assign(m.shared.size() / 4, Word());
    m.fibers.assign(block.count(), Fiber());
    for (unsigned i = 0; i < block.count(); i++) prepare(m.fibers[i], i, block);
    if (!run_block()) break;
  }
  m.fibers.clear();
}

}  // namespace emu
