/* rmt.cu -- rmt and rmt_memory, forward and backward, and rmt_weights: a block loops over the segments of one environment
** after another.  The cuts depend on the resets, which only the device knows, so they are computed there. */
#include "lib/column_sums.cuh"
#include "runtime/strided_copy.cuh"
#include "lib/transformer_layers_backward.cuh"
#include "lib/attention_weights.cuh"

namespace {

enum { IN_MEM = RMT_INPUTS, IN_KEPT = RMT_INPUTS };
enum { OUT_Y, OUT_KEPT, OUT_PACKED, OUT_MEM = 0, OUT_MEM_PACKED };
enum { BLOCKS = 264, BLOCKS_BACK = 64 };               /* at most; backward each has gradients of all parameters */

struct Rmt {
  cu_layers m;
  int T, B, S, M, t0, t1;
  long memory, kept_n, kv_n;     /* floats of all environments' memory; of `kept`; of the keys and values at its end */
  const uint8_t *done;
  const float *e, *mem0, *mem, *kept;
  float *y, *out;                /* out: `kept`, the memory, or the weights that are written */
  const float *dy, *dout;        /* may be NULL */
  float *de, *dmem, *dkept;      /* may be NULL */
  float *dmem0, *dparams;        /* sums of each block; may be NULL */
  float *room;                   /* of each block */
  long each, params_n;

