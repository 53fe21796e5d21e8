/* causal_attention_steps.c -- attention one row at a time, for acting.  Nearly all its time goes into reading keys and
** values, so the code is written to keep that stream going. */
#include <math.h>
#include <string.h>
#include "numerics/fast_math.h"
#include "numerics/simd.h"
#include "causal_attention.h"

enum { AHEAD = 8 };              /* keys that are on their way from far memory */
enum { WIDE = MN_LANES == 16 ? 16 : 8 };               /* vectors of sums that stay in registers */
enum { SHARED = MN_LANES == 16 ? 4 : 2 };              /* the same of each of TOGETHER heads */

/* Heads go together, as many as fill a KB of a key's numbers: then reading keys one after another is reading memory
** from one end to the other, or at least long pieces of it, and the machine reads ahead by itself. */
enum { PIECE = 256 };

typedef struct step {
  const mn_softmax *s;
  int t, e0;                     /* the row; the first column of `position` */
  int heads, groups;             /* heads that go together; how many such groups there are */
  float *q, *position;           /* [H,B,K] queries of positions; [H,B,width] their scores */
  float *work;                   /* of a worker: queries, scores, sums */
  long width, size;              /* of a row of scores; of a worker's part of `work` */
} step;

/* Keys or values: float32, or bfloat16, which a vector's load makes float32. */
typedef struct numbers { const float *whole; const uint16_t *half; } numbers;

MN_INLINE numbers from_there(numbers x, long n) { return (numbers){ MN_AT(x.whole, n), MN_AT(x.half, n) }; }

MN_INLINE mn_lanes load(const bool half, numbers x, long at, long n) {
  return half ? mn_load_halves_n(x.half + at, n) : mn_load_n(x.whole + at, n);
}

MN_INLINE void fetch(const bool half, numbers x, long at) {
  if (half) __builtin_prefetch(x.half + at);
  else __builtin_prefetch(x.whole + at);
}

/* Scores of `heads` heads with n keys: out[h * ld + j] = q_h . key_j; keys lie `stride` apart, their heads side by
** side.  A key is read from its first number to its last; sums wait in `sums` until there are as many keys as lanes. */
MN_INLINE void dots_of(const bool half, int n, int heads, int K, const float *q, numbers key, long stride, float *out, long ld, float *sums) {
  for (int j = 0; j < n; j += MN_LANES) {
    int keys = n - j < MN_LANES ? n - j : MN_LANES;
    for (int i = 0; i < keys; i++, key = from_there(key, stride))
      for (int h = 0; h < heads; h++) {
        const float *a = q + (long)h * K;
        const numbers b = from_there(key, (long)h * K);
        mn_lanes sum = { 0 };
        int d = 0;
        for (; d + MN_LANES <= K; d += MN_LANES) {
          fetch(half, b, d + AHEAD * stride);
          sum += mn_load(a + d) * load(half, b, d, MN_LANES);
        }
        if (d < K) sum += mn_load_n(a + d, K - d) * load(half, b, d, K - d);
        mn_store(sums + ((long)h * MN_LANES + i) * MN_LANES, sum);
      }
    for (int h = 0; h < heads; h++) {
      mn_lanes sum[MN_LANES];
      for (int i = 0; i < MN_LANES; i++) sum[i] = mn_load(sums + ((long)h * MN_LANES + i) * MN_LANES);
      mn_store_n(out + h * ld + j, mn_sums(sum), keys);
    }
  }
}

enum { TOGETHER = 4 };           /* heads that see a key which is read once */

/* Products of two keys, n numbers from d on, with `heads` heads. */
MN_INLINE void add_products(const int heads, int size, int d, int n, const float *q, const float *const *key, mn_lanes sum[2][TOGETHER]) {
  const mn_lanes x = mn_load_n(key[0] + d, n), y = mn_load_n(key[1] + d, n);
#pragma GCC unroll 4
  for (int h = 0; h < heads; h++) {
    const mn_lanes a = mn_load_n(q + (long)h * size + d, n);
    sum[0][h] += a * x, sum[1][h] += a * y;
  }
}

