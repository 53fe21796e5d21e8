/* matrix_state.c -- runs along time for the ops whose state is a matrix C[V,K] and a sum of keys s[K].
** Heads are independent: each thread takes whole heads, so the numbers do not depend on how many. */
#include <omp.h>
#include <string.h>
#include "matrix_state.h"
#include "numerics/simd.h"

enum { STEPWISE = 4 };           /* fewer rows go one by one: a chunk costs the same for 1 as for 16 */

static long state_size(const mn_attention *a) { return (long)a->Vp * a->Kp + a->Kp; }

static int open_call(mn_attention *a, const mn_call *c, const mn_matrix_kernels *k) { return mn_attention_open(a, c, k->name, 0); }

/* Tokens from one checkpoint to the next, and the number of checkpoints. */
static int stride(const mn_matrix_kernels *k) { return MN_CHUNK * k->span; }

static int checkpoints(const mn_attention *a, const mn_matrix_kernels *k) {
  return (a->T + stride(k) - 1) / stride(k);
}

static mn_chunk_state checkpoint(const mn_attention *a, const mn_matrix_kernels *k, int bh, int t) {
  float *at = a->c->out[3].data + ((long)bh * checkpoints(a, k) + t / stride(k)) * state_size(a);
  return (mn_chunk_state){ at, at + (long)a->Vp * a->Kp };
}

int mn_matrix_shape(mn_call *c, const mn_matrix_kernels *k) {
  mn_attention a;
  if (open_call(&a, c, k)) return -1;
  if (mn_attention_axis(c, k->name, IN_STATE, "C", 3, a.K)) return -1;
  if (mn_attention_axis(c, k->name, IN_STATE + 1, "s", 2, a.K)) return -1;
  double rows = (double)a.B * a.H * checkpoints(&a, k);
  if (rows > 1e9 || (double)a.Vp * a.Kp > 1e9)
    return mn_fail(c->ctx, "%s: a state of %d by %d values for %d heads is too large", k->name,
                   a.V, a.K, a.B * a.H);
  c->out[1].shape[3] = a.K;
  c->out[2].shape[2] = a.K;
  c->out[3].shape[0] = (int)rows;
  c->out[3].shape[1] = (int)state_size(&a);
  return 0;
}

/* Rows of K numbers to rows of Kp, padded, and back. */
static void widen(const mn_attention *a, const float *C, const float *s, mn_chunk_state to) {
  if (!C || a->K < a->Kp || a->V < a->Vp)
    memset(to.C, 0, sizeof(float) * (size_t)a->Vp * (size_t)a->Kp);
  if (!s || a->K < a->Kp) memset(to.s, 0, sizeof(float) * (size_t)a->Kp);
  for (int i = 0; C && i < a->V; i++)
    memcpy(to.C + (long)i * a->Kp, C + (long)i * a->K, sizeof(float) * (size_t)a->K);
  if (s) memcpy(to.s, s, sizeof(float) * (size_t)a->K);
}

static void narrow(const mn_attention *a, mn_chunk_state from, float *C, float *s) {
  for (int i = 0; C && i < a->V; i++)
    memcpy(C + (long)i * a->K, from.C + (long)i * a->Kp, sizeof(float) * (size_t)a->K);
  if (s) memcpy(s, from.s, sizeof(float) * (size_t)a->K);
}

/* Chunk `part` of those from one checkpoint to the next prefetches that part of the checkpoint before
** token t. */
static void expect_checkpoint(const mn_attention *a, const mn_matrix_kernels *k, int t, int part,
                              mn_tokens *at) {
  if (t < 0 || t >= a->T) return;
  at->each = state_size(a) / stride(k);
  at->state = checkpoint(a, k, at->bh, t).C + part * MN_CHUNK * at->each;
}

static void ask_token(const mn_attention *a, const mn_tokens *at, int i) {
  if (at->next >= 0) mn_prefetch_inputs(a, at->next + i, at->bh, at->back, false);
  for (long j = i * at->each; j < (i + 1) * at->each; j += 16)
    if (at->back) __builtin_prefetch(at->state + j, 0, 2);
    else __builtin_prefetch(at->state + j, 1, 2);
  if (at->back) mn_expect_grads(a, at->t + i, at->bh);
  else          mn_expect_y(a, at->t + i, at->bh);
}

