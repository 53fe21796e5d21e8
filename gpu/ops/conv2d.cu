/* conv2d.cu -- kernels of conv2d.  All three are products of matrices of which one, the patches of images or of
** gradients, is never made: a tile of it is gathered into shared memory where it is used, so nothing of its size is
** written or kept, bytes become floats on their way, and bias and activation end the same launch.
**   forward    [pixels of the output, taps]     x [taps, O]
**   inputs     [pixels of a phase, its taps]    x [its taps, C]      phases: see engine/ops/conv2d.c
**   weights    [taps and 1, pixels]             x [pixels, O]        in parts, summed in their order */
#include "lib/column_sums.cuh"
extern "C" {
#include "numerics/activation.h"
}

namespace {

enum { IN_X, IN_IMAGE, IN_W, IN_B };
enum { STRIDE, PADDING, ACT, DIVIDE };
enum { BM = 64, BN = 32, BK = 16, THREADS = 128 };   /* a block makes BM x BN numbers, a thread 4 x 4 of them */
enum { PITCH_A = BM + 4, PITCH_B = BN + 4, SHARED = 4 * BK * (PITCH_A + PITCH_B) };
enum { ROWS = BM * BK / THREADS, COLS = BN * BK / THREADS, STEP = THREADS / BK };   /* that a thread gathers */
enum { BLOCKS = 512, LEAST = 256 };                  /* weights: blocks to fill a GPU; pixels of a part */

struct Conv {
  const float *x, *w, *b, *dy, *kept;                /* kept: y, where the activation is relu */
  const uint8_t *image;
  float *y, *dx, *dw, *db, *partial;
  int Y, X, C, O, KY, KX, stride, padding, out_y, out_x, taps;    /* taps: KY * KX * C */
  int pixels, parts;                                 /* of all outputs; of the weights' gradient */
  long images;
  cu_divisor by_x, by_y;                             /* out_x, out_y */
  bool relu;
  float scale;

  __device__ __forceinline__ float value(long i) const { return x ? x[i] : (float)image[i] * scale; }
  __device__ __forceinline__ float dz(long i) const { return kept && !(kept[i] > 0) ? 0 : dy[i]; }
  __device__ __forceinline__ bool inside(int i, int k) const {
    return (unsigned)i < (unsigned)Y && (unsigned)k < (unsigned)X;
  }
};

/* The corner of a patch, which may lie outside. */
struct Corner { long at; int y, x; };

static __device__ __forceinline__ Corner corner_of(const Conv &g, long pixel) {
  long ox, oy, image = g.by_y.divide(g.by_x.divide(pixel, &ox), &oy);
  const int y = (int)oy * g.stride - g.padding, x = (int)ox * g.stride - g.padding;
  return { ((image * g.Y + y) * g.X + x) * g.C, y, x };
}

/* Place of tap k in a patch, and in the weights of one output. */
struct Tap { int ky, kx; long at, weight; };

static __device__ __forceinline__ Tap tap_of(const Conv &g, int k) {
  const int c = k % g.C, kx = k / g.C % g.KX, ky = k / g.C / g.KX;
  return { ky, kx, ((long)ky * g.X + kx) * g.C + c, ((long)c * g.KY + ky) * g.KX + kx };
}

struct Forward {
  Conv g;
  struct State { int M, N, from, end; Corner row[ROWS]; };

