/* gated_scans.cu -- gated_scan log_scan complex_scan (engine/ops/scan.h): a thread carries one channel of one environment through time.
** Neighbouring threads have neighbouring channels; rows are read ahead, as only one multiply-add of a row waits for the row before. */
#include "lib/sums.cuh"
extern "C" {
#include "numerics/fast_math.h"
}

enum { SCAN_X, SCAN_A, SCAN_DONE, SCAN_H };
enum { AHEAD = 8, SCAN_THREADS = 64 };     /* few threads: channels are not many */

namespace {
struct Scan {                    /* channel d of environment b is at b*D + d; its imaginary part im further */
  const float *x, *a, *h, *y, *dy, *dlast;
  const uint8_t *done;
  float *to_y, *last, *dx, *da, *dh;
  long B, n, D, im, T, t0, t1, a_env, a_row;
  bool sums;                     /* da: [B,D], sums over time */
};

struct Complex { float re, im; };

struct Real {
  typedef float V;
  static __device__ __forceinline__ V zero() { return 0.0f; }
  static __device__ __forceinline__ V get(const float *p, long i, long) { return p[i]; }
  static __device__ __forceinline__ void put(float *p, long i, long, V v) { p[i] = v; }
  static __device__ __forceinline__ V add(V p, V q) { return p + q; }
};

struct Gated : Real {
  static __device__ __forceinline__ V step(V a, V h, V x) { return a * h + x; }
  /* g: the gradient of the value after; becomes that of the value before. */
  static __device__ __forceinline__ void back(V a, V h, V, V &g, V &da, V &dx) { dx = g, da = g * h, g = g * a; }
};

struct Logarithms : Real {
  static __device__ __forceinline__ float above(float p, float q) { return p == -INFINITY ? -INFINITY : p - q; }
  static __device__ __forceinline__ V step(V a, V h, V x) {
    const float p = a + h, d = above(p, x);
    return (d > 0 ? p : x) + mn_softplusf(-fabsf(d));
  }
  static __device__ __forceinline__ void back(V a, V h, V x, V &g, V &da, V &dx) {
    const float d = above(a + h, x), e = mn_expf(-fabsf(d)), larger = g / (1 + e), smaller = e * larger;
    dx = d > 0 ? smaller : larger;
    g = da = d > 0 ? larger : smaller;
  }
};

struct Pairs {
  typedef Complex V;
  static __device__ __forceinline__ V zero() { return { 0.0f, 0.0f }; }
  static __device__ __forceinline__ V get(const float *p, long i, long im) { return { p[i], p[i + im] }; }
  static __device__ __forceinline__ void put(float *p, long i, long im, V v) { p[i] = v.re, p[i + im] = v.im; }
  static __device__ __forceinline__ V add(V p, V q) { return { p.re + q.re, p.im + q.im }; }
  static __device__ __forceinline__ V times(V p, V q) { return { p.re * q.re - p.im * q.im, p.re * q.im + p.im * q.re }; }
  static __device__ __forceinline__ V conjugate(V p) { return { p.re, -p.im }; }
  static __device__ __forceinline__ V step(V a, V h, V x) { return add(times(a, h), x); }
  static __device__ __forceinline__ void back(V a, V h, V, V &g, V &da, V &dx) {
    dx = g, da = times(g, conjugate(h)), g = times(g, conjugate(a));
  }
};
}

template <class F> CU_KERNEL scan_steps(const Scan &s) {
  typedef typename F::V V;
  CU_LOOP(i, s.B * s.n) {
    const long b = i / s.n, d = i % s.n, at = b * s.D + d, row = s.B * s.D;
    const float *a = s.a + b * s.a_env + d;
    bool known = s.t0 > 0 || s.h;
    V h = s.t0 > 0 ? F::get(s.y, (s.t0 - 1) * row + at, s.im) : known ? F::get(s.h, at, s.im) : F::zero();
    for (long from = s.t0; from < s.t1; from += AHEAD) {
      V as[AHEAD], xs[AHEAD];
      bool resets[AHEAD];
      CU_UNROLL
      for (int k = 0; k < AHEAD; k++) {
        const long t = cu_min(from + k, s.t1 - 1);
        as[k] = F::get(a, t * s.a_row, s.im);
        xs[k] = F::get(s.x, t * row + at, s.im);
        resets[k] = s.done && s.done[t * s.B + b];
      }
      CU_UNROLL
      for (int k = 0; k < AHEAD; k++) {
        if (from + k >= s.t1) break;
        h = known && !resets[k] ? F::step(as[k], h, xs[k]) : xs[k];
        known = true;
        F::put(s.to_y, (from + k) * row + at, s.im, h);
      }
    }
    F::put(s.last, at, s.im, h);
  }
}

