/* joint_gate_attention.cu -- gated linear attention whose decay is 1 - b g^T (engine/ops/joint_gate_attention.c).  The decay
** is not a product of two vectors, so every token updates every element of the state, which stays in registers.
**   C' = C * (keep - b u^T) + w x^T      y = C' q      u = keep - decay, b = 1 - keep_v, x = write_k*k, w = write_v*v
** The sum of keys is one more column, with b = w = 1.  In forward a warp carries a few columns with all their keys, as in
** chunk_state.cu: 8 K V operations per token, and 12 K bytes per warp from the caches.  In backward a warp carries sixteen
** columns of 32 keys, and recomputes the sixteen states of a chunk, two columns at a time: 22 K V operations per token.
** Gradients that keys get from other columns, and values from other keys, are written in parts, which are summed in order. */
#include "lib/chunk_backward.cuh"
#include "lib/chunk_tile.cuh"
#include "lib/gated_step.cuh"
extern "C" {
#include "recurrent/matrix_state.h"
}

enum { STEPWISE = 4 };           /* fewer rows go one by one */
enum { OUT_Y, OUT_C, OUT_S, OUT_SAVED };
enum { COLUMNS = 16, TWO = 2 };            /* of a warp, backward; and of those, at a time */

/* Scratch besides that of CuChunks, where R holds q and W holds x; of a slice. */
struct Joint {
  CuGatedInputs a;
  float *u;                      /* [16,Kq] a chunk */
  float *keys, *values;          /* [column parts] of [16,3,K] a chunk; [key parts] of [2,16,cols] */
  int key_parts, column_parts;
};

/* A block is a token. */
CU_KERNEL joint_keys(const Joint &g, const CuChunks &p) {
  const int i = (int)(blockIdx.x % CU_L), c = (int)(blockIdx.x / CU_L % (unsigned)p.chunks);
  const int bh = p.head + (int)(blockIdx.x / CU_L / (unsigned)p.chunks), t = cu_begin(p, c) + i;
  if (i >= cu_tokens(p, c)) return;
  const long token = cu_token(p, t, bh), row = (cu_place(p, bh, c) * CU_L + i) * p.Kq;
  const float keep = cu_keep(g.a, t, bh / p.H, token);
  for (int j = (int)threadIdx.x; j < p.Kq; j += (int)blockDim.x) {
    CuKey x = { 0.0f, 0.0f, keep };
    if (j < p.K) x = cu_key(g.a, cu_feature(g.a, j), token, keep);
    p.R[row + j] = x.q, p.W[row + j] = x.write, g.u[row + j] = keep - x.decay;
  }
}

/* The gate of a column and what is written of it. */
struct Value { float gate, write; };

static __device__ __forceinline__ Value value_at(const CuGatedInputs &a, long token, int i) {
  if (i >= a.V) return { 1.0f, i == a.V ? 1.0f : 0.0f };
  return { 1.0f - cu_kept_v(a, token, i), cu_written_v(a, token, i) };
}