/* Scores as dots_of gives them, of heads that see the same keys. */
MN_INLINE void shared_dots(const int heads, int n, int size, const float *q, const float *key, long stride, float *out, long ld, float *sums) {
  for (int j = 0; j < n; j += MN_LANES) {
    const int keys = n - j < MN_LANES ? n - j : MN_LANES;
    for (int i = 0; i < keys; i += 2, key += 2 * stride) {
      const float *const both[] = { key, i + 1 < keys ? key + stride : key };
      mn_lanes sum[2][TOGETHER] = { { { 0 } } };
      int d = 0;
      for (; d + MN_LANES <= size; d += MN_LANES) {
        __builtin_prefetch(key + AHEAD * stride + d);
        __builtin_prefetch(key + (AHEAD + 1) * stride + d);
        add_products(heads, size, d, MN_LANES, q, both, sum);
      }
      if (d < size) add_products(heads, size, d, size - d, q, both, sum);
#pragma GCC unroll 4
      for (int h = 0; h < heads; h++)
        for (int k = 0; k < 2; k++) mn_store(sums + (h * MN_LANES + i + k) * MN_LANES, sum[k][h]);
    }
    if (keys % 2) key -= stride;
    for (int h = 0; h < heads; h++) {
      mn_lanes sum[MN_LANES];
      for (int i = 0; i < MN_LANES; i++) sum[i] = mn_load(sums + (h * MN_LANES + i) * MN_LANES);
      mn_store_n(out + h * ld + j, mn_sums(sum), keys);
    }
  }
}

static void dots(const mn_softmax *s, int n, int heads, const float *q, numbers key, long stride, float *out, long ld, float *sums) {
  const int K = s->K;
  if (s->shared) {
    int h = 0;
    for (; h + TOGETHER <= heads; h += TOGETHER) shared_dots(TOGETHER, n, s->V, q + (long)h * s->V, key.whole, stride, out + h * ld, ld, sums);
    for (; h < heads; h++) shared_dots(1, n, s->V, q + (long)h * s->V, key.whole, stride, out + h * ld, ld, sums);
  } else if (key.half) dots_of(true, n, heads, K, q, key, stride, out, ld, sums);
  else dots_of(false, n, heads, K, q, key, stride, out, ld, sums);
}

/* y += weight[j] * value_j for a number of vectors across heads, whose weights lie at w[vector]; all n values. */
MN_INLINE void mix_vectors(const bool half, const int vectors, int n, const float *const *w, numbers value, long stride, float *y) {
  mn_lanes sum[WIDE];
#pragma GCC unroll 16
  for (int i = 0; i < vectors; i++) sum[i] = mn_load(y + i * MN_LANES);
  for (int j = 0; j < n; j++, value = from_there(value, stride)) {
#pragma GCC unroll 16
    for (int i = 0; i < vectors; i++) {
      fetch(half, value, i * MN_LANES + AHEAD * stride);
      sum[i] += w[i][j] * load(half, value, i * MN_LANES, MN_LANES);
    }
  }
#pragma GCC unroll 16
  for (int i = 0; i < vectors; i++) mn_store(y + i * MN_LANES, sum[i]);
}

/* The same for one head and up to four vectors, the last of which may not be whole. */
MN_INLINE void mix_some(const bool half, int n, int left, const float *w, numbers value, long stride, float *y) {
  mn_lanes sum[4];
#pragma GCC unroll 4
  for (int i = 0; i < 4; i++) sum[i] = mn_load_n(y + i * MN_LANES, left - i * MN_LANES);
  for (int j = 0; j < n; j++, value = from_there(value, stride))
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) sum[i] += w[j] * load(half, value, i * MN_LANES, left - i * MN_LANES);
#pragma GCC unroll 4
  for (int i = 0; i < 4; i++) mn_store_n(y + i * MN_LANES, sum[i], left - i * MN_LANES);
}

/* Sums of n values of `heads` heads by their weights (rows of ld).  Values of weight 0 must be finite, so blocked
** ones are passed over before. */
MN_INLINE void mix_of(const bool half, int n, int heads, int V, const float *weight, long ld, numbers value, long stride, float *y) {
  const float *w[WIDE];
  int whole = V % MN_LANES ? 0 : heads * V / MN_LANES, v = 0;
  for (; v + WIDE <= whole; v += WIDE) {
    for (int i = 0; i < WIDE; i++) w[i] = weight + (v + i) * MN_LANES / V * ld;
    mix_vectors(half, WIDE, n, w, from_there(value, v * MN_LANES), stride, y + v * MN_LANES);
  }
  for (; v < whole; v++) {
    w[0] = weight + v * MN_LANES / V * ld;
    mix_vectors(half, 1, n, w, from_there(value, v * MN_LANES), stride, y + v * MN_LANES);
  }
  for (int h = 0; !whole && h < heads; h++)
    for (int i = 0; i < V; i += 4 * MN_LANES) mix_some(half, n, V - i, weight + h * ld, from_there(value, h * V + i), stride, y + h * V + i);
}

