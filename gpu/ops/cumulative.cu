/* cumulative.cu -- cumsum cumprod (engine/ops/cumulative.h): a thread carries one column along the axis, in double.  Neighbouring threads
** have neighbouring columns, in memory too unless the axis is the last. */
#include "runtime/kernel.cuh"

enum { AHEAD = 8 };              /* rows that are read before the first of them is used */

namespace {
struct Cumulative {              /* x[outer, size, inner]; environments have `columns` columns each */
  const float *x, *dy;
  const uint8_t *done;
  float *y, *dx;
  long outer, size, inner, t0, t1, B, columns;
};
struct Sums {
  static __device__ __forceinline__ double nothing() { return 0; }
  static __device__ __forceinline__ double value(double s, double x) { return s + x; }
  static __device__ __forceinline__ double slope_x(double) { return 1; }
  static __device__ __forceinline__ double slope_s(double) { return 1; }
};
struct Products {
  static __device__ __forceinline__ double nothing() { return 1; }
  static __device__ __forceinline__ double value(double s, double x) { return s * x; }
  static __device__ __forceinline__ double slope_x(double s) { return s; }
  static __device__ __forceinline__ double slope_s(double x) { return x; }
};
}

template <class F> CU_KERNEL walk(const Cumulative &m) {
  CU_LOOP(i, m.outer * m.inner) {
    const long column = i % m.inner, at = i / m.inner * m.size * m.inner + column, b = column / m.columns;
    double s = m.t0 > 0 ? (double)m.y[at + (m.t0 - 1) * m.inner] : F::nothing();
    for (long from = m.t0; from < m.t1; from += AHEAD) {
      float x[AHEAD];
      bool resets[AHEAD];
      CU_UNROLL
      for (int k = 0; k < AHEAD; k++) {
        const long t = cu_min(from + k, m.t1 - 1);
        x[k] = m.x[at + t * m.inner];
        resets[k] = m.done && m.done[t * m.B + b];
      }
      CU_UNROLL
      for (int k = 0; k < AHEAD; k++) {
        if (from + k >= m.t1) break;
        s = F::value(resets[k] ? F::nothing() : s, (double)x[k]);
        m.y[at + (from + k) * m.inner] = (float)s;
      }
    }
  }
}

template <class F> CU_KERNEL walk_back(const Cumulative &m) {
  CU_LOOP(i, m.outer * m.inner) {
    const long column = i % m.inner, at = i / m.inner * m.size * m.inner + column, b = column / m.columns;
    double carry = 0;
    for (long end = m.size; end > 0; end -= AHEAD) {
      float x[AHEAD], dy[AHEAD], before[AHEAD];
      bool resets[AHEAD];
      CU_UNROLL
      for (int k = 0; k < AHEAD; k++) {
        const long t = cu_max(end - 1 - k, 0L);
        x[k] = m.x[at + t * m.inner];
        dy[k] = m.dy[at + t * m.inner];
        resets[k] = t == 0 || (m.done && m.done[t * m.B + b]);
        before[k] = t > 0 ? m.y[at + (t - 1) * m.inner] : 0.0f;
      }
      CU_UNROLL
      for (int k = 0; k < AHEAD; k++) {
        const long t = end - 1 - k;
        if (t < 0) break;
        const double g = carry + (double)dy[k];
        m.dx[at + t * m.inner] = (float)(g * F::slope_x(resets[k] ? F::nothing() : (double)before[k]));
        carry = resets[k] ? 0 : g * F::slope_s((double)x[k]);
      }
    }
  }
}

static Cumulative cumulative_of(const mn_call *c) {
  const mn_arg *x = &c->in[0];
  const int axis = mn_axis_of(x, OPT(c, 0));
  Cumulative m = {};
  m.x = x->data, m.done = c->in[1].u8, m.y = c->out[0].data, m.dy = c->out[0].grad, m.dx = x->grad;
  m.outer = m.inner = 1, m.size = x->shape[axis];
  for (int k = 0; k < axis; k++) m.outer *= x->shape[k];
  for (int k = axis + 1; k < x->ndim; k++) m.inner *= x->shape[k];
  m.t0 = axis == 0 ? c->t0 : 0, m.t1 = axis == 0 ? c->t1 : m.size;
  m.B = m.done ? x->shape[1] : 1, m.columns = m.inner / m.B;
  return m;
}

template <class F> static void forward(mn_call *c) {
  const Cumulative m = cumulative_of(c);
  CU_LAUNCH(walk<F>, cu_blocks(m.outer * m.inner), CU_THREADS, 0, m);
}

template <class F> static void backward(mn_call *c) {
  const Cumulative m = cumulative_of(c);
  CU_LAUNCH(walk_back<F>, cu_blocks(m.outer * m.inner), CU_THREADS, 0, m);
}

MN_KERNEL(cumsum, forward<Sums>, backward<Sums>)
MN_KERNEL(cumprod, forward<Products>, backward<Products>)
