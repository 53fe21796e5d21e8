/* emu_shared.h -- shared memory as emu.h sees it: every access checked, races found.
** Two accesses to a word are ordered by a barrier between them, or within a warp by vector clocks
** that __syncwarp joins.  Each word remembers who touched it since the last barrier. */
#pragma once
#include "emu_machine.h"

namespace emu {

/* Did something order `a` before the running thread, since the last barrier? */
inline bool ordered(const Access &a, const Fiber &f) {
  return a.thread == f.id || (a.thread / WARP == f.id / WARP && f.known[a.thread % WARP] >= a.time);
}

inline void check_word(size_t at, Kind kind) {
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
inline bool touch(size_t at, size_t bytes, Kind kind) {
  Machine &m = machine();
  if (at % bytes || at + bytes > m.shared.size() || at + bytes < at) {
    report("shared: %zu bytes at byte %zd of %zu", bytes, (ssize_t)at, m.shared.size());
    return false;
  }
  for (size_t w = at / 4; w < (at + bytes) / 4; w++) check_word(w, kind);
  return true;
}

template <class T> struct Element;
template <class T> struct Shared {         /* what T * into shared memory is on the GPU */
  static_assert(sizeof(T) == 4 || sizeof(T) == 8 || sizeof(T) == 16, "types of 4, 8 or 16 bytes");
  size_t at;
  Element<T> operator[](long i) const { return Element<T>(at + (size_t)(i * (long)sizeof(T))); }
  Element<T> operator*() const { return Element<T>(at); }
  Shared operator+(long i) const { return { at + (size_t)(i * (long)sizeof(T)) }; }
};

template <class T> struct Element {
  size_t at;
  explicit Element(size_t at_) : at(at_) {}
  Element(const Element &) = default;
  T load() const {
    T v;
    if (touch(at, sizeof v, READ)) memcpy(&v, &machine().shared[at], sizeof v);
    else for (size_t i = 0; i < sizeof v; i += 4) memcpy((char *)&v + i, &NAN_BITS, 4);
    return v;
  }
  operator T() const { return load(); }
  Element &operator=(T v) {
    if (touch(at, sizeof v, WRITE)) memcpy(&machine().shared[at], &v, sizeof v);
    return *this;
  }
  Element &operator=(const Element &o) { return *this = o.load(); }
  Element &operator+=(T v) { return *this = load() + v; }
  Element &operator-=(T v) { return *this = load() - v; }
  Element &operator*=(T v) { return *this = load() * v; }
  Shared<T> operator&() const { return { at }; }
};

template <class T> T atomic_add(T *p, T v) { return std::exchange(*p, *p + v); }
template <class T> T atomic_add(Shared<T> p, T v) {
  T old = T();
  if (!touch(p.at, sizeof v, ATOMIC)) return old;
  memcpy(&old, &machine().shared[p.at], sizeof old);
  v += old;
  memcpy(&machine().shared[p.at], &v, sizeof v);
  return old;
}

}  // namespace emu
