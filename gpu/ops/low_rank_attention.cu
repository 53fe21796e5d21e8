/* low_rank_attention.cu -- gated linear attention whose matrix is stored as a product of two thin ones (low_rank.cuh).  A token
** takes some n^2 (K + V) operations and, if no column is free, a decomposition of an n by n matrix by one warp, which takes
** most of the time: tens of microseconds per token, for any number of heads. */
#include "lib/low_rank.cuh"
#include "lib/svd.cuh"

/* Inner products of the n rows of x, two at a time to a warp. */
static __device__ void gram(int n, int width, long row, const float *x, double *G) {
  for (int m = (int)threadIdx.x / 32; m < n * n; m += LOW_WARPS) {
    const int i = m / n, j = m % n;
    if (j > i) continue;
    double sum = 0;
    for (int k = (int)threadIdx.x % 32; k < width; k += 32) sum += (double)x[i * row + k] * (double)x[j * row + k];
    for (int by = 16; by > 0; by >>= 1) sum += __shfl_xor_sync(0xffffffffu, sum, by);
    if (threadIdx.x % 32 == 0) G[i * n + j] = G[j * n + i] = sum;
  }
}

/* A free column takes the new one in; else the nearest product of r columns does.  busy: r words. */
static __device__ void find_cut(const LowRank &g, const LowToken &x, const LowCut &to, double *work, cu_smem<int> busy) {
  const int tid = (int)threadIdx.x, r = g.r, n = g.n;
  int free_one = 0;
  __syncthreads();
  for (int c = tid / 32; c < r; c += LOW_WARPS) {
    bool any = false;
    for (int i = tid % 32; i < g.a.V; i += 32) any |= x.U[(long)c * g.Vp + i] != 0;
    for (int j = tid % 32; j < g.a.K; j += 32) any |= x.W[(long)c * g.Kp + j] != 0;
    const bool all = __any_sync(0xffffffffu, any);
    if (tid % 32 == 0) busy[c] = all;
  }
  __syncthreads();
  while (free_one < r && busy[free_one]) free_one++;
  if (free_one < r) {
    for (int m = tid; m < r * n; m += LOW_THREADS) to.A[m] = to.B[m] = m % n == (m / n == free_one ? r : m / n) ? 1.0f : 0.0f;
    for (int i = tid; i < r; i += LOW_THREADS) to.root[i] = 0.0f;
    return;
  }
  gram(n, g.a.V, g.Vp, x.U, work);
  gram(n, g.a.K, g.Kp, x.W, work + n * n);
  __syncthreads();
  cu_svd_truncate(n, r, work, work + n * n, to.A, to.B, to.root, work + 2 * n * n);
}

static long svd_floats(const LowRank &g) { return 2 * (2L * g.n * g.n + cu_svd_work(g.n)); }

CU_KERNEL low_forward(const LowRank &g, const LowTensors &first, const LowTensors &last, float *y,
                      float *scratch, long each) {
  const int bh = g.p.head + (int)blockIdx.x;
  float *mine = scratch + blockIdx.x * each;
  double *work = (double *)mine;
  mine += each - low_size(g) - low_token_size(g);
  const LowState state = low_state(g, mine);
  const LowToken x = low_token(g, mine + low_size(g));
  cu_smem<float> part = CU_SHARED(float, 0);
  cu_smem<int> busy = CU_SHARED(int, sizeof(float) * LOW_WARPS);
  low_take(g, bh, first, state);
  for (int t = g.p.t0; t < g.p.t1; t++) {
    const long token = cu_token(g.p, t, bh);
    const LowCut by = low_cut(g, token);
    float *saved = t % CU_L ? NULL : low_saved(g, bh, t);
    __syncthreads();
    for (long m = threadIdx.x; saved && m < low_size(g); m += LOW_THREADS) saved[m] = state.U[m];
    __syncthreads();
    const float z = low_enter(g, bh, t, state, x, state.s, part);
    const float den = cu_den(g.a.normalise, g.a.scale, g.a.eps, g.a.den_clamp, z).value;
    find_cut(g, x, by, work, busy);
    low_apply(g, x, by, state);
    for (int i = (int)threadIdx.x; i < g.a.V; i += LOW_THREADS) {
      float num = 0.0f;
      for (int c = 0; c < g.r; c++) num = fmaf(x.kappa[c], state.U[(long)c * g.Vp + i], num);
      y[token * g.a.V + i] = num / den;
    }
  }
  low_give(g, bh, state, last);
}

LowRank cu_low_rank(const mn_call *c, int t0, int t1, mn_attention *of) {
  mn_attention &a = *of;
  mn_attention_open(&a, c, "low_rank_attention", 1);
  LowRank g = {};
  g.a = cu_gated_inputs(&a);
  g.p.K = g.a.K;
  cu_chunks_set(&g.p, c, false, false, t0, t1);
  g.r = (int)OPT(c, 0), g.n = g.r + 1;
  g.Kp = a.Kp, g.Vp = a.Vp;
  g.cuts = c->out[OUT_CUTS].data, g.saved = c->out[OUT_SAVED].data;
  return g;
}

static void forward(mn_call *c) {
  mn_attention of;
  LowRank g = cu_low_rank(c, c->t0, c->t1, &of);
  const LowTensors given = { c->in[IN_U].data, c->in[IN_W].data, c->in[IN_S].data };
  const LowTensors running = { c->out[OUT_U].data, c->out[OUT_W].data, c->out[OUT_S].data };
  const long each = (svd_floats(g) + low_size(g) + low_token_size(g) + 15) / 16 * 16;
  g.p.heads = (int)cu_max(1L, cu_min((long)g.a.B * g.a.H, 3 * CU_SLICE / each));
  float *scratch = mn_scratch(c->ctx, 0, each * g.p.heads);
  CU_SLICES(g.p)
    CU_LAUNCH(low_forward, (unsigned)g.p.heads, LOW_THREADS, sizeof(float) * (size_t)(LOW_WARPS + g.r), g,
              c->t0 ? running : given, running, c->out[OUT_Y].data, scratch, each);
}

MN_KERNEL(low_rank_attention, forward, cu_low_rank_backward)
