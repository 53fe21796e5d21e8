/* indices.cu -- pick gather scatter scatter_add index_select one_hot one_hot_codes softmax_sample: ops with integer inputs or outputs.
** And outer, whose backward is two sums. */
#include "runtime/strided_copy.cuh"
#include "lib/sums.cuh"
extern "C" {
#include "numerics/fast_math.h"
#include "numerics/random.h"
#include "ops/indexed.h"
}

/* What stands where an index is out of range. */
template <class T> static __device__ T nothing() { return T(0); }
template <> __device__ float nothing<float>() { return NAN; }

/* ---- pick ---- */

template <class T> CU_KERNEL pick(const T *x, const int32_t *index, T *y, long n, long A) {
  CU_LOOP(r, n) y[r] = index[r] >= 0 && index[r] < A ? x[r * A + index[r]] : nothing<T>();
}

CU_KERNEL unpick(const float *dy, const int32_t *index, float *dx, long n, cu_divisor A) {
  CU_LOOP(i, n) {
    long a;
    const long r = A.divide(i, &a);
    dx[i] = index[r] == a ? dy[r] : 0.0f;
  }
}

static void pick_forward(mn_call *c) {
  const mn_arg *x = &c->in[0], *y = &c->out[0];
  const int32_t *index = c->in[1].i32;
  const long n = y->n, A = DIM(c, 'A');
  if (x->dtype == MN_F32) CU_LAUNCH(pick<float>, cu_blocks(n), CU_THREADS, 0, x->data, index, y->data, n, A);
  else if (x->dtype == MN_I32) CU_LAUNCH(pick<int32_t>, cu_blocks(n), CU_THREADS, 0, x->i32, index, y->i32, n, A);
  else CU_LAUNCH(pick<uint8_t>, cu_blocks(n), CU_THREADS, 0, x->u8, index, y->u8, n, A);
}

static void pick_backward(mn_call *c) {
  const long n = c->in[0].n;
  CU_LAUNCH(unpick, cu_blocks(n), CU_THREADS, 0, c->out[0].grad, c->in[1].i32, c->in[0].grad, n,
            cu_divisor(DIM(c, 'A')));
}

MN_KERNEL(pick, pick_forward, pick_backward)

/* ---- gather, index_select, scatter, scatter_add: see ops/indexed.h ---- */

/* z = x at the indices: a thread for each element of z. */
template <class T> CU_KERNEL take(const T *x, T *z, long n, const mn_indexed &s, cu_divisor inner, cu_divisor K) {
  CU_LOOP(j, n) {
    long i, k;
    const long o = K.divide(inner.divide(j, &i), &k), at = s.index[o * s.of_outer + k * s.of_k + i * s.of_inner];
    z[j] = at >= 0 && at < s.size ? x[(o * s.size + at) * s.inner + i] : nothing<T>();
  }
}

static void take_indexed(const mn_indexed &s, int dtype, const void *x, void *z) {
  const long n = s.outer * s.K * s.inner;
  const cu_divisor inner(s.inner), K(s.K);
  if (dtype == MN_F32) CU_LAUNCH(take<float>, cu_blocks(n, 2), CU_THREADS, 0, (const float *)x, (float *)z, n, s, inner, K);
  else if (dtype == MN_I32) CU_LAUNCH(take<int32_t>, cu_blocks(n, 2), CU_THREADS, 0, (const int32_t *)x, (int32_t *)z, n, s, inner, K);
  else CU_LAUNCH(take<uint8_t>, cu_blocks(n, 2), CU_THREADS, 0, (const uint8_t *)x, (uint8_t *)z, n, s, inner, K);
}

/* What changes x at indices has a thread for each x[o, :, i], which takes the indices in their order: no two meet, and equal runs have
** equal bits. */

/* x += z at the indices. */
CU_KERNEL add_columns(float *x, const float *z, long columns, const mn_indexed &s, cu_divisor inner) {
  CU_LOOP(j, columns) {
    long i;
    const long o = inner.divide(j, &i);
    const int32_t *index = s.index + o * s.of_outer + i * s.of_inner;
    float *to = x + o * s.size * s.inner + i;
    const float *from = z + o * s.K * s.inner + i;
    for (long k = 0; k < s.K; k++) {
      const int32_t at = index[k * s.of_k];
      if (at >= 0 && at < s.size) to[at * s.inner] += from[k * s.inner];
      else *to = NAN;
    }
  }
}