  __device__ __forceinline__ bool begin(State &s, int, int m0) const {
    s.M = g.pixels, s.N = g.O, s.from = 0, s.end = g.taps;
    CU_UNROLL
    for (int i = 0; i < ROWS; i++) {
      const int m = m0 + (int)threadIdx.x / BK + STEP * i;
      s.row[i] = corner_of(g, cu_min(m, s.M - 1));
    }
    return true;
  }
  __device__ __forceinline__ void load(const State &s, int k0, int n0, cu_smem<float> A, cu_smem<float> B) const {
    const int k = (int)threadIdx.x % BK, first = (int)threadIdx.x / BK;
    const bool real = k0 + k < s.end;
    const Tap tap = tap_of(g, real ? k0 + k : 0);
    CU_UNROLL
    for (int i = 0; i < ROWS; i++) {
      const Corner r = s.row[i];
      A[k * PITCH_A + first + STEP * i] = real && g.inside(r.y + tap.ky, r.x + tap.kx) ? g.value(r.at + tap.at) : 0.0f;
    }
    CU_UNROLL
    for (int i = 0; i < COLS; i++) {
      const int n = n0 + first + STEP * i;
      B[k * PITCH_B + first + STEP * i] = real && n < g.O ? g.w[(long)n * g.taps + tap.weight] : 0.0f;
    }
  }
  __device__ __forceinline__ void put(const State &, int, int m, int n, float sum) const {
    if (g.b) sum += g.b[n];
    g.y[(long)m * g.O + n] = g.relu ? mn_activated(sum, MN_RELU) : sum;
  }
};

/* Pixels whose place, with the padding, is r modulo the stride see the weights r, r + stride, ... */
struct Phase { int taps, first, n; };

static __host__ __device__ __forceinline__ Phase phase_of(int r, int size, int kernel, int stride, int padding) {
  Phase p = { r < kernel ? (kernel - 1 - r) / stride + 1 : 0, ((r - padding) % stride + stride) % stride, 0 };
  p.n = size > p.first ? (size - 1 - p.first) / stride + 1 : 0;
  return p;
}

struct Inputs {
  Conv g;
  struct State { int M, N, from, end, ry, rx; Phase y, x; Corner row[ROWS]; };    /* row: what the phase's first tap sees */

  __device__ __forceinline__ Corner pixel_of(const State &s, long m) const {      /* of dx */
    const int x = s.x.first + (int)(m % s.x.n) * g.stride, y = s.y.first + (int)(m / s.x.n % s.y.n) * g.stride;
    return { m / s.x.n / s.y.n, y, x };
  }
  /* Phases by their first pixel, of which there are no more than pixels. */
  __device__ __forceinline__ bool begin(State &s, int phase, int m0) const {
    const int across = cu_min(g.stride, g.X);
    s.ry = (phase / across + g.padding) % g.stride, s.rx = (phase % across + g.padding) % g.stride;
    s.y = phase_of(s.ry, g.Y, g.KY, g.stride, g.padding), s.x = phase_of(s.rx, g.X, g.KX, g.stride, g.padding);
    s.M = (int)(g.images * s.y.n * s.x.n), s.N = g.C, s.from = 0, s.end = s.y.taps * s.x.taps * g.O;
    if (m0 >= s.M) return false;
    CU_UNROLL
    for (int i = 0; i < ROWS; i++) {
      const Corner p = pixel_of(s, cu_min(m0 + (int)threadIdx.x / BK + STEP * i, s.M - 1));
      const int y = (p.y + g.padding - s.ry) / g.stride, x = (p.x + g.padding - s.rx) / g.stride;
      s.row[i] = { ((p.at * g.out_y + y) * g.out_x + x) * g.O, y, x };
    }
    return true;
  }
  __device__ __forceinline__ void load(const State &s, int k0, int n0, cu_smem<float> A, cu_smem<float> B) const {
    const int k = (int)threadIdx.x % BK, first = (int)threadIdx.x / BK, at = k0 + k;
    const bool real = at < s.end;
    const int o = real ? at % g.O : 0, jx = real ? at / g.O % s.x.taps : 0, jy = real ? at / g.O / s.x.taps : 0;
    const long weight = (long)o * g.taps + (long)(s.ry + jy * g.stride) * g.KX + s.rx + jx * g.stride;
    CU_UNROLL
    for (int i = 0; i < ROWS; i++) {
      const Corner r = s.row[i];
      const bool seen = (unsigned)(r.y - jy) < (unsigned)g.out_y && (unsigned)(r.x - jx) < (unsigned)g.out_x;
      A[k * PITCH_A + first + STEP * i] = real && seen ? g.dz(r.at - ((long)jy * g.out_x + jx) * g.O + o) : 0.0f;
    }
    CU_UNROLL
    for (int i = 0; i < COLS; i++) {
      const int n = n0 + first + STEP * i;
      B[k * PITCH_B + first + STEP * i] = real && n < g.C ? g.w[weight + (long)n * g.KY * g.KX] : 0.0f;
    }
  }
  __device__ __forceinline__ void put(const State &s, int, int m, int n, float sum) const {
    const Corner p = pixel_of(s, m);
    g.dx[((p.at * g.Y + p.y) * g.X + p.x) * g.C + n] = sum;
  }
};

/* Row `taps` is the bias, whose patches are 1. */
struct Weights {
  Conv g;
  struct State { int M, N, from, end; Tap tap; bool real, bias; };

