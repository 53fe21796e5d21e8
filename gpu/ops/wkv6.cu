/* wkv6.cu -- RWKV-6's matrix memory (engine/ops/wkv6.c) by chunk.cuh: every key has its own decay, and a
** step reads before it, its own key weighted with `first`. */
#include "lib/sums.cuh"
#include "lib/wkv_state.cuh"

enum { R_IN, K_IN, V_IN, KEEP_IN, FIRST, DONE, STATE };

struct Wkv6Column { int j; long first; };

struct Wkv6Keys {
  enum { PAIR = 0, EARLY = 1, KEYS = 1, SUMS = 0 };
  const float *r, *k, *w, *first;
  float *dr, *dk, *dw, *dfirst;  /* dfirst: [16 tokens' sum, K] of every chunk of every head */

  __host__ __device__ int width(const CuChunks &p) const { return p.K; }
  __device__ __forceinline__ Wkv6Column column(const CuChunks &p, int j, int bh) const {
    return { j, (long)(bh % p.H) * p.K + j };
  }
  __device__ __forceinline__ CuSide at(const CuChunks &p, const Wkv6Column &x, int t, int bh) const {
    const long at = cu_token(p, t, bh) * p.K + x.j;
    return { w[at], k[at], 0.0f, r[at], 0.0f, r[at] * k[at] * first[x.first] };
  }
  __device__ __forceinline__ void give(const CuChunks &p, const Wkv6Column &x, int t, int bh, const CuSide &grad,
                                       CuSums &) const {
    const long at = cu_token(p, t, bh) * p.K + x.j;
    const float b = first[x.first] * grad.own;
    if (dr) dr[at] = fmaf(k[at], b, grad.early);
    if (dk) dk[at] = fmaf(r[at], b, grad.key);
    if (dw) dw[at] = grad.decay;
    if (!dfirst) return;
    float *sum = dfirst + ((long)bh * p.chunks + t / CU_L) * p.K + x.j;
    *sum = fmaf(r[at] * k[at], grad.own, t % CU_L ? *sum : 0.0f);
  }
  __device__ __forceinline__ void finish(const CuChunks &, int, int, float, float) const {}
};

static Wkv6Keys keys_of(const mn_call *c) {
  const mn_arg *in = c->in;
  return { in[R_IN].data, in[K_IN].data, in[KEEP_IN].data, in[FIRST].data, in[R_IN].grad, in[K_IN].grad, in[KEEP_IN].grad, NULL };
}

static void forward(mn_call *c) { cu_wkv_forward(c, keys_of(c), V_IN, DONE, STATE); }

/* dfirst [H, K] is the sum over environments and chunks of the parts [B, H, chunks, K]. */
static void sum_first(const mn_call *c, const float *parts, float *dfirst, long B, long H, long chunks, long K) {
  const long key[CU_WALKED] = { 1 }, head[CU_WALKED] = { chunks * K }, chunk[CU_WALKED] = { K };
  const long copy[CU_WALKED] = { H * chunks * K };
  cu_fold f;
  f.keep.add(K, key);
  f.keep.add(H, head);
  f.over.add(chunks, chunk);
  f.over.add(B, copy);
  f.kept = H * K, f.summed = B * chunks;
  cu_sum(c, f, cu_number{ parts }, dfirst);
}

static void backward(mn_call *c) {
  Wkv6Keys keys = keys_of(c);
  const int B = DIM(c, 'B'), H = DIM(c, 'H'), K = DIM(c, 'K'), chunks = (int)cu_parts(DIM(c, 'T'), CU_L);
  if (c->in[FIRST].grad) keys.dfirst = mn_scratch(c->ctx, 2, (long)B * H * chunks * K);
  cu_wkv_backward(c, keys, CuFadingValues(), V_IN, DONE, STATE);
  if (c->in[FIRST].grad) sum_first(c, keys.dfirst, c->in[FIRST].grad, B, H, chunks, K);
}

MN_KERNEL(wkv6, forward, backward)
