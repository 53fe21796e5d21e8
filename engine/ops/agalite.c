/* agalite.c -- AGaLiTe: gated linear attention whose matrix is approximated by a few channels.
** Each channel m keeps a vector of values and one of keys, both written with the weight
** w_m = cos(omega_m tau) or sin, or with a random sign; sum_m v_m k_m^T stands for the matrix.
**
** Channels of a form come in mirrored pairs, always equal (cosine) or opposite (sine), because a
** cosine is even and the frequencies are symmetric: one of each pair is stored, with weight 2.  Phases
** are integers modulo the period, and the clock that calls hand on loses whole periods before floats
** can no longer count it, so they stay exact however long an agent runs; random signs repeat after 2^24 steps.
** The state is small: tokens are computed one by one, and backward recomputes sixteen at a time from checkpoints. */
#include <math.h>
#include <omp.h>
#include <string.h>
#include <unistd.h>
#include "recurrent/agalite_keys.h"
#include "numerics/random.h"
#include "numerics/simd.h"

enum { CODE, PAPER, COSSIN, RANDOM_SIGN };
enum { IN_TICK = IN_STATE, IN_VS, IN_KS, IN_S, IN_ENV };
enum { OUT_Y, OUT_VS, OUT_KS, OUT_S, OUT_TICK, OUT_SAVED };
enum { L = MN_CHUNK, HEADER = 16, MOST_R = 4096, MOST_TICK = 1 << 24, ROOM = 1 << 15 };      /* ROOM: floats for one token, on a stack */

typedef struct channel {
  int  step;                     /* omega_m tau = 2 pi (step * tau mod period) / period */
  bool sine;
  float weight;                  /* how many of the form's channels it stands for */
} channel;

static int period(int form, int r) { return form != CODE ? r : r > 1 ? 2 * (r - 1) : 2; }

static int file_channels(int form, int r) {
  return form == CODE ? r : form == PAPER ? r + 1 : 2 * r;
}

static int stored_channels(int form, int r) {
  return form == CODE ? (r + 1) / 2 : form == PAPER ? r / 2 + 1 : r;     /* random signs: all r */
}

/* Stored on their own, mirrored channels may differ: a file's states need not be equal at the start. */
static channel published_channel(int form, int r, int i) {
  if (form == CODE) return (channel){ r == 1 ? 1 : 2 * i - (r - 1), false, 1 };
  return (channel){ i % r, form == COSSIN && i >= r, 1 };
}

static channel channel_at(int form, int r, int m) {
  int cosines = r / 2 + 1;
  if (form == RANDOM_SIGN) return (channel){ 0, false, 1.0f / (float)r };
  if (form == CODE) {            /* omega_i = -pi + 2 pi i / (r-1); r = 1: -pi */
    if (r == 1) return (channel){ 1, false, 1 };
    return (channel){ 2 * m - (r - 1), false, 2 * m == r - 1 ? 1 : 2 };
  }
  if (form == PAPER) return (channel){ m, false, 2 * m == r ? 1 : 2 };
  if (m < cosines) return (channel){ m, false, m == 0 || 2 * m == r ? 1 : 2 };
  return (channel){ m - cosines + 1, true, 2 };
}

int mn_agalite_channels(mn_ctx *mn, int form, int r, int *channels, int *stored, int *sign) {
  if (form < CODE || form > COSSIN) return mn_fail(mn, "agalite: form is %d, expected 0 to 2", form);
  if (r < 1 || r > MOST_R) return mn_fail(mn, "agalite: r is %d, expected 1 to %d", r, MOST_R);
  int n = file_channels(form, r);
  if (channels) *channels = n;
  for (int i = 0; i < n; i++) {
    bool sine = form == COSSIN && i >= r;
    int k = sine ? i - r : i, mirror = form == CODE ? r - 1 - k : r - k;
    bool zero = sine && (k == 0 || k == mirror);
    int at = k < mirror ? k : mirror;
    if (stored) stored[i] = zero ? 0 : sine ? r / 2 + at : at;
    if (sign) sign[i] = zero ? 0 : sine && k > mirror ? -1 : 1;
  }
  return stored_channels(form, r);
}

