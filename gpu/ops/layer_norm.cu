/* layer_norm.cu -- kernels of layer_norm.  A warp takes a row and keeps it in registers, so memory is read once;
** longer rows are read again from the cache.  Backward does the same and sums the gradients of weight and bias
** in registers too, a part for each block. */
#include "lib/column_sums.cuh"

namespace {

enum { WARPS = 4, THREADS = 32 * WARPS };
enum { ROWS = 4, BLOCKS = 512 };  /* backward: a warp takes at least ROWS rows; BLOCKS blocks fill a GPU */

struct Norm {
  const float *x, *weight, *bias, *dy;
  float *y, *stats, *dx, *dweight, *dbias, *partial;      /* partial: [blocks, 2, D] */
  long rows;
  int D;
  float eps;
  bool add_x, add_weight, add_bias;
};

static __device__ __forceinline__ long first_row() { return (long)blockIdx.x * WARPS + threadIdx.x / 32; }
static __device__ __forceinline__ long next_row(long row) { return row + (long)gridDim.x * WARPS; }

/* What a lane holds of a row: KEPT numbers in registers, 32 apart, or for KEPT = 0 nothing, and any length. */
template <int KEPT> struct Row {
  const float *at;
  float kept[KEPT ? KEPT : 1];
  __device__ __forceinline__ Row(const float *at_, int D) : at(at_) {
    CU_UNROLL
    for (int k = 0; k < KEPT; k++) {
      const int i = (int)threadIdx.x % 32 + 32 * k;
      kept[k] = i < D ? at[i] : 0.0f;
    }
  }
  __device__ __forceinline__ float get(int i, int k) const { return KEPT ? kept[k] : at[i]; }
};

/* for each number i of a row of D that this lane has, the k-th. */
#define EACH(i, k, D) \
  CU_UNROLL for (int k = 0; k < (KEPT ? KEPT : ((D) + 31) / 32); k++) \
    for (int i = (int)threadIdx.x % 32 + 32 * k, once = 1; once && i < (D); once = 0)

template <int KEPT> CU_KERNEL norm(const Norm &a) {
  for (long row = first_row(); row < a.rows; row = next_row(row)) {
    const Row<KEPT> x(a.x + row * a.D, a.D);
    float sum = 0, squares = 0;
    EACH(i, k, a.D) sum += x.get(i, k);
    const float mean = cu_warp_sum(sum) / (float)a.D;
    EACH(i, k, a.D) {
      const float d = x.get(i, k) - mean;
      squares = fmaf(d, d, squares);
    }
    const float scale = 1 / sqrtf(cu_warp_sum(squares) / (float)a.D + a.eps);
    EACH(i, k, a.D) a.y[row * a.D + i] = fmaf((x.get(i, k) - mean) * scale, a.weight[i], a.bias[i]);
    if (threadIdx.x % 32 == 0) a.stats[2 * row] = mean, a.stats[2 * row + 1] = scale;
  }
}

/* With n = (x - mean) scale and g = dy weight: dx = scale (g - mean of g - n * mean of g n). */
template <int KEPT> CU_KERNEL norm_back(const Norm &a) {
  const bool params = KEPT && a.partial;
  float dweight[KEPT ? KEPT : 1] = {}, dbias[KEPT ? KEPT : 1] = {};
  for (long row = first_row(); row < a.rows; row = next_row(row)) {
    const Row<KEPT> x(a.x + row * a.D, a.D), dy(a.dy + row * a.D, a.D);
    const float mean = a.stats[2 * row], scale = a.stats[2 * row + 1];
    float sum = 0, along = 0;
    EACH(i, k, a.D) {
      const float d = dy.get(i, k), n = (x.get(i, k) - mean) * scale, g = d * a.weight[i];
      sum += g;
      along = fmaf(g, n, along);
      if (params) dweight[k] = fmaf(d, n, dweight[k]), dbias[k] += d;
    }
    if (!a.dx) continue;
    sum = cu_warp_sum(sum) / (float)a.D;
    along = cu_warp_sum(along) / (float)a.D;
    EACH(i, k, a.D) {            /* of one number y is the bias, whatever x is; rounding would say otherwise */
      const float n = (x.get(i, k) - mean) * scale;
      cu_give(a.dx + row * a.D + i, a.D == 1 ? 0 : scale * (dy.get(i, k) * a.weight[i] - sum - n * along), a.add_x);
    }
  }
  if (!params) return;           /* the same for the whole block */
  cu_smem<float> other = CU_SHARED(float, 0);                          /* [WARPS, 2, KEPT, 32] */
  const int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32;
  CU_UNROLL
  for (int k = 0; k < KEPT; k++) {
    other[((warp * 2 + 0) * KEPT + k) * 32 + lane] = dweight[k];
    other[((warp * 2 + 1) * KEPT + k) * 32 + lane] = dbias[k];
  }
  __syncthreads();
  for (int i = (int)threadIdx.x; i < 2 * a.D; i += THREADS) {
    const int which = i >= a.D, at = which * KEPT * 32 + i - which * a.D;
    float sum = 0;
    for (int w = 0; w < WARPS; w++) sum += other[w * 2 * KEPT * 32 + at];
    a.partial[(long)blockIdx.x * 2 * a.D + i] = sum;
  }
}

/* Columns 0 .. D-1 are the weight's gradient, D .. 2D-1 the bias's. */
struct Parameters {
  Norm a;
  __device__ __forceinline__ float term(long row, long col) const {
    if (col >= a.D) return a.dy[row * a.D + col - a.D];
    return a.dy[row * a.D + col] * ((a.x[row * a.D + col] - a.stats[2 * row]) * a.stats[2 * row + 1]);
  }
  __device__ __forceinline__ void put(long col, float sum) const {
    if (col < a.D && a.dweight) cu_give(a.dweight + col, sum, a.add_weight);
    if (col >= a.D && a.dbias) cu_give(a.dbias + col - a.D, sum, a.add_bias);
  }
};

static Norm open_call(const mn_call *c) {
  Norm a = {};
  a.x = c->in[0].data, a.weight = c->in[1].data, a.bias = c->in[2].data, a.dy = c->out[0].grad;
  a.y = c->out[0].data, a.stats = c->out[1].data;
  a.dx = c->in[0].grad, a.dweight = c->in[1].grad, a.dbias = c->in[2].grad;
  a.D = DIM(c, 'D'), a.rows = c->in[0].n / a.D, a.eps = (float)OPT(c, 0);
  a.add_x = mn_accumulates(c, 0), a.add_weight = mn_accumulates(c, 1), a.add_bias = mn_accumulates(c, 2);
  return a;
}

static void forward(mn_call *c) {
  const Norm a = open_call(c);
  const unsigned blocks = cu_blocks(a.rows * 32);
  if (a.D <= 256)       CU_LAUNCH(norm<8>, blocks * 2, THREADS, 0, a);
  else if (a.D <= 1024) CU_LAUNCH(norm<32>, blocks * 2, THREADS, 0, a);
  else                  CU_LAUNCH(norm<0>, blocks * 2, THREADS, 0, a);
}

template <int KEPT> static void launch_back(mn_call *c, Norm a) {
  const long blocks = cu_min(cu_parts(a.rows, WARPS * ROWS), (long)BLOCKS);
  if (a.dweight || a.dbias) a.partial = mn_scratch(c->ctx, 0, blocks * 2 * a.D);
  CU_LAUNCH(norm_back<KEPT>, (unsigned)blocks, THREADS, sizeof(float) * WARPS * 2 * KEPT * 32, a);
  if (a.partial) cu_sum_parts(Parameters{ a }, 2L * a.D, (int)blocks, a.partial);
}

static void backward(mn_call *c) {
  const Norm a = open_call(c);
  if (a.D <= 256) return launch_back<8>(c, a);
  if (a.D <= 512) return launch_back<16>(c, a);
  if (a.dx) CU_LAUNCH(norm_back<0>, cu_blocks(a.rows * 32) * 2, THREADS, 0, a);
  if (a.dweight || a.dbias) cu_column_sums(c, 0, Parameters{ a }, a.rows, 2L * a.D);
}

}  // namespace

MN_KERNEL(layer_norm, forward, backward)