static void add_indexed(const mn_indexed &s, float *x, const float *z) {
  const long columns = s.outer * s.inner;
  CU_LAUNCH(add_columns, cu_blocks(columns), CU_THREADS, 0, x, z, columns, s, cu_divisor(s.inner));
}

static void taken_backward(const mn_call *c, const mn_indexed &s) {
  if (!mn_accumulates(c, 0)) cu_zero_grad(&c->in[0]);
  add_indexed(s, c->in[0].grad, c->out[0].grad);
}

static void gather_forward(mn_call *c) { take_indexed(mn_indexed_of(c, false), c->in[0].dtype, c->in[0].data, c->out[0].data); }
static void gather_backward(mn_call *c) { taken_backward(c, mn_indexed_of(c, false)); }
MN_KERNEL(gather, gather_forward, gather_backward)

static void index_select_forward(mn_call *c) { take_indexed(mn_indexed_of(c, true), c->in[0].dtype, c->in[0].data, c->out[0].data); }
static void index_select_backward(mn_call *c) { taken_backward(c, mn_indexed_of(c, true)); }
MN_KERNEL(index_select, index_select_forward, index_select_backward)

enum { SRC = 2 };

static void scatter_add_forward(mn_call *c) {
  cu_copy(c->out[0].data, c->in[0].data, c->in[0].n);
  add_indexed(mn_indexed_of(c, false), c->out[0].data, c->in[SRC].data);
}

static void scatter_add_backward(mn_call *c) {
  if (c->in[0].grad) cu_copy(c->in[0].grad, c->out[0].grad, c->in[0].n);
  if (c->in[SRC].grad) take_indexed(mn_indexed_of(c, false), MN_F32, c->out[0].grad, c->in[SRC].grad);
}
MN_KERNEL(scatter_add, scatter_add_forward, scatter_add_backward)

/* y = src at the indices; then what belongs to one out of range. */
template <class T> CU_KERNEL put_columns(T *y, const T *src, long columns, const mn_indexed &s, cu_divisor inner) {
  CU_LOOP(j, columns) {
    long i;
    const long o = inner.divide(j, &i);
    const int32_t *index = s.index + o * s.of_outer + i;
    T *to = y + o * s.size * s.inner + i;
    bool outside = false;
    for (long k = 0; k < s.K; k++) {
      const int32_t at = index[k * s.of_k];
      if (at >= 0 && at < s.size) to[at * s.inner] = src[(o * s.K + k) * s.inner + i];
      else outside = true;
    }
    if (outside) *to = nothing<T>();
  }
}

static void scatter_forward(mn_call *c) {
  const mn_indexed s = mn_indexed_of(c, false);
  const mn_arg *x = &c->in[0], *src = &c->in[SRC], *y = &c->out[0];
  const long columns = s.outer * s.inner;
  const cu_divisor inner(s.inner);
  cu_move_rows(x->dtype, y->data, 0, x->data, 0, 1, x->n);
  if (x->dtype == MN_F32) CU_LAUNCH(put_columns<float>, cu_blocks(columns), CU_THREADS, 0, y->data, src->data, columns, s, inner);
  else if (x->dtype == MN_I32) CU_LAUNCH(put_columns<int32_t>, cu_blocks(columns), CU_THREADS, 0, y->i32, src->i32, columns, s, inner);
  else CU_LAUNCH(put_columns<uint8_t>, cu_blocks(columns), CU_THREADS, 0, y->u8, src->u8, columns, s, inner);
}

/* From the last k to the first: of those with equal indices the first that comes gets the gradient. */
CU_KERNEL share_columns(const float *dy, float *dx, float *dsrc, uint8_t *taken, long columns, const mn_indexed &s, cu_divisor inner) {
  CU_LOOP(j, columns) {
    long i;
    const long o = inner.divide(j, &i), column = o * s.size * s.inner + i;
    const int32_t *index = s.index + o * s.of_outer + i;
    for (long at = 0; at < s.size; at++) taken[column + at * s.inner] = 0;
    for (long k = s.K - 1; k >= 0; k--) {
      const long at = index[k * s.of_k], e = column + at * s.inner;
      const bool in = at >= 0 && at < s.size, gets = in && !taken[e];
      if (dsrc) dsrc[(o * s.K + k) * s.inner + i] = gets ? dy[e] : 0.0f;
      if (gets) taken[e] = 1;
      if (in && dx) dx[e] = 0.0f;
    }
  }
}