typedef struct agalite {
  mn_attention a;
  int form, r, M, N;             /* M stored channels, period N */
  bool all;                      /* every published channel is stored, mirrored ones too */
  bool soon;                     /* what comes is asked for into the first cache: one of 32 KB has eight places for
                                 ** rows that are a power of two apart, and loses sixteen */
  double seed;                   /* of the random signs */
  long size;                     /* floats of one head's state: keys [M,Kp], s [Kp], values [M,Vp] */
  const float *cosine, *sine;    /* [N] */
  const float *weight;           /* [M] */
  const float *zeros;            /* a state */
} agalite;

static channel channel_of(const agalite *g, int m) {
  return g->all ? published_channel(g->form, g->r, m) : channel_at(g->form, g->r, m);
}

static int open_call(agalite *g, const mn_call *c) {
  if (mn_attention_open(&g->a, c, "agalite", 2)) return -1;
  g->form = (int)OPT(c, 0);
  g->r = (int)OPT(c, 1);
  if (OPT(c, 1) != g->r || g->r < 1 || g->r > MOST_R)
    return mn_fail(c->ctx, "agalite: r is %g, expected a whole number from 1 to %d", OPT(c, 1), MOST_R);
  g->soon = sysconf(_SC_LEVEL1_DCACHE_SIZE) > 32 << 10;
  mn_attention_beta_of_values(&g->a);
  g->all = OPT(c, 5) != 0 && g->form != RANDOM_SIGN;
  g->seed = OPT(c, 6);
  g->M = g->all ? file_channels(g->form, g->r) : stored_channels(g->form, g->r);
  g->N = period(g->form, g->r);
  g->size = (long)g->M * (g->a.Kp + g->a.Vp) + g->a.Kp;
  g->a.scale = g->form == RANDOM_SIGN ? 1.0f : g->form == COSSIN ? (float)g->r : 2.0f * (float)g->r;
  return 0;
}

static int shape(mn_call *c) {
  agalite g;
  if (open_call(&g, c)) return -1;
  if (mn_attention_axis(c, "agalite", IN_VS, "vs", 1, g.M)) return -1;
  if (mn_attention_axis(c, "agalite", IN_KS, "ks", 1, g.M)) return -1;
  if (mn_attention_axis(c, "agalite", IN_KS, "ks", 3, g.a.K)) return -1;
  if (mn_attention_axis(c, "agalite", IN_S, "s", 2, g.a.K)) return -1;
  double rows = (double)g.a.B * g.a.H * mn_chunks(g.a.T);
  if (rows > 1e9 || g.size > 1000000000)
    return mn_fail(c->ctx, "agalite: a state of %d channels of %d keys and %d values for %d heads is too large",
                   g.M, g.a.K, g.a.V, g.a.B * g.a.H);
  c->out[OUT_VS].shape[1] = c->out[OUT_KS].shape[1] = g.M;
  c->out[OUT_KS].shape[3] = c->out[OUT_S].shape[2] = g.a.K;
  c->out[OUT_SAVED].shape[0] = (int)rows;
  c->out[OUT_SAVED].shape[1] = HEADER + (int)g.size;
  return 0;
}

/* The checkpoint before token t: tick in the header, then the state as it is worked on. */
static float *checkpoint(const agalite *g, int bh, int t) {
  long row = (long)bh * mn_chunks(g->a.T) + t / L;
  return g->a.c->out[OUT_SAVED].data + row * (HEADER + g->size);
}

/* States of all heads as tensors: vs [B,M,H,V], ks [B,M,H,K], s [B,H,K]; NULL: zeros, or not asked for. */
typedef struct tensors { float *vs, *ks, *s; } tensors;

