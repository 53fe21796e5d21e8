/* kv_slots.cu -- kv_slots and kv_chunk_slots, forward and backward: caches of an episode's positions.
** Forward and backward compute the source of a slot in the same way, each thread for its own element. */
#include "runtime/strided_copy.cuh"

namespace {

enum { KEPT = -1, EMPTY = -2 };

struct Slots {                   /* slots [B,S,n] from rows of `fresh`, or unchanged */
  const int32_t *pos;            /* of the last row, [B] */
  const float *fresh, *kept;
  float *out;
  const float *dout;
  float *dfresh, *dkept;         /* NULL: not wanted */
  long all;                      /* numbers in out */
  cu_divisor n, S;               /* numbers of a slot; slots */
  int B, last, pinned;           /* last: row */
  int chunk, per_chunk, places;  /* chunk_slots: its tokens, and its keys; places [B,2,places,n] in fresh */
};

/* slots: the row, by the op's rule that the newest stays. */
static __device__ __forceinline__ int origin_of_slot(const Slots &a, int s, int P) {
  int p = s;
  if (P < 0) return KEPT;
  if (s >= a.pinned) {
    const int ring = (int)a.S.by - a.pinned, newest = P >= a.pinned ? (P - a.pinned) % ring : 0, here = s - a.pinned;
    p = P < a.pinned ? s : P - newest + here - (here > newest ? ring : 0);
    if (P >= a.pinned && p < a.pinned) p = P + 1;
  }
  if (p > P) return P <= a.last ? EMPTY : KEPT;
  const int row = a.last - (P - p);
  return row >= 0 ? row : KEPT;
}

/* chunk_slots: the place among the chunks of this call. */
static __device__ __forceinline__ int origin_of_chunk(const Slots &a, int s, int P) {
  if (P < 0) return KEPT;
  const int kept = (int)a.S.by / a.per_chunk, full = (int)(((long)P + 1) / a.chunk), here = s / a.per_chunk;
  const int back = (full - 1 - here) % kept, u = full - 1 - (back < 0 ? back + kept : back);
  if (full == 0 || u < 0) return P <= a.last ? EMPTY : KEPT;
  const long row = a.last - (P - ((long)u * a.chunk + a.chunk - 1));
  return row >= 0 ? (int)(row / a.chunk) * a.per_chunk + s % a.per_chunk : KEPT;
}

CU_KERNEL move_slots(const Slots &a) {
  CU_LOOP(i, a.all) {
    long e, slot;
    const long cache = a.S.divide(a.n.divide(i, &e), &slot), b = a.chunk ? cache / 2 : cache;
    const int P = a.pos[b], from = a.chunk ? origin_of_chunk(a, (int)slot, P) : origin_of_slot(a, (int)slot, P);
    const long at = a.chunk ? (cache * a.places + from) * a.n.by + e : ((long)from * a.B + b) * a.n.by + e;
    if (!a.dout) a.out[i] = from == EMPTY ? 0 : from == KEPT ? a.kept[i] : a.fresh[at];
    else {
      if (from >= 0 && a.dfresh) a.dfresh[at] = a.dout[i];
      if (a.dkept) a.dkept[i] = from == KEPT ? a.dout[i] : 0;
    }
  }
}

static Slots open_call(mn_call *c, int fresh, int pos) {
  Slots a = {};
  const mn_arg *out = &c->out[0];
  const int slots = out->ndim - 3;           /* the axis of slots; heads and their numbers follow */
  a.B = out->shape[0], a.last = c->t1 - 1;
  a.pos = c->in[pos].i32 + (long)a.last * a.B;
  a.fresh = c->in[fresh].data, a.kept = c->in[2].data, a.out = out->data;
  a.dfresh = c->in[fresh].grad, a.dkept = c->in[2].grad;
  a.all = out->n, a.S = cu_divisor(out->shape[slots]);
  a.n = cu_divisor((long)out->shape[slots + 1] * out->shape[slots + 2]);
  return a;
}

static Slots open_slots(mn_call *c) {
  Slots a = open_call(c, 0, 1);
  a.pinned = (int)OPT(c, 0);
  return a;
}

static Slots open_chunks(mn_call *c) {
  Slots a = open_call(c, 1, 0);
  a.chunk = (int)OPT(c, 0), a.places = DIM(c, 'C');
  a.per_chunk = a.places / (int)cu_parts(DIM(c, 'T'), a.chunk);
  return a;
}

static void move(const Slots &a) { CU_LAUNCH(move_slots, cu_blocks(a.all), CU_THREADS, 0, a); }

static void move_back(mn_call *c, Slots a, int fresh) {
  a.dout = c->out[0].grad;
  if (a.dfresh) cu_zero(a.dfresh, sizeof(float) * (size_t)c->in[fresh].n);
  move(a);
}

static void slots_forward(mn_call *c) { move(open_slots(c)); }
static void slots_backward(mn_call *c) { move_back(c, open_slots(c), 0); }
static void chunks_forward(mn_call *c) { move(open_chunks(c)); }
static void chunks_backward(mn_call *c) { move_back(c, open_chunks(c), 1); }

}  // namespace

MN_KERNEL(kv_slots, slots_forward, slots_backward)
MN_KERNEL(kv_chunk_slots, chunks_forward, chunks_backward)
