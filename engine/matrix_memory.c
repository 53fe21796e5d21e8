/* matrix_memory.c -- walks time for the ops whose state is a matrix C[V,K] and a sum of keys s[K].
** Heads are independent: each thread takes whole heads, so the numbers do not depend on how many. */
#include <omp.h>
#include <string.h>
#include "matrix_memory.h"
#include "team.h"
#include "simd.h"

enum { STEPWISE = 4 };           /* fewer rows go one by one: a chunk costs the same for 1 as for 16 */

static long state_size(const mn_attention *a) { return (long)a->Vp * a->Kp + a->Kp; }

static int open_call(mn_attention *a, const mn_call *c, const mn_matrix_kernels *k) {
  if (mn_attention_open(a, c, k->name, 0)) return -1;
  a->raw = k->may_write_raw && OPT(c, 3) != 0;
  return 0;
}

static mn_chunk_state checkpoint(const mn_attention *a, int bh, int t) {
  float *at = a->c->out[3].data + ((long)bh * mn_chunks(a->T) + t / MN_CHUNK) * state_size(a);
  return (mn_chunk_state){ at, at + (long)a->Vp * a->Kp };
}

int mn_matrix_shape(mn_call *c, const mn_matrix_kernels *k) {
  mn_attention a;
  if (open_call(&a, c, k)) return -1;
  if (mn_attention_axis(c, k->name, IN_STATE, "C", 3, a.K)) return -1;
  if (mn_attention_axis(c, k->name, IN_STATE + 1, "s", 2, a.K)) return -1;
  double rows = (double)a.B * a.H * mn_chunks(a.T);
  if (rows > 1e9 || (double)a.Vp * a.Kp > 1e9)
    return mn_fail(c->ctx, "%s: a state of %d by %d numbers for %d heads is too large", k->name,
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

/* Ask for a sixteenth of the checkpoint that comes next: read by backward, written by forward. */
static void expect_checkpoint(const mn_attention *a, int bh, int t, int part, bool back) {
  if (t < 0 || t >= a->T) return;
  long n = state_size(a) / MN_CHUNK;
  const float *at = checkpoint(a, bh, t).C + part * n;
  for (long i = 0; i < n; i += 16)
    if (back) __builtin_prefetch(at + i, 0, 2);
    else __builtin_prefetch(at + i, 1, 2);
}

void mn_load_keys(const mn_attention *a, int bh, int t, int n, bool back, float *q, float *write,
                  float *decay) {
  long Kp = a->Kp;
  int next = back ? t - MN_CHUNK : t + MN_CHUNK;
  for (int i = 0; i < n; i++) {
    mn_keys(a, mn_token(a, t + i, bh), mn_keep(a, t + i, bh), q + i * Kp, write + i * Kp,
            decay + i * Kp);
    mn_expect(a, next + i, bh, back);
    expect_checkpoint(a, bh, next, i, back);
    if (back) mn_expect_grads(a, t + i, bh);
  }
  for (long i = n * Kp; i < MN_CHUNK * Kp; i++) q[i] = write[i] = 0, decay[i] = 1;
}

void mn_write_y(const mn_attention *a, int bh, int t, int n, const float *num, const float *z) {
  for (int i = 0; i < n; i++) mn_divide(a, mn_token(a, t + i, bh), num + (long)i * a->Vp, z[i]);
}

void mn_read_dy(const mn_attention *a, int bh, int t, int n, const float *z, float *dnum,
                float *dz) {
  memset(dnum + (long)n * a->Vp, 0, sizeof(float) * (size_t)(MN_CHUNK - n) * (size_t)a->Vp);
  for (int i = 0; i < MN_CHUNK; i++)
    dz[i] = i < n ? mn_divide_back(a, mn_token(a, t + i, bh), z[i], dnum + (long)i * a->Vp) : 0;
}

/* One token at a time, in place in C' and s'. */
static void walk_steps(const mn_attention *a, const mn_matrix_kernels *k, int bh, float *C,
                       float *s, float *work) {
  const mn_call *c = a->c;
  float *q = mn_cut(&work, a->Kp), *write = mn_cut(&work, a->Kp), *decay = mn_cut(&work, a->Kp);
  float *num = mn_cut(&work, a->Vp);
  for (int t = c->t0; t < c->t1; t++) {
    if (t % MN_CHUNK == 0) widen(a, C, s, checkpoint(a, bh, t));
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
    states[i].C = mn_cut(work, (long)a->Vp * a->Kp);
    states[i].s = mn_cut(work, a->Kp);
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

/* The first reset among tokens t .. end-1; end if there is none. */
static int next_reset(const mn_attention *a, int bh, int t, int end) {
  while (t < end && mn_keep(a, t, bh) != 0) t++;
  return t;
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

/* Tokens t .. end-1 of one chunk by parts.  spare: two more states. */
static void chunk_in_parts(const mn_attention *a, const mn_matrix_kernels *k, int bh, int t, int end,
                           mn_chunk_state now, mn_chunk_state to, mn_chunk_state spare[2],
                           float *work) {
  for (int next; t < end; t = next) {
    next = next_reset(a, bh, t + 1, end);
    if (mn_keep(a, t, bh) == 0) clear(a, spare[0]), now = spare[0];
    k->chunk(a, bh, t, next - t, now, next == end ? to : spare[1], work);
  }
}

/* Backward of one chunk by parts.  zeros: a state. */
static void chunk_back_in_parts(const mn_attention *a, const mn_matrix_kernels *k, int bh, int t,
                                int end, mn_chunk_state from, mn_chunk_state grad,
                                mn_chunk_state zeros, float *work) {
  clear(a, zeros);
  while (end > t) {
    int begin = end - 1;
    while (begin > t && mn_keep(a, begin, bh) != 0) begin--;
    bool drop = mn_keep(a, begin, bh) == 0;
    k->chunk_back(a, bh, begin, end - begin, drop ? zeros : from, grad, work);
    if (drop) clear(a, grad);
    end = begin;
  }
}

/* Up to sixteen tokens at a time, from checkpoint to checkpoint. */
static void walk_chunks(const mn_attention *a, const mn_matrix_kernels *k, int bh, const float *C,
                        const float *s, float *work) {
  const mn_call *c = a->c;
  mn_chunk_state spare[4], now, next;
  cut_states(a, 4, spare, &work);
  now = c->t0 % MN_CHUNK ? spare[0] : checkpoint(a, bh, c->t0);
  widen(a, C, s, now);
  for (int t = c->t0, end; t < c->t1; t = end, now = next) {
    end = (t / MN_CHUNK + 1) * MN_CHUNK;
    if (end > c->t1) end = c->t1;
    next = end % MN_CHUNK == 0 && end < a->T ? checkpoint(a, bh, end) : spare[1];
    k->chunk(a, bh, t, end - t, now, next, work);
    if (next_reset(a, bh, t, end) < end && !finite_y(a, bh, t, end))
      chunk_in_parts(a, k, bh, t, end, now, next, spare + 2, work);
  }
  narrow(a, now, c->out[1].data + (long)bh * a->V * a->K, c->out[2].data + (long)bh * a->K);
}

static long work_size(const mn_attention *a, const mn_matrix_kernels *k) {
  return 4 * state_size(a) + (long)MN_CHUNK * (k->key_rows * a->Kp + k->value_rows * a->Vp)
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

static void some_head(void *arg, int bh, int worker) {
  const heads_job *j = arg;
  walk(j->a, j->k, bh, j->work + worker * j->size);
}

void mn_matrix_forward(mn_call *c, const mn_matrix_kernels *k) {
  mn_attention a;
  open_call(&a, c, k);
  long size = work_size(&a, k);
  float *work = mn_scratch(c->ctx, 0, size * mn_threads(c->ctx));
  heads_job job = { &a, k, work, size };
  mn_team_run(c->ctx, a.B * a.H, some_head, &job);
}

void mn_matrix_backward(mn_call *c, const mn_matrix_kernels *k) {
  mn_attention a;
  open_call(&a, c, k);
  long size = work_size(&a, k), state = (long)a.V * a.K;
  float *work = mn_scratch(c->ctx, 0, size * mn_threads(c->ctx));
  int heads = a.B * a.H;
  MN_PARALLEL(c->ctx, (double)a.T * heads * state)
  for (int bh = 0; bh < heads; bh++) {
    float *mine = work + omp_get_thread_num() * size;
    mn_chunk_state states[2], grad;
    cut_states(&a, 2, states, &mine);
    grad = states[0];
    const float *dC = c->out[1].grad, *ds = c->out[2].grad;
    widen(&a, dC ? dC + bh * state : NULL, ds ? ds + (long)bh * a.K : NULL, grad);
    for (int t = (mn_chunks(a.T) - 1) * MN_CHUNK; t >= 0; t -= MN_CHUNK) {
      int end = a.T - t < MN_CHUNK ? a.T : t + MN_CHUNK;
      mn_chunk_state from = checkpoint(&a, bh, t);
      if (next_reset(&a, bh, t, end) < end
          && !(all_finite(state_size(&a), from.C) && finite_y(&a, bh, t, end)))
        chunk_back_in_parts(&a, k, bh, t, end, from, grad, states[1], mine);
      else
        k->chunk_back(&a, bh, t, end - t, from, grad, mine);
    }
    float *dC0 = c->in[IN_STATE].grad, *ds0 = c->in[IN_STATE + 1].grad;
    narrow(&a, grad, dC0 ? dC0 + bh * state : NULL, ds0 ? ds0 + (long)bh * a.K : NULL);
  }
  mn_shrink_back(&a);
}
