/* write_past.h -- copies whose result no cache will keep: written past them, which spares reading the lines that are written. */
#ifndef MN_WRITE_PAST_H
#define MN_WRITE_PAST_H
#include <stdint.h>
#include <string.h>
#ifdef __AVX__
#include <immintrin.h>
#endif

static inline void mn_write_past(void *to, const void *from, size_t n) {
  char *d = (char *)to;
  const char *s = (const char *)from;
#ifdef __AVX__
  const size_t head = (0 - (uintptr_t)d) % 64 < n ? (0 - (uintptr_t)d) % 64 : n;
  memcpy(d, s, head);
  for (d += head, s += head, n -= head; n >= 64; d += 64, s += 64, n -= 64) {
    const __m256 a = _mm256_loadu_ps((const float *)(const void *)s), b = _mm256_loadu_ps((const float *)(const void *)(s + 32));
    _mm256_stream_ps((float *)(void *)d, a);
    _mm256_stream_ps((float *)(void *)(d + 32), b);
  }
#endif
  memcpy(d, s, n);
}

/* After the last one: other threads may read. */
static inline void mn_written_past(void) {
#ifdef __AVX__
  _mm_sfence();
#endif
}
#endif
