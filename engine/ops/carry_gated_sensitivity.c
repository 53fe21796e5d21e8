/* carry_gated_sensitivity.c -- carries the sensitivities of a gated state, whose recursion is a product of factors, over a window of time:
** carry_sensitivity without its tensors of factors, which this op makes a block of elements at a time, in cache, and multiplies with the
** layer's input at once.  Used for credit=exact in the gated linear family: see learn/exact_credit.lua. */
#include <string.h>
#include "numerics/packed_gemm.h"
#include "numerics/simd.h"
#include "op.h"

enum { BLOCK = 64, ROWS = 256, MOST = 6 };          /* elements and steps that are made at once; factors */
enum { IN_STATE, IN_S, IN_ROWS, IN_X, IN_DONE, IN_WAVE, IN_V, IN_BETA, IN_K, IN_P_K, IN_GAMMA, IN_P_GAMMA };
enum { NONE, RELU, ELU1 };

typedef struct window {
  int T, B, N, R, D, F, act;
  long all, from;                                   /* of a state: numbers of an environment, its first element */
  const float *state, *x, *wave, *panels;
  const uint8_t *done;
  float *S, *work;
  const int32_t *rows;
  struct { const float *a; long O; int in; } factor[MOST];
} window;

static int steps(const mn_call *c) { return OPT(c, 2) > 0 ? (int)OPT(c, 2) : DIM(c, 'U'); }

static int shape(mn_call *c) {
  const int N = DIM(c, 'N'), R = DIM(c, 'R'), D = DIM(c, 'D'), from = (int)OPT(c, 0);
  int F = 0;
  for (int in = IN_V; in <= IN_P_GAMMA; in++) {
    const mn_arg *a = &c->in[in], *rows = &c->in[IN_ROWS];
    if (!a->data) continue;
    for (int i = 0; F < DIM(c, 'F') && mn_on_cpu(c->ctx) && i < N; i++) {
      const int row = rows->i32[(long)F * N + i];
      if (row < 0 || row >= a->shape[2])
        return mn_fail(c->ctx, "carry_gated_sensitivity: row %d of %s, expected 0 to %d", row, mn_input_name(c, in), a->shape[2] - 1);
    }
    F++;
  }
  if (F != DIM(c, 'F')) return mn_fail(c->ctx, "carry_gated_sensitivity: S and rows are of %d factors, %d are given", DIM(c, 'F'), F);
  if (R != D && R != D + 1)
    return mn_fail(c->ctx, "carry_gated_sensitivity: S has rows of %d, expected %d, or %d with a bias", R, D, D + 1);
  if (steps(c) > DIM(c, 'U') || ((c->in[IN_DONE].data || c->in[IN_WAVE].data) && DIM(c, 'T') != steps(c)))
    return mn_fail(c->ctx, "carry_gated_sensitivity: steps=%d of %d rows of x, and %d of done or wave", steps(c), DIM(c, 'U'), DIM(c, 'T'));
  if (from < 0 || (long)DIM(c, 'B') * (from + N) > c->in[IN_STATE].n)
    return mn_fail(c->ctx, "carry_gated_sensitivity: elements %d to %d of a state of %ld", from, from + N - 1, c->in[IN_STATE].n / DIM(c, 'B'));
  return 0;
}

#define EACH(k) MN_PRAGMA(omp simd) for (int k = 0; k < BLOCK; k++)

/* A block: elements i .. i+n-1 of environment b, and how a factor's rows lie: `step` after each other (0: all the same), or anyhow (-1). */
typedef struct block { int b, i, n, step[MOST]; } block;

static int step_of(const int32_t *row, int n) {
  const int step = n > 1 ? row[1] - row[0] : 0;
  for (int k = 1; k < n; k++) if (row[k] - row[k - 1] != step) return -1;
  return step == 0 || step == 1 ? step : -1;
}