template <int KJ, int VW>
CU_KERNEL joint_forward(const Joint &g, const CuChunks &p, int chunks_each, bool again) {
  enum { N = CuTile<KJ, VW>::LANES };
  const CuWork w = cu_work<VW>(p, chunks_each);
  const int lane = (int)threadIdx.x % 32;
  if (!w.any) return;
  cu_smem<float> gates = CU_SHARED(float, 0) + (int)threadIdx.x / 32 * (2 * CU_L * VW), writes = gates + CU_L * VW;
  float S[KJ][VW];
  if (again) cu_get_rows<KJ, VW>(p, w, lane, cu_checkpoint(p, w.bh, w.from * CU_L), p.K, S);
  else cu_load_state<KJ, VW>(p, w, lane, p.first_C, p.first_s, S);
  for (int c = w.from; c < w.end; c++) {
    const int begin = cu_begin(p, c), n = cu_tokens(p, c);
    const long place = cu_place(p, w.bh, c), row = place * CU_L * p.Kq;
    const unsigned resets = cu_resets(p, w.bh, begin, n);
    if (p.saved && !again && begin % (CU_L * p.span) == 0)
      cu_put_rows<KJ, VW>(p, w, lane, cu_checkpoint(p, w.bh, begin), p.K, S);
    if (p.states) cu_put_rows<KJ, VW>(p, w, lane, p.states + place * p.cols * p.Kq, p.Kq, S);
    for (int m = lane; m < n * VW; m += 32) {
      const Value x = value_at(g.a, cu_token(p, begin + m / VW, w.bh), w.column + m % VW);
      gates[m] = x.gate, writes[m] = x.write;
    }
    __syncwarp();
    for (int from = 0; from < n; from += N) {
      float sum[32];                      /* N tokens */
CU_UNROLL
      for (int i = 0; i < 32; i++) sum[i] = 0.0f;
CU_UNROLL
      for (int i = 0; i < N; i++) {
        const int t = from + i;
        if (t >= n) continue;
        const float keep = cu_keep(g.a, begin + t, w.bh / p.H, cu_token(p, begin + t, w.bh));
        const bool reset = resets >> t & 1;
        float gate[VW], write[VW];
CU_UNROLL
        for (int v = 0; v < VW; v++) gate[v] = gates[t * VW + v], write[v] = writes[t * VW + v];
CU_UNROLL
        for (int j = 0; j < KJ; j++) {
          if (32 * j >= p.Kq) continue;
          const long at = row + (long)t * p.Kq + lane + 32 * j;
          const float q = p.R[at], x = p.W[at], u = g.u[at];
CU_UNROLL
          for (int v = 0; v < VW; v++) {
            const float add = x * write[v];
            S[j][v] = reset ? add : fmaf(S[j][v], fmaf(-u, gate[v], keep), add);
            sum[v * N + i] = fmaf(S[j][v], q, sum[v * N + i]);
          }
        }
      }
      cu_warp_sums(sum, lane);
      const int t = from + lane % N, i = w.column + lane / N;
      const long token = cu_token(p, begin + t, w.bh);
      if (t < n && i < p.V && p.y) p.y[token * p.V + i] = sum[0];
      if (t < n && i == p.V) p.z[token] = sum[0];
    }
    __syncwarp();
  }
  if (!again) cu_store<KJ, VW>(p, w, lane, p.last_C, p.last_s, S);
}