/* The same for heads that see the same values, `vectors` of them from y on; the last may not be whole. */
MN_INLINE void shared_mix(const int heads, const int vectors, int n, int left, int V, const float *weight, long ld, const float *value, long stride, float *y) {
  mn_lanes sum[TOGETHER][4];
#pragma GCC unroll 4
  for (int h = 0; h < heads; h++)
#pragma GCC unroll 4
    for (int i = 0; i < vectors; i++) sum[h][i] = mn_load_n(y + (long)h * V + i * MN_LANES, left - i * MN_LANES);
  for (int j = 0; j < n; j++, value += stride)
#pragma GCC unroll 4
    for (int i = 0; i < vectors; i++) {
      const mn_lanes x = mn_load_n(value + i * MN_LANES, left - i * MN_LANES);
#pragma GCC unroll 4
      for (int h = 0; h < heads; h++) sum[h][i] += weight[h * ld + j] * x;
    }
#pragma GCC unroll 4
  for (int h = 0; h < heads; h++)
#pragma GCC unroll 4
    for (int i = 0; i < vectors; i++) mn_store_n(y + (long)h * V + i * MN_LANES, sum[h][i], left - i * MN_LANES);
}

MN_INLINE void shared_mix_of(const int heads, int n, int V, const float *weight, long ld, const float *value, long stride, float *y) {
  int v = 0;
  for (; v + SHARED * MN_LANES <= V; v += SHARED * MN_LANES)
    shared_mix(heads, SHARED, n, SHARED * MN_LANES, V, weight, ld, value + v, stride, y + v);
  for (; v < V; v += MN_LANES) shared_mix(heads, 1, n, V - v, V, weight, ld, value + v, stride, y + v);
}

static void mix(const mn_softmax *s, int n, int heads, const float *weight, long ld, numbers value, long stride, float *y) {
  const int V = s->V;
  if (s->shared) {
    int h = 0;
    for (; h + TOGETHER <= heads; h += TOGETHER) shared_mix_of(TOGETHER, n, V, weight + h * ld, ld, value.whole, stride, y + (long)h * V);
    for (; h < heads; h++) shared_mix_of(1, n, V, weight + h * ld, ld, value.whole, stride, y + (long)h * V);
  } else if (value.half) mix_of(true, n, heads, V, weight, ld, value, stride, y);
  else mix_of(false, n, heads, V, weight, ld, value, stride, y);
}

/* What a row of q, and of u or w, gives as a query. */
static void query(const mn_softmax *s, int t, int b, int h, int with, float *out) {
  const float *q = s->c->in[SM_Q].data + mn_softmax_at(s, t, b, h, s->K), *add = s->c->in[with].data;
  for (int d = 0; d < s->K; d++) out[d] = (q[d] + (add ? add[(long)h * s->K + d] : 0)) * s->scale;
}

/* The queries of shared keys, of all heads. */
static void scaled(const mn_softmax *s, int t, int b, float *out) {
  const float *a = s->c->in[SM_V].data + mn_softmax_at(s, t, b, 0, s->V);
  for (int d = 0; d < s->H * s->V; d++) out[d] = a[d] * s->scale;
}

/* Scores of the positions for head h of all environments. */
static void some_positions(void *arg, int h, int worker) {
  (void)worker;
  const step *j = arg;
  const mn_softmax *s = j->s;
  float *q = j->q + (long)h * s->B * s->K, *out = j->position + (long)h * s->B * j->width;
  for (int b = 0; b < s->B; b++) query(s, j->t, b, h, SM_W, q + (long)b * s->K);
  const float *panels = mn_panel_of(s->bf16, s->c->out[SM_PACKED].data, (long)h * mn_panels(s->E) * MN_PANEL, s->K);
  mn_few few;
  mn_few_open(&few, s->bf16, s->B, s->K, q, s->K);
  for (int e = j->e0; e < s->E; e += 2 * MN_PANEL)
    mn_few_columns(&few, 0, s->B, s->E - e, mn_panel_of(s->bf16, panels, e, s->K), out + e - j->e0, (int)j->width, false);
}

/* Scores with those of the positions, and no infinities, which would leave NaN. */
static void settle(float *score, const float *position, int n) {
  if (position) for (int j = 0; j < n; j++) score[j] += position[j];
  for (int j = 0; j < n; j++) score[j] = mn_at_most(mn_at_least(score[j], -MN_SCORE_MOST), MN_SCORE_MOST);
}

/* Scores to weights that are not yet divided by their sum, which is returned. */
static float weigh(float *score, int n, float *top) {
  float most = mn_vmax(score, n), sum = 0;
  MN_PRAGMA(omp simd reduction(+:sum))
  for (int j = 0; j < n; j++) {
    score[j] = mn_expf(score[j] - most);
    sum += score[j];
  }
  *top = most;
  return sum;
}

/* Numbers of key (or value) j of environment b from head h on, and the distance from one key to the next. */
static long stride_of(const mn_softmax *s, bool values) {
  if (s->shared) return (long)s->B * s->V;
  return (long)(mn_softmax_has_halves(s) ? 1 : s->B) * s->H * (values ? s->V : s->K);
}

