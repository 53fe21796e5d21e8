/* fast_math.h -- exp, log, tanh, sigmoid, erf, sin and cos in float32, as polynomials.
** libm's functions differ between machines and do not vectorise.  These give the same bits at any
** vector width, because each multiply-add is explicit and lanes are independent.
**
** The scalar functions have no branches: GCC and clang vectorise any loop around them, at best
** under "#pragma omp simd".  They keep to the common subset of C11 and CUDA C++17.  Errors, over
** all floats: exp 1.0 ulp, log 0.9, tanh 2.7, sigmoid 2.4, softplus 1.7, erf 1.2; sin and cos 1.6 up to 1000
** (beyond: absolute error 1e-7 up to 1e6, and finite everywhere).  Overflow gives infinity; underflow goes
** through the denormals to 0 (directly to 0 while an op runs: denormals.h; of sigmoid and softplus always below 2^-126.5); NaN gives
** NaN; tanh and erf keep the sign of zero.
** The polynomials are minimax fits (fpminimax of sollya); the argument is reduced in two parts, as
** in Cody and Waite, Software Manual for the Elementary Functions, 1980, chapters 5 and 6. */
#ifndef MN_FAST_MATH_H
#define MN_FAST_MATH_H
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#ifdef __CUDACC__
#define MN_MATH static __host__ __device__ __forceinline__
#else
#define MN_MATH static inline __attribute__((always_inline, unused))
#endif

/* Where the machine has no fused multiply-add, a call into libm would cost more than it gains. */
#if defined(__FMA__) || defined(__FP_FAST_FMAF) || defined(__CUDA_ARCH__)
#define MN_FMA(a, b, c) __builtin_fmaf(a, b, c)
#else
#define MN_FMA(a, b, c) ((a) * (b) + (c))
#endif

MN_MATH uint32_t mn_bits_of(float x) { uint32_t u; memcpy(&u, &x, sizeof u); return u; }
MN_MATH float mn_float_of(uint32_t u) { float x; memcpy(&x, &u, sizeof x); return x; }

/* 2^n, for n from -126 to 127. */
MN_MATH float mn_power_of_2(int32_t n) { return mn_float_of((uint32_t)(n + 127) << 23); }

/* The larger or the smaller of two numbers.  A NaN in x comes back: it compares as false. */
MN_MATH float mn_at_least(float x, float lo) { return lo > x ? lo : x; }
MN_MATH float mn_at_most(float x, float hi) { return hi < x ? hi : x; }

/* What rounding took from a + b, exactly (Knuth, The Art of Computer Programming, volume 2, 4.2.2); 0 where the sum is not finite. */
MN_MATH float mn_lost_in_sum(float a, float b) {
  float sum = a + b, of_b = sum - a, lost = (a - (sum - of_b)) + (b - of_b);
  return sum - sum == 0 ? lost : 0;
}

/* x = n ln 2 + r with |r| <= ln 2 / 2: returns exp(r) - 1 and n.  Adding 1.5 * 2^23 rounds to an
** integer that then stands in the low bits. */
MN_MATH float mn_expm1_reduced(float x, int32_t *n) {
  const float magic = 12582912.0f;
  float t = MN_FMA(x, 0x1.715476p+0f, magic), k = t - magic;
  *n = (int32_t)(mn_bits_of(t) - mn_bits_of(magic));
  float r = MN_FMA(k, -0x1.62e4p-1f, x);
  r = MN_FMA(k, -0x1.7f7d1cp-20f, r);
  float p = 0x1.68512ap-10f;
  p = MN_FMA(p, r, 0x1.123bd4p-7f);
  p = MN_FMA(p, r, 0x1.555b98p-5f);
  p = MN_FMA(p, r, 0x1.55548ep-3f);
  p = MN_FMA(p, r, 0x1.fffff8p-2f);
  return MN_FMA(r * r, p, r);
}

/* For x from -104.5 to 89. */
MN_MATH float mn_exp_within(float x) {
  int32_t n;
  float p = mn_expm1_reduced(x, &n);
  int32_t half = n >> 1;                       /* in two halves, for 2^128 and for denormals */
  return (1 + p) * mn_power_of_2(half) * mn_power_of_2(n - half);
}

