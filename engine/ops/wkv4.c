/* wkv4.c -- RWKV-4's memory: per channel, an average of values with decaying weights.
**   y_t = (sum_{i<t} e^{(t-1-i)w + k_i} v_i + e^{u + k_t} v_t) / (the same without v),   w = -exp(decay), u = first
** As a recurrence: p and q are the two sums divided by e^o, o the largest exponent so far, so that nothing
** overflows.  Peng et al. 2023, eq. 16 and appendix D.  Of two exponentials one is always e^0, so only the other is
** computed.  The state is saved at every sixteenth step, and backward recomputes it from there. */
#include <string.h>
#include "numerics/fast_math.h"
#include "op.h"
#include "recurrent/chunk_length.h"

enum { K, V, DECAY, FIRST, DONE, P, Q, O };                /* inputs; outputs: y, p', q', o', saved */
enum { L = MN_CHUNK, BLOCK = 64 };                         /* steps between states kept; channels that one job takes */
static const float FAR = -1e38f;                           /* the exponent of nothing */

typedef struct channels { float p[BLOCK], q[BLOCK], o[BLOCK]; } channels;
typedef struct rates { float w[BLOCK], u[BLOCK]; } rates;

/* e^(a - max) and e^(b - max) of two exponents. */
MN_MATH void weights(float a, float b, float *of_a, float *of_b) {
  float e = mn_expf(-__builtin_fabsf(a - b));
  *of_a = a >= b ? 1 : e;
  *of_b = a >= b ? e : 1;
}

static rates rates_at(const mn_call *c, long at, int n) {
  rates r;
  for (int i = 0; i < n; i++) {
    r.w[i] = -mn_expf(mn_at_most(c->in[DECAY].data[at + i], 88));      /* finite: w + FAR must be, too */
    r.u[i] = c->in[FIRST].data[at + i];
  }
  return r;
}

static void advance(int n, const rates *r, const float *k, const float *v, channels *s, float *y) {
  MN_PRAGMA(omp simd)
  for (int i = 0; i < n; i++) {
    float a, b, wo = r->w[i] + s->o[i];
    weights(s->o[i], r->u[i] + k[i], &a, &b);
    y[i] = (a * s->p[i] + b * v[i]) / (a * s->q[i] + b);
    weights(wo, k[i], &a, &b);
    s->p[i] = a * s->p[i] + b * v[i];
    s->q[i] = a * s->q[i] + b;
    s->o[i] = wo >= k[i] ? wo : k[i];
  }
}

/* d: gradient of the state after this step, becomes that before it; s: the state before; dw, du are added to. */
static void retreat(int n, const rates *r, const float *k, const float *v, const channels *s, const float *dy, channels *d,
                    float *dk, float *dv, rates *dr) {
  MN_PRAGMA(omp simd)
  for (int i = 0; i < n; i++) {
    float a, b, p = s->p[i], q = s->q[i], dp = d->p[i], dq = d->q[i], d_o = d->o[i], wo = r->w[i] + s->o[i];
    weights(wo, k[i], &a, &b);
    float da = (dp * p + dq * q) * a, db = (dp * v[i] + dq) * b;       /* through the exponents */
    float dwo = wo >= k[i] ? d_o - db : da, dk_i = wo >= k[i] ? db : d_o - da, dv_i = dp * b;
    dp *= a;
    dq *= a;
    weights(s->o[i], r->u[i] + k[i], &a, &b);
    float den = a * q + b, y = (a * p + b * v[i]) / den, g = dy[i] / den, du = g * b * (v[i] - y);
    d->p[i] = dp + g * a;
    d->q[i] = dq - g * a * y;
    d->o[i] = dwo + g * a * (p - y * q);
    dr->w[i] += dwo;
    dr->u[i] += du;
    dk[i] = dk_i + du;
    dv[i] = dv_i + g * b;
  }
}

/* ---- one environment's block of channels through time ---- */

typedef struct job { mn_call *c; int blocks; float *sums; } job;

typedef struct place { int b, at, n; long BD, row; } place;            /* row: offset of [b, at] in [B,D] */

static place place_of(const job *j, int i) {
  long D = DIM(j->c, 'D');
  place p = { i / j->blocks, i % j->blocks * BLOCK, BLOCK, DIM(j->c, 'B') * D, 0 };
  if (D - p.at < BLOCK) p.n = (int)D - p.at;
  p.row = p.b * D + p.at;
  return p;
}

static bool resets(const mn_call *c, int t, int b) { return c->in[DONE].u8 && c->in[DONE].u8[t * DIM(c, 'B') + b]; }

static void clear(int n, channels *s) {
  for (int i = 0; i < n; i++) s->p[i] = s->q[i] = 0, s->o[i] = FAR;
}

static void load(int n, channels *s, const float *p, const float *q, const float *o) {
  clear(n, s);
  if (p) memcpy(s->p, p, sizeof(float) * (size_t)n);
  if (q) memcpy(s->q, q, sizeof(float) * (size_t)n);
  if (o) memcpy(s->o, o, sizeof(float) * (size_t)n);
}

static void store(int n, const channels *s, float *p, float *q, float *o) {
  if (p) memcpy(p, s->p, sizeof(float) * (size_t)n);
  if (q) memcpy(q, s->q, sizeof(float) * (size_t)n);
  if (o) memcpy(o, s->o, sizeof(float) * (size_t)n);
}

/* Where the state before step t, a multiple of 16, is kept: p, q and o, each [B,D]. */
static float *kept(const mn_call *c, const place *x, int t) { return c->out[4].data + t / L * 3 * x->BD + x->row; }

