/* wkv7_keys.c -- the three keys of RWKV-7's memory, from the key and its learning rate, in one pass each way:
**   out   = z / |z|  per head, z = k * k_k      the direction that is removed from the memory
**   back  = a * out                             what replaces it
**   write = k * (1 + (a - 1) * k_a)             the key under which the value is written
** Peng et al. 2025, eq. 10-12.  |z| is at least 1e-12, as in torch's normalize. */
#include <string.h>
#include "numerics/fast_math.h"
#include "op.h"

enum { K_IN, A, K_K, K_A };
enum { WRITE, OUT, BACK };
enum { ROWS = 32 };              /* steps' rows of one job, and whose parameters' gradients are summed together */
static const float LEAST = 1e-12f;

/* |z|.  Squares that leave float's range are taken of z over its largest number. */
static float norm(const float *k, const float *k_k, long K) {
  float sum = 0, top = 0;
  MN_PRAGMA(omp simd reduction(+:sum))
  for (long j = 0; j < K; j++) sum += k[j] * k_k[j] * (k[j] * k_k[j]);
  if (sum > 1e-30f && sum < 1e37f) return __builtin_sqrtf(sum);
  for (long j = 0; j < K; j++) top = mn_at_least(__builtin_fabsf(k[j] * k_k[j]), top);
  if (!(top > 0)) return top;    /* zero, or NaN */
  sum = 0;
  for (long j = 0; j < K; j++) sum += k[j] * k_k[j] / top * (k[j] * k_k[j] / top);
  return top * __builtin_sqrtf(sum);
}

static void some_heads(const mn_call *c, long from, long end) {
  long K = DIM(c, 'K'), H = DIM(c, 'H');
  for (long i = from; i < end; i++) {
    const float *k = c->in[K_IN].data + i * K, *a = c->in[A].data + i * K;
    const float *k_k = c->in[K_K].data + i % H * K, *k_a = c->in[K_A].data + i % H * K;
    float *write = c->out[WRITE].data + i * K, *out = c->out[OUT].data + i * K, *back = c->out[BACK].data + i * K;
    float size = norm(k, k_k, K), scale = 1 / mn_at_least(size, LEAST);
    MN_PRAGMA(omp simd)
    for (long j = 0; j < K; j++) {
      out[j] = k[j] * k_k[j] * scale;
      back[j] = a[j] * out[j];
      write[j] = k[j] * (1 + (a[j] - 1) * k_a[j]);
    }
    c->out[3].data[i] = size;
  }
}

static void forward(mn_call *c) {
  long n = c->in[K_IN].n / DIM(c, 'K'), jump = (long)ROWS * DIM(c, 'H');
  MN_FOR(c->ctx, 4 * c->in[K_IN].n, i, 0, n, jump, some_heads(c, i, n - i < jump ? n : i + jump));
}

/* One head; dk_k, dk_a [K] are added to; `room` is zeros [K], which stand for a gradient that did not come, then [K]. */
static void head_back(const mn_call *c, long i, float *dk_k, float *dk_a, float *room) {
  long K = DIM(c, 'K'), own = i % DIM(c, 'H') * K, at = i * K;
  const float *k = c->in[K_IN].data + at, *a = c->in[A].data + at, *out = c->out[OUT].data + at;
  const float *k_k = c->in[K_K].data + own, *k_a = c->in[K_A].data + own, *g[3];
  for (int m = 0; m < 3; m++) g[m] = c->out[m].grad ? c->out[m].grad + at : room;
  float *dout = room + K, along = 0, size = c->out[3].data[i];
  MN_PRAGMA(omp simd reduction(+:along))
  for (long j = 0; j < K; j++) {
    dout[j] = g[OUT][j] + a[j] * g[BACK][j];
    along += dout[j] * out[j];
  }
  if (size < LEAST) size = LEAST, along = 0;
  float scale = 1 / size, *dk = c->in[K_IN].grad, *da = c->in[A].grad;
  MN_PRAGMA(omp simd)
  for (long j = 0; j < K; j++) {
    dout[j] = (dout[j] - out[j] * along) * scale;                      /* of z = k * k_k, from now on */
    dk_k[j] += dout[j] * k[j];
    dk_a[j] += g[WRITE][j] * k[j] * (a[j] - 1);
  }
  if (dk) {
    MN_PRAGMA(omp simd)
    for (long j = 0; j < K; j++) dk[at + j] = dout[j] * k_k[j] + g[WRITE][j] * (1 + (a[j] - 1) * k_a[j]);
  }
  if (da) {
    MN_PRAGMA(omp simd)
    for (long j = 0; j < K; j++) da[at + j] = out[j] * g[BACK][j] + g[WRITE][j] * k[j] * k_a[j];
  }
}

/* Sums of one job: [H,K] and [H,K], then room for head_back. */
static long sums_size(const mn_call *c) { return 2L * (DIM(c, 'H') + 1) * DIM(c, 'K'); }

static void some_heads_back(const mn_call *c, long from, long end, float *sums) {
  long K = DIM(c, 'K'), HK = DIM(c, 'H') * K;
  memset(sums, 0, sizeof(float) * (size_t)sums_size(c));
  for (long i = from; i < end; i++) {
    long own = i % DIM(c, 'H') * K;
    head_back(c, i, sums + own, sums + HK + own, sums + 2 * HK);
  }
}

static void backward(mn_call *c) {
  long K = DIM(c, 'K'), HK = DIM(c, 'H') * K, n = c->in[K_IN].n / K, jump = (long)ROWS * DIM(c, 'H');
  long parts = (n + jump - 1) / jump, size = sums_size(c);
  float *sums = mn_scratch(c->ctx, 0, parts * size);
  MN_FOR(c->ctx, 8 * c->in[K_IN].n, i, 0, n, jump, some_heads_back(c, i, n - i < jump ? n : i + jump, sums + i / jump * size));
  for (int m = 0; m < 2; m++) {
    float *to = c->in[K_K + m].grad;
    if (!to) continue;
    memset(to, 0, sizeof(float) * (size_t)HK);
    for (long p = 0; p < parts; p++)
      for (long j = 0; j < HK; j++) to[j] += sums[p * size + m * HK + j];
  }
}

const mn_op mn_op_wkv7_keys = {
  .sig = "k[T,B,H,K] a[T,B,H,K]:01 k_k[H,K] k_a[H,K] -> write[T,B,H,K] out[T,B,H,K] back[T,B,H,K] ~~norm[T,B,H]",
  .doc = "the keys RWKV-7 writes with, removes and puts back (Peng et al. 2025, eq. 10-12). write = k * (1 + (a-1) * k_a), out = k * k_k, normalised "
      "per head, back = a * out",
  .time = MN_PER_ROW, .forward = forward, .backward = backward,
};