/* Two columns of one key through a chunk: forward again, then back.  dS: gradient after the chunk, becomes that before.
** A and B, by token and column: sums over keys of d write, d decay. */
static __device__ __forceinline__ void two_back(const Joint &g, const CuChunks &p, int bh, int begin, int n, unsigned resets,
                                                long place, int j, int column, cu_smem<float> gates,
                                                cu_smem<float> writes, float *dS, float (&dq)[CU_L], float (&dx)[CU_L],
                                                float (&du)[CU_L], float (&sum)[2 * TWO * CU_L]) {
  const long row = place * CU_L * p.Kq + j;
  float was[CU_L][TWO], now[TWO];
CU_UNROLL
  for (int v = 0; v < TWO; v++)
    now[v] = column + v < p.cols ? p.states[(place * p.cols + column + v) * p.Kq + j] : 0.0f;
CU_UNROLL
  for (int t = 0; t < CU_L; t++) {
    if (t >= n) continue;
    const float keep = cu_keep(g.a, begin + t, bh / p.H, cu_token(p, begin + t, bh));
    const float x = p.W[row + (long)t * p.Kq], u = g.u[row + (long)t * p.Kq];
CU_UNROLL
    for (int v = 0; v < TWO; v++) {
      was[t][v] = resets >> t & 1 ? 0.0f : now[v];
      now[v] = fmaf(was[t][v], fmaf(-u, (float)gates[t * TWO + v], keep), x * writes[t * TWO + v]);
    }
  }
CU_UNROLL
  for (int back = 0; back < CU_L; back++) {
    const int t = CU_L - 1 - back;
CU_UNROLL
    for (int v = 0; v < TWO; v++) sum[2 * (t * TWO + v)] = sum[2 * (t * TWO + v) + 1] = 0.0f;
    if (t >= n) continue;
    const float keep = cu_keep(g.a, begin + t, bh / p.H, cu_token(p, begin + t, bh));
    const float q = p.R[row + (long)t * p.Kq], x = p.W[row + (long)t * p.Kq], u = g.u[row + (long)t * p.Kq];
CU_UNROLL
    for (int v = 0; v < TWO; v++) {
      const float gate = gates[t * TWO + v], write = writes[t * TWO + v], kept = fmaf(-u, gate, keep);
      const float dy = column + v < p.cols ? p.dy[(place * CU_L + t) * p.cols + column + v] : 0.0f;
      const float after = fmaf(was[t][v], kept, x * write), d = fmaf(q, dy, dS[v]), through = d * was[t][v];
      dq[t] = fmaf(after, dy, dq[t]);
      dx[t] = fmaf(d, write, dx[t]);
      du[t] = fmaf(-through, gate, du[t]);
      sum[2 * (t * TWO + v)] = d * x;
      sum[2 * (t * TWO + v) + 1] = through * u;
      dS[v] = resets >> t & 1 ? 0.0f : d * kept;
    }
  }
}

/* A warp is 32 keys and sixteen columns of a head. */
CU_KERNEL joint_backward(const Joint &g, const CuChunks &p) {
  const long i = (long)blockIdx.x * CU_TILE_WARPS + threadIdx.x / 32;
  if (i >= (long)p.heads * g.key_parts * g.column_parts) return;
  const int key_part = (int)(i % g.key_parts), column_part = (int)(i / g.key_parts % g.column_parts);
  const int bh = p.head + (int)(i / g.key_parts / g.column_parts), lane = (int)threadIdx.x % 32;
  const int j = key_part * 32 + lane, first = column_part * COLUMNS;
  cu_smem<float> gates = CU_SHARED(float, 0) + (int)threadIdx.x / 32 * (2 * CU_L * TWO), writes = gates + CU_L * TWO;
  float dS[COLUMNS];
CU_UNROLL
  for (int v = 0; v < COLUMNS; v++) {
    const float *from = first + v < p.V ? p.first_C : p.first_s;
    dS[v] = from && first + v < p.cols && j < p.K ? from[cu_outside(p, bh, first + v, j)] : 0.0f;
  }
  for (int c = p.chunks - 1; c >= 0; c--) {
    const int begin = cu_begin(p, c), n = cu_tokens(p, c);
    const long place = cu_place(p, bh, c), places = (long)p.heads * p.chunks;
    const unsigned resets = cu_resets(p, bh, begin, n);
    float dq[CU_L], dx[CU_L], du[CU_L];
CU_UNROLL
    for (int t = 0; t < CU_L; t++) dq[t] = dx[t] = du[t] = 0.0f;
CU_UNROLL
    for (int v = 0; v < COLUMNS; v += TWO) {
      const int column = first + v;
      if (column >= p.cols) continue;
      __syncwarp();
      if (lane < n * TWO) {
        const Value x = value_at(g.a, cu_token(p, begin + lane / TWO, bh), column + lane % TWO);
        gates[lane] = x.gate, writes[lane] = x.write;
      }
      __syncwarp();
      float sum[2 * TWO * CU_L];
      two_back(g, p, bh, begin, n, resets, place, j, column, gates, writes, &dS[v], dq, dx, du, sum);
      cu_warp_sums(sum, lane);            /* lane t * 2 + v has both sums of token t */
      const int t = lane / TWO, to = column + lane % TWO;
      float *values = g.values + ((key_part * places + place) * 2 * CU_L + t) * p.cols + to;
      if (to < p.cols) values[0] = sum[0], values[(long)CU_L * p.cols] = sum[1];
    }
    float *keys = g.keys + (column_part * places + place) * CU_L * 3 * p.K + j;
    for (int t = 0; t < CU_L && j < p.K; t++, keys += 3L * p.K) {
      keys[0] = dq[t];
      keys[p.K] = dx[t];
      keys[2L * p.K] = -du[t];
    }
  }
CU_UNROLL
  for (int v = 0; v < COLUMNS; v++) {
    float *to = first + v < p.V ? p.last_C : p.last_s;
    if (to && first + v < p.cols && j < p.K) to[cu_outside(p, bh, first + v, j)] = dS[v];
  }
}

