/* simd.h -- vectors of floats as wide as the machine's, and the operations on them.
** They are GCC's vector types, so one source gives AVX-512, AVX2 and scalar code: + - * work
** directly, a scalar operand is broadcast over the lanes, and the compiler fuses multiply and add. */
#ifndef MN_SIMD_H
#define MN_SIMD_H

#if defined __AVX512F__
#define MN_LANES 16
#elif defined __AVX__
#define MN_LANES 8
#else
#define MN_LANES 4
#endif

typedef float mn_lanes __attribute__((vector_size(4 * MN_LANES)));
typedef float mn_lanes_u __attribute__((vector_size(4 * MN_LANES), aligned(4), may_alias));

#define MN_INLINE static inline __attribute__((always_inline))

MN_INLINE mn_lanes mn_load(const float *p) { return *(const mn_lanes_u *)p; }
MN_INLINE void mn_store(float *p, mn_lanes v) { *(mn_lanes_u *)p = v; }

/* The first n lanes only (all, if n is larger); the others load as 0 and are not stored. */
MN_INLINE mn_lanes mn_load_n(const float *p, long n) {
  if (n >= MN_LANES) return mn_load(p);
  mn_lanes v = { 0 };
  for (int i = 0; i < n; i++) v[i] = p[i];
  return v;
}

/* The same of bfloat16, the upper halves of floats. */
typedef unsigned short mn_halves_u __attribute__((vector_size(2 * MN_LANES), aligned(2), may_alias));
typedef unsigned mn_words __attribute__((vector_size(4 * MN_LANES)));
MN_INLINE mn_lanes mn_load_halves_n(const unsigned short *p, long n) {
  mn_words w = { 0 };
  if (n >= MN_LANES) w = __builtin_convertvector(*(const mn_halves_u *)p, mn_words);
  else for (int i = 0; i < n; i++) w[i] = p[i];
  return (mn_lanes)(w << 16);
}

MN_INLINE void mn_store_n(float *p, mn_lanes v, long n) {
  if (n >= MN_LANES) mn_store(p, v);
  else for (int i = 0; i < n; i++) p[i] = v[i];
}

MN_INLINE mn_lanes mn_splat(float x) { return x - (mn_lanes){ 0 }; }

/* Keep a value in its register: without this the compiler would rather read memory once per use. */
#ifdef __x86_64__
#define MN_HOLD(v) __asm__("" : "+v"(v))
#define MN_KEEP(p) __asm__("" : "+r"(p))           /* the same for a pointer: it is not worked out from another */
#else
#define MN_HOLD(v) ((void)0)
#define MN_KEEP(p) ((void)0)
#endif

/* Prefetch n floats into the second-level cache.  The asm keeps it: GCC takes a function that
** only asks for one without effect, and drops its calls. */
MN_INLINE void mn_prefetch_wanted(const float *p, long n) {
  for (long i = 0; i < n; i += 16) __builtin_prefetch(p + i, 0, 2);
  __asm__ volatile("");
}

/* The even, or odd, lanes of two vectors. */
#if MN_LANES == 16
#define MN_EVEN(a, b) __builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, \
                                              24, 26, 28, 30)
#define MN_ODD(a, b) __builtin_shufflevector(a, b, 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, \
                                             25, 27, 29, 31)
#elif MN_LANES == 8
#define MN_EVEN(a, b) __builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14)
#define MN_ODD(a, b) __builtin_shufflevector(a, b, 1, 3, 5, 7, 9, 11, 13, 15)
#else
#define MN_EVEN(a, b) __builtin_shufflevector(a, b, 0, 2, 4, 6)
#define MN_ODD(a, b) __builtin_shufflevector(a, b, 1, 3, 5, 7)
#endif

/* The same within blocks of four lanes, where a shuffle costs half as much: of each block, the even or odd lanes of
** a, then those of b.  And the even, or odd, blocks of two vectors. */
#if MN_LANES == 16
#define MN_EVEN_4(a, b) __builtin_shufflevector(a, b, 0, 2, 16, 18, 4, 6, 20, 22, 8, 10, 24, 26, 12, 14, 28, 30)
#define MN_ODD_4(a, b) __builtin_shufflevector(a, b, 1, 3, 17, 19, 5, 7, 21, 23, 9, 11, 25, 27, 13, 15, 29, 31)
#define MN_EVEN_BLOCKS(a, b) __builtin_shufflevector(a, b, 0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19, 24, 25, 26, 27)
#define MN_ODD_BLOCKS(a, b) __builtin_shufflevector(a, b, 4, 5, 6, 7, 12, 13, 14, 15, 20, 21, 22, 23, 28, 29, 30, 31)
#elif MN_LANES == 8
#define MN_EVEN_4(a, b) __builtin_shufflevector(a, b, 0, 2, 8, 10, 4, 6, 12, 14)
#define MN_ODD_4(a, b) __builtin_shufflevector(a, b, 1, 3, 9, 11, 5, 7, 13, 15)
#define MN_EVEN_BLOCKS(a, b) __builtin_shufflevector(a, b, 0, 1, 2, 3, 8, 9, 10, 11)
#define MN_ODD_BLOCKS(a, b) __builtin_shufflevector(a, b, 4, 5, 6, 7, 12, 13, 14, 15)
#else
#define MN_EVEN_4(a, b) MN_EVEN(a, b)
#define MN_ODD_4(a, b) MN_ODD(a, b)
#endif

