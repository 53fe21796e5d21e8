/* lstm.cu -- kernels of lstm: an LSTM over a sequence, step by step (recurrent_cells.cuh). */
#include "lib/recurrent_cells.cuh"
extern "C" {
#include "numerics/fast_math.h"
}

namespace {

enum { IN_I, IN_W, IN_DONE, IN_H, IN_C };
enum { OUT_Y, OUT_H, OUT_C, OUT_SAVE, GATES = 4, SAVED = 5 };

struct Lstm {
  const float *i, *h0, *c0, *dy, *dlast, *dclast;
  const uint8_t *done;
  float *y, *last, *clast, *save, *di, *dh0, *dc0;
  float *before, *dc;            /* backward: [T,B,D] the states that the products took; [B,D] */
  int T, B, D, t1;

  __host__ __device__ __forceinline__ const float *from(int t) const { return t ? y + (t - 1L) * B * D : h0; }
  __device__ __forceinline__ bool fresh(int t, long b) const { return done && done[(long)t * B + b]; }
  __device__ __forceinline__ float carried(int t, long b, int d) const {
    const float *h = from(t);
    return h && !fresh(t, b) ? h[b * D + d] : 0;
  }
  __device__ __forceinline__ float cell(int t, long b, int d) const {
    if (fresh(t, b)) return 0;
    if (t) return save[((t - 1L) * B + b) * SAVED * D + 4 * D + d];
    return c0 ? c0[b * D + d] : 0;
  }

  __device__ __forceinline__ void step(int t, long b, int d, const float (&pre)[GATES]) const {
    const long row = (long)t * B + b;
    const float *x = i + row * GATES * D + d;
    const bool keep = !fresh(t, b);
    const float in = mn_sigmoidf(x[0] + (keep ? pre[0] : 0)), forget = mn_sigmoidf(x[D] + (keep ? pre[1] : 0));
    const float g = mn_tanhf(x[2 * D] + (keep ? pre[2] : 0)), out = mn_sigmoidf(x[3 * D] + (keep ? pre[3] : 0));
    const float now = fmaf(forget, cell(t, b, d), in * g), h = out * mn_tanhf(now);
    float *s = save + row * SAVED * D + d;
    s[0] = in, s[D] = forget, s[2 * D] = g, s[3 * D] = out, s[4 * D] = now;
    y[row * D + d] = h;
    if (t == t1 - 1) last[b * D + d] = h, clast[b * D + d] = now;
  }

  __device__ __forceinline__ void back(int t, long b, int d, float through) const {
    const long row = (long)t * B + b, at = b * D + d;
    const bool is_last = t == T - 1, dropped = !is_last && fresh(t + 1, b);
    float gh = is_last ? dlast ? dlast[at] : 0 : dropped ? 0 : through;
    float gc = is_last ? dclast ? dclast[at] : 0 : dropped ? 0 : dc[at];
    if (t < 0) {
      if (dh0) dh0[at] = gh;
      if (dc0) dc0[at] = gc;
      return;
    }
    if (dy) gh += dy[row * D + d];
    const float *s = save + row * SAVED * D + d, in = s[0], forget = s[D], g = s[2 * D], out = s[3 * D];
    const float squashed = mn_tanhf(s[4 * D]);
    gc = fmaf(gh * out, 1 - squashed * squashed, gc);
    float *to = di + row * GATES * D + d;
    to[0] = gc * g * in * (1 - in);
    to[D] = gc * cell(t, b, d) * forget * (1 - forget);
    to[2 * D] = gc * in * (1 - g * g);
    to[3 * D] = gh * squashed * out * (1 - out);
    before[row * D + d] = carried(t, b, d);
    dc[at] = gc * forget;
  }
};

static Lstm open_call(const mn_call *c) {
  Lstm a = {};
  a.i = c->in[IN_I].data, a.done = c->in[IN_DONE].u8, a.h0 = c->in[IN_H].data, a.c0 = c->in[IN_C].data;
  a.y = c->out[OUT_Y].data, a.last = c->out[OUT_H].data, a.clast = c->out[OUT_C].data, a.save = c->out[OUT_SAVE].data;
  a.dy = c->out[OUT_Y].grad, a.dlast = c->out[OUT_H].grad, a.dclast = c->out[OUT_C].grad;
  a.di = c->in[IN_I].grad, a.dh0 = c->in[IN_H].grad, a.dc0 = c->in[IN_C].grad;
  a.T = DIM(c, 'T'), a.B = DIM(c, 'B'), a.D = DIM(c, 'D'), a.t1 = c->t1;
  return a;
}

static void forward(mn_call *c) { cu_run_cell<GATES>(c, open_call(c), c->in[IN_W].data); }

static void backward(mn_call *c) {
  Lstm a = open_call(c);
  const int G = GATES * a.D, D = a.D;
  const long N = (long)a.T * a.B;
  if (!a.di) a.di = mn_scratch(c->ctx, 0, N * G);
  a.before = mn_scratch(c->ctx, 1, N * D);
  a.dc = mn_scratch(c->ctx, 2, (long)a.B * D);
  cu_walk_back(c, a, a.T, G, c->in[IN_W].data, a.di, a.dh0 || a.dc0);
  if (c->in[IN_W].grad) cu_gemm(c, true, false, G, D, (int)N, a.di, G, a.before, D, c->in[IN_W].grad, D, false);
}

}  // namespace

MN_KERNEL(lstm, forward, backward)
