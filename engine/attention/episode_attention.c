/* episode_attention.c -- attention to positions of the row's own episode.  Long calls first copy each head's keys into
** contiguous, transposed memory; calls of a few rows read them in place. */
#include <assert.h>
#include <omp.h>
#include <string.h>
#include "episode_attention.h"

enum { STEPWISE = 8, MOST_RUNS = 4 };   /* a range lies in at most that many pieces */

mn_keys mn_episode_tokens(const mn_call *c, int b, int h, int mk, int pinned) {
  int H = c->in[EP_K].shape[2], D = c->in[EP_K].shape[3], S = c->in[mk].shape[1];
  long head = ((long)b * H + h) * D, old = ((long)b * S * H + h) * D;
  const mn_arg *k = &c->in[EP_K], *v = &c->in[EP_V], *ok = &c->in[mk], *ov = &c->in[mk + 1];
  return (mn_keys){ .k = k->data + head, .v = v->data + head, .old_k = ok->data + old, .old_v = ov->data + old,
                    .dk = k->grad ? k->grad + head : NULL, .dv = v->grad ? v->grad + head : NULL,
                    .dold_k = ok->grad ? ok->grad + old : NULL, .dold_v = ov->grad ? ov->grad + old : NULL,
                    .step = (long)k->shape[1] * H * D, .old_step = (long)H * D,
                    .rows = k->shape[0], .slots = S, .pinned = pinned };
}

/* ---- one head's keys, as the tiles read them ---- */

typedef struct source {        /* rows, or slots, of keys and values: those from `first` on */
  const float *k, *v, *kt, *vt;
  float *dk, *dv;
  long step, turned;
  int first, n;
} source;

typedef struct head {
  const mn_episode *e;
  bool back;
  int b, h, D;
  mn_keys keys[EP_KEYS];
  source row[EP_KEYS], slot[EP_KEYS];
  mn_run *run;
  mn_seen *seen;               /* [MN_TILE][n_seen] */
  float *tile;
} head;

/* Of row t; -1 for any that there is not. */
static int position(const head *x, int t) {
  const mn_arg *pos = &x->e->c->in[EP_POS];
  int P = pos->i32[(long)t * pos->shape[1] + x->b];
  return P < 0 ? -1 : P;
}

static int base_of(const mn_episode *e, int of, int base) { return e->base ? e->base(e, of, base) : base; }

/* Which rows and slots the rows that are asked for look into: `first` and `n` of both sources. */
static void reach(head *x) {
  const mn_episode *e = x->e;
  int last[EP_KEYS] = { -1, -1 };
  for (int i = 0; i < e->n_keys; i++) x->row[i].first = x->keys[i].rows, x->slot[i] = (source){ 0 };
  for (int t = e->c->t0; t < e->c->t1; t++) {
    int P = position(x, t);
    e->sees(e, x->h, P, x->seen);
    for (int i = 0; i < e->n_seen; i++) {
      int of = x->seen[i].of, base = base_of(e, of, t - P);
      mn_range at = x->seen[i].at;
      if (!at.n) continue;
      int from = at.from + base, end = from + (at.n - 1) * at.step, old = -base;
      if (from < 0 && old > x->slot[of].n) x->slot[of].n = old < x->keys[of].slots ? old : x->keys[of].slots;
      if (end < 0) continue;
      if (from < 0) from = 0;
      if (from < x->row[of].first) x->row[of].first = from;
      if (end > last[of]) last[of] = end;
    }
  }
  for (int i = 0; i < e->n_keys; i++) x->row[i].n = last[i] < 0 ? 0 : last[i] + 1 - x->row[i].first;
}

static long pack_size(int D, int n, bool back) { return (back ? 4 : 2) * mn_padded((long)n * D) + (back ? 2 : 1) * mn_turned_size(D, n); }

enum { AHEAD = 6 };            /* a head's rows lie pages apart, where no hardware prefetcher follows */

static void expect(const float *row, int D) { for (int d = 0; d < D; d += 16) __builtin_prefetch(row + d); }

