/* indices.cu -- gather one_hot one_hot_codes softmax_sample: ops with integer inputs or outputs.  And outer, whose
** backward is two sums. */
#include "lib/sums.cuh"
extern "C" {
#include "numerics/fast_math.h"
#include "numerics/random.h"
}

/* ---- gather ---- */

CU_KERNEL pick(const float *x, const int32_t *index, float *y, long n, long A) {
  CU_LOOP(r, n) y[r] = index[r] >= 0 && index[r] < A ? x[r * A + index[r]] : NAN;
}

CU_KERNEL unpick(const float *dy, const int32_t *index, float *dx, long n, cu_divisor A) {
  CU_LOOP(i, n) {
    long a;
    const long r = A.divide(i, &a);
    dx[i] = index[r] == a ? dy[r] : 0.0f;
  }
}

static void gather_forward(mn_call *c) {
  const long n = c->out[0].n;
  CU_LAUNCH(pick, cu_blocks(n), CU_THREADS, 0, c->in[0].data, c->in[1].i32, c->out[0].data, n,
            (long)DIM(c, 'A'));
}

static void gather_backward(mn_call *c) {
  const long n = c->in[0].n;
  CU_LAUNCH(unpick, cu_blocks(n), CU_THREADS, 0, c->out[0].grad, c->in[1].i32, c->in[0].grad, n,
            cu_divisor(DIM(c, 'A')));
}

MN_KERNEL(gather, gather_forward, gather_backward)

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

enum { FOR_ACTION = 0x40000000 };                   /* as in engine/ops/softmax_sample.c */

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

CU_KERNEL sample(const float *logits, const int32_t *clock, int32_t *action, long n, cu_divisor B, int A,
                 int t0, int first, bool greedy) {
  CU_LOOP(i, n) {
    const float *logit = logits + i * A;
    if (greedy) { action[i] = best_of(logit, A); continue; }
    long b;
    const uint64_t time = (uint64_t)clock[1] + ((uint64_t)clock[2] << 31) + (uint64_t)(t0 + B.divide(i, &b));
    const uint32_t counter[6] = { (uint32_t)clock[0], 0, (uint32_t)(first + b), (uint32_t)time, (uint32_t)(time >> 32),
                                  FOR_ACTION };
    uint32_t bits[4];
    mn_philox(counter, bits);
    action[i] = draw(logit, A, (float)(bits[0] >> 8) * 0x1p-24f);
  }
}

static void softmax_sample_forward(mn_call *c) {
  const long n = c->out[0].n;
  CU_LAUNCH(sample, cu_blocks(n), CU_THREADS, 0, c->in[0].data, c->in[1].i32, c->out[0].i32, n,
            cu_divisor(DIM(c, 'B')), DIM(c, 'A'), c->t0, (int)OPT(c, 1), OPT(c, 0) != 0);
}

MN_KERNEL(softmax_sample, softmax_sample_forward, NULL)

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
