/* matmul.cu -- kernels of matmul: products by a BLAS, one for all of a or one for each of its matrices. */
#include "runtime/gemm.cuh"

namespace {

struct Sizes { int batch, M, N, K; };

/* As in engine/ops/matmul.c: with one b, all of a's leading axes count as rows of one product. */
static Sizes sizes_of(const mn_call *c) {
  const mn_arg *a = &c->in[0], *b = &c->in[1];
  Sizes s = { 1, a->shape[a->ndim - 2], b->shape[b->ndim - 1], a->shape[a->ndim - 1] };
  if (b->ndim == 2) s.M = (int)(a->n / s.K);
  else s.batch = (int)(b->n / ((long)s.K * s.N));
  return s;
}

static void forward(mn_call *c) {
  const Sizes s = sizes_of(c);
  const long step_a = (long)s.M * s.K, step_b = (long)s.K * s.N, step_y = (long)s.M * s.N;
  cu_gemm_batch(c, false, false, s.M, s.N, s.K, c->in[0].data, s.K, c->in[1].data, s.N, c->out[0].data, s.N, false,
                step_a, step_b, step_y, s.batch);
}

static void backward(mn_call *c) {
  const Sizes s = sizes_of(c);
  const long step_a = (long)s.M * s.K, step_b = (long)s.K * s.N, step_y = (long)s.M * s.N;
  const float *a = c->in[0].data, *b = c->in[1].data, *dy = c->out[0].grad;
  float *da = c->in[0].grad, *db = c->in[1].grad;
  if (da) cu_gemm_batch(c, false, true, s.M, s.K, s.N, dy, s.N, b, s.N, da, s.K, false, step_y, step_b, step_a, s.batch);
  if (db) cu_gemm_batch(c, true, false, s.K, s.N, s.M, a, s.K, dy, s.N, db, s.N, false, step_a, step_y, step_b, s.batch);
}

}  // namespace

MN_KERNEL(matmul, forward, backward)
