/* denormals.h -- numbers too small to be normal, below 1.2e-38, count as zero while an op runs, in the thread that says so.
** Some processors take a hundred cycles for each of them, and gates that have closed make many: galite was 3.6 times as
** slow on one.  Other frameworks flush them as well.  What Lua computes is not touched: what was set before comes back. */
#ifndef MN_FLUSH_H
#define MN_FLUSH_H

#ifdef __SSE2__
#include <xmmintrin.h>
/* Results that would be subnormal, and operands that are, are zero from here on.  Returns what was set before. */
static inline unsigned mn_flush(void) {
  const unsigned before = _mm_getcsr();
  _mm_setcsr(before | 0x8040);
  return before;
}
static inline void mn_unflush(unsigned before) { _mm_setcsr(before); }
#else
static inline unsigned mn_flush(void) { return 0; }
static inline void mn_unflush(unsigned before) { (void)before; }
#endif

#endif
