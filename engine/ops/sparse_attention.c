/* sparse_attention.c -- softmax attention in which every row of queries lists the keys it sees.
** Longformer's window, Big Bird's blocks, Transformer-LS's two kinds of keys and full softmax, causal
** or not, are lists of ranges; time and memory grow with the listed keys only. */
#include <omp.h>
#include <string.h>
#include "attention/key_ranges.h"
#include "op.h"

typedef struct plan {          /* one call, its sizes worked out */
  const mn_call *c;
  int H, N, M, D, P, R, each;  /* each: rows that share an entry of the list */
  int stride;                  /* from one row of a tile to the next */
  bool causal, by_head, back;
  long keys, work;             /* of the largest tile; floats of work for one thread */
} plan;

typedef struct mine {          /* work of one thread */
  mn_run *run;
  float *kt, *vt, *tile;       /* keys and values of its head, turned; vt: NULL unless wanted */
} mine;

/* What row i sees by its entry's r-th range: those keys of it that there are. */
static mn_range seen(const plan *p, int h, int i, int r) {
  const int32_t *e = p->c->in[3].i32
                     + (((p->by_head ? (long)h : 0) * p->P + i / p->each) * p->R + r) * 3;
  long from = e[0], step = e[2] < 1 ? 1 : e[2], n = e[1];
  long skip = from < 0 ? (-from + step - 1) / step : 0, end = p->causal ? i + p->M - p->N + 1L : p->M;
  from += skip * step, n -= skip;
  if (from + (n - 1) * step >= end) n = from < end ? (end - from - 1) / step + 1 : 0;
  return n > 0 ? (mn_range){ (int)from, (int)n, (int)step } : (mn_range){ 0, 0, 1 };
}

/* What a tile's rows see by their r-th range, all together; false where they are not in step. */
static bool span_of(const plan *p, int h, int i, int rows, int r, mn_range *span, int *lo, int *hi) {
  mn_range a[MN_TILE];
  for (int k = 0; k < rows; k++) a[k] = seen(p, h, i + k * p->stride, r);
  return mn_unite(rows, a, span, lo, hi);
}

/* How many rows from i on go together: of one entry, or of entries that are in step. */
static int tile_rows(const plan *p, int h, int i) {
  int rows = 1, lo[MN_TILE], hi[MN_TILE];
  mn_range span;
  while (rows < MN_TILE && i + rows * p->stride < p->N) {
    int next = i + rows * p->stride;
    if (p->each > 1 && next / p->each != i / p->each) break;
    for (int r = 0; r < p->R; r++) if (!span_of(p, h, i, rows + 1, r, &span, lo, hi)) return rows;
    rows++;
  }
  return rows;
}

/* The runs of a tile, and how many keys they have; with m NULL they are only counted. */
static long runs_of(const plan *p, int b, int h, int i, int rows, const mine *m) {
  const mn_call *c = p->c;
  long keys = 0, base = ((long)b * p->H + h) * p->M;
  for (int r = 0; r < p->R; r++) {
    mn_run run = { 0 };
    mn_range s;
    span_of(p, h, i, rows, r, &s, run.lo, run.hi);
    keys += s.n;
    if (!m) continue;
    long at = (base + s.from) * p->D;
    bool turned = s.step == 1;
    run.k = c->in[1].data + at, run.v = c->in[2].data + at, run.n = s.n;
    run.step = run.dstep = (long)s.step * p->D;
    run.turned = mn_turned_row(p->M);
    if (c->in[1].grad) run.dk = c->in[1].grad + at;
    if (c->in[2].grad) run.dv = c->in[2].grad + at;
    if (turned) run.kt = m->kt + s.from;
    if (turned && m->vt) run.vt = m->vt + s.from;
    m->run[r] = run;
  }
  return keys;
}

/* The keys of the largest tile. */
static long most_keys(const plan *p) {
  long most = 0;
  for (int h = 0; h < (p->by_head ? p->H : 1); h++)
    for (int start = 0; start < p->stride; start++)
      for (int i = start, rows; i < p->N; i += rows * p->stride) {
        rows = tile_rows(p, h, i);
        long keys = runs_of(p, 0, h, i, rows, NULL);
        if (keys > most) most = keys;
      }
  return most;
}

static long run_size(const plan *p) { return mn_padded((long)(sizeof(mn_run) / sizeof(float)) * p->R); }

