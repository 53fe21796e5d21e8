/* episode_attention.cu -- window_attention, block_attention and sparse_attention, forward and backward, and window_weights and
** block_weights: see episode_attention.cuh.  longshort_attention uses these kernels too. */
#include "lib/episode_attention.cuh"
#include "runtime/strided_copy.cuh"
#include "lib/softmax_step.cuh"
#include "lib/attention_weights.cuh"
extern "C" {
#include "attention/episode_attention.h"
}

/* ---- for all of them ---- */

void cu_episode_finish(cu_episode *e) { cu_attention_widths(e); }

void cu_episode_forward(const cu_episode &e) { cu_attention_forward(e); }

/* The rows' statistics are made again: forward had nowhere to keep them. */
void cu_episode_backward(mn_call *c, cu_episode e) {
  const long rows = (long)e.t1 * e.heads;
  float *y = e.y;
  e.stats = mn_scratch(c->ctx, 0, 3 * rows);
  e.left = e.stats + 2 * rows;
  e.y = NULL;
  cu_attention_tiles(e);
  e.y = y;
  cu_attention_backward(e);
}

cu_episode cu_episode_of(const mn_call *c, int mk) {
  const mn_arg *q = &c->in[EP_Q], *k = &c->in[EP_K], *v = &c->in[EP_V], *ok = &c->in[mk], *ov = &c->in[mk + 1];
  cu_episode e = {};
  const int B = q->shape[1], H = q->shape[2], S = ok->shape[1];
  e.q = q->data, e.dq = q->grad;
  e.y = c->out[0].data, e.dy = c->out[0].grad;
  e.at = { (long)B * H, H, 1 };
  e.part[0] = { ok->data, ov->data, ok->grad, ov->grad, { H, (long)S * H, 1 }, S };
  e.part[1] = { k->data, v->data, k->grad, v->grad, e.at, k->shape[0] };
  e.parts = 2, e.H = H, e.heads = B * H, e.K = e.V = q->shape[3], e.t0 = c->t0, e.t1 = c->t1;
  e.scale = 1 / sqrtf((float)e.K), e.most = 0x1.fffffep127f;
  e.pos = c->in[EP_POS].i32, e.B = B, e.M = k->shape[0], e.S = S;
  return e;
}

/* ---- weights ---- */

namespace {

/* A warp for each head; entries in the order of the ranges. */
CU_KERNEL episode_weights(const cu_episode &e, int t, mn_weight *out, int N) {
  const int z = (int)blockIdx.x, b = z / e.H, h = z % e.H, lane = (int)threadIdx.x;
  const float *q = e.query(t, b, h);
  const cu_episode::Row row = e.row(t, b, h);
  mn_weight *to = out + (long)z * N;
  int n = 0;
  for (int r = 0; r < e.n_ranges; r++) {
    const cu_range a = e.range(row, r, h);
    const int base = e.base_of(row, a.of), slots = a.of ? e.W : e.S, pins = a.of ? 0 : e.pinned;
    for (int k = lane; k < a.n && n + k < N; k += 32) {
      const int p = a.from + k * a.step, before = a.of ? 0 : e.W + e.C;
      const int slot = p < pins ? p : pins + (p - pins) % cu_max(slots - pins, 1);
      const int j = before + (p + base >= 0 ? slots + p + base : slot);
      mn_weight w = { (float)(row.P - p), 1, cu_weight_score(e.K, q, NULL, e.key(j, b, h)) };
      if (a.of) w.back = (float)(row.P - (p / e.per_chunk + 1) * e.chunk + 1), w.steps = (float)e.chunk;
      to[n + k] = w;
    }
    n += cu_min(a.n, N - n);
  }
  cu_weights_finish(to, n, N);
}

}  // namespace

void cu_episode_weights(mn_call *c, const cu_episode &e) {
  CU_LAUNCH(episode_weights, (unsigned)e.heads, 32, 0, e, c->t1 - 1, (mn_weight *)(void *)c->out[0].data,
            c->out[0].shape[3]);
}

/* ---- Longformer's window ---- */

static cu_episode window_of(const mn_call *c) {
  cu_episode e = cu_episode_of(c, EP_POS + 1);
  const bool first = OPT(c, 3) != 0;
  e.kind = first ? CU_FIRST : CU_WINDOW, e.n_ranges = first ? 1 : 2;
  e.window = (int)OPT(c, 0), e.dilation = (int)OPT(c, 1), e.globals = (int)OPT(c, 2);
  e.pinned = first ? e.S : e.globals;
  cu_episode_finish(&e);
  return e;
}

static void window_forward(mn_call *c) { cu_episode_forward(window_of(c)); }
static void window_backward(mn_call *c) { cu_episode_backward(c, window_of(c)); }
static void window_weigh(mn_call *c) { cu_episode_weights(c, window_of(c)); }

MN_KERNEL(window_attention, window_forward, window_backward)
MN_KERNEL(window_weights, window_weigh, NULL)

/* ---- Big Bird's blocks ---- */

enum { BLOCK_SEE = EP_POS + 1, BLOCK_MK };

static cu_episode block_of(const mn_call *c) {
  cu_episode e = cu_episode_of(c, BLOCK_MK);
  e.kind = CU_BLOCKS_OF, e.n_ranges = DIM(c, 'R'), e.list = c->in[BLOCK_SEE].i32;
  e.blocks = DIM(c, 'N'), e.block = e.S / e.blocks, e.pinned = e.S;
  cu_episode_finish(&e);
  return e;
}

static void block_forward(mn_call *c) { cu_episode_forward(block_of(c)); }
static void block_backward(mn_call *c) { cu_episode_backward(c, block_of(c)); }
static void block_weigh(mn_call *c) { cu_episode_weights(c, block_of(c)); }

MN_KERNEL(block_attention, block_forward, block_backward)
MN_KERNEL(block_weights, block_weigh, NULL)

/* ---- lists ---- */

static cu_episode listed(const mn_call *c) {
  const mn_arg *q = &c->in[0], *k = &c->in[1], *v = &c->in[2], *ranges = &c->in[3];
  cu_episode e = {};
  const int H = q->shape[1], N = q->shape[2], M = k->shape[2];
  e.q = q->data, e.dq = q->grad;
  e.y = c->out[0].data, e.dy = c->out[0].grad;
  e.at = { 1, (long)H * N, N };
  e.part[0] = { k->data, v->data, k->grad, v->grad, { 1, (long)H * M, M }, M };
  e.parts = 1, e.H = H, e.heads = q->shape[0] * H, e.K = e.V = q->shape[3], e.t1 = N;
  e.scale = 1 / sqrtf((float)e.K), e.most = 0x1.fffffep127f;
  e.kind = CU_LISTED, e.list = ranges->i32, e.n_ranges = ranges->shape[2], e.by_head = ranges->shape[0] > 1;
  e.M = M, e.N = N, e.each = N / ranges->shape[1], e.causal = OPT(c, 0) != 0;
  cu_episode_finish(&e);
  return e;
}

static void sparse_forward(mn_call *c) { cu_episode_forward(listed(c)); }
static void sparse_backward(mn_call *c) { cu_episode_backward(c, listed(c)); }

MN_KERNEL(sparse_attention, sparse_forward, sparse_backward)