/* Rows of n numbers, so far apart, and zeros up to `wide`; from NULL: zeros; to NULL: nothing. */
static void copy_rows(int rows, const float *from, long from_row, float *to, long to_row, int n, int wide) {
  for (int i = 0; to && i < rows; i++, to += to_row) {
    if (from) memcpy(to, from + i * from_row, sizeof(float) * (size_t)n);
    for (int j = from ? n : 0; j < wide; j++) to[j] = 0;
  }
}

/* One head between the tensors and its state: packed keys and s, then values.  room: floats for a state. */
static void move_state(const agalite *g, int bh, tensors x, float *state, float *room, bool out) {
  const mn_attention *a = &g->a;
  const int K = a->K, Kp = a->Kp, V = a->V, M = g->M;
  const long head = (long)(bh / a->H) * M * a->H + bh % a->H, row = (long)a->H * K;
  const mn_key_vectors given = { MN_AT(x.ks, head * K), MN_AT(x.s, (long)bh * K), row }, wide = { room, room + (long)M * Kp, Kp };
  const mn_key_vectors keys = K == Kp ? given : wide;
  float *vs = MN_AT(x.vs, head * V), *values = state + (M + 1L) * Kp;
  if (!out) {
    if (K < Kp) copy_rows(M, given.weighted, row, wide.weighted, Kp, K, Kp), copy_rows(1, given.last, 0, wide.last, 0, K, Kp);
    mn_pack_keys(a, M, keys, state);
    copy_rows(M, vs, (long)a->H * V, values, a->Vp, V, a->Vp);
  } else {
    mn_unpack_keys(a, M, state, keys);
    if (K < Kp) copy_rows(M, wide.weighted, Kp, given.weighted, row, K, K), copy_rows(1, wide.last, 0, given.last, 0, K, K);
    copy_rows(M, values, a->Vp, vs, (long)a->H * V, V, V);
  }
}

/* The environment by whose index row b draws its signs: that in input `env`, else b. */
static uint32_t env_of(const agalite *g, int b) {
  const float *env = g->a.c->in[IN_ENV].data;
  if (!env) return (uint32_t)b;
  return env[b] >= 0 && env[b] < 16777216.0f ? (uint32_t)env[b] : 0;
}

/* Weights w_m of all channels of row b at times tau, tau + 1, ... : w[n,M]. */
static void waves(const agalite *g, int b, long tau, int n, float *w) {
  for (int i = 0; g->form == RANDOM_SIGN && i < n; i++)
    mn_random_signs(g->seed, env_of(g, b), (uint64_t)(tau + i), g->M, w + (long)i * g->M);
  for (int m = 0; g->form != RANDOM_SIGN && m < g->M; m++) {
    channel c = channel_of(g, m);
    const float *table = c.sine ? g->sine : g->cosine;
    int N = g->N, step = (c.step % N + N) % N, phase = (int)(step * ((tau % N + N) % N) % N);
    for (int i = 0; i < n; i++, phase += step - (phase + step >= N ? N : 0)) w[(long)i * g->M + m] = table[phase];
  }
}

/* What a call needs of the channels: their waves at each phase, how many each stands for, and a state of zeros. */
static long tables_size(const agalite *g) { return mn_padded(2L * g->N + g->M + g->size); }

static void make_tables(agalite *g, float *table) {
  float *weight = table + 2L * g->N, *zeros = weight + g->M;
  for (int p = 0; p < g->N; p++) {
    double angle = 6.283185307179586476925 * p / g->N;
    table[p] = (float)cos(angle);
    table[g->N + p] = (float)sin(angle);
  }
  for (int m = 0; m < g->M; m++) weight[m] = channel_of(g, m).weight;
  g->cosine = table;
  g->sine = table + g->N;
  memset(zeros, 0, sizeof(float) * (size_t)g->size);
  g->weight = weight;
  g->zeros = zeros;
}

/* ---- up to sixteen tokens of a head at a time ---- */

/* Products of the keys' vectors with q, s last: [n,M+1], as kappa_m and z; `factor` of each channel in y, [n,M]. */
typedef struct span {
  int bh, t, n;
  float *w, *products, *factor;
  float *dproducts, *along;      /* backward: gradients of the products; dy.v_m, [n,M] */
  float *lanes, *rooms;
  mn_key_factors keys[L];
} span;