static void scatter_backward(mn_call *c) {
  const mn_indexed s = mn_indexed_of(c, false);
  const long columns = s.outer * s.inner, n = c->in[0].n;
  uint8_t *taken = (uint8_t *)mn_scratch(c->ctx, 0, n / 4 + 1);
  if (c->in[0].grad) cu_copy(c->in[0].grad, c->out[0].grad, n);
  CU_LAUNCH(share_columns, cu_blocks(columns), CU_THREADS, 0, c->out[0].grad, c->in[0].grad, c->in[SRC].grad, taken, columns, s,
            cu_divisor(s.inner));
}
MN_KERNEL(scatter, scatter_forward, scatter_backward)

/* ---- one_hot: of indices, where one outside gives zeros; or of codes, where such a one gives NaN ---- */

CU_KERNEL mark(const int32_t *index, const uint8_t *code, float *y, long n, cu_divisor A) {
  CU_LOOP(i, n) {
    long a;
    const long r = A.divide(i, &a), at = code ? (long)code[r] : (long)index[r];
    y[i] = code && at >= A.by && a == 0 ? NAN : at == a ? 1.0f : 0.0f;
  }
}

static void mark_all(const mn_call *c, const int32_t *index, const uint8_t *code) {
  const long n = c->out[0].n;
  CU_LAUNCH(mark, cu_blocks(n), CU_THREADS, 0, index, code, c->out[0].data, n, cu_divisor((long)OPT(c, 0)));
}

static void one_hot_forward(mn_call *c) { mark_all(c, c->in[0].i32, NULL); }
MN_KERNEL(one_hot, one_hot_forward, NULL)

static void one_hot_codes_forward(mn_call *c) { mark_all(c, NULL, c->in[0].u8); }
MN_KERNEL(one_hot_codes, one_hot_codes_forward, NULL)

/* ---- softmax_sample: a thread draws an action, by the same steps as the CPU, so that both draw alike ---- */

static __device__ int draw(const float *logit, int A, float u) {
  float top = logit[0], sum = 0;
  for (int a = 1; a < A; a++) top = logit[a] > top ? logit[a] : top;
  for (int a = 0; a < A; a++) sum += mn_expf(logit[a] - top);
  float left = u * sum;
  for (int a = 0; a < A - 1; a++) {
    left -= mn_expf(logit[a] - top);
    if (left < 0) return a;
  }
  return A - 1;
}

static __device__ int best_of(const float *logit, int A) {
  int best = 0;
  for (int a = 1; a < A; a++) if (logit[a] > logit[best]) best = a;
  return best;
}

CU_KERNEL sample(const float *logits, const int32_t *clock, const int32_t *place, int32_t *action, long n, cu_divisor B, int A,
                 int t0, int first, bool greedy) {
  CU_LOOP(i, n) {
    const float *logit = logits + i * A;
    if (greedy) { action[i] = best_of(logit, A); continue; }
    long b;
    const uint64_t time = (uint64_t)clock[1] + ((uint64_t)clock[2] << 31) + (uint64_t)(t0 + B.divide(i, &b));
    const uint32_t counter[6] = { (uint32_t)clock[0], 0, (uint32_t)(first + (place ? place[b] : b)), (uint32_t)time, (uint32_t)(time >> 32),
                                  MN_FOR_ACTION };
    uint32_t bits[4];
    mn_philox(counter, bits);
    action[i] = draw(logit, A, (float)(bits[0] >> 8) * 0x1p-24f);
  }
}

static void softmax_sample_forward(mn_call *c) {
  const long n = c->out[0].n;
  CU_LAUNCH(sample, cu_blocks(n), CU_THREADS, 0, c->in[0].data, c->in[1].i32, c->in[2].i32, c->out[0].i32, n,
            cu_divisor(DIM(c, 'B')), DIM(c, 'A'), c->t0, (int)OPT(c, 1), OPT(c, 0) != 0);
}

