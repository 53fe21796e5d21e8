/* simd.h -- vectors of floats as wide as the machine's, and the few things to do with them.
** GCC's vector types, so that one source gives AVX-512, AVX2 and plain code: + - * work as they
** stand, a scalar operand is spread over the lanes, and the compiler makes the fused multiply-adds. */
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
MN_INLINE mn_lanes mn_splat(float x) { return x - (mn_lanes){ 0 }; }

/* Lane patterns over two vectors a, b: the even or odd lanes of both; the lanes of the low or high
** half, alternating. */
#if MN_LANES == 16
#define MN_EVEN(a, b) __builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, \
                                              24, 26, 28, 30)
#define MN_ODD(a, b) __builtin_shufflevector(a, b, 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, \
                                             25, 27, 29, 31)
#define MN_LOW(a, b) __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, \
                                             6, 22, 7, 23)
#define MN_HIGH(a, b) __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, \
                                              14, 30, 15, 31)
#elif MN_LANES == 8
#define MN_EVEN(a, b) __builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14)
#define MN_ODD(a, b) __builtin_shufflevector(a, b, 1, 3, 5, 7, 9, 11, 13, 15)
#define MN_LOW(a, b) __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11)
#define MN_HIGH(a, b) __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15)
#else
#define MN_EVEN(a, b) __builtin_shufflevector(a, b, 0, 2, 4, 6)
#define MN_ODD(a, b) __builtin_shufflevector(a, b, 1, 3, 5, 7)
#define MN_LOW(a, b) __builtin_shufflevector(a, b, 0, 4, 1, 5)
#define MN_HIGH(a, b) __builtin_shufflevector(a, b, 2, 6, 3, 7)
#endif

/* Lane i of the result is the sum of the lanes of a[i]; a is used up.  Adding even and odd lanes
** halves the number of vectors each time and keeps the order. */
MN_INLINE mn_lanes mn_sums(mn_lanes *a) {
#pragma GCC unroll 16
  for (int n = MN_LANES; n > 1; n /= 2)
#pragma GCC unroll 16
    for (int i = 0; i < n / 2; i++)
      a[i] = MN_EVEN(a[2 * i], a[2 * i + 1]) + MN_ODD(a[2 * i], a[2 * i + 1]);
  return a[0];
}

MN_INLINE float mn_sum(mn_lanes v) {
#pragma GCC unroll 4
  for (int n = MN_LANES; n > 1; n /= 2) v = MN_EVEN(v, v) + MN_ODD(v, v);
  return v[0];
}

/* out[j][i] = in[i][j] for one square of MN_LANES: a perfect shuffle of the rows, log2 times. */
MN_INLINE void mn_transpose_tile(const float *in, long ldi, float *out, long ldo) {
  mn_lanes a[MN_LANES], b[MN_LANES];
#pragma GCC unroll 16
  for (int i = 0; i < MN_LANES; i++) a[i] = mn_load(in + i * ldi);
#pragma GCC unroll 4
  for (int n = MN_LANES; n > 1; n /= 2) {
#pragma GCC unroll 16
    for (int i = 0; i < MN_LANES / 2; i++) {
      b[2 * i] = MN_LOW(a[i], a[i + MN_LANES / 2]);
      b[2 * i + 1] = MN_HIGH(a[i], a[i + MN_LANES / 2]);
    }
#pragma GCC unroll 16
    for (int i = 0; i < MN_LANES; i++) a[i] = b[i];
  }
#pragma GCC unroll 16
  for (int i = 0; i < MN_LANES; i++) mn_store(out + i * ldo, a[i]);
}

/* out[cols,rows] = in[rows,cols]; both sizes multiples of 16. */
static inline void mn_transpose(int rows, int cols, const float *in, long ldi, float *out,
                                long ldo) {
  for (int i = 0; i < rows; i += MN_LANES)
    for (int j = 0; j < cols; j += MN_LANES)
      mn_transpose_tile(in + i * ldi + j, ldi, out + j * ldo + i, ldo);
}

#endif
