/* wkv.c -- runs along time for RWKV's matrix memories: see wkv.h.
** Heads are independent: each thread takes whole heads, so the numbers do not depend on how many threads there are. */
#include <omp.h>
#include <string.h>
#include "numerics/simd.h"
#include "wkv.h"

enum { L = MN_CHUNK };
enum { STEPWISE = 4 };           /* fewer rows go one by one: a piece costs much of what sixteen do */
enum { SMALL = 10000 };          /* numbers of all states, that one thread does sooner than two */

static int windows(int T) { return (T + L - 1) / L; }
static long state_size(const mn_wkv *a) { return (long)a->Kp * a->Vp; }

static mn_wkv open_call(mn_call *c, const mn_wkv_op *op) {
  mn_wkv a = { .c = c, .op = op, .T = DIM(c, 'T'), .B = DIM(c, 'B'), .H = DIM(c, 'H'), .K = DIM(c, 'K'), .V = DIM(c, 'V'),
               .ahead = L };
  a.Kp = mn_padded(a.K);
  a.Vp = mn_padded(a.V);
  return a;
}

int mn_wkv_shape(mn_call *c, const mn_wkv_op *op) {
  mn_wkv a = open_call(c, op);
  double rows = (double)a.B * a.H * windows(a.T);
  if (rows > 1e9 || (double)a.Kp * a.Vp > 1e9)
    return mn_fail(c->ctx, "%s: a state of %d by %d values for %d heads is too large", op->name, a.K, a.V, a.B * a.H);
  c->out[2].shape[0] = (int)rows;
  c->out[2].shape[1] = (int)state_size(&a);
  return 0;
}

/* ---- rows of one head ---- */

/* n rows, `from_row` and `to_row` apart; `whole`: no vector of them is cut short. */
MN_INLINE void copy_rows(const bool whole, int n, const float *from, long from_row, int width, float *to, long to_row) {
  for (; n > 0; n--, from += from_row, to += to_row)
    for (int j = 0; j < width; j += MN_LANES) {
      if (whole) mn_store(to + j, mn_load(from + j));
      else mn_store_n(to + j, mn_load_n(from + j, width - j), width - j);
    }
}

static void copy(int n, const float *from, long from_row, int width, float *to, long to_row) {
  if (width % MN_LANES == 0) copy_rows(true, n, from, from_row, width, to, to_row);
  else copy_rows(false, n, from, from_row, width, to, to_row);
}

static void spread(int n, long from_row, const float *from, int width, float fill, float *to) {
  int padded = (int)mn_padded(width);
  copy(n, from, from_row, width, to, padded);
  for (int i = 0; i < n && width < padded; i++) memset(to + i * padded + width, 0, sizeof(float) * (size_t)(padded - width));
  for (long j = (long)n * padded; j < (long)L * padded; j += MN_LANES) mn_store(to + j, mn_splat(fill));
}

static void gather(int n, const float *from, int width, long to_row, float *to) {
  copy(n, from, mn_padded(width), width, to, to_row);
}

static long row_at(const mn_wkv *a, int bh, int t, int n) { return ((long)t * a->B * a->H + bh) * n; }

static const float *at_row(const mn_wkv *a, const float *p, int bh, int t, int n) {
  return p ? p + row_at(a, bh, t, n) : NULL;
}

void mn_wkv_load(const mn_wkv *a, int i, int bh, int t, int n, float fill, float *to) {
  int width = a->c->in[i].shape[3];
  long from_row = (long)a->B * a->H * width;
  spread(n, from_row, mn_wkv_at(a, i, bh, t, width), width, fill, to);
}

void mn_wkv_store(const mn_wkv *a, int i, int bh, int t, int n, const float *from) {
  int width = a->c->in[i].shape[3];
  float *to = a->c->in[i].grad;
  if (to) gather(n, from, width, (long)a->B * a->H * width, to + row_at(a, bh, t, width));
}

void mn_wkv_write_y(const mn_wkv *a, int bh, int t, int n, const float *y) {
  gather(n, y, a->V, (long)a->B * a->H * a->V, a->c->out[0].data + row_at(a, bh, t, a->V));
}