/* A thread is a value of a token of a chunk. */
CU_KERNEL joint_values_back(const Joint &g, const CuChunks &p, const CuValueGrads &to) {
  const long places = (long)p.heads * p.chunks;
  CU_LOOP(m, places * CU_L * p.V) {
    const int i = (int)(m % p.V), t = (int)(m / p.V % CU_L);
    const long place = m / p.V / CU_L;
    const int c = (int)(place % p.chunks), bh = p.head + (int)(place / p.chunks);
    if (t >= cu_tokens(p, c)) continue;
    float A = 0.0f, B = 0.0f;
    for (int part = 0; part < g.key_parts; part++) {
      const float *from = g.values + ((part * places + place) * 2 * CU_L + t) * p.cols + i;
      A += from[0], B += from[(long)CU_L * p.cols];
    }
    cu_value_back(g.a, to, cu_token(p, cu_begin(p, c) + t, bh), i, A, B, true);
  }
}

/* ---- host ---- */

static mn_attention open_call(const mn_call *c) {
  mn_attention g;
  mn_attention_open(&g, c, "joint_gate_attention", 0);
  return g;
}

static CuChunks chunks_of(const mn_call *c, const CuGatedInputs &a, int t0, int t1) {
  CuChunks p = {};
  p.K = a.K;
  cu_chunks_set(&p, c, false, true, t0, t1);
  p.done = a.done;
  p.by_col = a.K, p.by_key = 1;
  p.span = MN_JOINT_SPAN;
  p.saved = c->out[OUT_SAVED].data, p.saved_row = c->out[OUT_SAVED].shape[1];
  return p;
}

/* Floats of scratch for a slice of heads: fewer warps to a head than elsewhere, so more heads at once. */

static void take_scratch(Joint *g, CuChunks *p, mn_ctx *mn, bool back) {
  const long keys = (long)CU_L * p->Kq, states = back ? (long)p->cols * p->Kq : 0, dy = back ? (long)CU_L * p->cols : 0;
  g->key_parts = p->Kq / 32;
  g->column_parts = (int)cu_parts(p->cols, COLUMNS);
  const long chunk = 3 * keys + states + dy
                   + (back ? g->column_parts * (long)CU_L * 3 * p->K + g->key_parts * 2L * CU_L * p->cols : 0);
  p->heads = (int)cu_max(1L, cu_min((long)p->B * p->H, 3 * CU_SLICE / (chunk * p->chunks)));
  const long n = (long)p->heads * p->chunks;
  float *at = mn_scratch(mn, 0, chunk * n);
  p->R = at, p->W = at + n * keys, g->u = at + 2 * n * keys;
  p->z = mn_scratch(mn, 1, (long)p->T * p->B * p->H);
  if (!back) return;
  p->states = at + 3 * n * keys;
  p->dy = p->states + n * states;
  g->keys = p->dy + n * dy;
  g->values = g->keys + n * g->column_parts * CU_L * 3 * p->K;
}

