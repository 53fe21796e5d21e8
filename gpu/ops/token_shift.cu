/* token_shift.cu -- kernels of token_shift: mix each element with that of the step before.  One pass each
** way: the gradient of mix is summed (column_sums.cuh) by the threads that compute the other gradients. */
#include "lib/column_sums.cuh"

namespace {

enum { X, MIX, LOW, DONE, PREV };

struct Shift {                   /* row r = t*B + b; N of them */
  const float *x, *mix, *low, *prev, *dy, *dlast;   /* low: the part that is used */
  const uint8_t *done;
  float *y, *last, *dx, *dmix, *dlow, *dprev;        /* dlow: from its first part on */
  long B, D, N, stride;          /* stride: from one row of low to the next */
  int part, parts;
  float base, sign;              /* m = base + sign * mix + low */
  unsigned adding;

  __device__ __forceinline__ bool fresh(long r) const { return done && done[r]; }
  __device__ __forceinline__ float before(long r, long i) const {
    if (fresh(r)) return 0;
    if (r >= B) return x[(r - B) * D + i];
    return prev ? prev[r * D + i] : 0;
  }
  __device__ __forceinline__ float weight(long r, long i) const {
    return base + sign * mix[i] + (low ? low[r * stride + i] : 0);
  }
  __device__ __forceinline__ float from_y(long r, long i) const { return dy ? dy[r * D + i] : 0; }
  __device__ __forceinline__ bool adds(int input) const { return adding >> input & 1; }

  /* All gradients of number i of row r; returns that of mix.  Row r of x is used by its own row and by the one
  ** after it, or handed on. */
  __device__ __forceinline__ float term(long r, long i) const {
    const float g = from_y(r, i), m = weight(r, i);
    const bool is_last = r + B >= N;
    if (dx) {
      float next = 0;
      if (is_last) next = dlast ? dlast[(r + B - N) * D + i] : 0;
      else if (!fresh(r + B)) next = from_y(r + B, i) * weight(r + B, i);
      cu_give(dx + r * D + i, g * (1 - m) + next, adds(X));
    }
    if (dprev && r < B) cu_give(dprev + r * D + i, fresh(r) ? 0 : g * m, adds(PREV));
    const float dm = g * (before(r, i) - x[r * D + i]);
    for (int p = 0; dlow && p < parts; p++) {
      float *to = dlow + r * stride + p * D + i;
      if (p == part) cu_give(to, dm, adds(LOW));
      else if (!adds(LOW)) *to = 0;
    }
    return sign * dm;
  }
  __device__ __forceinline__ void put(long i, float sum) const { if (dmix) cu_give(dmix + i, sum, adds(MIX)); }
};

CU_KERNEL shift(const Shift &s, long from, long end, cu_divisor D) {
  CU_LOOP(k, end - from) {
    long i;
    const long r = D.divide(from + k, &i);
    const float x = s.x[from + k];
    s.y[from + k] = x + (s.before(r, i) - x) * s.weight(r, i);
    if (from + k >= end - s.B * s.D) s.last[from + k - (end - s.B * s.D)] = x;
  }
}

static Shift open_call(const mn_call *c) {
  Shift s = {};
  s.x = c->in[X].data, s.mix = c->in[MIX].data, s.done = c->in[DONE].u8, s.prev = c->in[PREV].data;
  s.y = c->out[0].data, s.last = c->out[1].data, s.dy = c->out[0].grad, s.dlast = c->out[1].grad;
  s.dx = c->in[X].grad, s.dmix = c->in[MIX].grad, s.dlow = c->in[LOW].grad, s.dprev = c->in[PREV].grad;
  s.B = DIM(c, 'B'), s.D = DIM(c, 'D'), s.N = c->in[X].n / s.D, s.adding = c->adding;
  s.sign = 1;
  if (c->in[LOW].data) {
    s.part = (int)OPT(c, 0), s.parts = DIM(c, 'C'), s.stride = s.parts * s.D;
    s.low = c->in[LOW].data + s.part * s.D;
  }
  if (OPT(c, 1) != 0) s.base = 1, s.sign = -1;
  return s;
}

static void forward(mn_call *c) {
  const Shift s = open_call(c);
  const long row = s.B * s.D;
  CU_LAUNCH(shift, cu_blocks((c->t1 - c->t0) * row), CU_THREADS, 0, s, c->t0 * row, c->t1 * row,
            cu_divisor(s.D));
}

static void backward(mn_call *c) {
  const Shift s = open_call(c);
  cu_column_sums(c, 0, s, s.N, s.D);
}

}  // namespace

MN_KERNEL(token_shift, forward, backward)
