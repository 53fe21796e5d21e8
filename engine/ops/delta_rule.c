/* delta_rule.c -- a matrix memory that overwrites: it reads the value stored under a key and writes the
** difference to the new value.  One op for three published rules (delta_chunk.h has the common
** form), which differ in two numbers per head and token, write and keep, and in the option `erase`; a step may have several keys.
** Sequences are computed sixteen tokens at a time, from checkpoint to checkpoint; acting computes one by one, in place. */
#include <omp.h>
#include <string.h>
#include "recurrent/delta_chunk.h"
#include "recurrent/matrix_state.h"
#include "numerics/simd.h"

enum { L = MN_CHUNK, STEPWISE = 4 };     /* fewer steps go one by one */
enum { OUT_Y, OUT_C, OUT_SUM, OUT_SAVED };

static mn_delta open_call(const mn_call *c) {
  const int keys = DIM(c, 'P') / DIM(c, 'H');
  mn_delta d = { .a = { .c = c, .T = DIM(c, 'T') * keys, .B = DIM(c, 'B'), .H = DIM(c, 'H'), .V = DIM(c, 'V'),
                        .K = DIM(c, 'K'), .scale = 1, .eps = (float)OPT(c, 1),
                        .den_clamp = (float)OPT(c, 2), .normalise = OPT(c, 3) != 0 },
                 .after = OPT(c, 0) != 0, .keys = keys };
  d.a.Kp = mn_padded(d.a.K);
  d.a.Vp = mn_padded(d.a.V);
  return d;
}

static long state_size(const mn_attention *a) { return (long)a->Vp * a->Kp + a->Kp; }

static int shape(mn_call *c) {
  const int H = DIM(c, 'H'), P = DIM(c, 'P');
  if (P == 0 || P % H) return mn_fail(c->ctx, "delta_rule: axis 2 of k is %d, expected %d, or a multiple of it: several keys a step", P, H);
  mn_delta d = open_call(c);
  double rows = (double)d.a.B * H * ((double)DIM(c, 'T') * (P / H) / L + 1);
  if (rows <= 1e9) rows = (double)d.a.B * H * mn_chunks(d.a.T);
  if (rows > 1e9 || (double)d.a.Vp * d.a.Kp > 1e9)
    return mn_fail(c->ctx, "delta_rule: a state of %d by %d values for %d heads is too large", d.a.V, d.a.K,
                   d.a.B * d.a.H);
  c->out[OUT_SAVED].shape[0] = (int)rows;
  c->out[OUT_SAVED].shape[1] = (int)state_size(&d.a);
  return 0;
}

/* ---- the state: C [V,K] outside, transposed and padded inside ---- */

/* to[cols,rows] = from[rows,cols] transposed; from NULL: zeros.  `to` may have more of both (zeros) or
** fewer (left out): its sizes are m by n. */
static void transpose(int rows, int cols, const float *from, int m, int n, float *to) {
  for (int i = 0; i < n; i += MN_LANES)
    for (int j = 0; j < m; j += MN_LANES) {
      mn_lanes a[MN_LANES];
      for (int r = 0; r < MN_LANES; r++) {
        bool in = from && i + r < rows && j < cols;
        a[r] = in ? mn_load_n(from + (long)(i + r) * cols + j, cols - j) : (mn_lanes){ 0 };
      }
      mn_turn_lanes(a);
      for (int r = 0; r < MN_LANES && j + r < m; r++) mn_store_n(to + (long)(j + r) * n + i, a[r], n - i);
    }
}

static void widen(const mn_attention *a, const float *C, const float *s, mn_delta_state to) {
  transpose(a->V, a->K, C, a->Kp, a->Vp, to.C);
  for (int i = 0; i < a->Kp; i++) to.s[i] = s && i < a->K ? s[i] : 0;
}

static void narrow(const mn_attention *a, mn_delta_state from, float *C, float *s) {
  if (C) transpose(a->Kp, a->Vp, from.C, a->V, a->K, C);
  if (s) memcpy(s, from.s, sizeof(float) * (size_t)a->K);
}

