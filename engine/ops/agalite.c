/* agalite.c -- AGaLiTe: gated linear attention whose matrix is approximated by a few channels.
** Each channel m keeps a vector of values and one of keys, both written with the weight
** w_m = cos(omega_m tau) or sin, or with a random sign; sum_m v_m k_m^T stands for the matrix.
**
** Channels of a form come in mirrored pairs, for ever equal (cosine) or opposite (sine), because a
** cosine is even and the frequencies are symmetric: one of each pair is kept, with weight 2.  Phases
** are whole numbers modulo the period, so they are exact however long an agent lives.  The state is
** small: tokens go one by one, and backward recomputes sixteen at a time from checkpoints. */
#include <math.h>
#include <omp.h>
#include <string.h>
#include "../attention.h"
#include "../signs.h"
#include "../simd.h"
#include "../team.h"

enum { CODE, PAPER, COSSIN, RANDOM_SIGN };
enum { IN_TICK = IN_STATE, IN_VS, IN_KS, IN_S, IN_COPY };
enum { OUT_Y, OUT_VS, OUT_KS, OUT_S, OUT_TICK, OUT_SAVED };
enum { L = MN_CHUNK, HEADER = 16, MOST_R = 4096 };

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
  double seed;                   /* of the random signs */
  long size;                     /* floats of one head's state: keys [M,Kp], s [Kp], values [M,Vp] */
  const float *cosine, *sine;    /* [N] */
} agalite;

static channel channel_of(const agalite *g, int m) {
  return g->all ? published_channel(g->form, g->r, m) : channel_at(g->form, g->r, m);
}

