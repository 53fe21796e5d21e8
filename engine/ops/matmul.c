/* matmul.c -- y = a b, the matrix product; one b for all of a, or one for each matrix of a. */
#include <string.h>
#include "numerics/bf16_gemm.h"
#include "op.h"

typedef struct sizes { long batch; int M, N, K; } sizes;

/* One b: all of a's leading axes count as rows of one product. */
static sizes sizes_of(const mn_call *c) {
  const mn_arg *a = &c->in[0], *b = &c->in[1];
  sizes s = { 1, a->shape[a->ndim - 2], b->shape[b->ndim - 1], a->shape[a->ndim - 1] };
  if (b->ndim == 2) s.M = (int)(a->n / s.K);
  else s.batch = b->n / ((long)s.K * s.N);
  return s;
}

static int shape(mn_call *c) {
  const mn_arg *a = &c->in[0], *b = &c->in[1];
  mn_arg *y = &c->out[0];
  if (a->ndim < 2) return mn_fail(c->ctx, "matmul: a has %d axes, expected at least 2", a->ndim);
  if (b->ndim != 2 && b->ndim != a->ndim)
    return mn_fail(c->ctx, "matmul: b has %d axes, expected 2 or %d as a", b->ndim, a->ndim);
  int K = a->shape[a->ndim - 1];
  if (b->shape[b->ndim - 2] != K)
    return mn_fail(c->ctx, "matmul: axis %d (K) of b is %d, expected %d as in a", b->ndim - 2,
                   b->shape[b->ndim - 2], K);
  for (int i = 0; b->ndim > 2 && i < a->ndim - 2; i++)
    if (b->shape[i] != a->shape[i])
      return mn_fail(c->ctx, "matmul: axis %d of b is %d, expected %d as in a", i, b->shape[i],
                     a->shape[i]);
  if (a->n / K > 0x7fffffff)
    return mn_fail(c->ctx, "matmul: a has %ld rows, expected at most 2^31", a->n / K);
  y->ndim = a->ndim;
  memcpy(y->shape, a->shape, sizeof a->shape);
  y->shape[y->ndim - 1] = b->shape[b->ndim - 1];
  if (b->ndim == 2 ? b->timed : b->timed != a->timed) c->time = MN_WHOLE;
  return 0;
}

/* to = op(x) op(z) for every matrix, with the strides between them. */
static void product(mn_call *c, long batch, bool tx, bool tz, int M, int N, int K, const float *x,
                    int ldx, long step_x, const float *z, int ldz, long step_z, float *to) {
  if (batch == 1 || mn_bf16_of(c->ctx)) {
    for (long i = 0; i < batch; i++) mn_gemm(c->ctx, tx, tz, M, N, K, x + i * step_x, ldx, z + i * step_z, ldz, to + i * M * N, N, false);
    return;
  }
  MN_PARALLEL(c->ctx, batch * M * N * K / 16)
  for (long i = 0; i < batch; i++)
    mn_gemm_one(tx, tz, M, N, K, x + i * step_x, ldx, z + i * step_z, ldz, to + i * M * N, N,
                false);
}

static void forward(mn_call *c) {
  sizes s = sizes_of(c);
  product(c, s.batch, false, false, s.M, s.N, s.K, c->in[0].data, s.K, (long)s.M * s.K,
          c->in[1].data, s.N, (long)s.K * s.N, c->out[0].data);
}

static void backward(mn_call *c) {
  sizes s = sizes_of(c);
  const float *a = c->in[0].data, *b = c->in[1].data, *dy = c->out[0].grad;
  float *da = c->in[0].grad, *db = c->in[1].grad;
  long step_a = (long)s.M * s.K, step_b = (long)s.K * s.N, step_y = (long)s.M * s.N;
  if (da) product(c, s.batch, false, true, s.M, s.K, s.N, dy, s.N, step_y, b, s.N, step_b, da);
  if (db) product(c, s.batch, true, false, s.K, s.N, s.M, a, s.K, step_a, dy, s.N, step_y, db);
}

const mn_op mn_op_matmul = {
  .sig = "a[*] b[*] -> y[*]",
  .doc = "y = a b for a [...,M,K] and b [K,N], or b [...,K,N] with the leading axes of a",
  .time = MN_PER_ROW, .shape = shape, .forward = forward, .backward = backward,
};
