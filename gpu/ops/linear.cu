/* linear.cu -- kernels of linear and head_linear: y_h = act(x_h w_h^T + b_h), of one head or of many.
** The few rows of acting use one kernel (skinny_gemm.cuh), which reads every weight once and applies bias and activation;
** more rows use a BLAS, and a second pass for bias and activation.  A layer's projections of the same
** x are neighbours in a plan: they share that kernel, or that pass, and its backward.  Weights are not packed here as
** on the CPU: the lanes of a warp read rows of w best. */
#include "lib/column_sums.cuh"
#include "lib/skinny_gemm.cuh"
#include "runtime/gemm.cuh"
extern "C" {
#include "numerics/activation.h"
}

namespace {

enum { MOST = 12 };              /* maps at once */

struct Part {
  const float *w, *b;
  float *to;
  int R, act;
  long warps;                    /* those before its own */
  cu_divisor P;                  /* H*R */
};

/* Maps of one x: head h takes columns h*I .. of x and rows h*R .. of w, and makes columns h*R .. of y. */
struct Maps {
  const float *x;
  int H, I, n;
  long N;
  Part part[MOST];
};

static Maps open_call(const mn_call *c, int H, int P) {
  Maps a = { c->in[0].data, H, DIM(c, 'I'), 1, 0, {} };
  a.N = c->in[0].n / ((long)H * a.I);
  a.part[0] = { c->in[1].data, c->in[2].data, c->out[0].data, P / H, (int)OPT(c, 0), 0, cu_divisor(P) };
  return a;
}

/* A warp: OUTS columns of one head of one map, a tile of rows. */
template <int ROWS, int OUTS>
CU_KERNEL few_rows(const Maps &a, bool fours) {
  long warp = (long)blockIdx.x * CU_FEW_WARPS + threadIdx.x / 32;
  int k = a.n - 1;
  while (warp < a.part[k].warps) k--;
  const Part p = a.part[k];
  const long groups = (p.R + OUTS - 1) / OUTS;
  warp -= p.warps;
  const int h = (int)(warp / groups), o = (int)(warp % groups) * OUTS, lane = (int)threadIdx.x % 32;
  const int first = (int)blockIdx.y * ROWS;
  if (h >= a.H) return;
  const float *w[OUTS];
  CU_UNROLL
  for (int j = 0; j < OUTS; j++) w[j] = p.w + ((long)h * p.R + cu_min(o + j, p.R - 1)) * a.I;
  float sums[32] = {};
  cu_few_dots<ROWS, OUTS>(a.x + ((long)first * a.H + h) * a.I, (long)a.H * a.I, (int)a.N - first, w, a.I, fours, sums);
  const float sum = cu_few_sum(sums);
  const int j = o + lane / ROWS, n = first + lane % ROWS;
  if (j >= p.R || n >= a.N) return;
  const long at = (long)h * p.R + j;
  p.to[(long)n * a.H * p.R + at] = mn_activated(p.b ? sum + p.b[at] : sum, p.act);
}

/* Bias and activation of the products; a row of blocks for each map. */
CU_KERNEL finish(const Maps &a) {
  const Part p = a.part[blockIdx.y];
  if (!p.b && p.act == MN_NONE) return;
  CU_LOOP(i, a.N * a.H * p.R) {
    long at;
    p.P.divide(i, &at);
    p.to[i] = mn_activated(p.b ? p.to[i] + p.b[at] : p.to[i], p.act);
  }
}

template <int ROWS, int OUTS> static void launch_few(Maps &a) {
  long warps = 0;
  bool fours = cu_fours(a.x, a.I, a.I);
  for (int k = 0; k < a.n; k++) {
    a.part[k].warps = warps;
    warps += a.H * cu_parts(a.part[k].R, OUTS);
    fours = fours && cu_fours(a.part[k].w, a.I, a.I);
  }
  const dim3 grid((unsigned)cu_parts(warps, CU_FEW_WARPS), (unsigned)cu_parts(a.N, ROWS));
  CU_LAUNCH((few_rows<ROWS, OUTS>), grid, CU_FEW_THREADS, 0, a, fours);
}

static void forward(mn_call *c, Maps a) {
  if (a.N <= 8) return launch_few<8, 4>(a);
  if (a.N <= CU_FEW) return launch_few<16, 2>(a);
  long longest = 0;
  for (int k = 0; k < a.n; k++) {
    const Part p = a.part[k];
    cu_gemm_batch(c, false, true, (int)a.N, p.R, a.I, a.x, a.H * a.I, p.w, a.I, p.to, a.H * p.R, false, a.I,
                  (long)p.R * a.I, p.R, a.H);
    if (p.b || p.act != MN_NONE) longest = cu_max(longest, a.N * a.H * p.R);
  }
  if (longest) CU_LAUNCH(finish, dim3(cu_blocks(longest), (unsigned)a.n), CU_THREADS, 0, a);
}

/* Does this call use anything that the other makes? */
static bool needs(const mn_call *c, const mn_call *other) {
  const float *y = other->out[0].data;
  for (int i = 0; i < 3; i++)
    if (c->in[i].data && c->in[i].data < y + other->out[0].n && c->in[i].data + c->in[i].n > y) return true;
  return false;
}

/* How many of n calls are maps of the same x and nothing else to each other. */
static int alike(mn_call *const *calls, int n) {
  const mn_call *a = calls[0];
  for (int k = 1; k < n; k++) {
    const mn_call *c = calls[k];
    if (k == MOST || c->in[0].data != a->in[0].data || c->in[0].n != a->in[0].n || DIM(c, 'I') != DIM(a, 'I')) return k;
    for (int i = 0; i < k; i++) if (needs(c, calls[i]) || needs(calls[i], c)) return k;
  }
  return n;
}

/* ---- backward ---- */

/* Gradients back through the activations, kept in dz where there is one, and the sums of their columns: those of
** all maps side by side. */
struct Back { const float *y, *dy; float *dz, *db; int first, P, act; bool add; };
struct Biases {
  int n;
  Back part[MOST];
  __device__ __forceinline__ const Back &of(long col) const {
    int k = n - 1;
    while (col < part[k].first) k--;
    return part[k];
  }
  __device__ __forceinline__ float term(long row, long col) const {
    const Back &p = of(col);
    const long i = row * p.P + col - p.first;
    if (!p.dz) return p.dy[i];
    return p.dz[i] = mn_undone(p.y[i], p.dy[i], p.act);
  }
  __device__ __forceinline__ void put(long col, float sum) const {
    const Back &p = of(col);
    if (p.db) cu_give(p.db + col - p.first, sum, p.add);
  }
};

static void backward(mn_call *const *calls, int n, int H) {
  Biases all = {};
  const float *dz[MOST];
  const Maps a = open_call(calls[0], H, H);          /* its x, I and N */
  long room = 0;
  for (int k = 0; k < n; k++) if (OPT(calls[k], 0) != MN_NONE) room += calls[k]->out[0].n;
  float *z = room ? mn_scratch(calls[0]->ctx, 0, room) : NULL;
  int cols = 0;
  for (int k = 0; k < n; k++) {
    mn_call *c = calls[k];
    const int P = (int)(c->out[0].n / a.N), act = (int)OPT(c, 0);
    dz[k] = c->out[0].grad;
    if (act == MN_NONE && !c->in[2].grad) continue;
    Back &p = all.part[all.n++];
    p = { c->out[0].data, c->out[0].grad, NULL, c->in[2].grad, cols, P, act, mn_accumulates(c, 2) };
    if (act != MN_NONE) dz[k] = p.dz = z, z += c->out[0].n;
    cols += P;
  }
  if (cols) cu_column_sums(calls[0], 1, all, a.N, cols);
  for (int k = 0; k < n; k++) {
    mn_call *c = calls[k];
    const int N = (int)a.N, I = a.I, P = (int)(c->out[0].n / a.N), R = P / H;
    const long weights = (long)R * I;
    float *dx = c->in[0].grad, *dw = c->in[1].grad;
    if (dx) cu_gemm_batch(c, false, false, N, I, R, dz[k], P, c->in[1].data, I, dx, H * I, mn_accumulates(c, 0), R, weights, I, H);
    if (dw) cu_gemm_batch(c, true, false, R, I, N, dz[k], P, a.x, H * I, dw, I, mn_accumulates(c, 1), R, I, weights, H);
  }
}

/* ---- the two ops ---- */

static void linear(mn_call *c) { forward(c, open_call(c, 1, DIM(c, 'O'))); }
static void linear_back(mn_call *c) { backward(&c, 1, 1); }
static void head_linear(mn_call *c) { forward(c, open_call(c, DIM(c, 'H'), DIM(c, 'P'))); }
static void head_linear_back(mn_call *c) { backward(&c, 1, DIM(c, 'H')); }

/* Back, what goes through the activations is kept for all of them at once; that is not to be much. */
static int linear_together(mn_call *const *calls, int n, bool back) {
  const long most = 1L << 26;
  long kept = 0;
  n = alike(calls, n);
  for (int k = 0; back && k < n; k++) if ((kept += calls[k]->out[0].n) > most) n = k;
  if (n < 2) return 0;
  if (back) return backward(calls, n, 1), n;
  Maps a = open_call(calls[0], 1, DIM(calls[0], 'O'));
  for (; a.n < n; a.n++) a.part[a.n] = open_call(calls[a.n], 1, DIM(calls[a.n], 'O')).part[0];
  forward(calls[0], a);
  return n;
}

}  // namespace

MN_KERNEL_FUSED(linear, linear, linear_back, linear_together)
MN_KERNEL(head_linear, head_linear, head_linear_back)