void mn_prefetch_token(const mn_attention *a, const mn_tokens *at, int eighth) {
  enum { EACH = MN_CHUNK / 8 };
  for (int i = eighth * EACH; i < (eighth + 1) * EACH && i < at->n; i++) ask_token(a, at, i);
}

void mn_load_keys(const mn_attention *a, const mn_tokens *at, float *q, float *write, float *decay) {
  long ld = mn_key_row(a);
  for (int i = 0; i < at->n; i++)
    mn_keys(a, mn_token(a, at->t + i, at->bh), mn_keep(a, at->t + i, at->bh), q + i * ld,
            write + i * ld, decay + i * ld);
  for (long i = at->n * ld; i < MN_CHUNK * ld; i++) q[i] = write[i] = 0, decay[i] = 1;
}

void mn_write_y(const mn_attention *a, int bh, int t, int n, const float *num, const float *z) {
  for (int i = 0; i < n; i++) mn_divide(a, mn_token(a, t + i, bh), num + (long)i * a->Vp, z[i]);
}

void mn_read_dy(const mn_attention *a, int bh, int t, int n, const float *z, float *dnum,
                float *dz) {
  memset(dnum + (long)n * a->Vp, 0, sizeof(float) * (size_t)(MN_CHUNK - n) * (size_t)a->Vp);
  for (int i = 0; i < n; i++) mn_dnum(a, mn_token(a, t + i, bh), z[i], dnum + (long)i * a->Vp);
  for (int i = 0; dz && i < MN_CHUNK; i++) dz[i] = i < n ? mn_dz(a, mn_token(a, t + i, bh), z[i]) : 0;
}

/* One token at a time, in place in C' and s'. */
static void walk_steps(const mn_attention *a, const mn_matrix_kernels *k, int bh, float *C,
                       float *s, float *work) {
  const mn_call *c = a->c;
  float *q = mn_alloc_from(&work, a->Kp), *write = mn_alloc_from(&work, a->Kp), *decay = mn_alloc_from(&work, a->Kp);
  float *num = mn_alloc_from(&work, a->Vp);
  for (int t = c->t0; t < c->t1; t++) {
    if (c->taped && t % stride(k) == 0) widen(a, C, s, checkpoint(a, k, bh, t));
    long token = mn_token(a, t, bh);
    float keep = mn_keep(a, t, bh), z;
    if (keep == 0) {
      memset(C, 0, sizeof(float) * (size_t)a->V * (size_t)a->K);
      memset(s, 0, sizeof(float) * (size_t)a->K);
    }
    mn_keys(a, token, keep, q, write, decay);
    mn_lanes dot = { 0 };
    for (int i = 0; i < a->K; i += MN_LANES) {
      mn_lanes x = mn_load(decay + i) * mn_load_n(s + i, a->K - i) + mn_load(write + i);
      mn_store_n(s + i, x, a->K - i);
      dot += x * mn_load(q + i);
    }
    z = mn_sum(dot);
    k->step(a, token, keep, C, q, write, decay, num, work);
    mn_write_y(a, bh, t, 1, num, &z);
  }
}

static void cut_states(const mn_attention *a, int n, mn_chunk_state *states, float **work) {
  for (int i = 0; i < n; i++) {
    states[i].C = mn_alloc_from(work, (long)a->Vp * a->Kp);
    states[i].s = mn_alloc_from(work, a->Kp);
  }
}

/* ---- resets ----
** A gate of 0 drops the state at a reset, unless that holds an infinity or a NaN: then the chunk is
** taken in parts, each from a reset to the next, and the state before a reset is not looked at. */

static bool all_finite(long n, const float *x) {
  float sum = 0;
  MN_PRAGMA(omp simd reduction(+:sum))
  for (long i = 0; i < n; i++) sum += x[i] * 0;
  return sum == 0;
}

/* The first reset among tokens t .. end-1; end if there is none.  The last one; t if there is none. */
static int next_reset(const mn_attention *a, int bh, int t, int end) {
  while (t < end && mn_keep(a, t, bh) != 0) t++;
  return t;
}

static int last_reset(const mn_attention *a, int bh, int t, int end) {
  do end--; while (end > t && mn_keep(a, end, bh) != 0);
  return end;
}

/* Did tokens t .. end-1 come out finite?  Nothing that is not can stay out of their y. */
static bool finite_y(const mn_attention *a, int bh, int t, int end) {
  for (; t < end; t++)
    if (!all_finite(a->V, a->c->out[0].data + mn_token(a, t, bh) * a->V)) return false;
  return true;
}

