/* gru_gate.cu -- kernels of gru_gate, the gate of GTrXL in place of a residual sum.
** The few rows of acting take two launches: one for the products with w and u_rz, which also applies the gates,
** and one for the product with u_g and the final mix.  More rows use a BLAS, with elementwise kernels
** between its products. */
#include "lib/column_sums.cuh"
#include "lib/skinny_gemm.cuh"
#include "runtime/gemm.cuh"
extern "C" {
#include "numerics/fast_math.h"
}

namespace {

struct Gate {                    /* pre [N,3D]: r, z, g side by side */
  const float *x, *y, *w, *u, *bias, *d_o;
  float *o, *pre, *rx, *dx, *dy, *dw, *du, *dbias;
  float *dp, *drx;
  long N;
  int D;
};

/* Sum s of gate 0, 1 or 2 at number d of row n; the third waits for u_g (r*x). */
static __device__ __forceinline__ void open_gate(const Gate &a, int gate, long n, int d, float s) {
  float *to = a.pre + n * 3 * a.D + gate * a.D + d;
  if (gate == 0) a.rx[n * a.D + d] = (s = mn_sigmoidf(s)) * a.x[n * a.D + d];
  if (gate == 1) s = mn_sigmoidf(s - a.bias[d]);
  *to = s;
}

static __device__ __forceinline__ void mix(const Gate &a, long n, int d, float s) {
  const float g = mn_tanhf(s), z = a.pre[n * 3 * a.D + a.D + d];
  a.pre[n * 3 * a.D + 2 * a.D + d] = g;
  a.o[n * a.D + d] = (1 - z) * a.x[n * a.D + d] + z * g;
}

/* A warp: OUTS numbers of one gate, a tile of rows. */
template <int ROWS, int OUTS> CU_KERNEL few_open(const Gate &a, bool fours) {
  const int groups = (a.D + OUTS - 1) / OUTS, warp = (int)blockIdx.x * CU_FEW_WARPS + (int)threadIdx.x / 32;
  const int gate = warp / groups, first = warp % groups * OUTS, lane = (int)threadIdx.x % 32, n0 = (int)blockIdx.y * ROWS;
  if (gate > 2) return;
  const float *w[OUTS], *u[OUTS];
  CU_UNROLL
  for (int j = 0; j < OUTS; j++) {
    const long at = ((long)gate * a.D + cu_min(first + j, a.D - 1)) * a.D;
    w[j] = a.w + at, u[j] = a.u + at;
  }
  float sums[32] = {};
  const int rows = (int)a.N - n0;
  cu_few_dots<ROWS, OUTS>(a.y + (long)n0 * a.D, a.D, rows, w, a.D, fours, sums);
  if (gate < 2) cu_few_dots<ROWS, OUTS>(a.x + (long)n0 * a.D, a.D, rows, u, a.D, fours, sums);
  const float sum = cu_few_sum(sums);
  const int d = first + lane / ROWS, n = n0 + lane % ROWS;
  if (d < a.D && n < a.N) open_gate(a, gate, n, d, sum);
}

template <int ROWS, int OUTS> CU_KERNEL few_mix(const Gate &a, bool fours) {
  const int first = ((int)blockIdx.x * CU_FEW_WARPS + (int)threadIdx.x / 32) * OUTS, lane = (int)threadIdx.x % 32;
  const int n0 = (int)blockIdx.y * ROWS;
  if (first >= a.D) return;
  const float *u[OUTS];
  CU_UNROLL
  for (int j = 0; j < OUTS; j++) u[j] = a.u + (2L * a.D + cu_min(first + j, a.D - 1)) * a.D;
  float sums[32] = {};
  cu_few_dots<ROWS, OUTS>(a.rx + (long)n0 * a.D, a.D, (int)a.N - n0, u, a.D, fours, sums);
  const float sum = cu_few_sum(sums);
  const int d = first + lane / ROWS, n = n0 + lane % ROWS;
  if (d < a.D && n < a.N) mix(a, n, d, sum + a.pre[n * 3L * a.D + 2 * a.D + d]);
}

template <int ROWS, int OUTS> static void few_rows(const Gate &a) {
  const long groups = cu_parts(a.D, OUTS);
  const bool fours = cu_fours(a.x, a.D, a.D) && cu_fours(a.y, a.D, a.D) && cu_fours(a.w, a.D, a.D) &&
                     cu_fours(a.u, a.D, a.D) && cu_fours(a.rx, a.D, a.D);
  const unsigned tiles = (unsigned)cu_parts(a.N, ROWS);
  const dim3 open((unsigned)cu_parts(3 * groups, CU_FEW_WARPS), tiles), close((unsigned)cu_parts(groups, CU_FEW_WARPS), tiles);
  CU_LAUNCH((few_open<ROWS, OUTS>), open, CU_FEW_THREADS, 0, a, fours);
  CU_LAUNCH((few_mix<ROWS, OUTS>), close, CU_FEW_THREADS, 0, a, fours);
}

CU_KERNEL open_rows(const Gate &a, cu_divisor D) {
  CU_LOOP(i, a.N * a.D) {
    long d;
    const long n = D.divide(i, &d);
    for (int gate = 0; gate < 2; gate++) open_gate(a, gate, n, (int)d, a.pre[n * 3 * a.D + gate * a.D + d]);
  }
}

CU_KERNEL mix_rows(const Gate &a, cu_divisor D) {
  CU_LOOP(i, a.N * a.D) {
    long d;
    const long n = D.divide(i, &d);
    mix(a, n, (int)d, a.pre[n * 3 * a.D + 2 * a.D + d]);
  }
}

static Gate open_call(const mn_call *c) {
  Gate a = {};
  a.x = c->in[0].data, a.y = c->in[1].data, a.w = c->in[2].data, a.u = c->in[3].data, a.bias = c->in[4].data;
  a.o = c->out[0].data, a.pre = c->out[1].data, a.rx = c->out[2].data, a.d_o = c->out[0].grad;
  a.dx = c->in[0].grad, a.dy = c->in[1].grad, a.dw = c->in[2].grad, a.du = c->in[3].grad, a.dbias = c->in[4].grad;
  a.D = DIM(c, 'D'), a.N = c->in[0].n / a.D;
  return a;
}

static void forward(mn_call *c) {
  const Gate a = open_call(c);
  const int N = (int)a.N, D = a.D;
  if (N <= 8) return few_rows<8, 4>(a);
  if (N <= CU_FEW) return few_rows<16, 2>(a);
  cu_gemm(c, false, true, N, 3 * D, D, a.y, D, a.w, D, a.pre, 3 * D, false);
  cu_gemm(c, false, true, N, 2 * D, D, a.x, D, a.u, D, a.pre, 3 * D, true);
  CU_LAUNCH(open_rows, cu_blocks(a.N * D), CU_THREADS, 0, a, cu_divisor(D));
  cu_gemm(c, false, true, N, D, D, a.rx, D, a.u + 2L * D * D, D, a.pre + 2 * D, 3 * D, true);
  CU_LAUNCH(mix_rows, cu_blocks(a.N * D), CU_THREADS, 0, a, cu_divisor(D));
}

/* Back through the mixing: the gradients of z's and g's sums, the direct part of dx, and the sums for the bias. */
struct Mixed {
  Gate a;
  __device__ __forceinline__ float term(long n, long d) const {
    const float *pre = a.pre + n * 3 * a.D + d;
    float *dp = a.dp + n * 3 * a.D + d;
    const float z = pre[a.D], g = pre[2 * a.D], d_o = a.d_o[n * a.D + d];
    const float dz = d_o * (g - a.x[n * a.D + d]) * z * (1 - z);
    dp[a.D] = dz;
    dp[2 * a.D] = d_o * z * (1 - g * g);
    if (a.dx) a.dx[n * a.D + d] = d_o * (1 - z);
    return -dz;
  }
  __device__ __forceinline__ void put(long d, float sum) const { if (a.dbias) a.dbias[d] = sum; }
};

/* Back through r*x. */
CU_KERNEL undo_open(const Gate &a, cu_divisor D) {
  CU_LOOP(i, a.N * a.D) {
    long d;
    const long n = D.divide(i, &d);
    const float r = a.pre[n * 3 * a.D + d], drx = a.drx[i];
    if (a.dx) a.dx[i] = fmaf(drx, r, a.dx[i]);
    a.dp[n * 3 * a.D + d] = drx * a.x[i] * r * (1 - r);
  }
}

static void backward(mn_call *c) {
  Gate a = open_call(c);
  const int N = (int)a.N, D = a.D;
  a.dp = mn_scratch(c->ctx, 0, a.N * 3 * D);
  a.drx = mn_scratch(c->ctx, 1, a.N * D);
  cu_column_sums(c, 2, Mixed{ a }, a.N, D);
  cu_gemm(c, false, false, N, D, D, a.dp + 2 * D, 3 * D, a.u + 2L * D * D, D, a.drx, D, false);
  CU_LAUNCH(undo_open, cu_blocks(a.N * D), CU_THREADS, 0, a, cu_divisor(D));
  if (a.dx) cu_gemm(c, false, false, N, D, 2 * D, a.dp, 3 * D, a.u, D, a.dx, D, true);
  if (a.dy) cu_gemm(c, false, false, N, D, 3 * D, a.dp, 3 * D, a.w, D, a.dy, D, false);
  if (a.dw) cu_gemm(c, true, false, 3 * D, D, N, a.dp, 3 * D, a.y, D, a.dw, D, false);
  if (!a.du) return;
  cu_gemm(c, true, false, 2 * D, D, N, a.dp, 3 * D, a.x, D, a.du, D, false);
  cu_gemm(c, true, false, D, D, N, a.dp + 2 * D, 3 * D, a.rx, D, a.du + 2L * D * D, D, false);
}

}  // namespace

MN_KERNEL(gru_gate, forward, backward)
