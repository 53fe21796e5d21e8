/* sorting.cu -- sort topk: bitonic sort (Batcher 1968) of all rows at once.
** An entry is a key (ops/sorting.h) above the index of its element, so no two are equal and the order of equal keys is kept.  Rows are
** padded to a power of two with entries that come last.  A block sorts what fits into its shared memory in one go; longer rows take a
** launch for each step between entries that are further apart. */
#include "runtime/strided_copy.cuh"
extern "C" {
#include "ops/sorting.h"
}

enum { CHUNK = 2048 };                              /* entries of a block */

/* Entries of row r = (o, i), one row after another. */
CU_KERNEL list_rows(const void *x, int dtype, uint64_t *entry, long n, const mn_sorting &s, cu_divisor row, cu_divisor inner) {
  CU_LOOP(j, n) {
    long k, i;
    const long o = inner.divide(row.divide(j, &k), &i);
    entry[j] = k < s.size ? (uint64_t)(mn_key_of(dtype, x, (o * s.size + k) * s.inner + i) ^ s.flip) << 32 | (uint32_t)k : ~0ul;
  }
}

/* The first of a pair that is `apart` = 2^m entries apart: pair p of all. */
static __device__ __forceinline__ long first_of(long p, long apart) { return (p & ~(apart - 1)) * 2 + (p & (apart - 1)); }

/* Within blocks of `length` entries, every other one the other way around, whole rows always upwards. */
static __device__ __forceinline__ bool goes_up(long at, long length, long row) { return (at & (row - 1) & length) == 0; }

/* Steps of lengths from .. to, each down from as far apart as fits. */
CU_KERNEL sort_chunks(uint64_t *entry, long n, long row, long from, long to) {
  cu_smem<uint64_t> e = CU_SHARED(uint64_t, 0);
  for (long first = (long)blockIdx.x * CHUNK; first < n; first += (long)gridDim.x * CHUNK) {
    const int here = (int)cu_min((long)CHUNK, n - first);
    for (int j = (int)threadIdx.x; j < here; j += CU_THREADS) e[j] = entry[first + j];
    __syncthreads();
    for (long length = from; length <= to; length *= 2)
      for (int apart = (int)cu_min(length / 2, (long)CHUNK / 2); apart > 0; apart /= 2) {
        for (int p = (int)threadIdx.x; p < here / 2; p += CU_THREADS) {
          const int a = (int)first_of(p, apart), b = a + apart;
          const uint64_t x = e[a], y = e[b];
          if ((x > y) == goes_up(first + a, length, row)) {
            e[a] = y;
            e[b] = x;
          }
        }
        __syncthreads();
      }
    for (int j = (int)threadIdx.x; j < here; j += CU_THREADS) entry[first + j] = e[j];
    __syncthreads();
  }
}

CU_KERNEL sort_apart(uint64_t *entry, long pairs, long row, long length, long apart) {
  CU_LOOP(p, pairs) {
    const long a = first_of(p, apart), b = a + apart;
    const uint64_t x = entry[a], y = entry[b];
    if ((x > y) != goes_up(a, length, row)) continue;
    entry[a] = y;
    entry[b] = x;
  }
}

template <class T>
CU_KERNEL emit(const uint64_t *entry, const T *x, T *y, int32_t *index, long n, long row, const mn_sorting &s, cu_divisor inner, cu_divisor K) {
  CU_LOOP(j, n) {
    long i, k;
    const long o = K.divide(inner.divide(j, &i), &k), at = (long)(uint32_t)entry[(o * s.inner + i) * row + k];
    y[j] = x[(o * s.size + at) * s.inner + i];
    index[j] = (int32_t)at;
  }
}

static void forward(const mn_call *c, const mn_sorting &s) {
  const mn_arg *x = &c->in[0], *y = &c->out[0];
  long row = 2;
  while (row < s.size) row *= 2;
  const long n = s.outer * s.inner * row;
  uint64_t *entry = (uint64_t *)mn_scratch(c->ctx, 0, 2 * n);
  const unsigned blocks = (unsigned)cu_min(cu_parts(n, CHUNK), (long)CU_BLOCKS);
  const size_t shared = CHUNK * sizeof(uint64_t);
  CU_LAUNCH(list_rows, cu_blocks(n, 2), CU_THREADS, 0, x->data, x->dtype, entry, n, s, cu_divisor(row), cu_divisor(s.inner));
  CU_LAUNCH(sort_chunks, blocks, CU_THREADS, shared, entry, n, row, 2, cu_min(row, (long)CHUNK));
  for (long length = 2 * CHUNK; length <= row; length *= 2) {
    for (long apart = length / 2; apart >= CHUNK; apart /= 2)
      CU_LAUNCH(sort_apart, cu_blocks(n / 2, 2), CU_THREADS, 0, entry, n / 2, row, length, apart);
    CU_LAUNCH(sort_chunks, blocks, CU_THREADS, shared, entry, n, row, length, length);
  }
  const long out = y->n;
  const cu_divisor inner(s.inner), K(s.K);
  if (mn_item(x->dtype) == 4)
    CU_LAUNCH(emit<float>, cu_blocks(out, 2), CU_THREADS, 0, (const uint64_t *)entry, x->data, y->data, c->out[1].i32, out, row, s, inner, K);
  else CU_LAUNCH(emit<uint8_t>, cu_blocks(out, 2), CU_THREADS, 0, (const uint64_t *)entry, x->u8, y->u8, c->out[1].i32, out, row, s, inner, K);
}

/* No element comes out twice: a thread for each that did. */
CU_KERNEL give_back(const float *dy, const int32_t *index, float *dx, long n, const mn_sorting &s, cu_divisor inner, cu_divisor K) {
  CU_LOOP(j, n) {
    long i, k;
    const long o = K.divide(inner.divide(j, &i), &k);
    dx[(o * s.size + index[j]) * s.inner + i] += dy[j];
  }
}

static void backward(const mn_call *c, const mn_sorting &s) {
  if (!mn_accumulates(c, 0)) cu_zero_grad(&c->in[0]);
  CU_LAUNCH(give_back, cu_blocks(c->out[0].n, 2), CU_THREADS, 0, c->out[0].grad, c->out[1].i32, c->in[0].grad, c->out[0].n, s,
            cu_divisor(s.inner), cu_divisor(s.K));
}

static mn_sorting sorted(const mn_call *c) { return mn_sorting_of(c, mn_axis_of(&c->in[0], OPT(c, 0)), OPT(c, 1) != 0); }
static mn_sorting best(const mn_call *c) { return mn_sorting_of(c, mn_axis_of(&c->in[0], OPT(c, 1)), OPT(c, 2) != 0); }

static void sort_forward(mn_call *c) { forward(c, sorted(c)); }
static void sort_backward(mn_call *c) { backward(c, sorted(c)); }
MN_KERNEL(sort, sort_forward, sort_backward)

static void topk_forward(mn_call *c) { forward(c, best(c)); }
static void topk_backward(mn_call *c) { backward(c, best(c)); }
MN_KERNEL(topk, topk_forward, topk_backward)