static int open_call(agalite *g, mn_call *c) {
  if (mn_attention_open(&g->a, c, "agalite", 2)) return -1;
  g->form = (int)OPT(c, 0);
  g->r = (int)OPT(c, 1);
  if (OPT(c, 1) != g->r || g->r < 1 || g->r > MOST_R)
    return mn_fail(c->ctx, "agalite: r is %g, expected a whole number from 1 to %d", OPT(c, 1), MOST_R);
  g->a.scalar = false;           /* one value and no gamma: beta is its gate, not the keys' */
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

/* The checkpoint before token t: tick in the header, then the state. */
static float *checkpoint(const agalite *g, int bh, int t) {
  long row = (long)bh * mn_chunks(g->a.T) + t / L;
  return g->a.c->out[OUT_SAVED].data + row * (HEADER + g->size);
}

/* Move one head between its state and the tensors vs [B,M,H,V], ks [B,M,H,K], s [B,H,K]. */
typedef struct tensors { float *vs, *ks, *s; } tensors;

static void each_part(const agalite *g, int bh, float *state, tensors x, bool out) {
  const mn_attention *a = &g->a;
  float *parts[3] = { x.ks, x.s, x.vs };
  for (int p = 0; p < 3; p++) {
    int n = p == 2 ? a->V : a->K, wide = p == 2 ? a->Vp : a->Kp;
    for (int m = 0; m < (p == 1 ? 1 : g->M); m++, state += wide) {
      long head = p == 1 ? bh : ((long)(bh / a->H) * g->M + m) * a->H + bh % a->H;
      float *tensor = parts[p] ? parts[p] + head * n : NULL;
      if (out) {
        if (tensor) memcpy(tensor, state, sizeof(float) * (size_t)n);
        continue;
      }
      if (tensor) memcpy(state, tensor, sizeof(float) * (size_t)n);
      for (int i = tensor ? n : 0; i < wide; i++) state[i] = 0;
    }
  }
}

/* Whose signs row b of the batch meets: those of the copy that it says it is, else of copy b. */
static uint32_t copy_of(const agalite *g, int b) {
  const float *copy = g->a.c->in[IN_COPY].data;
  if (!copy) return (uint32_t)b;
  return copy[b] >= 0 && copy[b] < 16777216.0f ? (uint32_t)copy[b] : 0;
}

/* Weights w_m of all channels of row b at time tau. */
static void waves(const agalite *g, int b, long tau, float *w) {
  if (g->form == RANDOM_SIGN) {
    mn_random_signs(g->seed, copy_of(g, b), (uint64_t)tau, g->M, w);
    return;
  }
  for (int m = 0; m < g->M; m++) {
    channel c = channel_of(g, m);
    long phase = (c.step * tau % g->N + g->N) % g->N;
    w[m] = (c.sine ? g->sine : g->cosine)[phase];
  }
}

static void make_tables(agalite *g, int which) {
  if (g->form == RANDOM_SIGN) return;
  float *table = mn_scratch(g->a.c->ctx, which, 2L * g->N);
  for (int p = 0; p < g->N; p++) {
    double angle = 6.283185307179586476925 * p / g->N;
    table[p] = (float)cos(angle);
    table[g->N + p] = (float)sin(angle);
  }
  g->cosine = table;
  g->sine = table + g->N;
}

/* One token's numbers: keys q, k, kd [Kp], values v, vd [Vp], and per channel w, kappa [M]. */
typedef struct token { float *q, *k, *kd, *v, *vd, *w, *kappa; float z; } token;

static long token_size(const agalite *g) {
  return 3L * g->a.Kp + 2L * g->a.Vp + (2L * g->M + 15) / 16 * 16;
}

static token token_at(const agalite *g, float *p) {
  long Kp = g->a.Kp, Vp = g->a.Vp;
  float *v = p + 3 * Kp;
  return (token){ .q = p, .k = p + Kp, .kd = p + 2 * Kp, .v = v, .vd = v + Vp, .w = v + 2 * Vp,
                  .kappa = v + 2 * Vp + g->M };
}

/* x' = decay * x + w * in, returning x'.q. */
static float advance_keys(int n, const float *x, const float *decay, const float *in, float w,
                          const float *q, float *to) {
  mn_lanes sum = { 0 };
  for (int i = 0; i < n; i += MN_LANES) {
    mn_lanes y = mn_load(decay + i) * mn_load(x + i) + mn_load(in + i) * w;
    mn_store(to + i, y);
    sum += y * mn_load(q + i);
  }
  return mn_sum(sum);
}

/* Take in token t: state from -> to (which may be the same), num = sum_m kappa_m v_m.  At a reset
** `from` is all zeros. */
static void advance(const agalite *g, int bh, int t, long tick, token *x, const float *from,
                    float *to, float *num) {
  const mn_attention *a = &g->a;
  long row = mn_token(a, t, bh);
  float keep = mn_keep(a, t, bh);
  mn_keys(a, row, keep, x->q, x->k, x->kd);
  mn_values(a, row, keep, x->v, x->vd);
  waves(g, bh / a->H, tick + t + 1, x->w);
  for (int m = 0; m < g->M; m++, from += a->Kp, to += a->Kp)
    x->kappa[m] = advance_keys(a->Kp, from, x->kd, x->k, x->w[m], x->q, to);
  x->z = advance_keys(a->Kp, from, x->kd, x->k, 1, x->q, to);
  from += a->Kp;
  to += a->Kp;
  memset(num, 0, sizeof(float) * (size_t)a->Vp);
  for (int m = 0; m < g->M; m++, from += a->Vp, to += a->Vp) {
    float f = x->kappa[m] * channel_of(g, m).weight;
    for (int i = 0; i < a->Vp; i += MN_LANES) {
      mn_lanes y = mn_load(x->vd + i) * mn_load(from + i) + mn_load(x->v + i) * x->w[m];
      mn_store(to + i, y);
      mn_store(num + i, mn_load(num + i) + y * f);
    }
  }
}

/* One head through the rows that are asked for. */
static void walk(const agalite *g, int bh, float *state) {
  const mn_attention *a = &g->a;
  const mn_call *c = a->c;
  tensors first = { c->in[IN_VS].data, c->in[IN_KS].data, c->in[IN_S].data };
  tensors running = { c->out[OUT_VS].data, c->out[OUT_KS].data, c->out[OUT_S].data };
  float tick = c->in[IN_TICK].data[bh / a->H], *num = state + g->size;
  token x = token_at(g, num + a->Vp);
  each_part(g, bh, state, c->t0 ? running : first, false);
  for (int t = c->t0; t < c->t1; t++) {
    if (t % L == 0) {
      float *to = checkpoint(g, bh, t);
      to[0] = tick;
      memcpy(to + HEADER, state, sizeof(float) * (size_t)g->size);
    }
    mn_expect(a, t + 4, bh, false);
    if (mn_keep(a, t, bh) == 0) memset(state, 0, sizeof(float) * (size_t)g->size);
    advance(g, bh, t, lrintf(tick), &x, state, state, num);
    mn_divide(a, mn_token(a, t, bh), num, x.z);
  }
  each_part(g, bh, state, running, true);
}

typedef struct heads_job { const agalite *g; float *work; long size; } heads_job;

static void some_head(void *arg, int bh, int worker) {
  const heads_job *j = arg;
  walk(j->g, bh, j->work + worker * j->size);
}

static void forward(mn_call *c) {
  agalite g;
  open_call(&g, c);
  int H = g.a.H;
  long size = g.size + token_size(&g) + g.a.Vp;
  make_tables(&g, 1);
  float *work = mn_scratch(c->ctx, 0, size * mn_threads(c->ctx));
  const float *tick = c->in[IN_TICK].data;
  heads_job job = { &g, work, size };
  mn_team_run(c->ctx, g.a.B * H, some_head, &job);
  for (int b = 0; b < g.a.B; b++) c->out[OUT_TICK].data[b] = tick[b] + (float)c->t1;
}

/* Backward of advance_keys for `count` vectors of keys at once (1 or 2), each with its before, after,
** weight, gradient of its product with q, and gradient dx, which goes from after to before. */
typedef struct stream { const float *before, *after; float *dx, w, dkappa; } stream;

MN_INLINE void keys_back(const int count, const bool first, int n, const float *decay,
                         const float *q, const stream *x, float *dq, float *din, float *ddecay) {
  for (int i = 0; i < n; i += MN_LANES) {
    mn_lanes to_q = { 0 }, to_in = { 0 }, to_decay = { 0 };
    mn_lanes kept = mn_load(decay + i), qi = mn_load(q + i);
    if (!first) to_q = mn_load(dq + i), to_in = mn_load(din + i), to_decay = mn_load(ddecay + i);
#pragma GCC unroll 2
    for (int c = 0; c < count; c++) {
      mn_lanes d = mn_load(x[c].dx + i) + qi * x[c].dkappa;
      to_q += mn_load(x[c].after + i) * x[c].dkappa;
      to_in += d * x[c].w;
      to_decay += d * mn_load(x[c].before + i);
      mn_store(x[c].dx + i, d * kept);
    }
    mn_store(dq + i, to_q);
    mn_store(din + i, to_in);
    mn_store(ddecay + i, to_decay);
  }
}

/* One channel of values: adds to dv and dvd, returns the gradient of what multiplied it. */
static float values_back(int n, const float *decay, stream x, float f, const float *dnum, float *dv,
                         float *dvd) {
  mn_lanes sum = { 0 };
  for (int i = 0; i < n; i += MN_LANES) {
    mn_lanes g = mn_load(dnum + i), d = mn_load(x.dx + i) + g * f;
    sum += g * mn_load(x.after + i);
    mn_store(dv + i, mn_load(dv + i) + d * x.w);
    mn_store(dvd + i, mn_load(dvd + i) + d * mn_load(x.before + i));
    mn_store(x.dx + i, d * mn_load(decay + i));
  }
  return mn_sum(sum);
}

/* Token t backward: dstate goes from after it to before it, and x's kappa becomes its gradient.  work: 5 Kp + 3 Vp
** floats. */
static void retreat(const agalite *g, int bh, int t, const token *x, const float *before,
                    const float *after, float *dstate, float *work) {
  const mn_attention *a = &g->a;
  long Kp = a->Kp, Vp = a->Vp, row = mn_token(a, t, bh), s = g->M * Kp;
  float *dv = work, *dvd = dv + Vp, *dnum = dvd + Vp;
  float *dq = dnum + Vp, *dk = dq + Kp, *dkd = dk + Kp;
  float keep = mn_keep(a, t, bh), along = 0;
  mn_dnum(a, row, x->z, dnum);
  for (long i = 0; i < 2 * Vp; i++) work[i] = 0;
  for (int m = 0; m < g->M; m++) {
    float weight = channel_of(g, m).weight, kappa = x->kappa[m];
    long at = s + Kp + m * Vp;
    stream v = { before + at, after + at, dstate + at, x->w[m], 0 };
    x->kappa[m] = weight * values_back((int)Vp, x->vd, v, weight * kappa, dnum, dv, dvd);
    along += x->kappa[m] * kappa;
  }
  stream pair[2] = { { before + s, after + s, dstate + s, 1, mn_den_back(a, x->z, along) } };
  for (int m = 0; m < g->M; m++) {
    long key = m * Kp;
    pair[1] = (stream){ before + key, after + key, dstate + key, x->w[m], x->kappa[m] };
    if (m) keys_back(1, false, (int)Kp, x->kd, x->q, pair + 1, dq, dk, dkd);
    else   keys_back(2, true, (int)Kp, x->kd, x->q, pair, dq, dk, dkd);
  }
  mn_keys_back(a, row, keep, dq, dk, dkd, dkd + Kp);
  mn_values_back(a, row, keep, dv, dvd);
}

static void backward(mn_call *c) {
  agalite g;
  open_call(&g, c);
  const mn_attention *a = &g.a;
  long one = token_size(&g), back = 5L * a->Kp + 3L * a->Vp;
  long size = 2 * g.size + back + L * (one + g.size);
  make_tables(&g, 1);
  float *work = mn_scratch(c->ctx, 0, size * mn_threads(c->ctx));
  tensors final = { c->out[OUT_VS].grad, c->out[OUT_KS].grad, c->out[OUT_S].grad };
  tensors first = { c->in[IN_VS].grad, c->in[IN_KS].grad, c->in[IN_S].grad };
  MN_PARALLEL(c->ctx, 12.0 * a->T * a->B * a->H * (double)g.size)
  for (int bh = 0; bh < a->B * a->H; bh++) {
    float *dstate = work + omp_get_thread_num() * size, *zeros = dstate + g.size;
    float *temporary = zeros + g.size;
    float *tokens = temporary + back, *states = tokens + L * one;
    each_part(&g, bh, dstate, final, false);
    memset(zeros, 0, sizeof(float) * (size_t)g.size);
    for (int t = (mn_chunks(a->T) - 1) * L; t >= 0; t -= L) {
      const float *saved = checkpoint(&g, bh, t), *before[L + 1] = { saved + HEADER };
      token x[L];
      int n = a->T - t < L ? a->T - t : L;
      for (int i = 0; i < n; i++) {
        float *after = states + i * g.size;
        x[i] = token_at(&g, tokens + i * one);
        if (mn_keep(a, t + i, bh) == 0) before[i] = zeros;
        advance(&g, bh, t + i, lrintf(saved[0]), &x[i], before[i], after, temporary);
        before[i + 1] = after;
      }
      for (int i = n - 1; i >= 0; i--) {
        mn_expect(a, t - L + i, bh, true);
        mn_expect_grads(a, t + i - 2, bh);
        retreat(&g, bh, t + i, &x[i], before[i], states + i * g.size, dstate, temporary);
      }
    }
    each_part(&g, bh, dstate, first, true);
  }
  mn_shrink_back(a);
  const int constants[] = { IN_TICK, IN_COPY };
  for (int i = 0; i < 2; i++)
    if (c->in[constants[i]].grad) memset(c->in[constants[i]].grad, 0, sizeof(float) * (size_t)a->B);
}

const mn_op mn_op_agalite = {
  .sig = ATTENTION_INPUTS("beta?[T,B,H,V]:01 gamma?[T,B,H,?]:01") "tick[B] vs?[B,?,H,V] ks?[B,?,H,?] s?[B,H,?] copy?[B] -> "
         "y[T,B,H,V] vs'[B,?,H,V] ks'[B,?,H,?] s'[B,H,?] ~tick'[B] ~saved[?,?] | "
         "form=code|paper|cossin|random_sign r=2 eps=1e-5 den_clamp=0 normalise=1 stored=distinct|all seed=0",
  .doc = "gated linear attention with its matrix as a sum of waves: v_m = (1-b)*v_m + cos(w_m tau) b*v, "
         "k_m = (1-g)*k_m + cos(w_m tau) g*k, y = sum_m v_m (k_m.q) / den(D s.q), tau = tick + 1, 2, ... "
         "(AGaLiTe, Pramanik et al. 2023, eq. 34-36); states hold one of each mirrored pair of "
         "channels, or with stored=all every one.  form=random_sign: nu_m = +-1, a function of (seed, copy, tau, m), "
         "copy being the row of the batch unless given, "
         "in place of the cosine, and y = (1/r) sum_m v_m (k_m.q) / den(s.q), whose numerator is right on average",
  .time = MN_SCAN,
  .forward = forward,
  .backward = backward,
  .shape = shape,
};