template <class F> CU_KERNEL scan_steps_back(const Scan &s) {
  typedef typename F::V V;
  CU_LOOP(i, s.B * s.n) {
    const long b = i / s.n, d = i % s.n, at = b * s.D + d, row = s.B * s.D;
    const float *a = s.a + b * s.a_env + d;
    V g = s.dlast ? F::get(s.dlast, at, s.im) : F::zero(), sum = F::zero();
    for (long end = s.T; end > 0; end -= AHEAD) {
      V as[AHEAD], xs[AHEAD], hs[AHEAD], dys[AHEAD];
      bool known[AHEAD];
      CU_UNROLL
      for (int k = 0; k < AHEAD; k++) {
        const long t = cu_max(end - 1 - k, 0L);
        as[k] = F::get(a, t * s.a_row, s.im);
        xs[k] = F::get(s.x, t * row + at, s.im);
        dys[k] = s.dy ? F::get(s.dy, t * row + at, s.im) : F::zero();
        known[k] = (t > 0 || s.h) && !(s.done && s.done[t * s.B + b]);
        hs[k] = t > 0 ? F::get(s.y, (t - 1) * row + at, s.im) : s.h ? F::get(s.h, at, s.im) : F::zero();
      }
      CU_UNROLL
      for (int k = 0; k < AHEAD; k++) {
        const long t = end - 1 - k;
        if (t < 0) break;
        V da = F::zero(), dx;
        g = F::add(g, dys[k]);
        if (known[k]) F::back(as[k], hs[k], xs[k], g, da, dx);
        else dx = g, g = F::zero();
        if (s.dx) F::put(s.dx, t * row + at, s.im, dx);
        if (s.sums) sum = F::add(sum, da);
        else if (s.da) F::put(s.da, t * row + at, s.im, da);
      }
    }
    if (s.sums) F::put(s.da, at, s.im, sum);
    if (s.dh) F::put(s.dh, at, s.im, g);
  }
}

static Scan scan_of(const mn_call *c, int parts) {
  const mn_arg *in = c->in, *out = c->out;
  const bool constant = in[SCAN_A].ndim < in[SCAN_X].ndim;
  Scan s = {};
  s.x = in[SCAN_X].data, s.a = in[SCAN_A].data, s.h = in[SCAN_H].data, s.done = in[SCAN_DONE].u8;
  s.y = s.to_y = out[0].data, s.last = out[1].data, s.dy = out[0].grad, s.dlast = out[1].grad;
  s.dx = in[SCAN_X].grad, s.da = in[SCAN_A].grad, s.dh = in[SCAN_H].grad;
  s.T = DIM(c, 'T'), s.B = DIM(c, 'B'), s.D = in[SCAN_X].n / (s.T * s.B), s.n = s.im = s.D / parts;
  s.t0 = c->t0, s.t1 = c->t1;
  s.a_env = constant ? 0 : s.D, s.a_row = s.a_env * s.B;
  s.sums = constant && s.da;
  return s;
}

template <class F, int PARTS> static void forward(mn_call *c) {
  const Scan s = scan_of(c, PARTS);
  CU_LAUNCH(scan_steps<F>, cu_blocks(4 * s.B * s.n), SCAN_THREADS, 0, s);
}

template <class F, int PARTS> static void backward(mn_call *c) {
  Scan s = scan_of(c, PARTS);
  if (s.sums) s.da = mn_scratch(c->ctx, 0, s.B * s.D);
  CU_LAUNCH(scan_steps_back<F>, cu_blocks(4 * s.B * s.n), SCAN_THREADS, 0, s);
  if (s.sums) cu_sum(c, cu_fold_of(1, s.B, s.D), cu_number{ s.da }, c->in[SCAN_A].grad);
}

MN_KERNEL(gated_scan, (forward<Gated, 1>), (backward<Gated, 1>))
MN_KERNEL(log_scan, (forward<Logarithms, 1>), (backward<Logarithms, 1>))
MN_KERNEL(complex_scan, (forward<Pairs, 2>), (backward<Pairs, 2>))