MN_KERNEL(softmax_sample, softmax_sample_forward, NULL)

/* ---- policy_noise: a thread makes up to four numbers of a row ---- */

CU_KERNEL noise(const int32_t *clock, const int32_t *place, float *z, long n, cu_divisor parts, cu_divisor B, int K, int t0, int first,
                int stream, bool uniform) {
  CU_LOOP(i, n) {
    long part, b;
    const long row = parts.divide(i, &part);
    const uint64_t time = (uint64_t)clock[1] + ((uint64_t)clock[2] << 31) + (uint64_t)(t0 + B.divide(row, &b));
    const uint32_t counter[6] = { (uint32_t)clock[0], (uint32_t)(stream << 16 | (int)part), (uint32_t)(first + (place ? place[b] : b)), (uint32_t)time,
                                  (uint32_t)(time >> 32), MN_FOR_ACTION };
    uint32_t bits[4];
    float four[4];
    mn_philox(counter, bits);
    for (int k = 0; k < 4; k++) four[k] = (float)(bits[k] >> 8) * 0x1p-24f;
    if (!uniform) {
      mn_normals(bits[0], bits[1], &four[0], &four[1]);
      mn_normals(bits[2], bits[3], &four[2], &four[3]);
    }
    for (int k = 0; k < 4 && 4 * part + k < K; k++) z[row * K + 4 * part + k] = four[k];
  }
}

static void policy_noise_forward(mn_call *c) {
  const int K = DIM(c, 'K'), parts = (K + 3) / 4;
  const long n = c->out[0].n / K * parts;
  CU_LAUNCH(noise, cu_blocks(n), CU_THREADS, 0, c->in[1].i32, c->in[2].i32, c->out[0].data, n, cu_divisor(parts), cu_divisor(DIM(c, 'B')), K,
            c->t0, (int)OPT(c, 1), (int)OPT(c, 2), OPT(c, 0) != 0);
}

MN_KERNEL(policy_noise, policy_noise_forward, NULL)

/* ---- outer: y[r, e, d] = p[r, e] a[r, d] ---- */

CU_KERNEL products(const float *p, const float *a, float *y, long n, cu_divisor E, cu_divisor D) {
  CU_LOOP(i, n) {
    long d, unused;
    const long row = D.divide(i, &d), r = E.divide(row, &unused);
    y[i] = p[row] * a[r * D.by + d];
  }
}

struct Product {
  const float *x, *y;
  __device__ __forceinline__ float operator()(const long *at) const { return x[at[0]] * y[at[1]]; }
};

static void outer_forward(mn_call *c) {
  const long n = c->out[0].n;
  CU_LAUNCH(products, cu_blocks(n), CU_THREADS, 0, c->in[0].data, c->in[1].data, c->out[0].data, n,
            cu_divisor(DIM(c, 'E')), cu_divisor(DIM(c, 'D')));
}

/* dp sums along d, da across e; the walk is over dy and over the other factor. */
static void outer_backward(mn_call *c) {
  const long E = DIM(c, 'E'), D = DIM(c, 'D'), rows = c->in[0].n / E;
  const float *dy = c->out[0].grad;
  const long p_rows[CU_WALKED] = { E * D, D }, p_e[CU_WALKED] = { D, 0 }, p_d[CU_WALKED] = { 1, 1 };
  const long a_rows[CU_WALKED] = { E * D, E }, a_e[CU_WALKED] = { D, 1 }, a_d[CU_WALKED] = { 1, 0 };
  cu_fold dp, da;
  dp.keep.add(E, p_e);
  dp.keep.add(rows, p_rows);
  dp.over.add(D, p_d);
  dp.kept = rows * E, dp.summed = D, dp.along = true;
  da.keep.add(D, a_d);
  da.keep.add(rows, a_rows);
  da.over.add(E, a_e);
  da.kept = rows * D, da.summed = E;
  if (c->in[0].grad) cu_sum(c, dp, Product{ dy, c->in[1].data }, c->in[0].grad);
  if (c->in[1].grad) cu_sum(c, da, Product{ dy, c->in[0].data }, c->in[1].grad);
}

MN_KERNEL(outer, outer_forward, outer_backward)