/* The source's rows side by side, room for their gradients, and the same turned. */
static void pack(source *s, int D, const float *k, const float *v, long step, bool back, float *work) {
  int n = s->n;
  float *pk = mn_alloc_padded_from(&work, (long)n * D), *pv = mn_alloc_padded_from(&work, (long)n * D), *kt = mn_alloc_padded_from(&work, mn_turned_size(D, n));
  for (long i = 0; i < n; i++) {
    if (i + AHEAD < n) expect(k + (s->first + i + AHEAD) * step, D), expect(v + (s->first + i + AHEAD) * step, D);
    memcpy(pk + i * D, k + (s->first + i) * step, sizeof(float) * (size_t)D);
    memcpy(pv + i * D, v + (s->first + i) * step, sizeof(float) * (size_t)D);
  }
  mn_turn(D, n, pk, D, kt);
  s->k = pk, s->v = pv, s->kt = kt;
  s->step = D, s->turned = mn_turned_row(n);
  if (!back) return;
  float *vt = mn_alloc_padded_from(&work, mn_turned_size(D, n));
  s->dk = mn_alloc_padded_from(&work, (long)n * D), s->dv = mn_alloc_padded_from(&work, (long)n * D);
  mn_turn(D, n, pv, D, vt);
  s->vt = vt;
  memset(s->dk, 0, sizeof(float) * (size_t)n * (size_t)D);
  memset(s->dv, 0, sizeof(float) * (size_t)n * (size_t)D);
}

/* Gradients back to all n rows: those that nobody looked into are zero. */
static void unpack(const source *s, int D, int n, const float *from, float *to, long step) {
  for (long i = 0; to && i < n; i++) {
    if (i < s->first || i >= s->first + s->n) memset(to + i * step, 0, sizeof(float) * (size_t)D);
    else memcpy(to + i * step, from + (i - s->first) * D, sizeof(float) * (size_t)D);
  }
}

/* ---- a tile ---- */

/* Positions of a range as runs: carried ones, then rows.  Returns how many runs. */
static int runs_of(const head *x, int of, int base, mn_range at, const int *lo, const int *hi, mn_run *to) {
  const mn_keys *m = &x->keys[of];
  int n = 0;
  for (int i = 0, some; i < at.n; i += some) {
    int p = at.from + i * at.step, row = p + base, left = at.n - i, end;
    bool carried = row < 0;
    const source *s = carried ? &x->slot[of] : &x->row[of];
    if (!carried) some = left, end = row;
    else {                     /* up to row 0, the last pinned slot, or the end of the others */
      end = mn_slot(p, m->pinned, m->slots);
      int room = (p < m->pinned ? m->pinned : m->slots) - end;
      if (room > -row) room = -row;
      some = (room + at.step - 1) / at.step;
      if (some > left) some = left;
    }
    bool turned = s->kt && at.step == 1;
    end -= s->first;
    mn_run *r = &to[n++];
    *r = (mn_run){ .k = s->k + end * s->step, .v = s->v + end * s->step, .n = some, .step = at.step * s->step,
                   .dk = s->dk ? s->dk + end * s->step : NULL, .dv = s->dv ? s->dv + end * s->step : NULL,
                   .kt = turned ? s->kt + end : NULL, .vt = turned && s->vt ? s->vt + end : NULL,
                   .dstep = at.step * s->step, .turned = s->turned };
    for (int j = 0; j < MN_TILE; j++) {
      r->lo[j] = lo[j] < i ? 0 : lo[j] > i + some ? some : lo[j] - i;
      r->hi[j] = hi[j] < i ? 0 : hi[j] > i + some ? some : hi[j] - i;
    }
  }
  return n;
}

/* Rows t, t + stride, ... that go together: of one episode. */
static int tile_rows(const head *x, int t) {
  const mn_episode *e = x->e;
  int P = position(x, t), n = 1;
  while (n < MN_TILE && t + n * e->stride < e->c->t1) {
    int next = P + n * e->stride;
    if (P < 0 || position(x, t + n * e->stride) != next || (e->align && next / e->align != P / e->align)) break;
    n++;
  }
  return n;
}

static void run_tile(const head *x, int t, int rows) {
  const mn_episode *e = x->e;
  const mn_call *c = e->c;
  int base = t - position(x, t), n_runs = 0, H = c->in[EP_Q].shape[2];
  long step = (long)e->stride * c->in[EP_Q].shape[1] * H * x->D, at = (((long)t * c->in[EP_Q].shape[1] + x->b) * H + x->h) * x->D;
  mn_tile tile = { .rows = rows, .D = x->D, .scale = 1 / __builtin_sqrtf((float)x->D), .run = x->run, .work = x->tile };
  for (int r = 0; r < rows; r++, at += step) {
    e->sees(e, x->h, position(x, t + r * e->stride), x->seen + r * e->n_seen);
    tile.q[r] = c->in[EP_Q].data + at;
    tile.y[r] = c->out[0].data + at;
    tile.dy[r] = x->back ? c->out[0].grad + at : NULL;
    tile.dq[r] = x->back && c->in[EP_Q].grad ? c->in[EP_Q].grad + at : NULL;
  }
  for (int i = 0; i < e->n_seen; i++) {
    mn_range a[MN_TILE], all;
    int lo[MN_TILE] = { 0 }, hi[MN_TILE] = { 0 }, of = x->seen[i].of;
    for (int r = 0; r < rows; r++) a[r] = x->seen[r * e->n_seen + i].at;
    bool in_step = mn_unite(rows, a, &all, lo, hi);
    assert(in_step);
    (void)in_step;
    n_runs += runs_of(x, of, base_of(e, of, base), all, lo, hi, x->run + n_runs);
  }
  tile.n_runs = n_runs;
  if (x->back) mn_tile_backward(&tile);
  else mn_tile_forward(&tile);
}