static plan open_call(const mn_call *c, bool back) {
  plan p = { .c = c, .H = DIM(c, 'H'), .N = DIM(c, 'N'), .M = DIM(c, 'M'), .D = DIM(c, 'D'), .P = DIM(c, 'P'),
             .R = DIM(c, 'R'), .by_head = c->in[3].shape[0] > 1, .causal = OPT(c, 0) != 0, .back = back };
  p.each = p.N / p.P;
  p.stride = p.each > 1 ? 1 : (int)OPT(c, 1);
  p.keys = most_keys(&p);
  p.work = run_size(&p) + (back ? 2 : 1) * mn_turned_size(p.D, p.M) + mn_tile_work(p.keys, p.R, p.D);
  return p;
}

/* All tiles of one head. */
static void head(const plan *p, int b, int h, float *work) {
  const mn_call *c = p->c;
  long base = ((long)b * p->H + h) * p->N, keys = ((long)b * p->H + h) * p->M * p->D;
  mine m = { .run = (mn_run *)(void *)work, .kt = work + run_size(p) };
  m.tile = m.kt + mn_turned_size(p->D, p->M);
  mn_turn(p->D, p->M, c->in[1].data + keys, p->D, m.kt);
  if (p->back) {
    m.vt = m.tile, m.tile += mn_turned_size(p->D, p->M);
    mn_turn(p->D, p->M, c->in[2].data + keys, p->D, m.vt);
  }
  mn_tile t = { .D = p->D, .n_runs = p->R, .run = m.run, .work = m.tile, .scale = 1 / __builtin_sqrtf((float)p->D) };
  for (int start = 0; start < p->stride; start++)
    for (int i = start; i < p->N; i += t.rows * p->stride) {
      t.rows = tile_rows(p, h, i);
      runs_of(p, b, h, i, t.rows, &m);
      for (int k = 0; k < t.rows; k++) {
        long at = (base + i + k * p->stride) * p->D;
        t.q[k] = c->in[0].data + at;
        t.y[k] = c->out[0].data + at;
        t.dy[k] = p->back ? c->out[0].grad + at : NULL;
        t.dq[k] = p->back && c->in[0].grad ? c->in[0].grad + at : NULL;
      }
      if (p->back) mn_tile_backward(&t);
      else mn_tile_forward(&t);
    }
}

static void heads(mn_call *c, bool back) {
  plan p = open_call(c, back);
  float *work = mn_scratch(c->ctx, 0, p.work * mn_threads(c->ctx));
  int n = DIM(c, 'B') * p.H;
  MN_PARALLEL(c->ctx, (double)c->in[0].n * (double)p.keys)
  for (int bh = 0; bh < n; bh++) head(&p, bh / p.H, bh % p.H, work + omp_get_thread_num() * p.work);
}

static int shape(mn_call *c) {
  int G = c->in[3].shape[0], H = DIM(c, 'H'), N = DIM(c, 'N'), P = DIM(c, 'P');
  double stride = OPT(c, 1);
  if (G != 1 && G != H)
    return mn_fail(c->ctx, "sparse_attention: axis 0 of ranges is %d, expected 1 or %d (H)", G, H);
  if (N % P)
    return mn_fail(c->ctx, "sparse_attention: axis 1 (P) of ranges is %d, expected a divisor of %d (N)", P, N);
  if (!(stride >= 1 && stride <= N) || stride != (int)stride)
    return mn_fail(c->ctx, "sparse_attention: stride is %g, expected a whole number from 1 to %d", stride, N);
  return 0;
}

static void forward(mn_call *c) { heads(c, false); }

static void backward(mn_call *c) {
  for (int i = 1; i <= 2; i++)
    if (c->in[i].grad) memset(c->in[i].grad, 0, sizeof(float) * (size_t)c->in[i].n);
  heads(c, true);
}

const mn_op mn_op_sparse_attention = {
  .sig = "q[B,H,N,D] k[B,H,M,D] v[B,H,M,D] ranges[?,P,R,3]:i32 -> y[B,H,N,D] | causal=0 stride=1",
  .doc = "softmax(q.k / sqrt(D)) v over ranges of keys. ranges [1 or H,P,R] of (from, count, step), the same for N/P rows each; keys out of range are "
      "left out, a key named twice counts twice; causal: row i attends to keys up to M-N+i; 0 if a row attends to none; stride: rows this far apart "
      "share their ranges (a dilation)",
  .time = MN_PER_ROW, .shape = shape, .forward = forward, .backward = backward,
};