MN_INLINE mn_lanes mn_halve(mn_lanes a, mn_lanes b) { return MN_EVEN_4(a, b) + MN_ODD_4(a, b); }
#if MN_LANES > 4
MN_INLINE mn_lanes mn_halve_blocks(mn_lanes a, mn_lanes b) { return MN_EVEN_BLOCKS(a, b) + MN_ODD_BLOCKS(a, b); }
#endif

/* Lane i of the result is the sum of the lanes of a[i].  Adding even and odd lanes, then even and odd blocks of them,
** halves the number of vectors each time and keeps their order; written as one expression, nothing of it touches
** memory. */
MN_INLINE mn_lanes mn_sums(const mn_lanes *a) {
#define MN_2(i) mn_halve(a[i], a[i + 1])
#define MN_4(i) mn_halve(MN_2(i), MN_2(i + 2))
#define MN_8(i) mn_halve_blocks(MN_4(i), MN_4(i + 4))
#if MN_LANES == 16
  return mn_halve_blocks(MN_8(0), MN_8(8));
#elif MN_LANES == 8
  return MN_8(0);
#else
  return MN_4(0);
#endif
#undef MN_2
#undef MN_4
#undef MN_8
}

/* The same of four vectors, in lanes 0 to 3: the bits of mn_sum of each. */
MN_INLINE mn_lanes mn_sums_of_4(const mn_lanes *a) {
  mn_lanes v = mn_halve(mn_halve(a[0], a[1]), mn_halve(a[2], a[3]));
#if MN_LANES > 4
#pragma GCC unroll 2
  for (int n = MN_LANES; n > 4; n /= 2) v = mn_halve_blocks(v, v);
#endif
  return v;
}

/* Rows become columns: taking even and odd lanes of neighbours, log2(lanes) times, exchanges rows and lanes; the first
** two times within blocks of four lanes, then whole blocks. */
MN_INLINE void mn_turn_lanes(mn_lanes *a) {
  enum { HALF = MN_LANES / 2 };
  mn_lanes b[MN_LANES];
#define MN_EXCHANGE(EVEN, ODD, from, to) do { \
    _Pragma("GCC unroll 8") \
    for (int i = 0; i < HALF; i++) { \
      to[i] = EVEN(from[2 * i], from[2 * i + 1]); \
      to[i + HALF] = ODD(from[2 * i], from[2 * i + 1]); \
    } \
  } while (0)
  MN_EXCHANGE(MN_EVEN_4, MN_ODD_4, a, b);
  MN_EXCHANGE(MN_EVEN_4, MN_ODD_4, b, a);
#if MN_LANES == 16
  MN_EXCHANGE(MN_EVEN_BLOCKS, MN_ODD_BLOCKS, a, b);
  MN_EXCHANGE(MN_EVEN_BLOCKS, MN_ODD_BLOCKS, b, a);
#elif MN_LANES == 8
  MN_EXCHANGE(MN_EVEN_BLOCKS, MN_ODD_BLOCKS, a, b);
#pragma GCC unroll 8
  for (int i = 0; i < MN_LANES; i++) a[i] = b[i];
#endif
#undef MN_EXCHANGE
}

MN_INLINE float mn_sum(mn_lanes v) {
#pragma GCC unroll 4
  for (int n = MN_LANES; n > 1; n /= 2) v = MN_EVEN(v, v) + MN_ODD(v, v);
  return v[0];
}

/* The larger of two lanes each; a NaN in x gives y. */
MN_INLINE mn_lanes mn_larger(mn_lanes x, mn_lanes y) {
  for (int i = 0; i < MN_LANES; i++) x[i] = x[i] > y[i] ? x[i] : y[i];
  return x;
}

/* The largest of n >= 1 numbers, NaNs passed over. */
static inline float mn_vmax(const float *x, long n) {
  mn_lanes top = mn_splat(-__builtin_inff());
  long i = 0;
  for (; i + MN_LANES <= n; i += MN_LANES) top = mn_larger(mn_load(x + i), top);
#pragma GCC unroll 4
  for (int half = MN_LANES; half > 1; half /= 2) top = mn_larger(MN_EVEN(top, top), MN_ODD(top, top));
  float most = top[0];
  for (; i < n; i++) most = x[i] > most ? x[i] : most;
  return most;
}

static inline float mn_dot(long n, const float *x, const float *y) {
  mn_lanes sum = { 0 };
  for (long i = 0; i < n; i += MN_LANES) sum += mn_load_n(x + i, n - i) * mn_load_n(y + i, n - i);
  return mn_sum(sum);
}

/* The same where n is a multiple of 64: no addition waits for the one before. */
static inline float mn_long_dot(long n, const float *x, const float *y) {
  mn_lanes sum[4] = { { 0 } };
  for (long i = 0; i < n; i += 4 * MN_LANES)
#pragma GCC unroll 4
    for (int j = 0; j < 4; j++) sum[j] += mn_load(x + i + j * MN_LANES) * mn_load(y + i + j * MN_LANES);
  return mn_sum((sum[0] + sum[1]) + (sum[2] + sum[3]));
}

#endif