static mn_delta_state state_at(const mn_attention *a, float *p) {
  return (mn_delta_state){ p, p + (long)a->Vp * a->Kp };
}

/* The state before token t, a multiple of 16: all that backward needs of the past. */
static mn_delta_state checkpoint(const mn_attention *a, int bh, int t) {
  return state_at(a, a->c->out[OUT_SAVED].data + ((long)bh * mn_chunks(a->T) + t / L) * state_size(a));
}

/* What a chunk will read and store: n tokens from t on of head bh, which come after those that are worked on. */
static void look_ahead(const mn_delta *d, int bh, int t, int n, bool back, mn_prefetch *q) {
  const mn_attention *a = &d->a;
  const mn_arg *in = a->c->in, *y = &a->c->out[OUT_Y];
  const long heads = (long)a->B * a->H;
  mn_prefetch_open(q, back ? 1 : 4);
  if (bh >= heads) return;
  const long at = mn_delta_step(d, t, bh);
  q->rows = (n < L ? n : L) / d->keys;                   /* steps: of several keys the first and every keys-th after it */
  if (!back || a->normalise) mn_prefetch_rows(q, y->data + at * a->V, heads * a->V, a->V);
  if (back && y->grad) mn_prefetch_rows(q, y->grad + at * a->V, heads * a->V, a->V);
  for (int i = IN_Q; i <= IN_V; i++) {
    const int width = in[i].shape[3];
    const long from = (i == IN_Q ? at : mn_delta_key(d, t, bh)) * width, each = (i == IN_Q ? heads : heads * d->keys) * width;
    mn_prefetch_rows(q, in[i].data + from, each, width);
    if (back && in[i].grad) mn_prefetch_rows(q, in[i].grad + from, each, width);
  }
  if (back) q->block = checkpoint(a, bh, t).C, q->size = state_size(a);
}

/* ---- forward ---- */

/* Some tokens of one step: n of their keys, `across` keys apart, and what belongs to each. */
typedef struct keys { const float *k, *v, *q; long across; int n; float keep[L], erase[L], write[L]; } keys;

/* R sums of lanes. */
MN_INLINE void sum_rows(const int R, const mn_lanes *sum, float *to) {
  if (R == 4) {
    const mn_lanes all = mn_sums_of_4(sum);
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) to[i] = all[i];
  } else for (int i = 0; i < R; i++) to[i] = mn_sum(sum[i]);
}

/* R rows of C[V,K], from row `at` on, in place, through all tokens; num = C q.  What writes one token reads what the next one wants. */
MN_INLINE void step_rows(const int R, int K, int V, const keys *x, int at, float *restrict C, float *num) {
  mn_lanes sum[4] = { { 0 } };
  float held[4], u[4];
  C += (long)at * K;
  for (int j = 0; j < K; j += MN_LANES) {
    mn_lanes kj = mn_load_n(x->k + j, K - j);
#pragma GCC unroll 4
    for (int i = 0; i < R; i++) sum[i] += mn_load_n(C + (long)i * K + j, K - j) * kj;
  }
  for (int n = 0; n < x->n; n++) {
    const float *k = x->k + n * x->across * K, *v = x->v + n * x->across * V + at, *next = n + 1 < x->n ? k + x->across * K : x->q;
    const float keep = x->keep[n];
    sum_rows(R, sum, held);
#pragma GCC unroll 4
    for (int i = 0; i < R; i++) {
      u[i] = x->write[n] * (v[i] - x->erase[n] * held[i]);
      sum[i] = (mn_lanes){ 0 };
    }
    for (int j = 0; j < K; j += MN_LANES) {
      mn_lanes kj = mn_load_n(k + j, K - j), qj = mn_load_n(next + j, K - j);
#pragma GCC unroll 4
      for (int i = 0; i < R; i++) {
        float *to = C + (long)i * K + j;
        mn_lanes now = mn_load_n(to, K - j) * keep + kj * u[i];
        mn_store_n(to, now, K - j);
        sum[i] += now * qj;
      }
    }
  }
  sum_rows(R, sum, held);
#pragma GCC unroll 4
  for (int i = 0; i < R; i++) num[i] = held[i];
}