  __device__ __forceinline__ long memory_at(int b, int full) const { return full * memory + (long)b * M * m.D; }
  __device__ __forceinline__ const float *read(const float *all, int b, int full, bool reset) const {
    return reset ? mem0 : all + memory_at(b, full);
  }
  __device__ __forceinline__ long kv_size() const { return (long)m.slots * 2 * m.A; }      /* of a layer of an environment */
  __device__ __forceinline__ cu_kv kv_of(const float *all, int b) const {
    return { (float *)all + kept_n - kv_n + b * kv_size(), B * kv_size() };
  }
};

/* Stretches of a block's room, each a multiple of four numbers. */
static __host__ __device__ __forceinline__ long rounded(long n) { return (n + 3) / 4 * 4; }
struct Room {
  float *at;
  __device__ __forceinline__ explicit Room(const Rmt &s) : at(s.room + blockIdx.x * s.each) {}
  __device__ __forceinline__ float *take(long n) {
    float *here = at;
    at += rounded(n);
    return here;
  }
};

/* ---- how an environment is cut: see engine/attention/rmt_segments.c ---- */

static __device__ __forceinline__ bool begins(const Rmt &s, int t, int b) { return s.done && s.done[(long)t * s.B + b]; }

static __device__ bool next_piece(const Rmt &s, mn_cursor *at, int b, int limit, mn_piece *p) {
  if (at->t >= limit) return false;
  const bool reset = begins(s, at->t, b);
  if (reset || at->tokens == 0) at->tokens = 0, at->reset = reset;
  int end = cu_min(at->t + s.S - at->tokens, limit);
  for (int t = at->t + 1; t < end; t++) if (begins(s, t, b)) end = t;
  p->b = b, p->t = at->t, p->n = end - at->t, p->before = at->tokens, p->full = at->full, p->reset = at->reset;
  p->ends = at->tokens + p->n == s.S;
  at->t = end;
  at->tokens = p->ends ? 0 : at->tokens + p->n;
  at->full += p->ends;
  return true;
}

/* The position of an environment after t rows; *last: the piece that led there. */
static __device__ mn_cursor cursor_at(const Rmt &s, int b, int t, mn_piece *last) {
  mn_cursor at = {};
  while (next_piece(s, &at, b, t, last)) continue;
  return at;
}

static __device__ __forceinline__ void fill(float *to, const float *from, long n) {
  CU_SHARE(i, n) to[i] = from ? from[i] : 0;
}

/* The rows of a piece: reads where its segment begins, tokens, and writes where they are asked for. */
static __device__ cu_part lay_out(const Rmt &s, const mn_piece &p, bool writes, const float *kept, float *x) {
  const int D = s.m.D, reads = p.before ? 0 : s.M, rows = reads + p.n + (writes ? s.M : 0);
  const float *memory = s.read(kept, p.b, p.full, p.reset);
  CU_SHARE(i, rows * D) {
    const int r = i / D - reads, d = i % D;
    x[i] = r < 0 ? memory[(long)(r + s.M) * D + d] : r < p.n ? s.e[((long)(p.t + r) * s.B + p.b) * D + d]
                                                             : memory[(long)(r - p.n) * D + d];
  }
  __syncthreads();
  return { rows, reads ? 0 : s.M + p.before, p.before + p.n };
}

/* ---- rmt ---- */

CU_KERNEL rmt_forward(const Rmt &s) {
  const int D = s.m.D;
  const long one = (long)s.M * D;
  Room room(s);
  float *acts = room.take(s.m.acts(2)), *scores = room.take(s.m.scores());
  for (int b = (int)blockIdx.x; b < s.B; b += (int)gridDim.x) {
    const cu_kv kv = s.kv_of(s.out, b);
    if (s.t0 == 0) fill(s.out + s.memory_at(b, 0), s.mem ? s.mem + b * one : s.mem0, one);
    __syncthreads();
    mn_piece p;
    mn_cursor at = cursor_at(s, b, s.t0, &p);
    while (next_piece(s, &at, b, s.t1, &p)) {
      for (int l = 0; l < s.m.L && p.before == 0; l++) fill(kv.at + l * kv.layer, NULL, s.kv_size());
      const cu_part part = lay_out(s, p, p.ends, s.out, acts);
      const float *from = cu_layers_forward(s.m, part, kv, acts, 2, scores) + (p.before ? 0 : one);
      CU_SHARE(i, p.n * D) s.y[((long)(p.t + i / D) * s.B + b) * D + i % D] = from[i];
      if (p.ends) fill(s.out + s.memory_at(b, p.full + 1), from + (long)p.n * D, one);
      __syncthreads();
    }
  }
}

/* The gradient of a piece's output; carry: of the memory that the next one read, NULL: none did. */
static __device__ void gather_grads(const Rmt &s, const mn_piece &p, bool writes, const float *carry, float *dx) {
  const int D = s.m.D, one = s.M * D;
  const float *dmemory = s.dout && p.ends ? s.dout + s.memory_at(p.b, p.full + 1) : NULL;
  CU_SHARE(i, one + p.n * D + (writes ? one : 0)) {
    const int token = i - one, write = token - p.n * D;
    if (token < 0) dx[i] = 0;
    else if (write < 0) dx[i] = s.dy ? s.dy[((long)(p.t + token / D) * s.B + p.b) * D + token % D] : 0;
    else dx[i] = (carry ? carry[write] : 0) + (dmemory ? dmemory[write] : 0);
  }
  __syncthreads();
}

/* The gradient of its input, on to tokens, and to the memory that it read. */
static __device__ void scatter_grads(const Rmt &s, const mn_piece &p, bool writes, const float *dx, float *dmem0, float *carry) {
  const int D = s.m.D, one = s.M * D;
  float *to = p.reset ? dmem0 : carry;
  if (s.de) CU_SHARE(i, p.n * D) s.de[((long)(p.t + i / D) * s.B + p.b) * D + i % D] = dx[one + i];
  if (to) CU_SHARE(i, one) to[i] = (p.reset ? to[i] : 0) + dx[i] + (writes ? dx[one + p.n * D + i] : 0);
  __syncthreads();
}

CU_KERNEL rmt_backward(const Rmt &s) {
  const long one = (long)s.M * s.m.D, size = s.kv_size();
  Room room(s);
  float *acts = room.take(s.m.acts(s.m.L)), *scores = room.take(s.m.scores()), *work = room.take(cu_layer_work_size(s.m));
  float *dx = room.take((long)s.m.rows * s.m.D), *carry = room.take(one);
  const cu_kv kv = { room.take(s.m.L * size), size }, dkv = { room.take(s.m.L * size), size };
  mn_piece *pieces = (mn_piece *)room.take(s.T * (long)(sizeof(mn_piece) / sizeof(float)));
  float *dmem0 = s.dmem0 ? s.dmem0 + blockIdx.x * one : NULL, *dparams = s.dparams ? s.dparams + blockIdx.x * s.params_n : NULL;
  if (dmem0) fill(dmem0, NULL, one);
  if (dparams) fill(dparams, NULL, s.params_n);
  for (int b = (int)blockIdx.x; b < s.B; b += (int)gridDim.x) {
    mn_cursor at = {};
    mn_piece p;
    int count = 0;
    bool carries = false;
    for (; next_piece(s, &at, b, s.T, &p); count++) if (threadIdx.x == 0) pieces[count] = p;
    __syncthreads();
    const float *dkept_kv = s.dout ? s.kv_of(s.dout, b).at : NULL;
    for (int r = count - 1; r >= 0; r--) {
      p = pieces[r];
      const bool writes = p.ends && (carries || s.dout);
      for (int l = 0; l < s.m.L; l++)    /* what the last piece leaves in kv is what stands there at the end */
        fill(dkv.at + l * size, dkept_kv && r == count - 1 ? dkept_kv + l * s.B * size : NULL, size);
      const cu_part part = lay_out(s, p, writes, s.kept, acts);
      cu_layers_forward(s.m, part, kv, acts, s.m.L, scores);
      gather_grads(s, p, writes, carries ? carry : NULL, dx);
      cu_layers_backward(s.m, part, kv, dkv, acts, dx, work, scores, dparams);
      scatter_grads(s, p, writes, dx, dmem0, carry);
      carries = !p.reset;
    }
    float *to = s.dmem ? s.dmem + b * one : s.mem ? NULL : dmem0;     /* of the memory at the start */
    const float *dkept = s.dout ? s.dout + s.memory_at(b, 0) : NULL;
    if (to) CU_SHARE(i, one) to[i] = (s.dmem ? 0 : to[i]) + (carries ? carry[i] : 0) + (dkept ? dkept[i] : 0);
    __syncthreads();
  }
}

/* ---- rmt_memory ---- */

/* The write rows of an environment's running segment, gone through the layers on what rmt kept; the part they are. */
static __device__ cu_part write_rows(const Rmt &s, int b, const mn_cursor &at, cu_kv kv, float *acts) {
  const cu_kv kept = s.kv_of(s.kept, b);
  for (int l = 0; l < s.m.L; l++) fill(kv.at + l * kv.layer, kept.at + l * kept.layer, s.kv_size());
  fill(acts, s.read(s.kept, b, at.full, at.reset), (long)s.M * s.m.D);
  __syncthreads();
  return { s.M, s.M + at.tokens, at.tokens };
}

CU_KERNEL memory_forward(const Rmt &s) {
  const long one = (long)s.M * s.m.D;
  Room room(s);
  float *acts = room.take(s.m.acts(2)), *scores = room.take(s.m.scores());
  const cu_kv kv = { room.take(s.m.L * s.kv_size()), s.kv_size() };
  for (int b = (int)blockIdx.x; b < s.B; b += (int)gridDim.x) {
    mn_piece p;
    const mn_cursor at = cursor_at(s, b, s.t1, &p);
    const float *from = s.kept + s.memory_at(b, at.full);
    if (at.tokens) from = cu_layers_forward(s.m, write_rows(s, b, at, kv, acts), kv, acts, 2, scores);
    fill(s.out + b * one, from, one);
    __syncthreads();
  }
}

CU_KERNEL memory_backward(const Rmt &s) {
  const long one = (long)s.M * s.m.D, size = s.kv_size();
  Room room(s);
  float *acts = room.take(s.m.acts(s.m.L)), *scores = room.take(s.m.scores()), *work = room.take(cu_layer_work_size(s.m));
  float *dx = room.take((long)s.m.rows * s.m.D);
  const cu_kv kv = { room.take(s.m.L * size), size }, dkv = { room.take(s.m.L * size), size };
  float *dmem0 = s.dmem0 ? s.dmem0 + blockIdx.x * one : NULL, *dparams = s.dparams ? s.dparams + blockIdx.x * s.params_n : NULL;
  if (dmem0) fill(dmem0, NULL, one);
  if (dparams) fill(dparams, NULL, s.params_n);
  for (int b = (int)blockIdx.x; b < s.B; b += (int)gridDim.x) {
    mn_piece p;
    const mn_cursor at = cursor_at(s, b, s.t1, &p);
    fill(dkv.at, NULL, s.m.L * size);
    fill(dx, s.dout + b * one, one);
    __syncthreads();
    if (at.tokens) {
      const cu_part part = write_rows(s, b, at, kv, acts);
      cu_layers_forward(s.m, part, kv, acts, s.m.L, scores);
      cu_layers_backward(s.m, part, kv, dkv, acts, dx, work, scores, dparams);
    }
    const bool reset = at.tokens && at.reset;
    float *to = reset ? dmem0 : s.dkept ? s.dkept + s.memory_at(b, at.full) : NULL;
    if (to) CU_SHARE(i, one) to[i] += dx[i];
    for (int l = 0; l < s.m.L && s.dkept; l++)
      fill(s.kv_of(s.dkept, b).at + l * s.B * size, dkv.at + l * size, size);
    __syncthreads();
  }
}

/* ---- rmt_weights ---- */

CU_KERNEL last_weights(const Rmt &s) {
  const int D = s.m.D, dh = s.m.A / s.m.H, lane = (int)threadIdx.x % 32, N = s.m.slots - s.M;
  Room room(s);
  float *acts = room.take(s.m.acts(s.m.L)), *scores = room.take(s.m.scores());
  const cu_kv kv = { room.take(s.m.L * s.kv_size()), s.kv_size() };
  for (int b = (int)blockIdx.x; b < s.B; b += (int)gridDim.x) {
    mn_piece p;
    cursor_at(s, b, s.t1, &p);
    const int tokens = p.before + p.n, slot = s.M + tokens - 1, seen = s.m.seen(tokens, slot);
    const cu_kv kept = s.kv_of(s.kept, b);
    for (int l = 0; l < s.m.L; l++) fill(kv.at + l * kv.layer, kept.at + l * kept.layer, s.kv_size());
    fill(acts, s.e + ((long)(s.t1 - 1) * s.B + b) * D, D);
    __syncthreads();
    cu_layers_forward(s.m, { 1, slot, tokens }, kv, acts, s.m.L, scores);
    for (int i = (int)threadIdx.x / 32; i < s.m.L * s.m.H; i += CU_WARPS) {
      const int layer = i / s.m.H, h = i % s.m.H * dh;
      const float *q = cu_acts_of(s.m, acts, layer).qkv + h, *key = kv.at + layer * kv.layer + h;
      mn_weight *to = (mn_weight *)s.out + ((long)b * s.m.L * s.m.H + i) * N;
      for (int j = lane; j < seen; j += 32)
        to[j] = { j < s.M ? 0.0f : (float)(slot - j), j < s.M ? 0.0f : 1.0f, cu_weight_score(dh, q, NULL, key + (long)j * 2 * s.m.A) };
      cu_weights_finish(to, seen, N);
    }
    __syncthreads();
  }
}

/* ---- the ops ---- */

/* rows: the most that go through the layers at once. */
static Rmt open_call(mn_call *c, const char *op) {
  mn_segments s;
  mn_segments_open(&s, c, op);
  const mn_layers *m = &s.layers;
  Rmt r = {};
  const bool wide = m->D % 4 == 0 && m->A % 4 == 0 && m->F % 4 == 0 && cu_quads(4, m->params);
  r.m = { m->L, m->D, m->H, m->A, m->F, m->flow, m->reads, m->slots, m->slots, m->eps, wide, m->params, mn_layer_places(m) };
  r.T = s.T, r.B = s.B, r.S = s.S, r.M = s.M, r.t0 = c->t0, r.t1 = c->t1;
  r.memory = s.memory, r.kept_n = s.kept, r.kv_n = s.kv, r.done = s.done, r.mem0 = s.mem0;
  r.e = c->in[RMT_E].data, r.params_n = m->L * r.m.at.end;
  return r;
}

static long kv_room(const Rmt &s) { return rounded(s.m.L * (long)s.m.slots * 2 * s.m.A); }

/* The grid, and room for each block: activations of that many layers, and `more` floats. */
static unsigned take_room(mn_call *c, Rmt *s, int most, int layers, long more) {
  const int blocks = cu_min(s->B, most);
  s->each = rounded(s->m.acts(layers)) + rounded(s->m.scores()) + rounded(more);
  s->room = mn_scratch(c->ctx, 0, blocks * s->each);
  return (unsigned)blocks;
}

static unsigned take_room_back(mn_call *c, Rmt *s, long more) {
  const long one = (long)s->M * s->m.D;
  const unsigned blocks = take_room(c, s, BLOCKS_BACK, s->m.L, rounded(cu_layer_work_size(s->m)) + rounded((long)s->m.rows * s->m.D)
                                    + 2 * kv_room(*s) + more);
  float *sums = mn_scratch(c->ctx, 1, blocks * (rounded(s->params_n) + one));
  if (c->in[RMT_PARAMS].grad) s->dparams = sums;
  if (c->in[RMT_MEM0].grad) s->dmem0 = sums + blocks * rounded(s->params_n);
  s->m.wide = s->m.wide && s->params_n % 4 == 0;
  return blocks;
}

/* The sums of all blocks to where they belong. */
static void finish_back(mn_call *c, const Rmt &s, unsigned blocks) {
  const long one = (long)s.M * s.m.D;
  if (s.dparams) cu_column_sums(c, 2, cu_given_rows{ s.dparams, c->in[RMT_PARAMS].grad, s.params_n }, blocks, s.params_n);
  if (s.dmem0) cu_column_sums(c, 2, cu_given_rows{ s.dmem0, c->in[RMT_MEM0].grad, one }, blocks, one);
}

/* Weights that the CPU packs are read here where they lie. */
static void zero_output(mn_call *c, int i) { cu_zero(c->out[i].data, sizeof(float) * (size_t)c->out[i].n); }

static void run_forward(mn_call *c) {
  Rmt s = open_call(c, "rmt");
  s.m.rows = 2 * s.M + cu_min(s.S, c->t1 - c->t0);
  s.mem = c->in[IN_MEM].data, s.y = c->out[OUT_Y].data, s.out = c->out[OUT_KEPT].data;
  if (c->t0 == 0) zero_output(c, OUT_KEPT), zero_output(c, OUT_PACKED);
  const unsigned blocks = take_room(c, &s, BLOCKS, 2, 0);
  CU_LAUNCH(rmt_forward, blocks, CU_THREADS, CU_TILE_SHARED, s);
}

static void run_backward(mn_call *c) {
  Rmt s = open_call(c, "rmt");
  s.mem = c->in[IN_MEM].data, s.kept = c->out[OUT_KEPT].data;
  s.dy = c->out[OUT_Y].grad, s.dout = c->out[OUT_KEPT].grad;
  s.de = c->in[RMT_E].grad, s.dmem = c->in[IN_MEM].grad;
  const long pieces = rounded(s.T * (long)(sizeof(mn_piece) / sizeof(float)));
  const unsigned blocks = take_room_back(c, &s, rounded((long)s.M * s.m.D) + pieces);
  CU_LAUNCH(rmt_backward, blocks, CU_THREADS, CU_TILE_SHARED, s);
  finish_back(c, s, blocks);
}

static void run_memory_forward(mn_call *c) {
  Rmt s = open_call(c, "rmt_memory");
  s.m.rows = s.M;
  s.kept = c->in[IN_KEPT].data, s.out = c->out[OUT_MEM].data;
  zero_output(c, OUT_MEM_PACKED);
  const unsigned blocks = take_room(c, &s, BLOCKS, 2, kv_room(s));
  CU_LAUNCH(memory_forward, blocks, CU_THREADS, CU_TILE_SHARED, s);
}

static void run_memory_backward(mn_call *c) {
  Rmt s = open_call(c, "rmt_memory");
  s.m.rows = s.M;
  s.kept = c->in[IN_KEPT].data, s.dout = c->out[OUT_MEM].grad, s.dkept = c->in[IN_KEPT].grad;
  cu_zero_grad(&c->in[RMT_E]);
  if (s.dkept) cu_zero(s.dkept, sizeof(float) * (size_t)s.kept_n);
  const unsigned blocks = take_room_back(c, &s, 0);
  CU_LAUNCH(memory_backward, blocks, CU_THREADS, CU_TILE_SHARED, s);
  finish_back(c, s, blocks);
}

static void run_weights(mn_call *c) {
  Rmt s = open_call(c, "rmt_weights");
  s.m.rows = 1;
  s.kept = c->in[IN_KEPT].data, s.out = c->out[0].data;
  const unsigned blocks = take_room(c, &s, BLOCKS, s.m.L, kv_room(s));
  CU_LAUNCH(last_weights, blocks, CU_THREADS, CU_TILE_SHARED, s);
}

}  // namespace

MN_KERNEL(rmt, run_forward, run_backward)
MN_KERNEL(rmt_memory, run_memory_forward, run_memory_backward)
MN_KERNEL(rmt_weights, run_weights, NULL)
