/* low_rank_attention.c -- gated linear attention whose matrix is stored as a product of two thin ones, C = U W^T.
** Each token multiplies the rows of U [V,r] and W [K,r] by the decays, appends b*v and g*k as one more column,
** and truncates the product to rank r if no column is free.  With U^ and W^ [.,r+1] before the truncation, it is
**   U' = U^ A,  W' = W^ B     (A, B [r+1,r] from svd.h; while a column is free they only put the new one there)
** so that U' W'^T = P U^ W^^T Q, with P and Q the projectors onto the r leading singular directions.
**
** Backward treats P and Q as constants.  The map of C^ that removes only the discarded corner of the matrix is
**   C' = C^ - (1 - P) C^ (1 - Q)
** which equals the truncation in value, and in derivative wherever only zeros were discarded: so for
** r >= min(T, V, K) the gradients are those of the full matrix.  In the factors:
**   dU^ = dU' A^T + U' sigma^-1 (dW'^T (1 - Q) W^),   dW^ = dW' B^T + W' sigma^-1 (dU'^T (1 - P) U^)
** where (1 - Q) W^ = W^ - W' A^T and (1 - P) U^ = U^ - U' B^T. */
#include <omp.h>
#include <string.h>
#include "recurrent/galite_decay.h"
#include "numerics/simd.h"
#include "numerics/svd.h"

enum { IN_U = IN_STATE, IN_W, IN_S };
enum { OUT_Y, OUT_U, OUT_W, OUT_S, OUT_CUTS, OUT_SAVED };
enum { L = MN_CHUNK, MOST_R = 256 };

typedef struct low_rank {
  mn_attention a;
  int r, n;                      /* columns kept, and with the new one */
  long size;                     /* floats of one head's state: U as r rows of Vp, W as r rows of Kp, s [Kp] */
} low_rank;

/* What one token's cut is made of, [T,B,H,..] in `cuts`: rows of A and B [r,n], 1/sqrt(sigma) [r]. */
typedef struct cut { float *A, *B, *root; } cut;

static int cut_size(const low_rank *g) { return g->r * (2 * g->n + 1); }

static cut cut_at(const low_rank *g, float *cuts, long token) {
  float *p = cuts + token * cut_size(g);
  return (cut){ p, p + g->r * g->n, p + 2 * g->r * g->n };
}

static int open_call(low_rank *g, mn_call *c) {
  if (mn_attention_open(&g->a, c, "low_rank_attention", 1)) return -1;
  g->r = (int)OPT(c, 0);
  if (OPT(c, 0) != g->r || g->r < 1 || g->r > MOST_R)
    return mn_fail(c->ctx, "low_rank_attention: r is %g, expected a whole number from 1 to %d", OPT(c, 0), MOST_R);
  g->n = g->r + 1;
  g->size = (long)g->r * (g->a.Vp + g->a.Kp) + g->a.Kp;
  return 0;
}

static int shape(mn_call *c) {
  const char *name = "low_rank_attention";
  low_rank g;
  if (open_call(&g, c)) return -1;
  if (mn_attention_axis(c, name, IN_U, "U", 3, g.r) || mn_attention_axis(c, name, IN_W, "W", 2, g.a.K)
      || mn_attention_axis(c, name, IN_W, "W", 3, g.r) || mn_attention_axis(c, name, IN_S, "s", 2, g.a.K))
    return -1;
  double rows = (double)g.a.B * g.a.H * mn_chunks(g.a.T);
  if (rows > 1e9 || g.size > 1000000000)
    return mn_fail(c->ctx, "%s: a state of %d columns of %d keys and %d values for %d heads is too large", name, g.r,
                   g.a.K, g.a.V, g.a.B * g.a.H);
  c->out[OUT_U].shape[3] = c->out[OUT_W].shape[3] = g.r;
  c->out[OUT_W].shape[2] = c->out[OUT_S].shape[2] = g.a.K;
  c->out[OUT_CUTS].shape[3] = cut_size(&g);
  c->out[OUT_SAVED].shape[0] = (int)rows;
  c->out[OUT_SAVED].shape[1] = (int)g.size;
  return 0;
}

static float *checkpoint(const low_rank *g, int bh, int t) {
  return g->a.c->out[OUT_SAVED].data + ((long)bh * mn_chunks(g->a.T) + t / L) * g->size;
}