/* What the factors give in step t for the elements of a block, 0 beyond the last: a[factor][element]. */
static void take(const window *w, const block *at, int t, float (*a)[BLOCK]) {
  for (int f = 0; f < w->F; f++) {
    const float *from = w->factor[f].a + ((long)t * w->B + at->b) * w->factor[f].O;
    const int32_t *row = w->rows + (long)f * w->N + at->i;
    if (at->step[f] == 1) memcpy(a[f], from + row[0], sizeof(float) * (size_t)at->n);
    else if (at->step[f] == 0) for (int k = 0; k < at->n; k++) a[f][k] = from[row[0]];
    else for (int k = 0; k < at->n; k++) a[f][k] = from[row[k]];
  }
}

static bool writes(int in) { return in == IN_BETA || in == IN_GAMMA || in == IN_P_GAMMA; }
static bool of_keys(int in) { return in == IN_GAMMA || in == IN_P_GAMMA; }

/* What a step keeps: (1 - beta) (1 - gamma p_gamma), as far as there are such. */
static void kept(const window *w, float (*a)[BLOCK], float *beta, float *gamma) {
  bool keys = false;
  EACH(k) beta[k] = gamma[k] = 1;
  for (int f = 0; f < w->F; f++) {
    if (w->factor[f].in == IN_BETA) EACH(k) beta[k] = 1 - a[f][k];
    if (!of_keys(w->factor[f].in)) continue;
    EACH(k) gamma[k] *= a[f][k];
    keys = true;
  }
  if (keys) EACH(k) gamma[k] = 1 - gamma[k];
}

static bool begins(const window *w, int t, int b) { return w->done && w->done[(long)t * w->B + b]; }
static float wave_at(const window *w, int t, int b) { return w->wave ? w->wave[(long)t * w->B + b] : 1; }

/* Forwards: the state before each step, and what is left at the end of what was there at first. */
static void run(const window *w, const block *at, float (*before)[BLOCK], float *left) {
  float h[BLOCK] = { 0 }, y[BLOCK], a[MOST][BLOCK] = { { 0 } }, beta[BLOCK], gamma[BLOCK];
  memcpy(h, w->state + at->b * w->all + w->from + at->i, sizeof(float) * (size_t)at->n);
  EACH(k) left[k] = 1;
  for (int t = 0; t < w->T; t++) {
    if (begins(w, t, at->b)) memset(h, 0, sizeof h), memset(left, 0, sizeof(float) * BLOCK);
    memcpy(before[t], h, sizeof h);
    take(w, at, t, a);
    kept(w, a, beta, gamma);
    const float wave = wave_at(w, t, at->b);
    EACH(k) y[k] = wave;
    for (int f = 0; f < w->F; f++) EACH(k) y[k] *= a[f][k];
    EACH(k) h[k] = beta[k] * gamma[k] * h[k] + y[k], left[k] *= beta[k] * gamma[k];
  }
}

/* Step t backwards: g[factor] = what the last state gains from what each factor's row gives. */
static void step_back(const window *w, const block *at, int t, const float *before, float *later, float *g, float (*sum)[BLOCK]) {
  float a[MOST][BLOCK] = { { 0 } }, beta[BLOCK], gamma[BLOCK], behind[MOST][BLOCK], front[BLOCK], lost[BLOCK];
  const float wave = wave_at(w, t, at->b);
  const int F = w->F;
  take(w, at, t, a);
  kept(w, a, beta, gamma);
  EACH(k) behind[F - 1][k] = 1, front[k] = wave * later[k], lost[k] = later[k] * before[k];
  for (int f = F - 1; f > 0; f--) EACH(k) behind[f - 1][k] = behind[f][k] * a[f][k];
  for (int f = 0; f < F; f++) {
    float *to = g + (long)f * ROWS * BLOCK;
    const int in = w->factor[f].in;
    if (!writes(in)) {
      EACH(k) to[k] = front[k] * behind[f][k];
      if (in != IN_V && w->act == RELU) EACH(k) to[k] = a[f][k] > 0 ? to[k] : 0;
      if (in != IN_V && w->act == ELU1) EACH(k) to[k] *= a[f][k] < 1 ? a[f][k] : 1;
    } else {
      const float *rest = in == IN_BETA ? gamma : beta;
      const int other = in == IN_GAMMA && f + 1 < F ? f + 1 : in == IN_P_GAMMA && f > 0 && w->factor[f - 1].in == IN_GAMMA ? f - 1 : -1;
      if (other < 0) EACH(k) to[k] = (front[k] * behind[f][k] - lost[k] * rest[k]) * a[f][k] * (1 - a[f][k]);
      else EACH(k) to[k] = (front[k] * behind[f][k] - lost[k] * rest[k] * a[other][k]) * a[f][k] * (1 - a[f][k]);
    }
    EACH(k) sum[f][k] += to[k], front[k] *= a[f][k];
  }
  if (begins(w, t, at->b)) memset(later, 0, sizeof(float) * BLOCK);
  else EACH(k) later[k] *= beta[k] * gamma[k];
}