static void walk(void *arg, int i, int worker) {
  (void)worker;
  const job *j = arg;
  mn_call *c = j->c;
  place x = place_of(j, i);
  rates r = rates_at(c, x.at, x.n);
  channels s;
  float *p = c->out[1].data + x.row, *q = c->out[2].data + x.row, *o = c->out[3].data + x.row;
  if (c->t0) load(x.n, &s, p, q, o);
  else load(x.n, &s, MN_AT(c->in[P].data, x.row), MN_AT(c->in[Q].data, x.row), MN_AT(c->in[O].data, x.row));
  for (int t = c->t0; t < c->t1; t++) {
    if (resets(c, t, x.b)) clear(x.n, &s);
    if (t % L == 0) {
      float *to = kept(c, &x, t);
      store(x.n, &s, to, to + x.BD, to + 2 * x.BD);
    }
    long row = t * x.BD + x.row;
    advance(x.n, &r, c->in[K].data + row, c->in[V].data + row, &s, c->out[0].data + row);
  }
  store(x.n, &s, p, q, o);
}

static void walk_back(const job *j, int i) {
  mn_call *c = j->c;
  place x = place_of(j, i);
  rates r = rates_at(c, x.at, x.n), dr = { { 0 }, { 0 } };
  channels d = { { 0 }, { 0 }, { 0 } }, was[L];
  static const float zeros[BLOCK];
  float unused[BLOCK], *dk = c->in[K].grad, *dv = c->in[V].grad;
  for (int m = 0; m < 3; m++) {
    const float *from = c->out[1 + m].grad;
    float *to = m == 0 ? d.p : m == 1 ? d.q : d.o;
    if (from) memcpy(to, from + x.row, sizeof(float) * (size_t)x.n);
  }
  int T = DIM(c, 'T');
  for (int t = (T - 1) / L * L; t >= 0; t -= L) {
    int n = T - t < L ? T - t : L;
    const float *from = kept(c, &x, t);
    load(x.n, &was[0], from, from + x.BD, from + 2 * x.BD);
    for (int m = 0; m + 1 < n; m++) {
      long row = (t + m) * x.BD + x.row;
      was[m + 1] = was[m];
      advance(x.n, &r, c->in[K].data + row, c->in[V].data + row, &was[m + 1], unused);
      if (resets(c, t + m + 1, x.b)) clear(x.n, &was[m + 1]);
    }
    for (int m = n - 1; m >= 0; m--) {
      long row = (t + m) * x.BD + x.row;
      retreat(x.n, &r, c->in[K].data + row, c->in[V].data + row, &was[m], c->out[0].grad ? c->out[0].grad + row : zeros, &d,
              dk ? dk + row : unused, dv ? dv + row : unused, &dr);
      if (resets(c, t + m, x.b)) d = (channels){ { 0 }, { 0 }, { 0 } };
    }
  }
  store(x.n, &d, MN_AT(c->in[P].grad, x.row), MN_AT(c->in[Q].grad, x.row), MN_AT(c->in[O].grad, x.row));
  memcpy(j->sums + x.row, dr.w, sizeof(float) * (size_t)x.n);
  memcpy(j->sums + x.BD + x.row, dr.u, sizeof(float) * (size_t)x.n);
}

static job job_of(mn_call *c) { return (job){ c, (DIM(c, 'D') + BLOCK - 1) / BLOCK, NULL }; }

static int shape(mn_call *c) {
  mn_arg *saved = &c->out[4];
  saved->shape[0] = (DIM(c, 'T') + L - 1) / L;
  saved->shape[1] = 3;
  saved->shape[2] = DIM(c, 'B');
  saved->shape[3] = DIM(c, 'D');
  return 0;
}

static void forward(mn_call *c) {
  job j = job_of(c);
  int jobs = DIM(c, 'B') * j.blocks;
  if ((double)(c->t1 - c->t0) * jobs * BLOCK < 4096) for (int i = 0; i < jobs; i++) walk(&j, i, 0);
  else mn_parallel_for(c->ctx, jobs, walk, &j);
}

static void backward(mn_call *c) {
  job j = job_of(c);
  long B = DIM(c, 'B'), D = DIM(c, 'D');
  float *ddecay = c->in[DECAY].grad, *dfirst = c->in[FIRST].grad;
  j.sums = mn_scratch(c->ctx, 0, 2 * B * D);
  MN_PARALLEL(c->ctx, 8.0 * DIM(c, 'T') * B * D)
  for (int i = 0; i < (int)B * j.blocks; i++) walk_back(&j, i);
  for (long i = 0; i < D; i++) {
    float dw = 0, du = 0;
    for (long b = 0; b < B; b++) {
      dw += j.sums[b * D + i];
      du += j.sums[(B + b) * D + i];
    }
    if (ddecay) ddecay[i] = -dw * mn_expf(mn_at_most(c->in[DECAY].data[i], 88));
    if (dfirst) dfirst[i] = du;
  }
}

const mn_op mn_op_wkv4 = {
  .sig = "k[T,B,D] v[T,B,D] decay[D] first[D] done?[T,B]:bit p?[B,D] q?[B,D] o?[B,D] -> "
         "y[T,B,D] p'[B,D] q'[B,D] o'[B,D] ~~saved[?,?,?,?]",
  .doc = "RWKV-4's weighted average of values (Peng et al. 2023, eq. 16). Weights e^((t-1-i)w + k_i), for the newest e^(first + k_t), w = "
      "-exp(decay); its two sums are p e^o and q e^o",
  .time = MN_SCAN, .shape = shape, .forward = forward, .backward = backward,
};
