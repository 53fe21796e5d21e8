/* wkv_out.c -- what RWKV-6 and RWKV-7 make of a read-out before their last product, in one pass each way:
**   z = (norm(y) * weight + bias + (sum_j r_j bonus_j k_j) v) * act(gate)
** norm is over the numbers of a head (group norm), population variance.  The bonus, RWKV-7's, hands on the newest
** value past the memory: Peng et al. 2025, eq. 20-22; without it Peng et al. 2024, eq. 20. */
#include <string.h>
#include "../maths.h"
#include "op.h"

enum { Y, WEIGHT, BIAS, GATE, R, K_IN, BONUS, V_IN };
enum { ROWS = 32 };              /* steps' rows that one job takes, and whose parameters' gradients are summed together */

static int shape(mn_call *c) {
  static const char *const name[] = { "r", "k", "bonus", "v" };
  bool any = false;
  for (int i = R; i <= V_IN; i++) any |= c->in[i].data != NULL;
  for (int i = R; i <= V_IN; i++)
    if (any && !c->in[i].data) return mn_fail(c->ctx, "wkv_out: %s is missing: r, k, bonus and v come together", name[i - R]);
  return 0;
}

typedef struct head {            /* the numbers of one head of one row */
  long V, K, at, key, own, own_key;   /* sizes; where they lie in [T,B,H,V], [T,B,H,K], [H,V] and [H,K] */
  float mean, scale, bonus;
} head;

static head head_at(const mn_call *c, long i) {
  long V = DIM(c, 'V'), K = c->in[R].data ? DIM(c, 'K') : 0, h = i % DIM(c, 'H');
  return (head){ V, K, i * V, i * K, h * V, h * K, 0, 0, 0 };
}

/* act(x), and its slope. */
MN_MATH float gate_of(bool silu, float x) { return silu ? x * mn_sigmoidf(x) : x; }
MN_MATH float gate_slope(bool silu, float x) {
  float s = mn_sigmoidf(x);
  return silu ? s * (1 + x * (1 - s)) : 1;
}

static void some_heads(const mn_call *c, long from, long end) {
  float eps = (float)OPT(c, 0);
  bool silu = OPT(c, 1) != 0;
  for (long i = from; i < end; i++) {
    head h = head_at(c, i);
    const float *y = c->in[Y].data + h.at, *weight = c->in[WEIGHT].data + h.own, *bias = c->in[BIAS].data + h.own;
    const float *gate = c->in[GATE].data + h.at, *v = h.K ? c->in[V_IN].data + h.at : y;
    float *z = c->out[0].data + h.at, *stats = c->out[1].data + 3 * i, sum = 0, squares = 0, bonus = 0;
    MN_PRAGMA(omp simd reduction(+:sum))
    for (long j = 0; j < h.V; j++) sum += y[j];
    float mean = sum / (float)h.V;
    MN_PRAGMA(omp simd reduction(+:squares))
    for (long j = 0; j < h.V; j++) squares += (y[j] - mean) * (y[j] - mean);
    float scale = 1 / __builtin_sqrtf(squares / (float)h.V + eps);
    const float *r = c->in[R].data + h.key, *k = c->in[K_IN].data + h.key, *b = c->in[BONUS].data + h.own_key;
    MN_PRAGMA(omp simd reduction(+:bonus))
    for (long j = 0; j < h.K; j++) bonus += r[j] * k[j] * b[j];
    MN_PRAGMA(omp simd)
    for (long j = 0; j < h.V; j++) {
      float x = (y[j] - mean) * scale * weight[j] + bias[j];
      z[j] = (h.K ? x + bonus * v[j] : x) * gate_of(silu, gate[j]);
    }
    stats[0] = mean, stats[1] = scale, stats[2] = bonus;
  }
}

static void forward(mn_call *c) {
  long n = c->in[Y].n / DIM(c, 'V'), jump = (long)ROWS * DIM(c, 'H');
  MN_FOR(c->ctx, 4 * c->in[Y].n, i, 0, n, jump, some_heads(c, i, n - i < jump ? n : i + jump));
}

