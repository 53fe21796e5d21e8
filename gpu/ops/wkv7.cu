/* wkv7.cu -- RWKV-7's matrix memory (engine/ops/wkv7.c) by chunk.cuh: it writes two keys per step, the second
** with minus the value that the memory holds along `out`. */
#include "lib/wkv_state.cuh"

enum { R_IN, KEEP_IN, K_IN, V_IN, OUT, BACK, DONE, STATE };

struct Wkv7Column { int j; };

struct Wkv7Keys {
  enum { PAIR = 1, EARLY = 0, KEYS = 1, SUMS = 0 };
  const float *r, *w, *k, *out, *back;
  float *dr, *dw, *dk, *dout, *dback;

  __host__ __device__ int width(const CuChunks &p) const { return p.K; }
  __device__ __forceinline__ Wkv7Column column(const CuChunks &, int j, int) const { return { j }; }
  __device__ __forceinline__ CuSide at(const CuChunks &p, const Wkv7Column &x, int t, int bh) const {
    const long at = cu_token(p, t, bh) * p.K + x.j;
    return { w[at], k[at], back[at], -out[at], r[at], 0.0f };
  }
  __device__ __forceinline__ void give(const CuChunks &p, const Wkv7Column &x, int t, int bh, const CuSide &grad,
                                       CuSums &) const {
    const long at = cu_token(p, t, bh) * p.K + x.j;
    if (dr) dr[at] = grad.late;
    if (dw) dw[at] = grad.decay;
    if (dk) dk[at] = grad.key;
    if (dout) dout[at] = -grad.early;
    if (dback) dback[at] = grad.back;
  }
  __device__ __forceinline__ void finish(const CuChunks &, int, int, float, float) const {}
};

static Wkv7Keys keys_of(const mn_call *c) {
  const mn_arg *in = c->in;
  return { in[R_IN].data, in[KEEP_IN].data, in[K_IN].data, in[OUT].data, in[BACK].data,
           in[R_IN].grad, in[KEEP_IN].grad, in[K_IN].grad, in[OUT].grad, in[BACK].grad };
}

static void forward(mn_call *c) { cu_wkv_forward(c, keys_of(c), V_IN, DONE, STATE); }
static void backward(mn_call *c) { cu_wkv_backward(c, keys_of(c), CuPairValues(), V_IN, DONE, STATE); }

MN_KERNEL(wkv7, forward, backward)