/* ---- all heads ---- */

static long run_size(const mn_episode *e) { return mn_padded((long)sizeof(mn_run) / (long)sizeof(float) * MOST_RUNS * e->n_seen); }
static long seen_size(const mn_episode *e) { return mn_padded((long)sizeof(mn_seen) / (long)sizeof(float) * MN_TILE * e->n_seen); }

static bool packs(const mn_episode *e, bool back) { return back || e->c->t1 - e->c->t0 >= STEPWISE; }

static long work_size(const mn_episode *e, bool back) {
  mn_keys keys[EP_KEYS];
  int D = e->c->in[EP_Q].shape[3];
  long n = run_size(e) + seen_size(e) + mn_tile_work(e->most, MOST_RUNS * e->n_seen, D);
  assert(e->n_keys <= EP_KEYS);
  e->keys(e, 0, 0, keys);
  for (int i = 0; packs(e, back) && i < e->n_keys; i++)
    n += pack_size(D, keys[i].rows, back) + pack_size(D, keys[i].slots, back);
  return n;
}

typedef struct job { const mn_episode *e; bool back; float *work; long size; } job;

static void one_head(void *arg, int bh, int worker) {
  const job *j = arg;
  const mn_episode *e = j->e;
  const mn_call *c = e->c;
  int H = c->in[EP_Q].shape[2], D = c->in[EP_Q].shape[3];
  float *work = j->work + worker * j->size;
  head x = { .e = e, .back = j->back, .b = bh / H, .h = bh % H, .D = D };
  x.run = (mn_run *)(void *)mn_alloc_padded_from(&work, run_size(e));
  x.seen = (mn_seen *)(void *)mn_alloc_padded_from(&work, seen_size(e));
  x.tile = mn_alloc_padded_from(&work, mn_tile_work(e->most, MOST_RUNS * e->n_seen, D));
  e->keys(e, x.b, x.h, x.keys);
  if (packs(e, x.back)) reach(&x);
  for (int i = 0; i < e->n_keys; i++) {
    const mn_keys *m = &x.keys[i];
    if (packs(e, x.back)) {
      pack(&x.row[i], D, m->k, m->v, m->step, x.back, mn_alloc_padded_from(&work, pack_size(D, x.row[i].n, x.back)));
      pack(&x.slot[i], D, m->old_k, m->old_v, m->old_step, x.back, mn_alloc_padded_from(&work, pack_size(D, x.slot[i].n, x.back)));
    } else {
      x.row[i] = (source){ .k = m->k, .v = m->v, .step = m->step };
      x.slot[i] = (source){ .k = m->old_k, .v = m->old_v, .step = m->old_step };
    }
  }
  for (int start = 0; start < e->stride; start++)
    for (int t = c->t0 + start, rows; t < c->t1; t += rows * e->stride) run_tile(&x, t, rows = tile_rows(&x, t));
  for (int i = 0; x.back && i < e->n_keys; i++) {
    const mn_keys *m = &x.keys[i];
    unpack(&x.row[i], D, m->rows, x.row[i].dk, m->dk, m->step);
    unpack(&x.row[i], D, m->rows, x.row[i].dv, m->dv, m->step);
    unpack(&x.slot[i], D, m->slots, x.slot[i].dk, m->dold_k, m->old_step);
    unpack(&x.slot[i], D, m->slots, x.slot[i].dv, m->dold_v, m->old_step);
  }
}

void mn_episode_forward(const mn_episode *e) {
  const mn_call *c = e->c;
  job j = { e, false, NULL, work_size(e, false) };
  j.work = mn_scratch(c->ctx, 0, j.size * mn_threads(c->ctx));
  mn_parallel_for(c->ctx, c->in[EP_Q].shape[1] * c->in[EP_Q].shape[2], one_head, &j);
}

void mn_episode_backward(const mn_episode *e) {
  const mn_call *c = e->c;
  job j = { e, true, NULL, work_size(e, true) };
  j.work = mn_scratch(c->ctx, 0, j.size * mn_threads(c->ctx));
  int heads = c->in[EP_Q].shape[1] * c->in[EP_Q].shape[2];
  MN_PARALLEL(c->ctx, (double)c->in[EP_Q].n * (double)e->most)
  for (int bh = 0; bh < heads; bh++) one_head(&j, bh, omp_get_thread_num());
}
