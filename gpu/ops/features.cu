/* features.cu -- kernels of dpfp, fourier, favor_logits and favor_features: feature maps of keys and queries for
** linear memories. */
#include <math.h>
#include "runtime/gemm.cuh"
#include "lib/row_teams.cuh"
extern "C" {
#include "numerics/fast_math.h"
}

namespace {

/* ---- dpfp: products of relu(x), relu(-x) with their neighbours ---- */

struct Dpfp {
  const float *x, *dy;
  float *y, *dx;
  long D, nu, rows;

  __device__ __forceinline__ float half(long row, long i) const {      /* u_i of 0 .. 2D-1 */
    return i < D ? mn_at_least(x[row * D + i], 0) : mn_at_least(-x[row * D + i - D], 0);
  }
};

CU_KERNEL dpfp_forward(const Dpfp &a, cu_divisor width) {
  CU_LOOP(k, a.rows * a.nu * 2 * a.D) {
    long i;
    const long part = width.divide(k, &i), row = part / a.nu, back = (part % a.nu + 1) % (2 * a.D);
    a.y[k] = a.half(row, i) * a.half(row, i >= back ? i - back : i - back + 2 * a.D);
  }
}

/* u_i meets u_i-j in y_i and u_i+j in y_i+j; x_i is in one of its two halves, or in none. */
CU_KERNEL dpfp_back(const Dpfp &a, cu_divisor D) {
  CU_LOOP(k, a.rows * a.D) {
    long i;
    const long row = D.divide(k, &i), n = 2 * a.D;
    const float x = a.x[k];
    const float *dy = a.dy + row * a.nu * n;
    float sum = 0;
    if (x < 0) i += a.D;
    for (long j = 1; x != 0 && j <= a.nu; j++, dy += n) {
      const long back = j % n, before = i >= back ? i - back : i - back + n, after = i + back < n ? i + back : i + back - n;
      sum = fmaf(dy[i], a.half(row, before), sum);
      sum = fmaf(dy[after], a.half(row, after), sum);
    }
    a.dx[k] = x > 0 ? sum : x < 0 ? -sum : 0;
  }
}

static Dpfp open_dpfp(const mn_call *c) {
  const long D = DIM(c, 'D');
  return { c->in[0].data, c->out[0].grad, c->out[0].data, c->in[0].grad, D, (long)OPT(c, 0), c->in[0].n / D };
}

static void dpfp(mn_call *c) {
  const Dpfp a = open_dpfp(c);
  CU_LAUNCH(dpfp_forward, cu_blocks(c->out[0].n), CU_THREADS, 0, a, cu_divisor(2 * a.D));
}

static void dpfp_backward(mn_call *c) {
  const Dpfp a = open_dpfp(c);
  CU_LAUNCH(dpfp_back, cu_blocks(c->in[0].n), CU_THREADS, 0, a, cu_divisor(a.D));
}

/* ---- fourier: sines and cosines ---- */

CU_KERNEL waves(const float *x, float *y, long n, cu_divisor M, long m, float scale) {
  CU_LOOP(k, n) {
    long i;
    const long row = M.divide(k, &i);
    float sine, cosine;
    mn_sincosf(x[k], &sine, &cosine);
    y[row * 2 * m + i] = sine * scale;
    y[row * 2 * m + m + i] = cosine * scale;
  }
}

CU_KERNEL waves_back(const float *y, const float *dy, float *dx, long n, cu_divisor M, long m) {
  CU_LOOP(k, n) {
    long i;
    const long at = M.divide(k, &i) * 2 * m + i;
    dx[k] = dy[at] * y[at + m] - dy[at + m] * y[at];
  }
}

static void fourier(mn_call *c) {
  const long M = DIM(c, 'M'), n = c->in[0].n;
  CU_LAUNCH(waves, cu_blocks(n), CU_THREADS, 0, c->in[0].data, c->out[0].data, n, cu_divisor(M), M,
            1 / sqrtf((float)M));
}

static void fourier_backward(mn_call *c) {
  const long M = DIM(c, 'M'), n = c->in[0].n;
  CU_LAUNCH(waves_back, cu_blocks(n), CU_THREADS, 0, c->out[0].data, c->out[0].grad, c->in[0].grad, n,
            cu_divisor(M), M);
}

/* ---- favor_logits: z = s W x - s^2 |x|^2 / 2 ---- */

struct Favor {
  const float *x, *dz;
  float *z, *dx;
  long rows;
  int D, M;
  float s;
};

/* z from x W^T, in place. */
CU_KERNEL finish(const Favor &a, int width) {
  const float most = 1e30f;      /* as in engine/ops/favor_logits.c */
  cu_team team(width);
  for (long row = team.first(); team.any(row, a.rows); row = team.next(row)) {
    const bool real = row < a.rows;
    float half = 0;
    for (int i = team.lane; real && i < a.D; i += width) half = fmaf(a.x[row * a.D + i], a.x[row * a.D + i], half);
    half = 0.5f * a.s * a.s * team.sum(half);
    for (int i = team.lane; real && i < a.M; i += width) {
      float *z = a.z + row * a.M + i;
      *z = mn_at_most(mn_at_least(*z * a.s - half, -most), most);
    }
  }
}

/* dx = s W^T dz - s^2 x sum(dz): the product is in dx. */
CU_KERNEL finish_back(const Favor &a, int width) {
  cu_team team(width);
  for (long row = team.first(); team.any(row, a.rows); row = team.next(row)) {
    const bool real = row < a.rows;
    float sum = 0;
    for (int i = team.lane; real && i < a.M; i += width) sum += a.dz[row * a.M + i];
    sum = team.sum(sum);
    for (int i = team.lane; real && i < a.D; i += width) {
      float *dx = a.dx + row * a.D + i;
      *dx = a.s * (*dx - a.s * a.x[row * a.D + i] * sum);
    }
  }
}

CU_KERNEL shrink(float *x, long n, float by) { CU_LOOP(i, n) x[i] *= by; }

static Favor open_favor(const mn_call *c) {
  const int D = DIM(c, 'D'), M = DIM(c, 'M');
  return { c->in[0].data, c->out[0].grad, c->out[0].data, c->in[0].grad, c->in[0].n / D, D, M, powf((float)D, -0.25f) };
}

static void favor_logits(mn_call *c) {
  const Favor a = open_favor(c);
  const int H = DIM(c, 'H'), N = (int)(a.rows / H), width = cu_team_width(cu_max(a.D, a.M));
  cu_gemm_batch(c, false, true, N, a.M, a.D, a.x, H * a.D, c->in[1].data, a.D, a.z, H * a.M, false, a.D,
                (long)a.M * a.D, a.M, H);
  CU_LAUNCH(finish, cu_team_blocks(a.rows, width), CU_THREADS, CU_TEAM_SHARED, a, width);
}

static void favor_logits_backward(mn_call *c) {
  const Favor a = open_favor(c);
  const int H = DIM(c, 'H'), N = (int)(a.rows / H), width = cu_team_width(cu_max(a.D, a.M));
  const long weights = (long)a.M * a.D;
  float *dw = c->in[1].grad;
  if (a.dx) {
    cu_gemm_batch(c, false, false, N, a.D, a.M, a.dz, H * a.M, c->in[1].data, a.D, a.dx, H * a.D, false, a.M, weights,
                  a.D, H);
    CU_LAUNCH(finish_back, cu_team_blocks(a.rows, width), CU_THREADS, CU_TEAM_SHARED, a, width);
  }
  if (!dw) return;
  cu_gemm_batch(c, true, false, a.M, a.D, N, a.dz, H * a.M, a.x, H * a.D, dw, a.D, false, a.M, a.D, weights, H);
  CU_LAUNCH(shrink, cu_blocks(c->in[1].n), CU_THREADS, 0, dw, c->in[1].n, a.s);
}

/* ---- favor_features: (exp(z - top) + eps) / sqrt(M) ---- */

CU_KERNEL features(const float *z, const float *top, float *y, long n, cu_divisor M, float eps, float scale) {
  CU_LOOP(k, n) {
    long i;
    y[k] = (mn_expf(z[k] - top[M.divide(k, &i)]) + eps) * scale;
  }
}

CU_KERNEL features_back(const float *y, const float *dy, float *dz, float *dtop, long rows, int M, float offset, int width) {
  cu_team team(width);
  for (long row = team.first(); team.any(row, rows); row = team.next(row)) {
    float sum = 0;
    for (int i = team.lane; row < rows && i < M; i += width) {
      const float d = dy[row * M + i] * (y[row * M + i] - offset);
      if (dz) dz[row * M + i] = d;
      sum += d;
    }
    sum = team.sum(sum);
    if (dtop && row < rows && team.lane == 0) dtop[row] = -sum;
  }
}

static void favor_features(mn_call *c) {
  const int M = DIM(c, 'M');
  CU_LAUNCH(features, cu_blocks(c->in[0].n), CU_THREADS, 0, c->in[0].data, c->in[1].data, c->out[0].data,
            c->in[0].n, cu_divisor(M), (float)OPT(c, 0), 1 / sqrtf((float)M));
}

static void favor_features_backward(mn_call *c) {
  const int M = DIM(c, 'M'), width = cu_team_width(M);
  CU_LAUNCH(features_back, cu_team_blocks(c->in[1].n, width), CU_THREADS, CU_TEAM_SHARED, c->out[0].data,
            c->out[0].grad, c->in[0].grad, c->in[1].grad, c->in[1].n, M, (float)OPT(c, 0) / sqrtf((float)M), width);
}

}  // namespace

MN_KERNEL(dpfp, dpfp, dpfp_backward)
MN_KERNEL(fourier, fourier, fourier_backward)
MN_KERNEL(favor_logits, favor_logits, favor_logits_backward)
MN_KERNEL(favor_features, favor_features, favor_features_backward)
