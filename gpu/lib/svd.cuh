/* svd.cuh -- engine/numerics/svd.c for a block of threads: the nearest matrix of r columns to U W^T, from the products of the n
** columns of each.  Everything is in double and in the CPU's order, so that both choose the same signs.  Rotations run one
** after another; the lanes of one warp divide the columns of each. */
#pragma once
#include "runtime/kernel.cuh"

static __host__ __device__ inline int cu_svd_row(int n) { return (n + 7) / 8 * 8; }
static __host__ __device__ inline long cu_svd_work(int n) { return (4L * n + 3) * cu_svd_row(n); }

static __device__ __forceinline__ double cu_svd_dot(int n, const double *x, const double *y) {
  double sum = 0;
  for (int i = (int)threadIdx.x % 32; i < n; i += 32) sum += x[i] * y[i];
  for (int by = 16; by > 0; by >>= 1) sum += __shfl_xor_sync(0xffffffffu, sum, by);
  return sum;
}

/* R [n,wide], zero at first, with R^T R = G.  One warp; rest: n. */
static __device__ void cu_svd_triangle(int n, int wide, const double *G, double *R, double *rest) {
  const int lane = (int)threadIdx.x % 32;
  for (int j = lane; j < n; j += 32) rest[j] = G[j * n + j];
  __syncwarp();
  for (int k = 0; k < n; k++) {
    int best = -1;
    double most = 1e-13, *row = R + k * wide;          /* less hangs on the other columns */
    for (int j = 0; j < n; j++) {
      const double share = rest[j] / G[j * n + j];     /* NaN for 0 / 0: never more */
      if (share > most) most = share, best = j;
    }
    if (best < 0) return;
    const double pivot = sqrt(rest[best]);
    __syncwarp();
    for (int j = lane; j < n; j += 32) {
      double x = G[best * n + j];
      for (int i = 0; i < k; i++) x -= R[i * wide + best] * R[i * wide + j];
      x = rest[j] > 0 ? x / pivot : 0;
      row[j] = j == best ? pivot : x;
      rest[j] = j == best ? 0 : rest[j] - x * x;
    }
    __syncwarp();
  }
}

/* Rows of M made orthogonal, by rotations that are done to V too; square: sigma^2.  One warp. */
static __device__ void cu_svd_jacobi(int n, int wide, double *M, double *V, double *square) {
  const int lane = (int)threadIdx.x % 32;
  bool turned = true;
  for (int sweep = 0; turned && sweep < 40; sweep++) {
    turned = false;
    for (int i = 0; i < n; i++) {
      const double own = cu_svd_dot(wide, M + i * wide, M + i * wide);
      if (lane == 0) square[i] = own;
    }
    __syncwarp();
    for (int p = 0; p < n - 1; p++)
      for (int q = p + 1; q < n; q++) {
        double *x = M + p * wide, *y = M + q * wide;
        const double xx = square[p], yy = square[q], xy = cu_svd_dot(wide, x, y);
        if (!(xy * xy > 1e-20 * xx * yy)) continue;
        double t = (yy - xx) / (2 * xy);
        t = (t < 0 ? -1 : 1) / (fabs(t) + sqrt(1 + t * t));
        const double c = 1 / sqrt(1 + t * t), s = c * t;
        __syncwarp();
        for (int i = lane; i < wide; i += 32) {
          const double a = x[i], b = y[i], v = V[p * wide + i], w = V[q * wide + i];
          x[i] = c * a - s * b, y[i] = s * a + c * b;
          V[p * wide + i] = c * v - s * w, V[q * wide + i] = s * v + c * w;
        }
        if (lane == 0) square[p] = xx - t * xy, square[q] = yy + t * xy;
        __syncwarp();
        turned = true;
      }
  }
}

/* Called by all threads of a block of two warps or more; as mn_svd_truncate. */
static __device__ void cu_svd_truncate(int n, int r, const double *gram_u, const double *gram_w, float *A, float *B,
                                       float *root, double *work) {
  const int tid = (int)threadIdx.x, lane = tid % 32, wide = cu_svd_row(n);
  const long whole = (long)n * wide;
  double *R = work, *S = R + whole, *M = S + whole, *V = M + whole, *a = V + whole, *b = a + wide, *square = b + wide;
  for (long i = tid; i < 4 * whole; i += (long)blockDim.x) work[i] = i >= 3 * whole && (i - 3 * whole) / wide == (i - 3 * whole) % wide;
  __syncthreads();
  if (tid < 32)      cu_svd_triangle(n, wide, gram_u, R, a);
  else if (tid < 64) cu_svd_triangle(n, wide, gram_w, S, b);
  __syncthreads();
  for (int i = tid; i < n * n; i += (int)blockDim.x) {
    double sum = 0;
    for (int k = 0; k < n; k++) sum += S[i / n * wide + k] * R[i % n * wide + k];
    M[i / n * wide + i % n] = sum;                     /* (R S^T)^T */
  }
  __syncthreads();
  if (tid >= 32) return;
  cu_svd_jacobi(n, wide, M, V, square);
  double largest = 0;
  for (int i = 0; i < n; i++) if (square[i] > largest) largest = square[i];
  for (int i = 0; i < r; i++, A += n, B += n) {
    int top = 0, sign = 0;
    for (int j = 1; j < n; j++) if (square[j] > square[top]) top = j;
    const double value = sqrt(square[top]);
    __syncwarp();
    if (lane == 0) square[top] = -1, root[i] = 0;      /* taken */
    for (int c = lane; c < n; c += 32) A[c] = B[c] = 0;
    __syncwarp();
    if (!(value > 1e-7 * sqrt(largest) && value > 1e-37)) continue;     /* noise */
    const double scale = 1 / sqrt(value);
    for (int c = lane; c < n; c += 32) {
      double x = 0, y = 0;
      for (int k = 0; k < n; k++) {
        x += S[k * wide + c] * V[top * wide + k] * scale;
        y += R[k * wide + c] * M[top * wide + k] * (scale / value);
      }
      a[c] = x, b[c] = y;
    }
    __syncwarp();
    for (int c = 1; c < n; c++) if (fabs(a[c]) > fabs(a[sign])) sign = c;
    const double turn = a[sign] < 0 ? -1 : 1;
    for (int c = lane; c < n; c += 32) A[c] = (float)(turn * a[c]), B[c] = (float)(turn * b[c]);
    if (lane == 0) root[i] = (float)scale;
    __syncwarp();
  }
}
