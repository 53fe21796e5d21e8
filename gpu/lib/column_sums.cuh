/* column_sums.cuh -- sums over many rows for each column: the gradients of biases and of other
** parameters that all rows share.  Rows are summed in fixed parts, and the parts in their order, so the bits are
** the same in every run.
**
** A Sums is a struct of pointers and sizes with
**   float term(long row, long col)         the row's term; it may also store other gradients
**   void  put(long col, float sum)
** as device functions.  term is called once for each row and column. */
#pragma once
#include "runtime/kernel.cuh"

enum { CU_COLUMNS = 32, CU_COLUMN_ROWS = 8, CU_PARTS = 64 };     /* of a block; parts at most */

template <class Sums>
CU_KERNEL cu_part_sums(const Sums &s, long rows, long cols, float *partial) {
  const long col = (long)blockIdx.x * CU_COLUMNS + threadIdx.x, part = blockIdx.y, parts = gridDim.y;
  const int y = (int)threadIdx.y, at = y * CU_COLUMNS + (int)threadIdx.x;
  cu_smem<float> sums = CU_SHARED(float, 0);
  float sum = 0;
  if (col < cols)
    for (long row = rows * part / parts + y, end = rows * (part + 1) / parts; row < end; row += CU_COLUMN_ROWS)
      sum += s.term(row, col);
  sums[at] = sum;
  __syncthreads();
  if (y || col >= cols) return;
  for (int i = 1; i < CU_COLUMN_ROWS; i++) sum += sums[at + i * CU_COLUMNS];
  if (parts == 1) s.put(col, sum);
  else partial[part * cols + col] = sum;
}

/* The sums of the parts are sums of rows again. */
template <class Sums> struct CuParts {
  Sums s;
  const float *partial;
  long cols;
  __device__ __forceinline__ float term(long part, long col) const { return partial[part * cols + col]; }
  __device__ __forceinline__ void put(long col, float sum) const { s.put(col, sum); }
};

template <class Sums>
static void cu_launch_sums(Sums s, long rows, long cols, int parts, float *partial) {
  const dim3 grid((unsigned)cu_parts(cols, CU_COLUMNS), (unsigned)parts), block(CU_COLUMNS, CU_COLUMN_ROWS);
  CU_LAUNCH(cu_part_sums<Sums>, grid, block, sizeof(float) * CU_COLUMNS * CU_COLUMN_ROWS, s, rows, cols,
            partial);
}

template <class Sums> static void cu_sum_parts(Sums s, long cols, int parts, const float *partial) {
  cu_launch_sums(CuParts<Sums>{ s, partial, cols }, parts, cols, 1, NULL);
}

/* Sums of all columns; takes scratch `which`. */
template <class Sums> static void cu_column_sums(mn_call *c, int which, Sums s, long rows, long cols) {
  const int parts = (int)cu_max(cu_min(rows / (4 * CU_COLUMN_ROWS), (long)CU_PARTS), 1L);
  float *partial = parts > 1 ? mn_scratch(c->ctx, which, parts * cols) : NULL;
  cu_launch_sums(s, rows, cols, parts, partial);
  if (parts > 1) cu_sum_parts(s, cols, parts, partial);
}

/* Where most gradients go: added or stored. */
static __device__ __forceinline__ void cu_give(float *to, float x, bool add) { *to = add ? *to + x : x; }

/* Rows that lie in memory, summed. */
struct cu_given_rows {
  const float *from;
  float *to;
  long cols;
  __device__ __forceinline__ float term(long row, long col) const { return from[row * cols + col]; }
  __device__ __forceinline__ void put(long col, float sum) const { to[col] = sum; }
};