/* s' in place, of one token. */
static void step_sum(int K, float keep, float write, const float *k, float *s) {
  for (int j = 0; j < K; j += MN_LANES)
    mn_store_n(s + j, mn_load_n(s + j, K - j) * keep + mn_load_n(k + j, K - j) * write, K - j);
}

/* Row by row, in place in C' and s'; the tokens of a step together, unless a checkpoint lies between them. */
static void walk_steps(const mn_delta *d, int bh, float *C, float *s, float *num) {
  const mn_attention *a = &d->a;
  const mn_call *c = a->c;
  const int K = a->K, V = a->V, end = c->t1 * d->keys;
  for (int t = c->t0 * d->keys, after; t < end; t = after) {
    if (c->taped && t % L == 0) widen(a, C, s, checkpoint(a, bh, t));
    if (mn_delta_reset(d, t, bh)) {
      memset(C, 0, sizeof(float) * (size_t)V * (size_t)K);
      memset(s, 0, sizeof(float) * (size_t)K);
    }
    const long at = mn_delta_step(d, t, bh), key = mn_delta_key(d, t, bh);
    keys x = { c->in[IN_K].data + key * K, c->in[IN_V].data + key * V, c->in[IN_Q].data + at * K, a->H, 0, { 0 }, { 0 }, { 0 } };
    for (after = t; x.n == 0 || (after % L && !mn_delta_first(d, after)); after++, x.n++) {
      const float keep = c->in[IN_KEEP].data && mn_delta_first(d, after) ? c->in[IN_KEEP].data[at] : 1;
      x.keep[x.n] = keep, x.erase[x.n] = d->after ? keep : 1, x.write[x.n] = c->in[IN_WRITE].data[key + (long)x.n * a->H];
      step_sum(K, keep, x.write[x.n], x.k + (long)x.n * a->H * K, s);
    }
    int i = 0;
    for (; i + 4 <= V; i += 4) step_rows(4, K, V, &x, i, C, num + i);
    for (; i < V; i++) step_rows(1, K, V, &x, i, C, num + i);
    if (mn_delta_last(d, after - 1)) mn_divide(a, at, num, a->normalise ? mn_dot(K, s, x.q) : 0);
  }
}

/* Up to sixteen tokens at a time, from checkpoint to checkpoint. */
static void walk_chunks(const mn_delta *d, int bh, const float *C, const float *s, float *work) {
  const mn_attention *a = &d->a;
  const mn_call *c = a->c;
  mn_delta_state spare[2], now, next;
  for (int i = 0; i < 2; i++) spare[i] = state_at(a, mn_alloc_from(&work, state_size(a)));
  const int t0 = c->t0 * d->keys, t1 = c->t1 * d->keys;
  now = t0 % L ? spare[0] : checkpoint(a, bh, t0);
  widen(a, C, s, now);
  for (int t = t0, end; t < t1; t = end, now = next) {
    end = (t / L + 1) * L;
    if (end > t1) end = t1;
    next = end % L == 0 && end < a->T ? checkpoint(a, bh, end) : spare[1];
    const int soon = end < t1 ? end : t0;
    mn_prefetch q;
    look_ahead(d, soon == end ? bh : bh + 1, soon, t1 - soon, false, &q);
    mn_delta_chunk(d, bh, t, end - t, now, next, &q, work);
  }
  narrow(a, now, c->out[OUT_C].data + (long)bh * a->V * a->K, c->out[OUT_SUM].data + (long)bh * a->K);
}

typedef struct heads_job { const mn_delta *d; float *work; long size; } heads_job;

