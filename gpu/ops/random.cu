/* random.cu -- random_key random_uniform random_normal random_index dropout: ops that draw, with the numbers of the CPU's
** (engine/ops/draw.h); one thread per element. */
#include "runtime/kernel.cuh"
extern "C" {
#include "numerics/fast_math.h"
#include "numerics/random.h"
}

/* Where the call's first element is in the whole tensor. */
static uint64_t first_drawn(const mn_call *c, const mn_arg *a) {
  return c->t0 && a->ndim ? (uint64_t)c->t0 * (uint64_t)(a->n / a->shape[0]) : 0;
}

/* ---- random_key ---- */

template <int unused> CU_KERNEL count_on(int32_t *generator, int32_t *key) {
  for (int i = 0; i < 4; i++) key[i] = generator[i];
  const uint32_t low = (uint32_t)generator[2] + 1;
  generator[2] = (int32_t)low;
  if (low == 0) generator[3] = (int32_t)((uint32_t)generator[3] + 1);
}

static void random_key_forward(mn_call *c) { CU_LAUNCH(count_on<0>, 1, 1, 0, c->in[0].i32, c->out[0].i32); }

MN_KERNEL(random_key, random_key_forward, NULL)

/* ---- random_uniform, random_normal ---- */

CU_KERNEL uniform(const int32_t *key, uint64_t first, float *u, long n) {
  CU_LOOP(i, n) u[i] = mn_unit(mn_draw_word(key, first + (uint64_t)i));
}

static void random_uniform_forward(mn_call *c) {
  CU_LAUNCH(uniform, cu_blocks(c->out[0].n), CU_THREADS, 0, c->in[1].i32, first_drawn(c, &c->in[0]), c->out[0].data, c->out[0].n);
}

MN_KERNEL(random_uniform, random_uniform_forward, NULL)

CU_KERNEL normal(const int32_t *key, uint64_t first, float *z, long n) {
  CU_LOOP(i, n) {
    const uint64_t at = first + (uint64_t)i;
    uint32_t word[4];
    float even, odd;
    mn_draw_block(key, at / 4, word);
    mn_normals(word[at % 4 & 2], word[(at % 4 & 2) + 1], &even, &odd);
    z[i] = at & 1 ? odd : even;
  }
}

static void random_normal_forward(mn_call *c) {
  CU_LAUNCH(normal, cu_blocks(c->out[0].n), CU_THREADS, 0, c->in[1].i32, first_drawn(c, &c->in[0]), c->out[0].data, c->out[0].n);
}

MN_KERNEL(random_normal, random_normal_forward, NULL)

/* ---- random_index: a thread draws for a row, by the same steps as the CPU, so that both draw alike ---- */

CU_KERNEL index_of(const float *logits, const int32_t *key, uint64_t first, int32_t *index, long n, int A) {
  CU_LOOP(r, n) {
    const float *logit = logits + r * A;
    float top = logit[0], sum = 0;
    for (int a = 1; a < A; a++) top = logit[a] > top ? logit[a] : top;
    for (int a = 0; a < A; a++) sum += mn_expf(logit[a] - top);
    float left = mn_unit(mn_draw_word(key, first + (uint64_t)r)) * sum;
    int drawn = 0;
    for (; drawn < A - 1; drawn++) {
      left -= mn_expf(logit[drawn] - top);
      if (left < 0) break;
    }
    index[r] = drawn;
  }
}

static void random_index_forward(mn_call *c) {
  CU_LAUNCH(index_of, cu_blocks(c->out[0].n), CU_THREADS, 0, c->in[0].data, c->in[1].i32, first_drawn(c, &c->out[0]), c->out[0].i32,
            c->out[0].n, DIM(c, 'A'));
}

MN_KERNEL(random_index, random_index_forward, NULL)

/* ---- dropout ---- */

CU_KERNEL keep(const float *x, const int32_t *key, const float *p, uint64_t first, float *y, float *rate, long n) {
  const float scale = p[0] < 1 ? 1 / (1 - p[0]) : 0;
  if (rate && blockIdx.x == 0 && threadIdx.x == 0) rate[0] = p[0];
  CU_LOOP(i, n) y[i] = mn_unit(mn_draw_word(key, first + (uint64_t)i)) >= p[0] ? scale * x[i] : 0.0f;
}

static void dropout_forward(mn_call *c) {
  CU_LAUNCH(keep, cu_blocks(c->out[0].n), CU_THREADS, 0, c->in[0].data, c->in[1].i32, c->in[2].data, first_drawn(c, &c->in[0]),
            c->out[0].data, c->out[1].data, c->out[0].n);
}

static void dropout_backward(mn_call *c) {
  CU_LAUNCH(keep, cu_blocks(c->in[0].n), CU_THREADS, 0, c->out[0].grad, c->in[1].i32, c->out[1].data, first_drawn(c, &c->in[0]),
            c->in[0].grad, (float *)NULL, c->in[0].n);
}

MN_KERNEL(dropout, dropout_forward, dropout_backward)