static void clear(const mn_attention *a, mn_chunk_state x) {
  memset(x.C, 0, sizeof(float) * (size_t)state_size(a));        /* s follows C */
}

/* The tokens by parts.  spare: two more states. */
static void chunk_in_parts(const mn_attention *a, const mn_matrix_kernels *k, mn_tokens at,
                           mn_chunk_state now, mn_chunk_state to, mn_chunk_state spare[2],
                           float *work) {
  int end = at.t + at.n;
  for (int next; at.t < end; at.t = next) {
    next = next_reset(a, at.bh, at.t + 1, end);
    at.n = next - at.t;
    if (mn_keep(a, at.t, at.bh) == 0) clear(a, spare[0]), now = spare[0];
    k->chunk(a, &at, now, next == end ? to : spare[1], work);
  }
}

/* Backward by parts.  zeros: a state. */
static void chunk_back_in_parts(const mn_attention *a, const mn_matrix_kernels *k, mn_tokens at,
                                mn_chunk_state from, mn_chunk_state grad, mn_chunk_state zeros,
                                float *work) {
  int begin = at.t;
  clear(a, zeros);
  for (int end = at.t + at.n; end > begin; end = at.t) {
    at.t = last_reset(a, at.bh, begin, end);
    at.n = end - at.t;
    bool drop = mn_keep(a, at.t, at.bh) == 0;
    k->chunk_back(a, &at, drop ? zeros : from, grad, work);
    if (drop) clear(a, grad);
  }
}

/* The tokens of the chunk that begins with t, or what is left of it, up to end. */
static mn_tokens chunk_of(int bh, int t, int end) {
  int next = (t / MN_CHUNK + 1) * MN_CHUNK;
  return (mn_tokens){ .bh = bh, .t = t, .n = (next < end ? next : end) - t, .next = -1 };
}

/* Up to sixteen tokens at a time, from checkpoint to checkpoint. */
static void walk_chunks(const mn_attention *a, const mn_matrix_kernels *k, int bh, const float *C,
                        const float *s, float *work) {
  const mn_call *c = a->c;
  mn_chunk_state spare[4], now, next;
  cut_states(a, 4, spare, &work);
  now = c->t0 % stride(k) ? spare[0] : checkpoint(a, k, bh, c->t0);
  widen(a, C, s, now);
  for (int t = c->t0, end; t < c->t1; t = end, now = next) {
    mn_tokens at = chunk_of(bh, t, c->t1);
    at.next = t + MN_CHUNK;
    expect_checkpoint(a, k, (t / stride(k) + 1) * stride(k), t / MN_CHUNK % k->span, &at);
    end = t + at.n;
    if (end % stride(k) == 0 && end < a->T) next = checkpoint(a, k, bh, end);
    else next = spare[now.C == spare[0].C];
    k->chunk(a, &at, now, next, work);
    if (next_reset(a, bh, t, end) < end && !finite_y(a, bh, t, end))
      chunk_in_parts(a, k, at, now, next, spare + 2, work);
  }
  narrow(a, now, c->out[1].data + (long)bh * a->V * a->K, c->out[2].data + (long)bh * a->K);
}

/* The states before every chunk from a checkpoint at token `first` to token end: what a chunk with a
** reset leaves depends on nothing before it. */
static void rebuild(const mn_attention *a, const mn_matrix_kernels *k, int bh, int first, int end,
                    mn_chunk_state zeros, mn_chunk_state *from, float *work) {
  for (int t = first; t + MN_CHUNK < end; t += MN_CHUNK, from++) {
    mn_tokens at = chunk_of(bh, t, end);
    at.t = last_reset(a, bh, t, t + MN_CHUNK);
    at.n = t + MN_CHUNK - at.t;
    bool drop = mn_keep(a, at.t, bh) == 0;
    if (drop) clear(a, zeros);
    k->advance(a, &at, drop ? zeros : from[0], from[1], work);
  }
}