/* One head through the rows that are asked for. */
static void walk(void *arg, int bh, int worker) {
  const heads_job *j = arg;
  const mn_attention *a = &j->d->a;
  const mn_call *c = a->c;
  float *work = j->work + worker * j->size;
  size_t state = (size_t)a->V * (size_t)a->K, K = (size_t)a->K;
  float *C = c->out[OUT_C].data + (size_t)bh * state, *s = c->out[OUT_SUM].data + (size_t)bh * K;
  const float *C0 = c->in[IN_C].data, *s0 = c->in[IN_SUM].data;
  if (C0) C0 += (size_t)bh * state;
  if (s0) s0 += (size_t)bh * K;
  if (c->t1 - c->t0 >= STEPWISE) {
    walk_chunks(j->d, bh, c->t0 ? C : C0, c->t0 ? s : s0, work);
    return;
  }
  if (c->t0 == 0) {
    if (C0) memcpy(C, C0, sizeof(float) * state);
    else    memset(C, 0, sizeof(float) * state);
    if (s0) memcpy(s, s0, sizeof(float) * K);
    else    memset(s, 0, sizeof(float) * K);
  }
  walk_steps(j->d, bh, C, s, work);
}

static long work_size(const mn_delta *d) { return 2 * state_size(&d->a) + mn_delta_work(d); }

static void forward(mn_call *c) {
  mn_delta d = open_call(c);
  long size = work_size(&d);
  heads_job job = { &d, mn_scratch(c->ctx, 0, size * mn_threads(c->ctx)), size };
  mn_parallel_for(c->ctx, d.a.B * d.a.H, walk, &job);
}

static void backward(mn_call *c) {
  mn_delta d = open_call(c);
  const mn_attention *a = &d.a;
  long size = work_size(&d), state = (long)a->V * a->K;
  float *work = mn_scratch(c->ctx, 0, size * mn_threads(c->ctx));
  const float *dC = c->out[OUT_C].grad, *ds = c->out[OUT_SUM].grad;
  float *dC0 = c->in[IN_C].grad, *ds0 = c->in[IN_SUM].grad;
  MN_PARALLEL(c->ctx, (double)a->T * a->B * a->H * (double)state)
  for (int bh = 0; bh < a->B * a->H; bh++) {
    float *mine = work + omp_get_thread_num() * size;
    mn_delta_state grad = state_at(a, mn_alloc_from(&mine, state_size(a)));
    widen(a, dC ? dC + bh * state : NULL, ds ? ds + (long)bh * a->K : NULL, grad);
    const int newest = (mn_chunks(a->T) - 1) * L;
    for (int t = newest; t >= 0; t -= L) {
      mn_prefetch q;
      if (t) look_ahead(&d, bh, t - L, L, true, &q);
      else   look_ahead(&d, bh + 1, newest, a->T - newest, true, &q);
      mn_delta_chunk_back(&d, bh, t, a->T - t < L ? a->T - t : L, checkpoint(a, bh, t), grad, &q, mine);
    }
    narrow(a, grad, dC0 ? dC0 + bh * state : NULL, ds0 ? ds0 + (long)bh * a->K : NULL);
  }
}

const mn_op mn_op_delta_rule = {
  .sig = "q[T,B,H,K] k[T,B,P,K] v[T,B,P,V] write[T,B,P] keep?[T,B,H]:01 done?[T,B]:bit "
         "C?[B,H,V,K] s?[B,H,K] -> y[T,B,H,V] C'[B,H,V,K] s'[B,H,K] ~~saved[?,?] "
         "| erase=before|after eps=1e-5 den_clamp=0 normalise=1",
  .doc = "delta rule: C = keep C + write (v - e C k) k^T, s = keep s + write k, y = C q / den(s.q); "
         "e = 1, or keep with erase=after (Schlag et al. 2021; Yang et al. 2024, Gated Delta Networks).  P = n H: n keys a step, first the "
         "first key of all heads; each writes in turn, the first decays, the last is read after (Siems et al. 2025, DeltaProduct)",
  .time = MN_SCAN,
  .forward = forward,
  .backward = backward,
  .shape = shape,
};
