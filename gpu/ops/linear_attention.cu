/* linear_attention.cu -- gated linear attention (engine/ops/linear_attention.c): computes the features of keys from their
** factors for chunk.cuh; a few rows are computed one by one (gated_step.cu). */
#include "lib/chunk_backward.cuh"
#include "lib/gated_step.cuh"
extern "C" {
#include "recurrent/matrix_state.h"
}

enum { STEPWISE = 4 };           /* fewer rows go one by one */
enum { OUT_Y, OUT_C, OUT_S, OUT_SAVED };

struct LinearKeys {
  enum { PAIR = 0, EARLY = 0, KEYS = 1, SUMS = 0 };
  CuGatedInputs a;
  float *grads;                  /* backward: of q, write and decay, [16,3,K] a chunk */

  __host__ __device__ int width(const CuChunks &p) const { return p.K; }
  __device__ __forceinline__ CuFeature column(const CuChunks &, int j, int) const { return cu_feature(a, j); }
  __device__ __forceinline__ CuSide at(const CuChunks &p, const CuFeature &f, int t, int bh) const {
    const long token = cu_token(p, t, bh);
    const CuKey x = cu_key(a, f, token, cu_keep(a, t, bh / p.H, token));
    return { x.decay, x.write, 0.0f, 0.0f, x.q, 0.0f };
  }
  __device__ __forceinline__ void give(const CuChunks &p, const CuFeature &f, int t, int bh, const CuSide &grad,
                                       CuSums &) const {
    float *to = grads + (cu_place(p, bh, t / CU_L) * CU_L + t % CU_L) * 3 * p.K + f.j;
    to[0] = grad.late;
    to[p.K] = grad.key;
    to[2L * p.K] = grad.decay;
  }
  __device__ __forceinline__ void finish(const CuChunks &, int, int, float, float) const {}
};

static mn_attention open_call(const mn_call *c) {
  mn_attention g;
  mn_attention_open(&g, c, "linear_attention", 0);
  return g;
}

static CuChunks chunks_of(const mn_call *c, const CuGatedInputs &a, int t0, int t1) {
  CuChunks p = {};
  p.K = a.K;
  cu_chunks_set(&p, c, false, true, t0, t1);
  p.done = a.done, p.v = a.v, p.gate_v = a.gate_v, p.keep_v = a.keep_v;
  p.fades = a.kept_v != MN_KEPT_ALL;
  p.by_col = a.K, p.by_key = 1;
  p.span = MN_LINEAR_SPAN;
  p.saved = c->out[OUT_SAVED].data, p.saved_row = c->out[OUT_SAVED].shape[1];
  return p;
}

static void forward(mn_call *c) {
  const mn_attention g = open_call(c);
  const LinearKeys keys = { cu_gated_inputs(&g), NULL };
  const CuGatedInputs &a = keys.a;
  float *y = c->out[OUT_Y].data, *C = c->out[OUT_C].data, *s = c->out[OUT_S].data;
  const float *first_C = c->t0 ? C : c->in[IN_STATE].data, *first_s = c->t0 ? s : c->in[IN_STATE + 1].data;
  CuChunks p = chunks_of(c, a, c->t0, c->t1);
  if (c->t1 - c->t0 < STEPWISE) {
    const CuGatedState state = { first_C, first_s, C, s, p.saved, y, MN_LINEAR_SPAN, p.saved_row };
    cu_gated_step(&a, &state, false, c->t0, c->t1);
    return;
  }
  p.first_C = first_C, p.first_s = first_s, p.last_C = C, p.last_s = s, p.y = y;
  cu_chunks_scratch(&p, c->ctx, false);
  CU_SLICES(p) {
    cu_side_run(keys, p, p.scores);
    cu_chunk_forward(&p, false);
  }
  const CuDivision den = { a.normalise, a.eps, a.den_clamp, a.scale };
  cu_chunk_divide(&p, &den);
}

static void backward(mn_call *c) {
  const mn_attention g = open_call(c);
  LinearKeys keys = { cu_gated_inputs(&g), NULL };
  const CuGatedInputs &a = keys.a;
  CuChunks p = chunks_of(c, a, 0, DIM(c, 'T'));
  const CuDivision den = { a.normalise, a.eps, a.den_clamp, a.scale };
  cu_chunks_scratch(&p, c->ctx, true);
  keys.grads = mn_scratch(c->ctx, 2, 3L * p.heads * p.chunks * CU_L * p.K);
  p.first_C = c->out[OUT_C].grad, p.first_s = c->out[OUT_S].grad;
  p.last_C = c->in[IN_STATE].grad, p.last_s = c->in[IN_STATE + 1].grad;
  CU_SLICES(p) {
    const CuKeyGrads grads = { keys.grads, 1, 0, p.head, p.heads, p.chunks };
    cu_side_run(keys, p, p.scores);
    cu_chunk_forward(&p, true);
    cu_chunk_dy(&p, &den, c->out[OUT_Y].data, c->out[OUT_Y].grad);
    cu_chunk_backward(&p);
    cu_side_run(CuFadingValues(), p, p.dscores);
    cu_keys_back_run(keys, p);
    cu_keys_fold(&a, &grads, &g);
    cu_chunk_values_back(&p, c->in[IN_V].grad, c->in[g.gate_v].grad, c->in[IN_KEEP_V].grad);
  }
}

MN_KERNEL(linear_attention, forward, backward)