void mn_wkv_read_dy(const mn_wkv *a, int bh, int t, int n, float *dy) {
  const float *from = a->c->out[0].grad;
  long from_row = (long)a->B * a->H * a->V;
  if (!from) {
    memset(dy, 0, sizeof(float) * L * (size_t)a->Vp);
    return;
  }
  spread(n, from_row, from + row_at(a, bh, t, a->V), a->V, 0, dy);
}

/* ---- time ---- */

static bool resets(const mn_wkv *a, int bh, int t) {
  const uint8_t *done = a->c->in[a->op->done].u8;
  return done && done[t * a->B + bh / a->H];
}

/* Where the piece that begins at t ends. */
static int piece_end(const mn_wkv *a, int bh, int t, int most) {
  int end = (t / L + 1) * L;
  if (end > most) end = most;
  for (int i = t + 1; i < end; i++) if (resets(a, bh, i)) return i;
  return end;
}

static float *checkpoint(const mn_wkv *a, int bh, int t) {
  return a->c->out[2].data + ((long)bh * windows(a->T) + t / L) * state_size(a);
}

void mn_wkv_prefetch(const mn_wkv *a, int bh, int t, mn_prefetch *q) {
  const mn_arg *in = a->c->in, *y = a->c->out;
  const bool back = a->ahead < 0;
  const long heads = (long)a->B * a->H;
  mn_prefetch_open(q, back ? 1 : 4);
  t = t / L * L + a->ahead;
  if (t < 0 || t >= a->T) bh++, t = t < 0 ? (windows(a->T) - 1) * L : 0;
  if (bh >= heads) return;
  q->rows = a->T - t < L ? a->T - t : L;
  mn_prefetch_rows(q, at_row(a, back ? y->grad : y->data, bh, t, a->V), heads * a->V, a->V);
  for (int m = 0; m < a->op->rows; m++) {
    int width = in[m].shape[3];
    mn_prefetch_rows(q, at_row(a, in[m].data, bh, t, width), heads * width, width);
    if (back) mn_prefetch_rows(q, at_row(a, in[m].grad, bh, t, width), heads * width, width);
  }
  if (back) q->block = checkpoint(a, bh, t), q->size = state_size(a);
}

/* [K,V] to [Kp,Vp], padded (zeros where S is NULL); and back. */
static void widen(const mn_wkv *a, const float *S, float *to) {
  if (!S || a->K < a->Kp || a->V < a->Vp) memset(to, 0, sizeof(float) * (size_t)state_size(a));
  for (int i = 0; S && i < a->K; i++) memcpy(to + (long)i * a->Vp, S + (long)i * a->V, sizeof(float) * (size_t)a->V);
}

static void narrow(const mn_wkv *a, const float *from, float *S) {
  for (int i = 0; i < a->K; i++) memcpy(S + (long)i * a->V, from + (long)i * a->Vp, sizeof(float) * (size_t)a->V);
}

static long work_size(const mn_wkv *a) {
  return 2 * state_size(a) + (long)L * (a->op->key_rows * a->Kp + a->op->value_rows * a->Vp) + 16 * L * L;
}

static void walk_steps(const mn_wkv *a, int bh, float *S, float *work) {
  for (int t = a->c->t0; t < a->c->t1; t++) {
    if (resets(a, bh, t)) memset(S, 0, sizeof(float) * (size_t)a->K * (size_t)a->V);
    if (t % L == 0) widen(a, S, checkpoint(a, bh, t));
    a->op->step(a, bh, t, S, work);
  }
}

static void walk_pieces(const mn_wkv *a, int bh, float *S, float *work) {
  float *spare = mn_alloc_from(&work, state_size(a)), *now = a->c->t0 % L ? spare : checkpoint(a, bh, a->c->t0), *next;
  widen(a, S, now);
  for (int t = a->c->t0, end; t < a->c->t1; t = end, now = next) {
    if (resets(a, bh, t)) memset(now, 0, sizeof(float) * (size_t)state_size(a));
    end = piece_end(a, bh, t, a->c->t1);
    next = end % L == 0 && end < a->T ? checkpoint(a, bh, end) : spare;
    a->op->piece(a, bh, t, end - t, now, next, work);
  }
  narrow(a, now, S);
}