  __device__ __forceinline__ bool begin(State &s, int part, int m0) const {
    const int m = m0 + (int)threadIdx.x % BM;
    s.M = g.taps + 1, s.N = g.O;
    s.from = (int)((long)g.pixels * part / g.parts), s.end = (int)((long)g.pixels * (part + 1) / g.parts);
    s.real = m < g.taps, s.bias = m == g.taps;
    s.tap = tap_of(g, s.real ? m : 0);
    return true;
  }
  __device__ __forceinline__ void load(const State &s, int k0, int n0, cu_smem<float> A, cu_smem<float> B) const {
    const int m = (int)threadIdx.x % BM, n = (int)threadIdx.x % BN;
    CU_UNROLL
    for (int i = 0; i < ROWS; i++) {
      const int k = (int)threadIdx.x / BM + THREADS / BM * i;
      float v = s.bias ? 1.0f : 0.0f;
      if (s.real && k0 + k < s.end) {
        const Corner r = corner_of(g, k0 + k);
        v = g.inside(r.y + s.tap.ky, r.x + s.tap.kx) ? g.value(r.at + s.tap.at) : 0.0f;
      }
      A[k * PITCH_A + m] = v;
    }
    CU_UNROLL
    for (int i = 0; i < COLS; i++) {
      const int k = (int)threadIdx.x / BN + THREADS / BN * i;
      B[k * PITCH_B + n] = k0 + k < s.end && n0 + n < g.O ? g.dz((long)(k0 + k) * g.O + n0 + n) : 0.0f;
    }
  }
  __device__ __forceinline__ void put(const State &, int part, int m, int n, float sum) const {
    g.partial[((long)part * (g.taps + 1) + m) * g.O + n] = sum;
  }
  /* column_sums.cuh: the parts' sums, column tap*O + o. */
  __device__ __forceinline__ void put(long col, float sum) const {
    const int k = (int)(col / g.O), o = (int)(col % g.O);
    if (k < g.taps && g.dw) g.dw[(long)o * g.taps + tap_of(g, k).weight] = sum;
    if (k == g.taps && g.db) g.db[o] = sum;
  }
};

/* A block: one of `across` tiles side by side, of one depth. */
template <class Product> CU_KERNEL tiles(const Product &p, int across) {
  const int m0 = (int)blockIdx.x * BM, n0 = (int)blockIdx.y % across * BN, z = (int)blockIdx.y / across;
  const int ty = (int)threadIdx.x / (BN / 4), tx = (int)threadIdx.x % (BN / 4);
  cu_smem<float> A = CU_SHARED(float, 0), B = CU_SHARED(float, 4 * BK * PITCH_A);
  cu_smem<float4> A4 = CU_SHARED(float4, 0), B4 = CU_SHARED(float4, 4 * BK * PITCH_A);
  typename Product::State s;
  float sum[4][4] = {};
  if (!p.begin(s, z, m0)) return;                    /* the same for the whole block */
  for (int k0 = s.from; k0 < s.end; k0 += BK) {
    p.load(s, k0, n0, A, B);
    __syncthreads();
    CU_UNROLL
    for (int k = 0; k < BK; k++) {
      const float4 a = A4[k * (PITCH_A / 4) + ty], b = B4[k * (PITCH_B / 4) + tx];
      const float row[4] = { a.x, a.y, a.z, a.w }, col[4] = { b.x, b.y, b.z, b.w };
      CU_UNROLL
      for (int i = 0; i < 4; i++)
        CU_UNROLL
        for (int j = 0; j < 4; j++) sum[i][j] = fmaf(row[i], col[j], sum[i][j]);
    }
    __syncthreads();
  }
  CU_UNROLL
  for (int i = 0; i < 4; i++)
    CU_UNROLL
    for (int j = 0; j < 4; j++) {
      const int m = m0 + 4 * ty + i, n = n0 + 4 * tx + j;
      if (m < s.M && n < s.N) p.put(s, z, m, n, sum[i][j]);
    }
}

template <class Product> static void launch(const Product &p, long M, long N, int depth) {
  const unsigned across = (unsigned)cu_parts(N, BN);
  CU_LAUNCH(tiles<Product>, dim3((unsigned)cu_parts(M, BM), across * (unsigned)depth), THREADS, SHARED, p, (int)across);
}

static Conv open_call(const mn_call *c) {
  Conv g = {};
  const mn_arg *y = &c->out[0];
  g.x = c->in[IN_X].data, g.image = c->in[IN_IMAGE].u8, g.w = c->in[IN_W].data, g.b = c->in[IN_B].data, g.y = y->data;
  g.dy = y->grad, g.dx = c->in[IN_X].grad, g.dw = c->in[IN_W].grad, g.db = c->in[IN_B].grad;
  g.Y = DIM(c, 'Y'), g.X = DIM(c, 'X'), g.C = DIM(c, 'C'), g.O = DIM(c, 'O'), g.KY = DIM(c, 'K'), g.KX = DIM(c, 'L');
  g.stride = (int)OPT(c, STRIDE), g.padding = (int)OPT(c, PADDING), g.relu = OPT(c, ACT) == MN_RELU;
  g.out_y = y->shape[2], g.out_x = y->shape[3], g.taps = g.KY * g.KX * g.C;
  g.images = (long)y->shape[0] * y->shape[1], g.pixels = (int)(g.images * g.out_y * g.out_x);
  g.by_x = cu_divisor(g.out_x), g.by_y = cu_divisor(g.out_y);
  g.kept = g.relu ? g.y : NULL, g.scale = 1 / (float)OPT(c, DIVIDE);
  return g;
}

static bool too_many(const Conv &g) {
  const bool no = g.images * cu_max((long)g.out_y * g.out_x, (long)g.Y * g.X) >> 31;
  if (no) cu_fail("conv2d", "2147483648 pixels or more at once");
  return no;
}

static void forward(mn_call *c) {
  const Conv g = open_call(c);
  if (too_many(g)) return;
  launch(Forward{ g }, g.pixels, g.O, 1);
}

static void backward(mn_call *c) {
  Conv g = open_call(c);
  if (too_many(g)) return;
  if (g.dx) {
    const long rows = cu_parts(g.Y, g.stride), cols = cu_parts(g.X, g.stride);
    launch(Inputs{ g }, g.images * rows * cols, g.C, cu_min(g.stride, g.Y) * cu_min(g.stride, g.X));
  }
  if (!g.dw && !g.db) return;
  const long sums = (g.taps + 1L) * g.O, blocks = cu_parts(g.taps + 1, BM) * cu_parts(g.O, BN);
  g.parts = (int)cu_max(cu_min(BLOCKS / blocks, (long)g.pixels / LEAST), 1L);
  g.partial = mn_scratch(c->ctx, 0, g.parts * sums);
  launch(Weights{ g }, g.taps + 1, g.O, g.parts);
  cu_sum_parts(Weights{ g }, sums, g.parts, g.partial);
}

}  // namespace

MN_KERNEL(conv2d, forward, backward)
