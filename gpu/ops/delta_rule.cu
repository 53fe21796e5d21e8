/* delta_rule.cu -- the delta rule (engine/ops/delta_rule.c) by chunk.cuh: it writes the key write k with v, and
** the key write e k with minus the value that the memory holds under k. */
#include "lib/chunk_backward.cuh"

enum { Q_IN, K_IN, V_IN, WRITE, KEEP, DONE, IN_C, IN_SUM };
enum { OUT_Y, OUT_C, OUT_S, OUT_SAVED };

struct DeltaColumn { int j; };

struct DeltaKeys {
  enum { PAIR = 1, EARLY = 0, KEYS = 1, SUMS = 1 };
  const float *q, *k, *write, *keep;
  const uint8_t *done;
  bool after;                    /* e = keep, else 1 */
  float *dq, *dk, *dwrite, *dkeep;

  __host__ __device__ int width(const CuChunks &p) const { return p.K; }
  __device__ __forceinline__ float kept_of(const CuChunks &p, int t, int bh) const {
    return keep && cu_forgets(p, t) ? keep[cu_step(p, t, bh)] : 1.0f;
  }
  __device__ __forceinline__ bool resets(const CuChunks &p, int t, int bh) const {
    return done && cu_forgets(p, t) && done[(long)(t / p.keys) * p.B + bh / p.H];
  }
  __device__ __forceinline__ DeltaColumn column(const CuChunks &, int j, int) const { return { j }; }
  __device__ __forceinline__ CuSide at(const CuChunks &p, const DeltaColumn &x, int t, int bh) const {
    const long token = cu_token(p, t, bh), at = token * p.K + x.j;
    const float kept = kept_of(p, t, bh), written = write[token] * k[at];
    const float read = cu_reads(p, t) ? q[cu_step(p, t, bh) * p.K + x.j] : 0.0f;
    return { resets(p, t, bh) ? 0.0f : kept, written, after ? kept * written : written, -k[at], read, 0.0f };
  }
  __device__ __forceinline__ void give(const CuChunks &p, const DeltaColumn &x, int t, int bh, const CuSide &grad,
                                       CuSums &sums) const {
    const long token = cu_token(p, t, bh), at = token * p.K + x.j;
    const float e = after ? kept_of(p, t, bh) : 1.0f, written = fmaf(e, grad.back, grad.key);
    if (dq && cu_reads(p, t)) dq[cu_step(p, t, bh) * p.K + x.j] = grad.late;
    if (dk) dk[at] = fmaf(write[token], written, -grad.early);
    sums.x[0] = k[at] * written;
    sums.x[1] = (resets(p, t, bh) ? 0.0f : grad.decay) + (after ? write[token] * k[at] * grad.back : 0.0f);
  }
  __device__ __forceinline__ void finish(const CuChunks &p, int t, int bh, float to_write, float to_keep) const {
    const long token = cu_token(p, t, bh);
    if (dwrite) dwrite[token] = to_write;
    if (dkeep && cu_forgets(p, t)) dkeep[cu_step(p, t, bh)] = to_keep;
  }
};

static DeltaKeys keys_of(const mn_call *c) {
  const mn_arg *in = c->in;
  return { in[Q_IN].data, in[K_IN].data, in[WRITE].data, in[KEEP].data, in[DONE].u8, OPT(c, 0) != 0,
           in[Q_IN].grad, in[K_IN].grad, in[WRITE].grad, in[KEEP].grad };
}

static CuChunks chunks_of(const mn_call *c, int t0, int t1) {
  CuChunks p = {};
  p.K = DIM(c, 'K');
  cu_chunks_set(&p, c, true, true, t0, t1, DIM(c, 'P') / DIM(c, 'H'));
  p.done = c->in[DONE].u8, p.v = c->in[V_IN].data;
  p.by_col = p.K, p.by_key = 1;
  p.span = 1;
  p.saved = c->out[OUT_SAVED].data, p.saved_row = c->out[OUT_SAVED].shape[1];
  return p;
}

static CuDivision division(const mn_call *c) { return { OPT(c, 3) != 0, (float)OPT(c, 1), (float)OPT(c, 2), 1.0f }; }

static void forward(mn_call *c) {
  CuChunks p = chunks_of(c, c->t0, c->t1);
  const CuDivision den = division(c);
  p.last_C = c->out[OUT_C].data, p.last_s = c->out[OUT_S].data, p.y = c->out[OUT_Y].data;
  p.first_C = c->t0 ? p.last_C : c->in[IN_C].data, p.first_s = c->t0 ? p.last_s : c->in[IN_SUM].data;
  cu_chunks_scratch(&p, c->ctx, false);
  CU_SLICES(p) {
    cu_side_run(keys_of(c), p, p.scores);
    cu_chunk_forward(&p, false);
  }
  cu_chunk_divide(&p, &den);
}

static void backward(mn_call *c) {
  CuChunks p = chunks_of(c, 0, DIM(c, 'T'));
  const CuDivision den = division(c);
  cu_chunks_scratch(&p, c->ctx, true);
  p.first_C = c->out[OUT_C].grad, p.first_s = c->out[OUT_S].grad;
  p.last_C = c->in[IN_C].grad, p.last_s = c->in[IN_SUM].grad;
  CU_SLICES(p) {
    cu_side_run(keys_of(c), p, p.scores);
    cu_chunk_forward(&p, true);
    cu_chunk_dy(&p, &den, c->out[OUT_Y].data, c->out[OUT_Y].grad);
    cu_chunk_backward(&p);
    cu_side_run(CuPairValues(), p, p.dscores);
    cu_keys_back_run(keys_of(c), p);
    cu_chunk_values_back(&p, c->in[V_IN].grad, NULL, NULL);
  }
}

MN_KERNEL(delta_rule, forward, backward)