MN_MATH float mn_expf(float x) { return mn_exp_within(mn_at_most(mn_at_least(x, -104.5f), 89.0f)); }

/* exp(-|x|), the bits of mn_expf but 0 below 2^-126.5: one bound, and one power of two, which is 0 for n = -127. */
MN_MATH float mn_exp_minus(float x) {
  int32_t n;
  float p = mn_expm1_reduced(mn_at_least(-__builtin_fabsf(x), -88.0f), &n);
  return (1 + p) * mn_power_of_2(n);
}

/* exp(x) - 1 over exp(x) + 1 of 2x, with exp(2x) - 1 kept exact near 0.  From 10 on it is 1. */
MN_MATH float mn_tanhf(float x) {
  int32_t n;
  float p = mn_expm1_reduced(mn_at_most(2 * __builtin_fabsf(x), 20.0f), &n);
  float scale = mn_power_of_2(n), e = MN_FMA(p, scale, scale - 1);
  return __builtin_copysignf(e / (e + 2), x);
}

/* 1 / (1 + exp(-x)), by way of exp(-|x|) so that nothing overflows and small results keep their
** digits. */
MN_MATH float mn_sigmoidf(float x) {
  float e = mn_exp_minus(x);
  return (x < 0 ? e : 1.0f) / (1 + e);
}

/* log(2^k (1 + f)) for f in [sqrt(1/2) - 1, sqrt(2) - 1] */
MN_MATH float mn_log1p_reduced(float f, float k) {
  float p = -0x1.2861e8p-4f;
  p = MN_FMA(p, f, 0x1.00c666p-3f);
  p = MN_FMA(p, f, -0x1.0ebe6cp-3f);
  p = MN_FMA(p, f, 0x1.23b8dcp-3f);
  p = MN_FMA(p, f, -0x1.546556p-3f);
  p = MN_FMA(p, f, 0x1.99929ep-3f);
  p = MN_FMA(p, f, -0x1.000236p-2f);
  p = MN_FMA(p, f, 0x1.555574p-2f);
  float z = f * f, low = MN_FMA(k, 0x1.7f7d1cp-20f, z * f * p);
  return MN_FMA(k, 0x1.62e4p-1f, f + MN_FMA(-0.5f, z, low));
}

/* a where `yes`, else b, by their bits: of several ?: in a row GCC makes branches, and then vectorises no loop around them. */
MN_MATH float mn_select(bool yes, float a, float b) {
  const uint32_t all = 0u - (uint32_t)yes;
  return mn_float_of((mn_bits_of(a) & all) | (mn_bits_of(b) & ~all));
}

/* log(x): -infinity at 0, NaN below.  Denormals are first made 2^23 times larger.  Bits are compared as integers: no
** floating-point exception. */
MN_MATH float mn_logf(float x) {
  int32_t bits = (int32_t)mn_bits_of(x), up = bits < 0x00800000 ? 23 : 0;
  uint32_t u = mn_bits_of(x * mn_power_of_2(up)) - 0x3f3504f3u;        /* sqrt(1/2) */
  float k = (float)(((int32_t)u >> 23) - up);
  float y = mn_log1p_reduced(mn_float_of((u & 0x7fffffu) + 0x3f3504f3u) - 1, k);
  y = mn_select(bits >= 0x7f800000, x, y);                          /* infinity, NaN */
  y = mn_select(bits < 0, __builtin_nanf(""), y);
  return mn_select((bits & 0x7fffffff) == 0, -__builtin_inff(), y);
}

/* log(1 + exp(x)) = max(x, 0) + log(1 + exp(-|x|)) */
MN_MATH float mn_softplusf(float x) {
  const uint32_t most = 0x3ed413cdu;           /* sqrt(2) - 1 */
  float e = mn_exp_minus(x), k = mn_bits_of(e) > most ? 1.0f : 0.0f;
  return mn_log1p_reduced((e - k) * (1 - 0.5f * k), k) + mn_at_least(x, 0.0f);
}