/* ---- a head's state, between tensors U [B,H,V,r], W [B,H,K,r], s [B,H,K] and rows ---- */

typedef struct tensors { float *U, *W, *s; } tensors;

/* rows [r][wide] from columns [n][r], padded with zeros (zeros throughout for NULL); and back. */
static void to_rows(int r, int n, int wide, const float *columns, float *rows) {
  memset(rows, 0, sizeof(float) * (size_t)r * (size_t)wide);
  for (int i = 0; columns && i < n; i++)
    for (int c = 0; c < r; c++) rows[(long)c * wide + i] = columns[(long)i * r + c];
}

static void to_columns(int r, int n, int wide, const float *rows, float *columns) {
  for (int i = 0; columns && i < n; i++)
    for (int c = 0; c < r; c++) columns[(long)i * r + c] = rows[(long)c * wide + i];
}

static void move_state(const low_rank *g, int bh, float *state, tensors x, bool out) {
  const mn_attention *a = &g->a;
  float *U = x.U ? x.U + (long)bh * a->V * g->r : NULL, *W = x.W ? x.W + (long)bh * a->K * g->r : NULL;
  float *s = x.s ? x.s + (long)bh * a->K : NULL;
  float *rows_W = state + (long)g->r * a->Vp, *rows_s = rows_W + (long)g->r * a->Kp;
  if (out) {
    to_columns(g->r, a->V, a->Vp, state, U);
    to_columns(g->r, a->K, a->Kp, rows_W, W);
    to_columns(1, a->K, a->Kp, rows_s, s);
  } else {
    to_rows(g->r, a->V, a->Vp, U, state);
    to_rows(g->r, a->K, a->Kp, W, rows_W);
    to_rows(1, a->K, a->Kp, s, rows_s);
  }
}

/* ---- one token ---- */

/* Its numbers: q, keys written k and kept kd [Kp], values v and vd [Vp], kappa_i = W'_i . q [r], z = s.q; and the
** factors before the cut, n rows each. */
typedef struct token { float *q, *k, *kd, *v, *vd, *U, *W, *kappa; float z; } token;

static long token_size(const low_rank *g) {
  return (long)(g->n + 3) * g->a.Kp + (long)(g->n + 2) * g->a.Vp + mn_padded(g->r);
}

static token token_at(const low_rank *g, float *p) {
  long Kp = g->a.Kp, Vp = g->a.Vp;
  token x = { .q = p, .kd = p + Kp, .W = p + 2 * Kp };
  x.k = x.W + g->r * Kp;         /* the new key is the last row of W^, the new value that of U^ */
  x.U = x.W + (g->n + 1) * Kp;
  x.v = x.U + g->r * Vp;
  x.vd = x.U + g->n * Vp;
  x.kappa = x.vd + Vp;
  return x;
}

static void scale_rows(int rows, int n, const float *x, const float *by, float *out) {
  for (int c = 0; c < rows; c++, x += n, out += n)
    for (int i = 0; i < n; i += MN_LANES) mn_store(out + i, mn_load(x + i) * mn_load(by + i));
}

/* out_i = sum_c A[i][c] x_c, for r rows of A [r,n]. */
static void mix(int r, int n, int wide, const float *A, const float *x, float *out) {
  for (int i = 0; i < r; i++, A += n, out += wide)
    for (int j = 0; j < wide; j += MN_LANES) {
      mn_lanes sum = { 0 };
      for (int c = 0; c < n; c++) sum += mn_load(x + (long)c * wide + j) * A[c];
      mn_store(out + j, sum);
    }
}

/* Inner products of n rows, in double. */
static void gram(int n, int wide, const float *x, double *G) {
  for (int i = 0; i < n; i++)
    for (int j = 0; j <= i; j++) {
      const float *p = x + (long)i * wide, *q = x + (long)j * wide;
      double sum = 0;
      MN_PRAGMA(omp simd reduction(+:sum))
      for (int k = 0; k < wide; k++) sum += (double)p[k] * (double)q[k];
      G[i * n + j] = G[j * n + i] = sum;
    }
}

static bool all_zero(long n, const float *x) {
  for (long i = 0; i < n; i++) if (x[i] != 0) return false;
  return true;
}