typedef struct heads_job { const mn_wkv *a; float *work; long size; } heads_job;

static void walk(void *arg, int bh, int worker) {
  const heads_job *j = arg;
  const mn_wkv *a = j->a;
  size_t n = (size_t)a->K * (size_t)a->V;
  float *S = a->c->out[1].data + (size_t)bh * n, *work = j->work + worker * j->size;
  const float *first = a->c->in[a->op->state].data;
  if (a->c->t0 == 0) {
    if (first) memcpy(S, first + (size_t)bh * n, sizeof(float) * n);
    else memset(S, 0, sizeof(float) * n);
  }
  if (a->c->t1 - a->c->t0 < STEPWISE) walk_steps(a, bh, S, work);
  else walk_pieces(a, bh, S, work);
}

void mn_wkv_forward(mn_call *c, const mn_wkv_op *op) {
  mn_wkv a = open_call(c, op);
  long size = work_size(&a);
  heads_job job = { &a, mn_scratch(c->ctx, 0, size * mn_threads(c->ctx)), size };
  int heads = a.B * a.H;
  if ((double)(c->t1 - c->t0) * heads * a.K * a.V < SMALL) for (int bh = 0; bh < heads; bh++) walk(&job, bh, 0);
  else mn_parallel_for(c->ctx, heads, walk, &job);
}

/* A window's pieces, newest first.  Only the first can start from something: the others start at a reset, and
** nothing goes back across one. */
static void window_back(const mn_wkv *a, int bh, int t0, float *dS, float *work) {
  int start[L], pieces = 0, end = t0 + L < a->T ? t0 + L : a->T;
  float *zero = mn_alloc_from(&work, state_size(a));
  size_t bytes = sizeof(float) * (size_t)state_size(a);
  for (int t = t0; t < end; t = piece_end(a, bh, t, end)) start[pieces++] = t;
  if (pieces > 1) memset(zero, 0, bytes);
  for (int i = pieces - 1; i >= 0; end = start[i--]) {
    a->op->piece_back(a, bh, start[i], end - start[i], i ? zero : checkpoint(a, bh, t0), dS, work);
    if (resets(a, bh, start[i])) memset(dS, 0, bytes);
  }
}

void mn_wkv_backward(mn_call *c, const mn_wkv_op *op, int sum) {
  mn_wkv a = open_call(c, op);
  long size = work_size(&a), heads = a.B * a.H, n = (long)a.K * a.V;
  float *work = mn_scratch(c->ctx, 0, size * mn_threads(c->ctx));
  a.ahead = -L;
  a.sums = mn_scratch(c->ctx, 1, heads * a.Kp);
  memset(a.sums, 0, sizeof(float) * (size_t)(heads * a.Kp));
  MN_PARALLEL(c->ctx, (double)a.T * (double)heads * (double)n)
  for (int bh = 0; bh < heads; bh++) {
    float *mine = work + omp_get_thread_num() * size, *dS = mn_alloc_from(&mine, state_size(&a));
    widen(&a, c->out[1].grad ? c->out[1].grad + bh * n : NULL, dS);
    for (int t = (windows(a.T) - 1) * L; t >= 0; t -= L) window_back(&a, bh, t, dS, mine);
    float *first = c->in[op->state].grad;
    if (first) narrow(&a, dS, first + bh * n);
  }
  if (sum < 0 || !c->in[sum].grad) return;
  for (int h = 0; h < a.H; h++)
    for (int j = 0; j < a.K; j++) {
      float total = 0;
      for (int b = 0; b < a.B; b++) total += a.sums[(long)(b * a.H + h) * a.Kp + j];
      c->in[sum].grad[h * a.K + j] = total;
    }
}