static long span_size(const agalite *g) {
  return mn_padded(L * g->M) * 3 + mn_padded(L * (g->M + 1L)) * (2 + MN_LANES) + L * mn_factor_room(&g->a);
}

static span make_span(const agalite *g, int bh, float *work) {
  long M = g->M;
  span x = { .bh = bh, .w = mn_alloc_padded_from(&work, L * M), .factor = mn_alloc_padded_from(&work, L * M), .along = mn_alloc_padded_from(&work, L * M),
             .products = mn_alloc_padded_from(&work, L * (M + 1)), .dproducts = mn_alloc_padded_from(&work, L * (M + 1)),
             .lanes = mn_alloc_padded_from(&work, mn_padded(L * (M + 1)) * MN_LANES), .rooms = work };
  return x;
}

/* The tokens' keys: state -> to, token i's at to + i * step; products. */
static void read_keys(const agalite *g, span *x, const float *state, float *to, long step) {
  const mn_attention *a = &g->a;
  long M = g->M, room = mn_factor_room(a);
  for (int i = 0; i < x->n; i++, state = to, to += step) {
    float keep = mn_keep(a, x->t + i, x->bh);
    mn_factor_keys(a, mn_token(a, x->t + i, x->bh), keep, x->rooms + i * room, &x->keys[i]);
    mn_carry_keys(&x->keys[i], g->M, x->w + i * M, keep == 0 ? g->zeros : state, to,
                  x->lanes + i * (M + 1) * MN_LANES);
  }
  mn_add_lanes(x->n * (M + 1), x->lanes, x->products);
  for (int i = 0; i < x->n; i++) {
    float slope, den = mn_den(a, x->products[i * (M + 1) + M], &slope);
    for (int m = 0; m < M; m++) x->factor[i * M + m] = g->weight[m] * x->products[i * (M + 1) + m] / den;
  }
}

/* A row of V numbers of token t, or NULL. */
static const float *values_of(const mn_attention *a, const float *tensor, int t, int bh) {
  return tensor ? tensor + mn_token(a, t, bh) * a->V : NULL;
}

/* Prefetch such a row, as mn_prefetch_inputs does for the inputs. */
MN_INLINE void expect_values(const mn_attention *a, const float *tensor, int t, int bh, const bool write) {
  const float *row = t < 0 || t >= a->T ? NULL : values_of(a, tensor, t, bh);
  for (int j = 0; row && j < a->V; j += 16) {
    if (write) __builtin_prefetch(row + j, 1, 2);              /* which of them must be a constant */
    else __builtin_prefetch(row + j, 0, 2);
  }
}

/* Prefetch a sixteenth of the checkpoint before token t, if there is one. */
MN_INLINE void expect_checkpoint(const agalite *g, int bh, int t, int i) {
  const long size = HEADER + g->size;
  for (long j = size * i / L; t >= 0 && j < size * (i + 1) / L; j += 16) __builtin_prefetch(checkpoint(g, bh, t) + j, 0, 2);
}

/* Lanes of a row of V numbers; `whole`: V is a multiple of them. */
MN_INLINE mn_lanes some(const bool whole, const float *p, long n) { return whole ? mn_load(p) : mn_load_n(p, n); }

MN_INLINE void put(const bool whole, float *p, mn_lanes x, long n) {
  if (whole) mn_store(p, x);
  else mn_store_n(p, x, n);
}

/* What a token keeps of its values: what its gate leaves, or where `apart` keep_v, or all. */
MN_INLINE mn_lanes kept_values(const bool apart, const bool whole, float keep, mn_lanes gate, const float *kept, long n) {
  if (!apart) return keep - keep * gate;
  return kept ? keep * some(whole, kept, n) : mn_splat(keep);
}