/* A free column takes the new one in; else the nearest product of r columns does. */
static void find_cut(const low_rank *g, const token *x, cut to, double *work) {
  int r = g->r, n = g->n, Vp = g->a.Vp, Kp = g->a.Kp, free_one = 0;
  while (free_one < r && !(all_zero(Vp, x->U + (long)free_one * Vp) && all_zero(Kp, x->W + (long)free_one * Kp)))
    free_one++;
  if (free_one < r) {
    memset(to.A, 0, sizeof(float) * (size_t)cut_size(g));
    for (int i = 0; i < r; i++) to.A[i * n + (i == free_one ? r : i)] = to.B[i * n + (i == free_one ? r : i)] = 1;
    return;
  }
  gram(n, Vp, x->U, work);
  gram(n, Kp, x->W, work + n * n);
  mn_svd_truncate(n, r, work, work + n * n, to.A, to.B, to.root, work + 2 * n * n);
}

static long find_work(const low_rank *g) { return 2L * g->n * g->n + mn_svd_work(g->n); }

/* Take in token t: state from -> to (which may be the same), num = sum_i kappa_i U'_i.  work NULL: the cut is
** known. */
static void advance(const low_rank *g, int bh, int t, token *x, const float *from, cut by, float *to, float *num,
                    double *work) {
  const mn_attention *a = &g->a;
  long row = mn_token(a, t, bh), Vp = a->Vp, Kp = a->Kp;
  float keep = mn_keep(a, t, bh);
  const float *s = from + g->r * (Vp + Kp);
  float *W = to + g->r * Vp, *s_to = W + g->r * Kp;
  mn_keys(a, row, keep, x->q, x->k, x->kd);
  mn_values(a, row, keep, x->v, x->vd);
  scale_rows(g->r, (int)Vp, from, x->vd, x->U);
  scale_rows(g->r, (int)Kp, from + g->r * Vp, x->kd, x->W);
  mn_lanes z = { 0 };
  for (int i = 0; i < Kp; i += MN_LANES) {
    mn_lanes sum = mn_load(s + i) * mn_load(x->kd + i) + mn_load(x->k + i);
    mn_store(s_to + i, sum);
    z += sum * mn_load(x->q + i);
  }
  x->z = mn_sum(z);
  if (work) find_cut(g, x, by, work);
  mix(g->r, g->n, (int)Vp, by.A, x->U, to);
  mix(g->r, g->n, (int)Kp, by.B, x->W, W);
  for (int i = 0; i < g->r; i++) x->kappa[i] = mn_dot(Kp, W + i * Kp, x->q);
  mix(1, g->r, (int)Vp, x->kappa, to, num);
}

typedef struct heads_job { const low_rank *g; float *work; long size; } heads_job;

/* One head through the rows that are asked for. */
static void walk(void *arg, int bh, int worker) {
  const heads_job *j = arg;
  const low_rank *g = j->g;
  const mn_attention *a = &g->a;
  const mn_call *c = a->c;
  float *state = j->work + worker * j->size, *num = state + g->size;
  token x = token_at(g, num + a->Vp);
  double *work = (double *)(num + a->Vp + token_size(g));
  tensors first = { c->in[IN_U].data, c->in[IN_W].data, c->in[IN_S].data };
  tensors running = { c->out[OUT_U].data, c->out[OUT_W].data, c->out[OUT_S].data };
  move_state(g, bh, state, c->t0 ? running : first, false);
  for (int t = c->t0; t < c->t1; t++) {
    long row = mn_token(a, t, bh);
    cut by = cut_at(g, c->out[OUT_CUTS].data, row);
    if (mn_keep(a, t, bh) == 0) memset(state, 0, sizeof(float) * (size_t)g->size);
    if (c->taped && t % L == 0) memcpy(checkpoint(g, bh, t), state, sizeof(float) * (size_t)g->size);
    mn_prefetch_inputs(a, t + 2, bh, false, true);
    advance(g, bh, t, &x, state, by, state, num, work);
    mn_divide(a, row, num, x.z);
  }
  move_state(g, bh, state, running, true);
}

static void forward(mn_call *c) {
  low_rank g;
  open_call(&g, c);
  long size = mn_padded(g.size + g.a.Vp + token_size(&g) + 2 * find_work(&g));
  heads_job job = { &g, mn_scratch(c->ctx, 0, size * mn_threads(c->ctx)), size };
  mn_parallel_for(c->ctx, g.a.B * g.a.H, walk, &job);
}

/* ---- backward ---- */