/* Gradients of one head: pre [V] is room for that of what the gate multiplies; dweight, dbias [V] and dbonus [K] are
** added to. */
static void head_back(const mn_call *c, long i, float *pre, float *dweight, float *dbias, float *dbonus) {
  bool silu = OPT(c, 1) != 0;
  head h = head_at(c, i);
  const float *y = c->in[Y].data + h.at, *weight = c->in[WEIGHT].data + h.own, *bias = c->in[BIAS].data + h.own;
  const float *gate = c->in[GATE].data + h.at, *dz = c->out[0].grad + h.at, *stats = c->out[1].data + 3 * i;
  const float *v = h.K ? c->in[V_IN].data + h.at : y;
  float mean = stats[0], scale = stats[1], bonus = stats[2], sum = 0, along = 0, own = 0;
  float *dgate = c->in[GATE].grad ? c->in[GATE].grad + h.at : NULL, *dy = c->in[Y].grad;
  MN_PRAGMA(omp simd reduction(+:sum, along, own))
  for (long j = 0; j < h.V; j++) {
    float n = (y[j] - mean) * scale, d = dz[j] * gate_of(silu, gate[j]), g = d * weight[j];
    pre[j] = d;
    dweight[j] += d * n;
    dbias[j] += d;
    sum += g;
    along += g * n;
    own += d * v[j];
  }
  if (dgate) {
    MN_PRAGMA(omp simd)
    for (long j = 0; j < h.V; j++) {
      float x = (y[j] - mean) * scale * weight[j] + bias[j];
      dgate[j] = dz[j] * (h.K ? x + bonus * v[j] : x) * gate_slope(silu, gate[j]);
    }
  }
  sum /= (float)h.V;
  along /= (float)h.V;
  if (dy) {
    MN_PRAGMA(omp simd)
    for (long j = 0; j < h.V; j++)
      dy[h.at + j] = scale * (pre[j] * weight[j] - sum - (y[j] - mean) * scale * along);
  }
  if (!h.K) return;
  const float *r = c->in[R].data + h.key, *k = c->in[K_IN].data + h.key, *b = c->in[BONUS].data + h.own_key;
  float *dr = c->in[R].grad, *dk = c->in[K_IN].grad, *dv = c->in[V_IN].grad;
  for (long j = 0; j < h.K; j++) dbonus[j] += own * r[j] * k[j];
  for (long j = 0; dr && j < h.K; j++) dr[h.key + j] = own * k[j] * b[j];
  for (long j = 0; dk && j < h.K; j++) dk[h.key + j] = own * r[j] * b[j];
  for (long j = 0; dv && j < h.V; j++) dv[h.at + j] = bonus * pre[j];
}

/* The parameters' gradients of one job's rows: [H,V], [H,V], [H,K], then room for one head. */
static long sums_size(const mn_call *c) {
  return (2L * DIM(c, 'V') + (c->in[R].data ? DIM(c, 'K') : 0)) * DIM(c, 'H') + DIM(c, 'V');
}

static void some_heads_back(const mn_call *c, long from, long end, float *sums) {
  long V = DIM(c, 'V'), HV = V * DIM(c, 'H'), size = sums_size(c);
  memset(sums, 0, sizeof(float) * (size_t)size);
  for (long i = from; i < end; i++) {
    head h = head_at(c, i);
    head_back(c, i, sums + size - V, sums + h.own, sums + HV + h.own, sums + 2 * HV + h.own_key);
  }
}

static void collect(const mn_call *c, int i, const float *sums, long parts) {
  float *to = c->in[i].grad;
  long size = sums_size(c);
  if (!to) return;
  memset(to, 0, sizeof(float) * (size_t)c->in[i].n);
  for (long p = 0; p < parts; p++, sums += size)
    for (long j = 0; j < c->in[i].n; j++) to[j] += sums[j];
}

static void backward(mn_call *c) {
  long n = c->in[Y].n / DIM(c, 'V'), jump = (long)ROWS * DIM(c, 'H'), parts = (n + jump - 1) / jump, size = sums_size(c);
  long HV = (long)DIM(c, 'H') * DIM(c, 'V');
  float *sums = mn_scratch(c->ctx, 0, parts * size);
  MN_FOR(c->ctx, 8 * c->in[Y].n, i, 0, n, jump, some_heads_back(c, i, n - i < jump ? n : i + jump, sums + i / jump * size));
  collect(c, WEIGHT, sums, parts);
  collect(c, BIAS, sums + HV, parts);
  if (c->in[BONUS].data) collect(c, BONUS, sums + 2 * HV, parts);
}

const mn_op mn_op_wkv_out = {
  .sig = "y[T,B,H,V] weight[H,V] bias[H,V] gate[T,B,H,V] r?[T,B,H,K] k?[T,B,H,K] bonus?[H,K] v?[T,B,H,V] -> "
         "z[T,B,H,V] ~stats[T,B,H,3] | eps=64e-5 act=none|silu",
  .doc = "z = (norm(y) * weight + bias + (sum r bonus k) v) * act(gate), norm over each head's numbers: what RWKV-6 and "
         "RWKV-7 make of a read-out (Peng et al. 2024, 2025)",
  .time = MN_ROWS, .shape = shape, .forward = forward, .backward = backward,
};