/* Token i's values from -> to: y = sum_m factor_m v_m, or where `back`, as lanes, dy.v_m. */
MN_INLINE void carry_values(const bool back, const bool apart, const bool whole, const agalite *g, const span *x, int i, const float *from,
                            float *to) {
  const mn_attention *a = &g->a;
  const mn_arg *in = a->c->in, *y = &a->c->out[OUT_Y];
  const int t = x->t + i, V = a->V, M = g->M, Vp = a->Vp;
  const float *v = values_of(a, in[IN_V].data, t, x->bh), *beta = values_of(a, in[a->gate_v].data, t, x->bh);
  const float *dy = values_of(a, y->grad, t, x->bh), *w = x->w + (long)i * M, *factor = x->factor + (long)i * M;
  const bool head = apart && a->kept_v == MN_KEPT_HEAD;
  const float *kept = head ? NULL : values_of(a, in[IN_KEEP_V].data, t, x->bh);
  const float keep = mn_keep(a, t, x->bh) * (head ? in[IN_KEEP_V].data[mn_token(a, t, x->bh)] : 1);
  float *out = y->data + mn_token(a, t, x->bh) * V, *lanes = x->lanes + (long)i * M * MN_LANES;
  for (int m = 0; m < M; m++, from += Vp, to += Vp) {
    const mn_lanes weight = mn_splat(w[m]), share = mn_splat(factor[m]);
    mn_lanes sum = { 0 };
    for (int j = 0; j < V; j += MN_LANES) {
      mn_lanes gate = { 0 }, write = some(whole, v + j, V - j);
      if (beta) gate = some(whole, beta + j, V - j), write *= gate;
      mn_lanes now = kept_values(apart, whole, keep, gate, MN_AT(kept, j), V - j) * mn_load(from + j) + write * weight;
      mn_store(to + j, now);
      if (back) sum += dy ? some(whole, dy + j, V - j) * now : sum;
      else put(whole, out + j, m ? some(whole, out + j, V - j) + now * share : now * share, V - j);
    }
    if (back) mn_store(lanes + m * MN_LANES, sum);
  }
}

static bool values_apart(const agalite *g) { return g->a.kept_v != MN_KEPT_REST; }

static void carry_values_ahead(const agalite *g, const span *x, int i, const float *from, float *to) {
  const bool whole = g->a.V % MN_LANES == 0;
  if (values_apart(g))  carry_values(false, true, false, g, x, i, from, to);
  else if (whole)       carry_values(false, false, true, g, x, i, from, to);
  else                  carry_values(false, false, false, g, x, i, from, to);
}

static void carry_values_again(const agalite *g, const span *x, int i, const float *from, float *to) {
  const bool whole = g->a.V % MN_LANES == 0;
  if (values_apart(g))  carry_values(true, true, false, g, x, i, from, to);
  else if (whole)       carry_values(true, false, true, g, x, i, from, to);
  else                  carry_values(true, false, false, g, x, i, from, to);
}

static const float *before(const agalite *g, const span *x, int i, const float *state) {
  return mn_keep(&g->a, x->t + i, x->bh) == 0 ? g->zeros : state;
}

/* The tokens of the chunk that begins with t, or what is left of it, up to end. */
static void set_span(const agalite *g, span *x, int t, int end, long tick) {
  int next = (t / L + 1) * L;
  x->t = t;
  x->n = (next < end ? next : end) - t;
  waves(g, x->bh / g->a.H, tick + t + 1, x->n, x->w);
}

