/* denormals.h -- treats denormal numbers (below 1.2e-38) as zero in the calling thread while an op runs.
** Some processors need a hundred cycles for each, and closed gates produce many: galite was 3.6 times as
** slow on one.  Other frameworks flush them too.  The old mode is restored afterwards, so Lua's arithmetic does not change. */
#ifndef MN_DENORMALS_H
#define MN_DENORMALS_H

#ifdef __SSE2__
#include <xmmintrin.h>
/* Results that would be subnormal, and operands that are, are zero from here on.  Returns what was set before. */
static inline unsigned mn_flush(void) {
  const unsigned before = _mm_getcsr();
  if ((before & 0x8040) != 0x8040) _mm_setcsr(before | 0x8040);       /* to set it is as slow as a small op */
  return before;
}
static inline void mn_unflush(unsigned before) { if ((before & 0x8040) != 0x8040) _mm_setcsr(before); }
#elif defined __aarch64__
static inline unsigned mn_flush(void) {
  unsigned long before;
  __asm__ volatile ("mrs %0, fpcr" : "=r" (before));
  if (!(before & 1ul << 24)) __asm__ volatile ("msr fpcr, %0" :: "r" (before | 1ul << 24));
  return (unsigned)before;
}
static inline void mn_unflush(unsigned before) { if (!(before & 1u << 24)) __asm__ volatile ("msr fpcr, %0" :: "r" ((unsigned long)before)); }
#else
static inline unsigned mn_flush(void) { return 0; }
static inline void mn_unflush(unsigned before) { (void)before; }
#endif

#endif