/* Backward through the tokens between a checkpoint at `first` and the next. */
static void walk_back(const mn_attention *a, const mn_matrix_kernels *k, int bh, int first,
                      mn_chunk_state grad, mn_chunk_state zeros, mn_chunk_state *from, float *work) {
  int end = first + stride(k) < a->T ? first + stride(k) : a->T;
  int last = (end - 1) / MN_CHUNK * MN_CHUNK, before = first - stride(k);
  from[0] = checkpoint(a, k, bh, first);
  rebuild(a, k, bh, first, end, zeros, from, work);
  for (int t = last; t >= first; t -= MN_CHUNK) {
    mn_tokens at = chunk_of(bh, t, end);
    mn_chunk_state state = from[(t - first) / MN_CHUNK];
    at.back = true;
    if (before >= 0) at.next = before + last - t;
    expect_checkpoint(a, k, before, (last - t) / MN_CHUNK, &at);
    if (next_reset(a, bh, t, t + at.n) < t + at.n
        && !(all_finite(state_size(a), state.C) && finite_y(a, bh, t, t + at.n)))
      chunk_back_in_parts(a, k, at, state, grad, zeros, work);
    else
      k->chunk_back(a, &at, state, grad, work);
  }
}

static long work_size(const mn_attention *a, const mn_matrix_kernels *k) {
  return (k->span > 3 ? k->span + 1 : 4) * state_size(a) + (long)MN_CHUNK * (k->key_rows * mn_key_row(a) + k->value_rows * a->Vp)
       + 4 * MN_CHUNK * MN_CHUNK;
}

/* One head through the rows that are asked for. */
static void walk(const mn_attention *a, const mn_matrix_kernels *k, int bh, float *mine) {
  const mn_call *c = a->c;
  long state = (long)a->V * a->K;
  float *C = c->out[1].data + bh * state, *s = c->out[2].data + (long)bh * a->K;
  const float *C0 = c->in[IN_STATE].data, *s0 = c->in[IN_STATE + 1].data;
  if (C0) C0 += bh * state;
  if (s0) s0 += (long)bh * a->K;
  if (c->t1 - c->t0 >= STEPWISE) {
    if (c->t0) walk_chunks(a, k, bh, C, s, mine);
    else       walk_chunks(a, k, bh, C0, s0, mine);
    return;
  }
  if (c->t0 == 0) {
    for (long i = 0; i < state; i++) C[i] = C0 ? C0[i] : 0;
    for (int i = 0; i < a->K; i++) s[i] = s0 ? s0[i] : 0;
  }
  walk_steps(a, k, bh, C, s, mine);
}

typedef struct heads_job { const mn_attention *a; const mn_matrix_kernels *k; float *work; long size; } heads_job;

static void head_task(void *arg, int bh, int worker) {
  const heads_job *j = arg;
  walk(j->a, j->k, bh, j->work + worker * j->size);
}

void mn_matrix_forward(mn_call *c, const mn_matrix_kernels *k) {
  mn_attention a;
  open_call(&a, c, k);
  long size = work_size(&a, k);
  float *work = mn_scratch(c->ctx, 0, size * mn_threads(c->ctx));
  heads_job job = { &a, k, work, size };
  mn_parallel_for(c->ctx, a.B * a.H, head_task, &job);
}

void mn_matrix_backward(mn_call *c, const mn_matrix_kernels *k) {
  mn_attention a;
  open_call(&a, c, k);
  a.output[0] = a.output[--a.outputs];     /* what to prefetch: of y only its gradient, if there is one */
  long size = work_size(&a, k), state = (long)a.V * a.K;
  float *work = mn_scratch(c->ctx, 0, size * mn_threads(c->ctx));
  int heads = a.B * a.H;
  MN_PARALLEL(c->ctx, (double)a.T * heads * state)
  for (int bh = 0; bh < heads; bh++) {
    float *mine = work + omp_get_thread_num() * size;
    mn_chunk_state states[MN_SPAN + 1], from[MN_SPAN], grad;
    cut_states(&a, k->span + 1, states, &mine);
    grad = states[0];
    memcpy(from + 1, states + 2, sizeof *from * (size_t)(k->span - 1));
    const float *dC = c->out[1].grad, *ds = c->out[2].grad;
    widen(&a, dC ? dC + bh * state : NULL, ds ? ds + (long)bh * a.K : NULL, grad);
    for (int t = (checkpoints(&a, k) - 1) * stride(k); t >= 0; t -= stride(k))
      walk_back(&a, k, bh, t, grad, states[1], from, mine);
    float *dC0 = c->in[IN_STATE].grad, *ds0 = c->in[IN_STATE + 1].grad;
    narrow(&a, grad, dC0 ? dC0 + bh * state : NULL, ds0 ? ds0 + (long)bh * a.K : NULL);
  }
}