static numbers numbers_of(const mn_softmax *s, bool values, int j, int b, int h) {
  const int size = values ? s->V : s->K;
  if (mn_softmax_has_halves(s)) return (numbers){ NULL, mn_softmax_half(s, values, j, b) + (long)h * size };
  return (numbers){ mn_softmax_key(s, values ? SM_MV : SM_MK, values ? SM_V : SM_K, j, b, h, size), NULL };
}

/* The carried values of a row, run by run of those that are not blocked. */
static void mix_carried(const step *j, int b, int h, int low, int n, const float *weight, float *y) {
  const mn_softmax *s = j->s;
  const long stride = stride_of(s, true);
  const numbers value = numbers_of(s, true, low, b, h);
  bool holes = mn_softmax_holes(s, b);
  for (int from = 0, to; from < n; from = to + 1) {
    for (to = from; to < n && !(holes && mn_softmax_blocked(s, low + to, b)); ) to++;
    mix(s, to - from, j->heads, weight + from, j->width, from_there(value, from * stride), stride, y);
  }
}

static void some_heads(void *arg, int i, int worker) {
  const step *j = arg;
  const mn_softmax *s = j->s;
  const mn_call *c = s->c;
  int b = i / j->groups, h = i % j->groups * j->heads, low = mn_softmax_low(s, j->t, b), n = s->M + j->t + 1 - low;
  int carried = low < s->M ? s->M - low : 0, first = low > s->M ? low - s->M : 0;
  const int size = s->shared ? s->V : s->K;
  float *score = j->work + worker * j->size, *q = score + j->heads * j->width, *sums = q + j->heads * size;
  float *y = c->out[SM_Y].data + mn_softmax_at(s, j->t, b, h, s->V);
  float *stats = c->out[SM_STATS].data + mn_softmax_at(s, j->t, b, h, 2);
  const long next_key = stride_of(s, false);
  if (s->shared) scaled(s, j->t, b, q);
  else for (int k = 0; k < j->heads; k++) query(s, j->t, b, h + k, SM_U, q + (long)k * s->K);
  if (carried) dots(s, carried, j->heads, q, numbers_of(s, false, low, b, h), next_key, score, j->width, sums);
  dots(s, n - carried, j->heads, q, numbers_of(s, false, s->M + first, b, h), next_key, score + carried, j->width, sums);
  for (int k = 0; k < j->heads; k++) {
    const float *position = NULL;
    float *of = score + k * j->width;
    if (c->in[SM_R].data) position = j->position + ((long)(h + k) * s->B + b) * j->width + s->T - 1 - j->t + low - j->e0;
    settle(of, position, n);
    if (carried && mn_softmax_holes(s, b))
      for (int m = 0; m < carried; m++) if (mn_softmax_blocked(s, low + m, b)) of[m] = -INFINITY;
    stats[2 * k + 1] = 1 / weigh(of, n, &stats[2 * k]);
  }
  memset(y, 0, sizeof *y * (size_t)(j->heads * s->V));
  if (carried) mix_carried(j, b, h, low, carried, score, y);
  mix(s, n - carried, j->heads, score + carried, j->width, numbers_of(s, true, s->M + first, b, h), stride_of(s, true), y);
  for (int v = 0; v < j->heads * s->V; v++) y[v] *= stats[v / s->V * 2 + 1];
}

/* Entering the team costs more than little work. */
static void share(const mn_softmax *s, int n, mn_job *f, step *j, double work) {
  if (work < MN_ONE_THREAD_WORK) for (int i = 0; i < n; i++) f(j, i, 0);
  else mn_parallel_for(s->c->ctx, n, f, j);
}

void mn_softmax_steps(const mn_softmax *s) {
  const mn_call *c = s->c;
  step j = { .s = s, .heads = s->H, .groups = 1, .width = mn_round32(s->E) + MN_PANEL };
  while (!s->shared && j.heads % 2 == 0 && j.heads * s->K > PIECE) j.heads /= 2, j.groups *= 2;
  j.size = j.heads * (j.width + (s->shared ? s->V : s->K) + MN_LANES * MN_LANES) + 16;
  j.work = mn_scratch(c->ctx, 0, j.size * mn_threads(c->ctx));
  if (c->in[SM_R].data) {
    j.q = mn_scratch(c->ctx, 1, (long)s->B * s->H * s->K);
    j.position = mn_scratch(c->ctx, 2, (long)s->B * s->H * j.width);
  }
  for (j.t = c->t0; j.t < c->t1; j.t++) {
    int low = s->E;
    for (int b = 0; b < s->B; b++) low = mn_softmax_low(s, j.t, b) < low ? mn_softmax_low(s, j.t, b) : low;
    double work = (double)s->B * s->H * (s->M + j.t + 1 - low) * s->K;
    j.e0 = (s->T - 1 - j.t + low) / MN_PANEL * MN_PANEL;
    if (c->in[SM_R].data) share(s, s->H, some_positions, &j, work);
    share(s, s->B * j.groups, some_heads, &j, work);
  }
}