/* One head through the rows that are asked for. */
static void walk(const agalite *g, int bh, float *state) {
  const mn_attention *a = &g->a;
  const mn_call *c = a->c;
  tensors first = { c->in[IN_VS].data, c->in[IN_KS].data, c->in[IN_S].data };
  tensors running = { c->out[OUT_VS].data, c->out[OUT_KS].data, c->out[OUT_S].data };
  float tick = c->in[IN_TICK].data[bh / a->H], *values = state + (g->M + 1L) * a->Kp, *room = state + g->size;
  span x = make_span(g, bh, room + g->size);
  move_state(g, bh, c->t0 ? running : first, state, room, false);
  for (int t = c->t0; t < c->t1; t += x.n) {
    set_span(g, &x, t, c->t1, lrintf(tick));
    if (c->taped && t % L == 0) {
      float *to = checkpoint(g, bh, t);
      to[0] = tick;
      memcpy(to + HEADER, state, sizeof(float) * (size_t)g->size);
    }
    read_keys(g, &x, state, state, 0);
    for (int i = 0; i < x.n; i++) {
      mn_prefetch_inputs(a, t + i + L, bh, false, g->soon);
      expect_values(a, c->out[OUT_Y].data, t + i + L, bh, true);
      carry_values_ahead(g, &x, i, before(g, &x, i, values), values);
    }
  }
  move_state(g, bh, running, state, room, true);
}

static long walk_size(const agalite *g) { return 2 * g->size + span_size(g); }

typedef struct heads_job { const agalite *g; float *work; long size; } heads_job;

static void head_task(void *arg, int bh, int worker) {
  const heads_job *j = arg;
  walk(j->g, bh, j->work + worker * j->size);
}

/* Environments b0 .. b1-1 on the calling thread, in its own scratch. */
static void forward_apart(const agalite *whole, const mn_call *c) {
  _Alignas(64) float room[ROOM];
  agalite g = *whole;                              /* its tables end with this call */
  make_tables(&g, room);
  for (int bh = c->b0 * g.a.H; bh < c->b1 * g.a.H; bh++) walk(&g, bh, room + tables_size(&g));
}

static double batch_parallel(const mn_call *c) {
  agalite g;
  return !open_call(&g, c) && tables_size(&g) + walk_size(&g) <= ROOM ? (double)g.a.B * g.a.H * (double)g.size : 0;
}

/* The clock `steps` later.  Floats count to 2^24: from there on, an equal phase earlier. */
static float clock_after(const agalite *g, float tick, int steps) {
  const float sum = tick + (float)steps;
  if (!(sum >= MOST_TICK)) return sum;
  return (float)((lrintf(tick) + steps) % (g->form == RANDOM_SIGN ? MOST_TICK : g->N));
}

static void forward(mn_call *c) {
  agalite g;
  open_call(&g, c);
  if (c->b1) {
    forward_apart(&g, c);
  } else {
    make_tables(&g, mn_scratch(c->ctx, 1, tables_size(&g)));
    heads_job job = { &g, mn_scratch(c->ctx, 0, walk_size(&g) * mn_threads(c->ctx)), walk_size(&g) };
    mn_parallel_for(c->ctx, g.a.B * g.a.H, head_task, &job);
  }
  for (int b = c->b0; b < (c->b1 ? c->b1 : g.a.B); b++) c->out[OUT_TICK].data[b] = clock_after(&g, c->in[IN_TICK].data[b], c->t1);
}

/* Gradients of the products with q, from dy.v_m. */
static void products_back(const agalite *g, span *x) {
  const mn_attention *a = &g->a;
  long M = g->M;
  mn_add_lanes(x->n * M, x->lanes, x->along);
  for (int i = 0; i < x->n; i++) {
    const float *product = x->products + i * (M + 1);
    float *to = x->dproducts + i * (M + 1), slope, den = mn_den(a, product[M], &slope), along = 0;
    for (int m = 0; m < M; m++) {
      to[m] = g->weight[m] * x->along[i * M + m] / den;
      along += to[m] * product[m];
    }
    to[M] = mn_den_back(a, product[M], along);
  }
}