static bool any(const float *x) {
  int n = 0;
  for (int k = 0; k < BLOCK; k++) n += x[k] != 0;
  return n > 0;
}

static float *S_of(const window *w, const block *at, int f) { return w->S + (((long)f * w->B + at->b) * w->N + at->i) * w->R; }

/* S of a block += g' x over `rows` steps from t0 on. */
static void multiply(const window *w, const block *at, int t0, int rows, const float *g) {
  const float *panels = w->panels + (long)at->b * mn_panels(w->D) * w->T * MN_PANEL;
  for (int f = 0; f < w->F; f++) {
    for (int p = 0; p < mn_panels(w->D); p++) {
      const int columns = w->D - p * MN_PANEL < MN_PANEL ? w->D - p * MN_PANEL : MN_PANEL;
      mn_gemm_panel_rows(0, at->n, columns, rows, g + (long)f * ROWS * BLOCK, BLOCK, true, panels + ((long)p * w->T + t0) * MN_PANEL,
                         S_of(w, at, f) + p * MN_PANEL, w->R, true);
    }
  }
}

/* A block's only step: S = left S + g [x, 1] in one pass, each product rounded as where S is scaled and added to apart.  vectors: of a row of x,
** a constant; 0: any number. */
MN_INLINE void carry_one(const window *w, const block *at, const float *left, const float *g, const int vectors) {
  const float *x = w->x + (long)at->b * w->D;
  for (int f = 0; f < w->F; f++, g += ROWS * BLOCK) {
    float *S = S_of(w, at, f);
    for (int k = 0; k < at->n; k++, S += w->R) {
      const float keep = left[k], add = g[k];
      if (keep == 0) memset(S, 0, sizeof(float) * (size_t)w->R);              /* an episode began: whatever was there, it is over */
      for (int v = 0; v < vectors; v++) {
        const mn_lanes more = add * mn_load(x + v * MN_LANES) + mn_splat(0);
        mn_store(S + v * MN_LANES, keep * mn_load(S + v * MN_LANES) + mn_splat(0) + more);
      }
      if (!vectors) MN_PRAGMA(omp simd) for (int j = 0; j < w->D; j++) S[j] = keep * S[j] + 0.0f + (add * x[j] + 0.0f);
      if (w->R > w->D) S[w->D] = keep * S[w->D] + 0.0f + (add + 0.0f);
    }
  }
}