/* One side of the cut: gradient din [n] of the rows before it from dout [r] of those after it.  A: what made these
** rows; `across` [r,n]: sigma^-1 times the gradient of the other side on what it discarded. */
static void cut_back(int r, int n, int wide, const float *A, const float *across, const float *after,
                     const float *dout, float *din) {
  for (int c = 0; c < n; c++, din += wide)
    for (int j = 0; j < wide; j += MN_LANES) {
      mn_lanes sum = { 0 };
      for (int i = 0; i < r; i++)
        sum += mn_load(dout + (long)i * wide + j) * A[i * n + c] + mn_load(after + (long)i * wide + j) * across[i * n + c];
      mn_store(din + j, sum);
    }
}

/* across[i][c] = d_i . (x_c - sum_k A[k][c] y_k) / sigma_i: rows x [n] before the cut, y [r] after it, and d [r] the
** gradient of y.  A is the other side's: y A^T is the projection of x. */
static void discarded_back(int r, int n, int wide, const cut by, const float *A, const float *x, const float *y,
                           const float *d, float *across) {
  float to_y[MOST_R];
  for (int i = 0; i < r; i++, d += wide, across += n) {
    float weight = by.root[i] * by.root[i];
    if (weight == 0) {
      memset(across, 0, sizeof(float) * (size_t)n);
      continue;
    }
    for (int k = 0; k < r; k++) to_y[k] = mn_dot(wide, d, y + (long)k * wide);
    for (int c = 0; c < n; c++) {
      float sum = mn_dot(wide, d, x + (long)c * wide);
      for (int k = 0; k < r; k++) sum -= A[k * n + c] * to_y[k];
      across[c] = sum * weight;
    }
  }
}

/* Gradient of rows that were scaled: x = before * by.  d becomes that of `before`, dby is stored with what the sum of
** keys gave it. */
static void scale_back(int rows, int n, const float *before, const float *by, const float *d, float *to, float *dby) {
  for (int i = 0; i < n; i += MN_LANES) {
    mn_lanes sum = mn_load(dby + i), f = mn_load(by + i);
    for (long c = 0; c < rows; c++) {
      mn_lanes g = mn_load(d + c * n + i);
      sum += g * mn_load(before + c * n + i);
      mn_store(to + c * n + i, g * f);
    }
    mn_store(dby + i, sum);
  }
}

static long back_size(const low_rank *g) {
  return (long)(g->n + 4) * g->a.Kp + (long)(g->n + 2) * g->a.Vp + 2 * mn_padded((long)g->r * g->n);
}

/* Token t backward: dstate goes from after it to before it. */
static void retreat(const low_rank *g, int bh, int t, const token *x, const cut by, const float *before,
                    const float *after, float *dstate, float *work) {
  const mn_attention *a = &g->a;
  int r = g->r, n = g->n;
  long Kp = a->Kp, Vp = a->Vp, row = mn_token(a, t, bh), at_W = r * Vp, at_s = at_W + r * Kp;
  float *dU = work, *dvd = dU + n * Vp, *dnum = dvd + Vp, *dW = dnum + Vp, *dkd = dW + n * Kp, *dq = dkd + Kp;
  float *spare = dq + Kp, *across_U = spare + 2 * Kp, *across_W = across_U + mn_padded((long)r * n);
  float keep = mn_keep(a, t, bh), dz = mn_dz(a, row, x->z);
  mn_dnum(a, row, x->z, dnum);
  for (int i = 0; i < Kp; i += MN_LANES) {             /* z = s'.q */
    mn_store(dq + i, mn_load(after + at_s + i) * dz);
    mn_store(dstate + at_s + i, mn_load(dstate + at_s + i) + mn_load(x->q + i) * dz);
  }
  for (long i = 0; i < r; i++) {                       /* num = sum_i (W'_i . q) U'_i */
    float *to_U = dstate + i * Vp, *to_W = dstate + at_W + i * Kp;
    float dkappa = mn_dot(Vp, after + i * Vp, dnum);
    for (int j = 0; j < Vp; j += MN_LANES) mn_store(to_U + j, mn_load(to_U + j) + mn_load(dnum + j) * x->kappa[i]);
    for (int j = 0; j < Kp; j += MN_LANES) {
      mn_store(to_W + j, mn_load(to_W + j) + mn_load(x->q + j) * dkappa);
      mn_store(dq + j, mn_load(dq + j) + mn_load(after + at_W + i * Kp + j) * dkappa);
    }
  }
  discarded_back(r, n, (int)Kp, by, by.A, x->W, after + at_W, dstate + at_W, across_U);
  discarded_back(r, n, (int)Vp, by, by.B, x->U, after, dstate, across_W);
  cut_back(r, n, (int)Vp, by.A, across_U, after, dstate, dU);
  cut_back(r, n, (int)Kp, by.B, across_W, after + at_W, dstate + at_W, dW);
  float *dk = dW + r * Kp, *dv = dU + r * Vp;
  memset(dvd, 0, sizeof(float) * (size_t)Vp);
  memset(dkd, 0, sizeof(float) * (size_t)Kp);
  for (int i = 0; i < Kp; i += MN_LANES) mn_store(dk + i, mn_load(dk + i) + mn_load(dstate + at_s + i));
  scale_back(r, (int)Vp, before, x->vd, dU, dstate, dvd);
  scale_back(r, (int)Kp, before + at_W, x->kd, dW, dstate + at_W, dkd);
  scale_back(1, (int)Kp, before + at_s, x->kd, dstate + at_s, dstate + at_s, dkd);
  mn_keys_back(a, row, keep, dq, dk, dkd, spare);
  mn_values_back(a, row, keep, dv, dvd);
}