template <int KJ, int VW> static void run_forward(const Joint &g, const CuChunks &p, bool again) {
  const int each = again ? p.span : p.chunks;
  CU_LAUNCH((joint_forward<KJ, VW>), cu_tile_blocks<VW>(&p, each), 32 * CU_TILE_WARPS,
            sizeof(float) * CU_TILE_WARPS * 2 * CU_L * VW, g, p, each, again);
}

static void run_slice(const Joint &g, const CuChunks &p, bool again) {
  const unsigned tokens = (unsigned)(p.heads * p.chunks * CU_L);
  CU_LAUNCH(joint_keys, tokens, (unsigned)cu_min((int)CU_SIDE_THREADS, p.Kq), 0, g, p);
  if (p.K > CU_WIDE) return cu_fail("joint_gate_attention", "there is no kernel for heads of more than 1024 keys");
  if (p.Kq <= 64)       run_forward<2, 8>(g, p, again);
  else if (p.Kq <= 256) run_forward<8, 8>(g, p, again);
  else                  run_forward<32, 2>(g, p, again);
}

static void forward(mn_call *c) {
  const mn_attention of = open_call(c);
  Joint g = { cu_gated_inputs(&of), NULL, NULL, NULL, 0, 0 };
  CuChunks p = chunks_of(c, g.a, c->t0, c->t1);
  float *C = c->out[OUT_C].data, *s = c->out[OUT_S].data;
  p.first_C = c->t0 ? C : c->in[IN_STATE].data, p.first_s = c->t0 ? s : c->in[IN_STATE + 1].data;
  p.last_C = C, p.last_s = s, p.y = c->out[OUT_Y].data;
  if (c->t1 - c->t0 < STEPWISE) {
    const CuGatedState state = { p.first_C, p.first_s, C, s, p.saved, p.y, MN_JOINT_SPAN, p.saved_row };
    cu_gated_step(&g.a, &state, true, c->t0, c->t1);
    return;
  }
  take_scratch(&g, &p, c->ctx, false);
  CU_SLICES(p) run_slice(g, p, false);
  const CuDivision den = { g.a.normalise, g.a.eps, g.a.den_clamp, g.a.scale };
  cu_chunk_divide(&p, &den);
}

static void backward(mn_call *c) {
  const mn_attention of = open_call(c);
  Joint g = { cu_gated_inputs(&of), NULL, NULL, NULL, 0, 0 };
  CuChunks p = chunks_of(c, g.a, 0, DIM(c, 'T'));
  const CuDivision den = { g.a.normalise, g.a.eps, g.a.den_clamp, g.a.scale };
  const CuValueGrads values = cu_value_grads(&of);
  p.first_C = c->out[OUT_C].grad, p.first_s = c->out[OUT_S].grad;
  p.last_C = c->in[IN_STATE].grad, p.last_s = c->in[IN_STATE + 1].grad;
  take_scratch(&g, &p, c->ctx, true);
  CU_SLICES(p) {
    const long places = (long)p.heads * p.chunks, warps = (long)p.heads * g.key_parts * g.column_parts;
    const CuKeyGrads grads = { g.keys, g.column_parts, places * CU_L * 3 * p.K, p.head, p.heads, p.chunks };
    run_slice(g, p, true);
    cu_chunk_dy(&p, &den, c->out[OUT_Y].data, c->out[OUT_Y].grad);
    CU_LAUNCH(joint_backward, (unsigned)cu_parts(warps, CU_TILE_WARPS), 32 * CU_TILE_WARPS,
              sizeof(float) * CU_TILE_WARPS * 2 * CU_L * TWO, g, p);
    cu_keys_fold(&g.a, &grads, &of);
    if (values.v || values.gate || values.keep)
      CU_LAUNCH(joint_values_back, cu_blocks(places * CU_L * p.V), CU_THREADS, 0, g, p, values);
  }
}

MN_KERNEL(joint_gate_attention, forward, backward)
