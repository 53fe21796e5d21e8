/* prefetch.c -- loads memory into the cache before it is needed: see prefetch.h. */
#include <stddef.h>
#include "prefetch.h"
#include "chunk.h"
#include "numerics/simd.h"

enum { L = MN_CHUNK, EVERY = 4, PARTS = L * EVERY };   /* a part is a row of every fourth array */

void mn_prefetch_rows(mn_prefetch *q, const float *at, long row, int width) {
  if (!at) return;
  q->of[q->n].at = at;
  q->of[q->n].row = row;
  q->of[q->n++].width = width;
}

static void ask(mn_prefetch *q) {
  const int i = q->part / EVERY;
  const long some = q->size / PARTS;
  for (int m = q->part % EVERY; m < q->n && i < q->rows; m += EVERY) mn_prefetch_wanted(q->of[m].at + i * q->of[m].row, q->of[m].width);
  if (q->block) mn_prefetch_wanted(q->block + q->part * some, some);
  q->part++;
}

void mn_prefetch_some(mn_prefetch *q) {
  for (int i = 0; i < q->pace && q->rows && q->part < PARTS; i++) ask(q);
}

void mn_prefetch_rest(mn_prefetch *q) {
  while (q->rows && q->part < PARTS) ask(q);
}

/* Slices are of as many rows as take long enough; blocks of a product are of four, of a narrow one of sixteen. */
void mn_prefetch_gemm(mn_prefetch *q, int M, int N, int K, const float *A, long ra, long ca, const float *B,
                   const float *C0, const float *row, float *C) {
  const int most = K > 32 ? 4 : K > 16 ? 8 : 16, slice = N % 64 || M < most ? M : most;
  for (int i = 0; i < M; i += slice, mn_prefetch_some(q))
    mn_tile_gemm(M - i < slice ? M - i : slice, N, K, A + i * ra, ra, ca, B, N, C0 ? C0 + (long)i * N : NULL, row ? row + i : NULL, NULL,
                  C + (long)i * N, N);
}

void mn_prefetch_dots(mn_prefetch *q, int M, int N, int K, const float *A, const float *B, float *C) {
  for (int j = 0; j < N; j += 8, mn_prefetch_some(q)) mn_tile_dots(M, 8, K, A, K, B + (long)j * K, K, C + j, N);
}
