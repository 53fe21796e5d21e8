/* shared.h -- shared memory as emu.h sees it: every access checked, races found.
** Two accesses to a word are ordered by a barrier between them, or within a warp by vector clocks
** that __syncwarp joins.  Each word records its accesses since the last barrier. */
#pragma once
#include "machine.h"

namespace emu {

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
