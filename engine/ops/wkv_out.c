/* wkv_out.c -- norm, bonus and gate that RWKV-6 and RWKV-7 apply to a read-out, in one pass each way:
**   z = (norm(y) * weight + bias + (sum_j r_j bonus_j k_j) v) * act(gate)
** norm is over the values of a head (group norm), population variance.  The bonus, RWKV-7's, passes the newest
** value around the memory: Peng et al. 2025, eq. 20-22; without it Peng et al. 2024, eq. 20. */
#include <string.h>
#include "numerics/fast_math.h"
#include "numerics/simd.h"
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

typedef struct head {            /* where one head's numbers lie in [T,B,H,V], [T,B,H,K], [H,V] and [H,K] */
  long V, K, at, key, own, own_key;
} head;

static head head_at(const mn_call *c, long i) {
  long V = DIM(c, 'V'), K = c->in[R].data ? DIM(c, 'K') : 0, h = i % DIM(c, 'H');
  return (head){ V, K, i * V, i * K, h * V, h * K };
}

/* act(x), and its slope. */
MN_MATH float gate_of(bool silu, float x) { return silu ? x * mn_sigmoidf(x) : x; }
MN_MATH float gate_slope(bool silu, float x) {
  float s = mn_sigmoidf(x);
  return silu ? s * (1 + x * (1 - s)) : 1;
}

/* One head forward.  `silu` and `bonus` are constants where this is inlined, so that its loops have no branches. */
MN_INLINE void head_forward(const bool silu, const bool bonus, const mn_call *c, long i) {
  head h = head_at(c, i);
  const float *y = c->in[Y].data + h.at, *weight = c->in[WEIGHT].data + h.own, *bias = c->in[BIAS].data + h.own;
  const float *gate = c->in[GATE].data + h.at, *v = bonus ? c->in[V_IN].data + h.at : y;
  float *z = c->out[0].data + h.at, *stats = c->out[1].data + 3 * i, sum = 0, squares = 0, own = 0;
  MN_PRAGMA(omp simd reduction(+:sum))
  for (long j = 0; j < h.V; j++) sum += y[j];
  float mean = sum / (float)h.V;
  MN_PRAGMA(omp simd reduction(+:squares))
  for (long j = 0; j < h.V; j++) squares += (y[j] - mean) * (y[j] - mean);
  float scale = 1 / __builtin_sqrtf(squares / (float)h.V + (float)OPT(c, 0));
  if (bonus) {
    const float *r = c->in[R].data + h.key, *k = c->in[K_IN].data + h.key, *b = c->in[BONUS].data + h.own_key;
    MN_PRAGMA(omp simd reduction(+:own))
    for (long j = 0; j < h.K; j++) own += r[j] * k[j] * b[j];
  }
  MN_PRAGMA(omp simd)
  for (long j = 0; j < h.V; j++) {
    float x = (y[j] - mean) * scale * weight[j] + bias[j];
    z[j] = (bonus ? x + own * v[j] : x) * gate_of(silu, gate[j]);
  }
  stats[0] = mean, stats[1] = scale, stats[2] = own;
}