/* The error function: up to 0.92 x + x P(x^2), beyond 1 - exp(Q(|x|)), which is 1 from 4 on. */
MN_MATH float mn_erff(float x) {
  const float t = mn_at_most(__builtin_fabsf(x), 4.0f), s = t * t;
  float p = -0x1.398912p-11f;
  p = MN_FMA(p, s, 0x1.4723dep-8f);
  p = MN_FMA(p, s, -0x1.b689b6p-6f);
  p = MN_FMA(p, s, 0x1.ce1a88p-4f);
  p = MN_FMA(p, s, -0x1.8126e8p-2f);
  p = MN_FMA(p, s, 0x1.06eba6p-3f);
  float q = 0x1.98d4bp-13f;
  q = MN_FMA(q, t, -0x1.8da182p-9f);
  q = MN_FMA(q, t, 0x1.6b8e86p-6f);
  q = MN_FMA(q, t, -0x1.a9653cp-4f);
  q = MN_FMA(q, t, -0x1.4647b4p-1f);
  q = MN_FMA(q, t, -0x1.056184p-3f);
  q = MN_FMA(q, t, -0x1.b219aap-13f) - t;
  int32_t n;
  const float e = mn_expm1_reduced(q, &n);
  const float up = mn_select(t < 1e-30f, 0x1p40f, 1.0f), u = t * up;                 /* else p * t may be no normal number */
  const float near = MN_FMA(p, u, u) * mn_select(t < 1e-30f, 0x1p-40f, 1.0f);
  return __builtin_copysignf(mn_select(t < 0.92f, near, 1 - (1 + e) * mn_power_of_2(n)), x);
}

/* Sine and cosine of an angle in quarter turns.  In double the turns of any tick, or of any feature
** that means something, fall away without a trace; what is so far out that it has no phase counts as
** 2^50.  Polynomials of Moshier's Cephes on -1/8 .. 1/8 of a turn. */
MN_MATH void mn_sincos_quarters(double quarters, float *sine, float *cosine) {
  const double magic = 0x1.8p52, most = 0x1p50;
  quarters = most < quarters ? most : quarters;
  quarters = quarters < -most ? -most : quarters;
  double t = quarters + magic, whole = t - magic;
  uint64_t bits;
  memcpy(&bits, &t, sizeof bits);
  uint32_t n = (uint32_t)bits;
  float x = (float)((quarters - whole) * 0x1.921fb54442d18p+0), z = x * x;
  float s = MN_FMA(MN_FMA(-0x1.9943f2p-13f, z, 0x1.11073cp-7f), z, -0x1.555546p-3f);
  float c = MN_FMA(MN_FMA(0x1.99eb9cp-16f, z, -0x1.6c0c34p-10f), z, 0x1.55554ap-5f);
  s = MN_FMA(s * z, x, x);
  c = MN_FMA(c * z, z, MN_FMA(-0.5f, z, 1.0f));
  uint32_t a = mn_bits_of(n & 1 ? c : s), b = mn_bits_of(n & 1 ? s : c);
  *sine = mn_float_of(a ^ (n & 2) << 30);
  *cosine = mn_float_of(b ^ ((n + 1) & 2) << 30);
}

MN_MATH void mn_sincosf(float x, float *sine, float *cosine) {
  mn_sincos_quarters((double)x * 0x1.45f306dc9c883p-1, sine, cosine);
}

/* Two independent standard normals from 64 random bits, by Box and Muller; they reach 6.7. */
MN_MATH void mn_normals(uint32_t a, uint32_t b, float *x, float *y) {
  float sine, cosine, radius = __builtin_sqrtf(-2 * mn_logf(((float)a + 0.5f) * 0x1p-32f));
  mn_sincos_quarters((double)b * 0x1p-30, &sine, &cosine);
  *x = radius * cosine;
  *y = radius * sine;
}

/* ---- the same for n numbers; y may be x ---- */

#ifndef __CUDACC__
#define MN_MATH_ARRAY(name, of) \
  static inline void name(const float *x, float *y, long n) { \
    _Pragma("omp simd") \
    for (long i = 0; i < n; i++) y[i] = of(x[i]); \
  }
MN_MATH_ARRAY(mn_vexp, mn_expf)
MN_MATH_ARRAY(mn_vlog, mn_logf)
MN_MATH_ARRAY(mn_vtanh, mn_tanhf)
MN_MATH_ARRAY(mn_vsigmoid, mn_sigmoidf)
MN_MATH_ARRAY(mn_vsoftplus, mn_softplusf)
#endif

#endif
