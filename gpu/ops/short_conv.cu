/* short_conv.cu -- kernels of short_conv: every channel mixes its last few inputs.  All rows are computed at once, because a
** row depends on inputs only; the W inputs that a thread reads are in the cache, because its neighbours in time read
** them too.  The weights are read in place: W values per channel, so a warp reads one stretch. */
#include "lib/column_sums.cuh"
extern "C" {
#include "numerics/fast_math.h"
}

namespace {

enum { IN_X, IN_W, IN_DONE, IN_STATE, OUT_Y = 0, OUT_STATE };

struct Conv {
  const float *x, *w, *state, *dy, *dlast;
  const uint8_t *done;
  float *y, *last, *dx, *dw, *dstate, *dz;
  int T, B, W;
  long D;
  cu_divisor by_b, by_d;
  bool silu;

  /* Of the W-1 inputs before that of row t, how many belong to its episode. */
  __device__ __forceinline__ int reach(int t, int b) const {
    int i = 0;
    if (!done) return W - 1;
    while (i < W - 1 && !(t >= i && done[(long)(t - i) * B + b])) i++;
    return i;
  }
  /* Number d of row t, which may be before 0: then it is in the state, if there is one. */
  __device__ __forceinline__ float input(int t, int b, long d) const {
    if (t >= 0) return x[((long)t * B + b) * D + d];
    return state ? state[((long)b * (W - 1) + W - 1 + t) * D + d] : 0;
  }
  __device__ __forceinline__ float weight(int back, long d) const { return w[d * W + W - 1 - back]; }
  __device__ __forceinline__ float sum(int t, int b, long d) const {
    float z = 0;
    for (int i = 0, most = reach(t, b); i <= most; i++) z = fmaf(input(t - i, b, d), weight(i, d), z);
    return z;
  }
};

struct Place { int t, b; long d; };

static __device__ __forceinline__ Place place_of(const Conv &a, long i, int t0) {
  long d, b;
  const long t = a.by_b.divide(a.by_d.divide(i, &d), &b);
  return { t0 + (int)t, (int)b, d };
}

/* Rows t0 .. t1-1, and behind them the W-1 rows of the state that is left. */
CU_KERNEL conv(const Conv &a, int t0, int t1) {
  CU_LOOP(i, (long)(t1 - t0 + a.W - 1) * a.B * a.D) {
    const Place p = place_of(a, i, t0);
    if (p.t < t1) {
      const float z = a.sum(p.t, p.b, p.d);
      a.y[((long)p.t * a.B + p.b) * a.D + p.d] = a.silu ? z * mn_sigmoidf(z) : z;
    } else {
      const int back = t1 + a.W - 2 - p.t;           /* 0: the last input, which comes last */
      const float x = back <= a.reach(t1 - 1, p.b) ? a.input(t1 - 1 - back, p.b, p.d) : 0;
      a.last[((long)p.b * (a.W - 1) + a.W - 2 - back) * a.D + p.d] = x;
    }
  }
}

CU_KERNEL undo_silu(const Conv &a) {
  CU_LOOP(i, (long)a.T * a.B * a.D) {
    const Place p = place_of(a, i, 0);
    const float z = a.sum(p.t, p.b, p.d), s = mn_sigmoidf(z);
    a.dz[i] = a.dy[i] * s * (1 + z * (1 - s));
  }
}

/* Gradients of the inputs, from the W-1 before the first row on. */
CU_KERNEL inputs_back(const Conv &a, const float *dz) {
  CU_LOOP(i, (long)(a.T + a.W - 1) * a.B * a.D) {
    const Place p = place_of(a, i, 1 - a.W);
    const long row = (long)a.B * a.D, at = p.b * a.D + p.d;
    float *to = p.t < 0 ? a.dstate : a.dx, sum = 0;
    if (!to) continue;
    if (a.dlast && p.t > a.T - a.W && a.T - 1 - p.t <= a.reach(a.T - 1, p.b))
      sum = a.dlast[((long)p.b * (a.W - 1) + a.W - 1 + p.t - a.T) * a.D + p.d];
    for (int k = p.t < 0 ? -p.t : 0; dz && k < a.W && p.t + k < a.T && k <= a.reach(p.t + k, p.b); k++)
      sum = fmaf(dz[(p.t + k) * row + at], a.weight(k, p.d), sum);
    to[p.t < 0 ? ((long)p.b * (a.W - 1) + a.W - 1 + p.t) * a.D + p.d : p.t * row + at] = sum;
  }
}

/* Column back*D + d is the weight of channel d for the input `back` rows before. */
struct Weights {
  Conv a;
  const float *dz;
  __device__ __forceinline__ float term(long row, long col) const {
    long d, b;
    const int back = (int)a.by_d.divide(col, &d), t = (int)a.by_b.divide(row, &b);
    return dz && back <= a.reach(t, (int)b) ? dz[row * a.D + d] * a.input(t - back, (int)b, d) : 0;
  }
  __device__ __forceinline__ void put(long col, float sum) const { a.dw[col % a.D * a.W + a.W - 1 - col / a.D] = sum; }
};

static Conv open_call(const mn_call *c) {
  Conv a = {};
  a.x = c->in[IN_X].data, a.w = c->in[IN_W].data, a.done = c->in[IN_DONE].u8, a.state = c->in[IN_STATE].data;
  a.y = c->out[OUT_Y].data, a.last = c->out[OUT_STATE].data;
  a.dy = c->out[OUT_Y].grad, a.dlast = c->out[OUT_STATE].grad;
  a.dx = c->in[IN_X].grad, a.dw = c->in[IN_W].grad, a.dstate = c->in[IN_STATE].grad;
  a.T = DIM(c, 'T'), a.B = DIM(c, 'B'), a.D = DIM(c, 'D'), a.W = DIM(c, 'W'), a.silu = OPT(c, 0) != 0;
  a.by_b = cu_divisor(a.B), a.by_d = cu_divisor(a.D);
  return a;
}

static void forward(mn_call *c) {
  const Conv a = open_call(c);
  CU_LAUNCH(conv, cu_blocks((long)(c->t1 - c->t0 + a.W - 1) * a.B * a.D), CU_THREADS, 0, a, c->t0, c->t1);
}

static void backward(mn_call *c) {
  Conv a = open_call(c);
  const long rows = (long)a.T * a.B;
  const float *dz = a.dy;
  if (a.silu && dz) {
    dz = a.dz = mn_scratch(c->ctx, 0, rows * a.D);
    CU_LAUNCH(undo_silu, cu_blocks(rows * a.D), CU_THREADS, 0, a);
  }
  if (a.dx || a.dstate)
    CU_LAUNCH(inputs_back, cu_blocks((rows + (long)(a.W - 1) * a.B) * a.D), CU_THREADS, 0, a, dz);
  if (a.dw) cu_column_sums(c, 1, Weights{ a, dz }, rows, a.D * a.W);
}

}  // namespace

MN_KERNEL(short_conv, forward, backward)