static void backward(mn_call *c) {
  low_rank g;
  open_call(&g, c);
  const mn_attention *a = &g.a;
  long one = token_size(&g), size = 2 * g.size + a->Vp + back_size(&g) + L * (one + g.size);
  float *work = mn_scratch(c->ctx, 0, size * mn_threads(c->ctx));
  tensors final = { c->out[OUT_U].grad, c->out[OUT_W].grad, c->out[OUT_S].grad };
  tensors first = { c->in[IN_U].grad, c->in[IN_W].grad, c->in[IN_S].grad };
  MN_PARALLEL(c->ctx, 12.0 * a->T * a->B * a->H * (double)g.size * g.n)
  for (int bh = 0; bh < a->B * a->H; bh++) {
    float *dstate = work + omp_get_thread_num() * size, *nothing = dstate + g.size, *num = nothing + g.size;
    float *temporary = num + a->Vp, *tokens = temporary + back_size(&g), *states = tokens + L * one;
    memset(nothing, 0, sizeof(float) * (size_t)g.size);
    move_state(&g, bh, dstate, final, false);
    for (int t = (mn_chunks(a->T) - 1) * L; t >= 0; t -= L) {
      const float *before[L + 1] = { checkpoint(&g, bh, t) };
      cut by[L];
      token x[L];
      int n = a->T - t < L ? a->T - t : L;
      for (int i = 0; i < n; i++) {
        float *after = states + i * g.size;
        x[i] = token_at(&g, tokens + i * one);
        by[i] = cut_at(&g, c->out[OUT_CUTS].data, mn_token(a, t + i, bh));
        if (mn_keep(a, t + i, bh) == 0) before[i] = nothing;
        advance(&g, bh, t + i, &x[i], before[i], by[i], after, num, NULL);
        before[i + 1] = after;
      }
      for (int i = n - 1; i >= 0; i--) {
        mn_prefetch_inputs(a, t - L + i, bh, true, true);
        retreat(&g, bh, t + i, &x[i], by[i], before[i], states + i * g.size, dstate, temporary);
      }
    }
    move_state(&g, bh, dstate, first, true);
  }
}

const mn_op mn_op_low_rank_attention = {
  .sig = ATTENTION_INPUTS("beta?[T,B,H,?]:01 gamma?[T,B,H,?]:01") "U?[B,H,V,?] W?[B,H,?,?] s?[B,H,?] -> "
         "y[T,B,H,V] U'[B,H,V,?] W'[B,H,?,?] s'[B,H,?] ~cuts[T,B,H,?] ~~saved[?,?] | "
         "r=2 eps=1e-5 den_clamp=0 normalise=1",
  .doc = "gated linear attention with its matrix truncated to rank r by SVD. C^ = ((1-b) (x) (1-g)) * U W^T + (b*v)(g*k)^T, U' W'^T its nearest "
      "matrix of rank r, s' = (1-g)*s + g*k, y = U' (W'^T q) / den(s'.q). The gradient treats the singular subspaces as constants",
  .time = MN_SCAN,
  .cpu_grads = 1u << IN_SHRINK,
  .forward = forward,
  .backward = backward,
  .shape = shape,
};