/* Token i's values backward: dx goes from after it to before it, and the gradients of v, its gate and keep_v are written. */
MN_INLINE void values_back(const bool apart, const bool whole, const agalite *g, const span *x, int i, const float *from, float *dx) {
  const mn_attention *a = &g->a;
  const mn_arg *in = a->c->in;
  const int t = x->t + i, V = a->V, M = g->M;
  const long at = mn_token(a, t, x->bh) * V, Vp = a->Vp;
  const float *v = values_of(a, in[IN_V].data, t, x->bh), *beta = values_of(a, in[a->gate_v].data, t, x->bh);
  const float *dy = values_of(a, a->c->out[OUT_Y].grad, t, x->bh);
  const bool head = apart && a->kept_v == MN_KEPT_HEAD;
  const float *kept = head ? NULL : values_of(a, in[IN_KEEP_V].data, t, x->bh), reset = mn_keep(a, t, x->bh);
  const float keep = reset * (head ? in[IN_KEEP_V].data[mn_token(a, t, x->bh)] : 1), *w = x->w + (long)i * M, *factor = x->factor + (long)i * M;
  float *dv = MN_AT(in[IN_V].grad, at), *dbeta = MN_AT(in[a->gate_v].grad, at), *dkept = head ? NULL : MN_AT(in[IN_KEEP_V].grad, at);
  mn_lanes of_head = { 0 };
  for (int j = 0; j < V; j += MN_LANES) {
    mn_lanes gate = { 0 }, out = { 0 }, dwrite = { 0 }, ddecay = { 0 };
    if (beta) gate = some(whole, beta + j, V - j);
    if (dy) out = some(whole, dy + j, V - j);
    const mn_lanes decay = kept_values(apart, whole, keep, gate, MN_AT(kept, j), V - j);
    for (int m = 0; m < M; m++) {
      mn_lanes d = mn_load(dx + m * Vp + j) + out * factor[m];
      dwrite += d * w[m];
      ddecay += d * mn_load(from + m * Vp + j);
      mn_store(dx + m * Vp + j, d * decay);
    }
    if (dv) put(whole, dv + j, beta ? dwrite * gate : dwrite, V - j);
    if (dbeta && !apart) put(whole, dbeta + j, dwrite * some(whole, v + j, V - j) - keep * ddecay, V - j);
    else if (dbeta)      put(whole, dbeta + j, dwrite * some(whole, v + j, V - j), V - j);
    if (dkept)           put(whole, dkept + j, keep * ddecay, V - j);
    if (head)            of_head += ddecay;
  }
  if (head && in[IN_KEEP_V].grad) in[IN_KEEP_V].grad[mn_token(a, t, x->bh)] = reset * mn_sum(of_head);
}

/* Backward through the chunk that begins with token t, asking for what the one at next of head next_bh will read.
** states: room for the one before it and those after each of its tokens. */
static void chunk_back(const agalite *g, span *x, int t, int next, int next_bh, float *dstate, float *states,
                       float *work) {
  const mn_attention *a = &g->a;
  const float *saved = checkpoint(g, x->bh, t);
  const long M = g->M, values = (M + 1) * a->Kp, size = g->size;
  set_span(g, x, t, a->T, lrintf(saved[0]));
  memcpy(states, saved + HEADER, sizeof(float) * (size_t)size);
  read_keys(g, x, states, states + size, size);
  for (int i = 0; i < x->n; i++)
    carry_values_again(g, x, i, before(g, x, i, states + i * size) + values, states + (i + 1) * size + values);
  products_back(g, x);
  for (int i = x->n - 1; i >= 0; i--) {
    const float *from = before(g, x, i, states + i * size);
    mn_prefetch_inputs(a, next + i, next_bh, false, g->soon);
    expect_values(a, a->c->out[OUT_Y].grad, next + i, next_bh, false);
    expect_checkpoint(g, next_bh, next, i);
    mn_expect_grads(a, t + i - 2, x->bh);
    if (values_apart(g))           values_back(true, false, g, x, i, from + values, dstate + values);
    else if (a->V % MN_LANES == 0) values_back(false, true, g, x, i, from + values, dstate + values);
    else                           values_back(false, false, g, x, i, from + values, dstate + values);
    mn_carry_keys_back(a, mn_token(a, t + i, x->bh), mn_keep(a, t + i, x->bh), &x->keys[i], g->M, x->w + i * M,
                       x->dproducts + i * (M + 1), from, states + (i + 1) * size, dstate, work);
  }
}

