/* recurrent_cells.h -- what gru and lstm share: the product of a few rows with packed weights, and
** the state from which a row starts. */
#ifndef MN_RECURRENT_CELLS_H
#define MN_RECURRENT_CELLS_H
#include <string.h>
#include "packed_gemm.h"

/* f(arg, b, worker) for each of B rows of D numbers, shared out where they take longer than sharing does. */
static inline void mn_each_row(mn_ctx *mn, int B, int D, mn_job *f, void *arg) {
  if ((long)B * D >= 1000) mn_parallel_for(mn, B, f, arg);
  else for (int b = 0; b < B; b++) f(arg, b, 0);
}

/* C[rows,N] = A[rows,K] packed (+ C if add); many rows go through a few at a time. */
static inline void mn_product(mn_ctx *mn, int rows, int N, int K, const float *A, const float *packed, float *C, int ldc,
                              bool add) {
  for (int r = 0; r < rows; r += MN_PACKED_ROWS) {
    int n = rows - r < MN_PACKED_ROWS ? rows - r : MN_PACKED_ROWS;
    mn_gemm_packed(mn, n, N, K, A + (long)r * K, K, packed, C + (long)r * ldc, ldc, add);
  }
}

/* The state [B,D] that row t starts from: that of the row before, in `rows` with `stride` numbers between environments,
** or `first` for t = 0 (NULL: zeros); zero where done says that an episode starts. */
static inline void mn_carried(const float *rows, long stride, const float *first, const uint8_t *done, int t, int B, int D,
                              float *h) {
  const float *from = t ? rows + (long)(t - 1) * B * stride : first;
  for (int b = 0; b < B; b++, h += D) {
    bool keep = from && !(done && done[(long)t * B + b]);
    if (keep) memcpy(h, from + (t ? stride : D) * b, sizeof *h * (size_t)D);
    else memset(h, 0, sizeof *h * (size_t)D);
  }
}

#endif
