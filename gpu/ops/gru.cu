/* gru.cu -- kernels of gru: a GRU over a sequence, step by step (recurrent_cells.cuh). */
#include "lib/column_sums.cuh"
#include "lib/recurrent_cells.cuh"
extern "C" {
#include "numerics/fast_math.h"
}

namespace {

enum { IN_I, IN_W, IN_BIAS, IN_DONE, IN_H };
enum { OUT_Y, OUT_H, OUT_SAVE, GATES = 3, SAVED = 4 };

struct Gru {
  const float *i, *bias, *h0, *dy, *dlast;
  const uint8_t *done;
  float *y, *last, *save, *di, *dh0;
  float *dpre, *before, *dh;     /* backward: [T,B,3D] of the products; [T,B,D] the states they took; [B,D] */
  int T, B, D, t1;

  __host__ __device__ __forceinline__ const float *from(int t) const { return t ? y + (t - 1L) * B * D : h0; }
  __device__ __forceinline__ bool fresh(int t, long b) const { return done && done[(long)t * B + b]; }
  __device__ __forceinline__ float carried(int t, long b, int d) const {
    const float *h = from(t);
    return h && !fresh(t, b) ? h[b * D + d] : 0;
  }

  __device__ __forceinline__ void step(int t, long b, int d, const float (&pre)[GATES]) const {
    const long row = (long)t * B + b;
    const float *x = i + row * GATES * D + d, h = carried(t, b, d);
    const bool keep = !fresh(t, b);
    const float r = mn_sigmoidf(x[0] + (keep ? pre[0] : 0)), z = mn_sigmoidf(x[D] + (keep ? pre[1] : 0));
    const float q = (keep ? pre[2] : 0) + bias[d], n = mn_tanhf(fmaf(r, q, x[2 * D])), out = (1 - z) * n + z * h;
    float *s = save + row * SAVED * D + d;
    s[0] = r, s[D] = z, s[2 * D] = n, s[3 * D] = q;
    y[row * D + d] = out;
    if (t == t1 - 1) last[b * D + d] = out;
  }

  __device__ __forceinline__ void back(int t, long b, int d, float through) const {
    const long row = (long)t * B + b, at = b * D + d;
    float g = t == T - 1 ? dlast ? dlast[at] : 0 : fresh(t + 1, b) ? 0 : dh[at] + through;
    if (t < 0) { dh0[at] = g; return; }
    if (dy) g += dy[row * D + d];
    const float *s = save + row * SAVED * D + d, r = s[0], z = s[D], n = s[2 * D], q = s[3 * D];
    const float h = carried(t, b, d), dn = g * (1 - z) * (1 - n * n);
    const float dr = dn * q * r * (1 - r), dz = g * (h - n) * z * (1 - z);
    float *to = dpre + row * GATES * D + d;
    to[0] = dr, to[D] = dz, to[2 * D] = dn * r;
    if (di) {
      to = di + row * GATES * D + d;
      to[0] = dr, to[D] = dz, to[2 * D] = dn;
    }
    before[row * D + d] = h;
    dh[at] = g * z;
  }
};

static Gru open_call(const mn_call *c) {
  Gru a = {};
  a.i = c->in[IN_I].data, a.bias = c->in[IN_BIAS].data, a.done = c->in[IN_DONE].u8, a.h0 = c->in[IN_H].data;
  a.y = c->out[OUT_Y].data, a.last = c->out[OUT_H].data, a.save = c->out[OUT_SAVE].data;
  a.dy = c->out[OUT_Y].grad, a.dlast = c->out[OUT_H].grad, a.di = c->in[IN_I].grad, a.dh0 = c->in[IN_H].grad;
  a.T = DIM(c, 'T'), a.B = DIM(c, 'B'), a.D = DIM(c, 'D'), a.t1 = c->t1;
  return a;
}

static void forward(mn_call *c) { cu_run_cell<GATES>(c, open_call(c), c->in[IN_W].data); }

struct Bias {                    /* of the product's third part */
  const float *dpre;
  float *to;
  int D;
  __device__ __forceinline__ float term(long row, long col) const { return dpre[row * GATES * D + 2 * D + col]; }
  __device__ __forceinline__ void put(long col, float sum) const { to[col] = sum; }
};

static void backward(mn_call *c) {
  Gru a = open_call(c);
  const int G = GATES * a.D, D = a.D;
  const long N = (long)a.T * a.B;
  a.dpre = mn_scratch(c->ctx, 0, N * G);
  a.before = mn_scratch(c->ctx, 1, N * D);
  a.dh = mn_scratch(c->ctx, 2, (long)a.B * D);
  cu_walk_back(c, a, a.T, G, c->in[IN_W].data, a.dpre, a.dh0);
  if (c->in[IN_W].grad) cu_gemm(c, true, false, G, D, (int)N, a.dpre, G, a.before, D, c->in[IN_W].grad, D, false);
  if (c->in[IN_BIAS].grad) cu_column_sums(c, 2, Bias{ a.dpre, c->in[IN_BIAS].grad, D }, N, D);
}

}  // namespace

MN_KERNEL(gru, forward, backward)