/* A few heads go back side by side, chunk by chunk: their rows are neighbours in memory. */
enum { MOST_SIDE_BY_SIDE = 4 };

static long back_size(const agalite *g) {
  return (MOST_SIDE_BY_SIDE + L + 2) * g->size + mn_padded(mn_carry_room(&g->a)) + span_size(g);
}

/* Heads bh .. bh+n-1; work: back_size floats. */
static void heads_back(const agalite *g, int bh, int n, float *work) {
  const mn_arg *in = g->a.c->in, *out = g->a.c->out;
  tensors final = { out[OUT_VS].grad, out[OUT_KS].grad, out[OUT_S].grad };
  tensors first = { in[IN_VS].grad, in[IN_KS].grad, in[IN_S].grad };
  float *dstates = mn_alloc_padded_from(&work, MOST_SIDE_BY_SIDE * g->size), *room = mn_alloc_padded_from(&work, g->size);
  float *states = mn_alloc_padded_from(&work, (L + 1) * g->size), *temporary = mn_alloc_padded_from(&work, mn_carry_room(&g->a));
  span x = make_span(g, bh, work);
  for (int i = 0; i < n; i++) move_state(g, bh + i, final, dstates + i * g->size, room, false);
  for (int t = (mn_chunks(g->a.T) - 1) * L; t >= 0; t -= L)
    for (int i = 0; i < n; i++) {
      bool last = i == n - 1;
      x.bh = bh + i;
      chunk_back(g, &x, t, last ? t - L : t, last ? bh : bh + i + 1, dstates + i * g->size, states, temporary);
    }
  for (int i = 0; i < n; i++) move_state(g, bh + i, first, dstates + i * g->size, room, true);
}

static void backward(mn_call *c) {
  agalite g;
  open_call(&g, c);
  const mn_attention *a = &g.a;
  long size = back_size(&g);
  int heads = a->B * a->H, most = heads / mn_threads(c->ctx), each = most < 1 ? 1 : most;
  if (each > MOST_SIDE_BY_SIDE) each = MOST_SIDE_BY_SIDE;
  make_tables(&g, mn_scratch(c->ctx, 1, tables_size(&g)));
  float *work = mn_scratch(c->ctx, 0, size * mn_threads(c->ctx));
  MN_FOR(c->ctx, 12.0 * a->T * a->B * a->H * (double)g.size, bh, 0, heads, each,
    heads_back(&g, (int)bh, heads - (int)bh < each ? heads - (int)bh : each, work + omp_get_thread_num() * size));
}

const mn_op mn_op_agalite = {
  .sig = ATTENTION_INPUTS("beta?[T,B,H,V]:01 gamma?[T,B,H,?]:01") "~tick[B] vs?[B,?,H,V] ks?[B,?,H,?] s?[B,H,?] ~env?[B] -> "
         "y[T,B,H,V] vs'[B,?,H,V] ks'[B,?,H,?] s'[B,H,?] ~tick'[B] ~~saved[?,?] | "
         "form=code|paper|cossin|random_sign r=2 eps=1e-5 den_clamp=0 normalise=1 stored=distinct|all seed=0",
  .doc = "gated linear attention whose matrix is a sum of r cosine products (AGaLiTe, Pramanik et al. 2023, eq. 34-36). v_m = (1-b)*v_m + cos(w_m "
      "tau) b*v, k_m = (1-g)*k_m + cos(w_m tau) g*k, y = sum_m v_m (k_m.q) / den(D s.q), tau = tick + 1, 2, ... States hold one of each mirrored pair "
      "of channels; with stored=all, every channel. form=random_sign: y = (1/r) sum_m v_m (k_m.q) / den(s.q), an unbiased numerator, with nu_m = +-1 "
      "in place of the cosine; nu_m is a function of (seed, env, tau, m), and env is the row of the batch unless given",
  .time = MN_SCAN,
  .cpu_grads = 1u << IN_SHRINK,
  .forward = forward,
  .backward = backward,
  .shape = shape,
  .batch_parallel = batch_parallel,
};