static void job(void *arg, int number, int worker) {
  const window *w = arg;
  const int blocks = (w->N + BLOCK - 1) / BLOCK, i = number % blocks * BLOCK;
  block at = { .b = number / blocks, .i = i, .n = w->N - i < BLOCK ? w->N - i : BLOCK };
  float *work = w->work + (long)worker * (w->T + MOST * ROWS) * BLOCK;
  float (*before)[BLOCK] = (float (*)[BLOCK])work, *g = work + (long)w->T * BLOCK;
  float left[BLOCK], later[BLOCK] = { 0 }, sum[MOST][BLOCK] = { { 0 } };
  for (int f = 0; f < w->F; f++) at.step[f] = step_of(w->rows + (long)f * w->N + i, at.n);
  run(w, &at, before, left);
  for (int k = 0; k < at.n; k++) later[k] = 1;
  if (w->T == 1) {
    step_back(w, &at, 0, before[0], later, g, sum);
    if (w->D == MN_LANES) carry_one(w, &at, left, g, 1);
    else if (w->D == 2 * MN_LANES) carry_one(w, &at, left, g, 2);
    else if (w->D == 4 * MN_LANES) carry_one(w, &at, left, g, 4);
    else carry_one(w, &at, left, g, 0);
    return;
  }
  for (int f = 0; f < w->F; f++) {
    float *S = S_of(w, &at, f);
    for (int k = 0; k < at.n; k++, S += w->R) {
      if (left[k] == 0) memset(S, 0, sizeof(float) * (size_t)w->R);           /* an episode began: whatever was there, it is over */
      else MN_PRAGMA(omp simd) for (int j = 0; j < w->R; j++) S[j] *= left[k];
    }
  }
  for (int end = w->T, t; end > 0 && any(later); end = t) {                   /* where nothing is left of a step, there is nothing before it */
    const int begin = end > ROWS ? end - ROWS : 0;
    for (t = end; t > begin && (t % 8 || any(later)); t--) step_back(w, &at, t - 1, before[t - 1], later, g + (long)(t - 1 - begin) * BLOCK, sum);
    multiply(w, &at, t, end - t, g + (long)(t - begin) * BLOCK);
  }
  for (int f = 0; w->R > w->D && f < w->F; f++) {
    float *S = S_of(w, &at, f) + w->D;
    for (int k = 0; k < at.n; k++) S[(long)k * w->R] += sum[f][k];
  }
}

static void forward(mn_call *c) {
  window w = { .T = steps(c), .B = DIM(c, 'B'), .N = DIM(c, 'N'), .R = DIM(c, 'R'), .D = DIM(c, 'D'), .from = (long)OPT(c, 0),
    .act = (int)OPT(c, 1), .all = c->in[IN_STATE].n / DIM(c, 'B'), .state = c->in[IN_STATE].data, .x = c->in[IN_X].data, .wave = c->in[IN_WAVE].data,
    .done = c->in[IN_DONE].u8, .S = c->in[IN_S].data, .rows = c->in[IN_ROWS].i32 };
  for (int in = IN_V; in <= IN_P_GAMMA; in++) {
    if (!c->in[in].data) continue;
    w.factor[w.F].a = c->in[in].data, w.factor[w.F].O = c->in[in].shape[2], w.factor[w.F++].in = in;
  }
  const int across = mn_panels(w.D), jobs = w.B * ((w.N + BLOCK - 1) / BLOCK);
  float *panels = w.T > 1 ? mn_scratch(c->ctx, 0, (long)w.B * across * w.T * MN_PANEL) : NULL;
  for (int b = 0; panels && b < w.B; b++)
    for (int p = 0; p < across; p++)
      mn_pack_panel(c->in[IN_X].data + (long)b * w.D + p * MN_PANEL, w.B * w.D, w.T, w.D - p * MN_PANEL < MN_PANEL ? w.D - p * MN_PANEL : MN_PANEL, false,
                    panels + ((long)b * across + p) * w.T * MN_PANEL);
  w.panels = panels;
  w.work = mn_scratch(c->ctx, 1, (long)mn_threads(c->ctx) * (w.T + MOST * ROWS) * BLOCK);
  mn_parallel_for(c->ctx, jobs, job, &w);
}

const mn_op mn_op_carry_gated_sensitivity = {
  .sig = "state[B,...] ~S[F,B,N,R] rows[F,N]:i32 x[U,B,D] done?[T,B]:bit wave?[T,B,1] v?[U,B,V] beta?[U,B,E] k?[U,B,K] p_k?[U,B,P] "
         "gamma?[U,B,G] p_gamma?[U,B,Q] -> | from=0 act=none|relu|elu1 steps=0",
  .doc = "S, in place, as carry_sensitivity has it, for h = (1 - beta) (1 - gamma p_gamma) h + wave v k p_k beta gamma p_gamma, whose factors are rows "
         "of layers of x: k and p_k with act, beta and the gammas with a sigmoid, as given; of `steps` rows, 0: all (Zucchet et al. 2023, for AGaLiTe)",
  .time = MN_WHOLE, .off_tape = true, .writes = 1 << IN_S, .shape = shape, .forward = forward,
};