/* One head backward.  Added to: dweight, dbias [V] and dbonus [K]; room: [V] numbers. */
MN_INLINE void head_back(const bool silu, const bool bonus, const mn_call *c, long i, float *dweight, float *dbias,
                         float *dbonus, float *restrict room) {
  head h = head_at(c, i);
  const float *y = c->in[Y].data + h.at, *weight = c->in[WEIGHT].data + h.own, *bias = c->in[BIAS].data + h.own;
  const float *gate = c->in[GATE].data + h.at, *dz = c->out[0].grad + h.at, *stats = c->out[1].data + 3 * i;
  const float *v = bonus ? c->in[V_IN].data + h.at : y;
  float mean = stats[0], scale = stats[1], sum = 0, along = 0, own = 0;
  float *dgate = c->in[GATE].grad, *dy = c->in[Y].grad, *dv = bonus ? c->in[V_IN].grad : NULL;
  MN_PRAGMA(omp simd reduction(+:sum, along, own))
  for (long j = 0; j < h.V; j++) {
    float n = (y[j] - mean) * scale, d = dz[j] * gate_of(silu, gate[j]), g = d * weight[j];
    room[j] = d;
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
      dgate[h.at + j] = dz[j] * (bonus ? x + stats[2] * v[j] : x) * gate_slope(silu, gate[j]);
    }
  }
  sum /= (float)h.V;
  along /= (float)h.V;
  if (dy) {
    MN_PRAGMA(omp simd)
    for (long j = 0; j < h.V; j++) dy[h.at + j] = scale * (room[j] * weight[j] - sum - (y[j] - mean) * scale * along);
  }
  if (dv) {
    MN_PRAGMA(omp simd)
    for (long j = 0; j < h.V; j++) dv[h.at + j] = stats[2] * room[j];
  }
  if (!bonus) return;
  const float *r = c->in[R].data + h.key, *k = c->in[K_IN].data + h.key, *b = c->in[BONUS].data + h.own_key;
  float *dr = c->in[R].grad, *dk = c->in[K_IN].grad;
  MN_PRAGMA(omp simd)
  for (long j = 0; j < h.K; j++) dbonus[j] += own * r[j] * k[j];
  if (dr) {
    MN_PRAGMA(omp simd)
    for (long j = 0; j < h.K; j++) dr[h.key + j] = own * k[j] * b[j];
  }
  if (dk) {
    MN_PRAGMA(omp simd)
    for (long j = 0; j < h.K; j++) dk[h.key + j] = own * r[j] * b[j];
  }
}

static void some_heads(const mn_call *c, long from, long end) {
  bool silu = OPT(c, 1) != 0, bonus = c->in[R].data != NULL;
  if (silu && bonus) for (long i = from; i < end; i++) head_forward(true, true, c, i);
  else if (silu)     for (long i = from; i < end; i++) head_forward(true, false, c, i);
  else if (bonus)    for (long i = from; i < end; i++) head_forward(false, true, c, i);
  else               for (long i = from; i < end; i++) head_forward(false, false, c, i);
}

static void forward(mn_call *c) {
  long n = c->in[Y].n / DIM(c, 'V'), jump = (long)ROWS * DIM(c, 'H');
  MN_FOR(c->ctx, 4 * c->in[Y].n, i, 0, n, jump, some_heads(c, i, n - i < jump ? n : i + jump));
}

/* The parameters' gradients of one job's rows: [H,V], [H,V], [H,K], then room for one head. */
static long sums_size(const mn_call *c) {
  return (2L * DIM(c, 'V') + (c->in[R].data ? DIM(c, 'K') : 0)) * DIM(c, 'H') + DIM(c, 'V');
}

static void some_heads_back(const mn_call *c, long from, long end, float *sums) {
  long V = DIM(c, 'V'), HV = V * DIM(c, 'H'), size = sums_size(c);
  memset(sums, 0, sizeof(float) * (size_t)size);
  bool silu = OPT(c, 1) != 0, bonus = c->in[R].data != NULL;
  for (long i = from; i < end; i++) {
    head h = head_at(c, i);
    float *w = sums + h.own, *b = sums + HV + h.own, *u = sums + 2 * HV + h.own_key, *room = sums + size - V;
    if (silu && bonus) head_back(true, true, c, i, w, b, u, room);
    else if (silu)     head_back(true, false, c, i, w, b, u, room);
    else if (bonus)    head_back(false, true, c, i, w, b, u, room);
    else               head_back(false, false, c, i, w, b, u, room);
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
         "z[T,B,H,V] ~~stats[T,B,H,3] | eps=64e-5 act=none|silu",
  .doc = "output of RWKV-6 and RWKV-7 from a read-out (Peng et al. 2024, 2025). z = (norm(y) * weight + bias + (sum r bonus k) v) * act(gate), norm "
      "over each head",
  .time = MN_PER_ROW, .shape = shape, .forward = forward, .backward = backward,
};
