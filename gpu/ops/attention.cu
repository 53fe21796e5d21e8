/* attention.cu -- attention, forward and backward: softmax.cuh for rows that see one run of keys up to their own.
** Gradients of the positions r have their own tiles, 64 distances against all rows that look that far back; many
** environments are summed in groups, so that the order of blocks has no effect. */
#include "lib/column_sums.cuh"
#include "runtime/strided_copy.cuh"
#include "lib/softmax_step.cuh"
extern "C" {
#include "attention/causal_attention.h"
}

namespace {

enum { START_THREADS = 32, GROUPS = 8 };

/* ---- where episodes begin ---- */

struct Starts {
  const uint8_t *done;
  const float *mask;
  int32_t *start, *carried;      /* as the op's outputs */
  int B, M, t0, t1;
};

/* A warp for each environment: start[t] is the last reset up to t, or -1. */
CU_KERNEL find_starts(const Starts &s) {
  const int b = (int)blockIdx.x, lane = (int)threadIdx.x;
  int before = s.t0 ? s.start[(long)(s.t0 - 1) * s.B + b] : -1;
  for (int t = s.t0 + lane; t - lane < s.t1; t += START_THREADS) {
    const long at = (long)t * s.B + b;
    int last = t < s.t1 && s.done && s.done[at] ? t : -1;
    for (int by = 1; by < START_THREADS; by *= 2) {
      const int other = __shfl_up_sync(0xffffffffu, last, by);
      if (lane >= by) last = cu_max(last, other);
    }
    last = cu_max(last, before);
    before = __shfl_sync(0xffffffffu, last, START_THREADS - 1);
    if (t < s.t1) s.start[at] = last;
  }
  if (s.t0) return;
  int first = s.M, blocked_last = -1;      /* of the carried keys: the first that is free, the last that is blocked */
  for (int j = lane; j < s.M; j += START_THREADS) {
    const bool blocked = s.mask && s.mask[(long)j * s.B + b] != 0;
    if (blocked) blocked_last = j;
    else first = cu_min(first, j);
  }
  for (int by = START_THREADS / 2; by > 0; by /= 2) {
    first = cu_min(first, __shfl_xor_sync(0xffffffffu, first, by));
    blocked_last = cu_max(blocked_last, __shfl_xor_sync(0xffffffffu, blocked_last, by));
  }
  if (lane) return;
  s.carried[2 * b] = first;
  s.carried[2 * b + 1] = blocked_last > first;
}

/* ---- what a row sees ---- */

template <bool POSITIONS> struct Causal : cu_attention {
  static constexpr bool XL = POSITIONS, SKIPS = false;
  const int32_t *start, *carried;
  const float *mask;
  int B, M, window;
  struct Row { int low, last; };                       /* keys low .. last, but for blocked ones */

  __device__ __forceinline__ Row row(int i, int b, int) const {
    if (i >= t1) return { INT32_MAX, -1 };
    const int began = start[(long)i * B + b], low = began < 0 ? carried[2 * b] : M + began;
    return { cu_max(low, M + i - window), M + i };
  }
  __device__ __forceinline__ float sees(const Row &row, int j, int b, int) const {
    if (j < row.low || j > row.last) return 0;
    return mask && j < M && mask[(long)j * B + b] != 0 ? 0 : 1;
  }
  __device__ __forceinline__ bool touches(const Row &row, int j, int n, int) const {
    return row.low < j + n && row.last >= j;
  }
  __device__ __forceinline__ cu_span keys(int i, int n, int b, int h) const {
    return { row(i, b, h).low, M + cu_min(i + n, t1) };
  }
  __device__ __forceinline__ cu_span rows(int j, int n) const {
    return { cu_max(j - M, 0), (int)cu_min((long)j + n - M + window, (long)t1) };
  }
};

/* ---- gradients of positions ---- */

/* Of 64 distances for one head, by a group of environments: parts [groups,distances,H,K]. */
template <class S> CU_KERNEL position_gradients(const S &s, int groups, float *parts) {
  const int tiles = (int)gridDim.x / (s.H * groups), at = (int)blockIdx.x / tiles, h = at % s.H, group = at / s.H;
  const int e0 = (int)blockIdx.x % tiles * CU_TILE, d0 = (int)blockIdx.y * CU_TILE, K = s.K;
  float w[CU_EACH][CU_EACH], g[CU_EACH][CU_EACH];
  float4 sum[CU_EACH];
  int turn = 0;
CU_UNROLL
  for (int r = 0; r < CU_EACH; r++) sum[r] = { 0, 0, 0, 0 };
  for (int b = (int)((long)group * s.B / groups); b < (int)((long)(group + 1) * s.B / groups) && e0 <= s.window; b++)
    for (int i0 = cu_max(e0 - s.M, 0); i0 < s.t1; i0 += CU_TILE) {
      const int j0 = s.M + i0 - e0 - (CU_TILE - 1);      /* key of the band's row 0: row x is that of i - e = x - 63 */
      const typename S::Row mine = s.row(i0 + (int)threadIdx.x % CU_TILE, b, h);
      if (!cu_any(mine.last - e0 >= mine.low, &turn)) continue;
CU_UNROLL
      for (int r = 0; r < CU_EACH; r++)
CU_UNROLL
        for (int c = 0; c < CU_EACH; c++) w[r][c] = g[r][c] = 0;
      for (int d = 0; d < K; d += CU_DEPTH) {
        __syncthreads();
        cu_operand(CU_AT_A, CU_TILE, d, K, s.wide_k, NULL, [&](int e) { return s.position(e0 + e, h); });
        cu_operand(CU_AT_B, CU_TILE, d, K, s.wide_k, s.of_head(s.xl.w, h), [&](int i) { return s.query(i0 + i, b, h); });
        cu_operand(CU_AT_W, CU_TILE, d, K, s.wide_k, s.of_head(s.u, h), [&](int i) { return s.query(i0 + i, b, h); });
        cu_operand(CU_AT_R, CU_BAND, d, K, s.wide_k, NULL, [&](int x) { return s.key(j0 + x, b, h); });
        __syncthreads();
        cu_band_dots<false>(CU_AT_W, CU_AT_R, w);
        cu_dots(CU_AT_A, CU_AT_B, w);
      }
      for (int d = 0; d < s.V; d += CU_DEPTH) {
        __syncthreads();
        cu_operand(CU_AT_W, CU_TILE, d, s.V, s.wide_v, NULL,
                   [&](int i) { return i0 + i < s.t1 ? s.dy + s.at.at(i0 + i, b, h) * s.V : NULL; });
        cu_operand(CU_AT_R, CU_BAND, d, s.V, s.wide_v, NULL, [&](int x) { return s.value(j0 + x, b, h); });
        __syncthreads();
        cu_band_dots<false>(CU_AT_W, CU_AT_R, g);
      }
CU_UNROLL
      for (int c = 0; c < CU_EACH; c++) {
        const int i = i0 + cu_tx() + c * CU_SIDE;
        const typename S::Row row = s.row(i, b, h);
        const long line = s.at.at(cu_min(i, s.t1 - 1), b, h);
        const float top = s.stats[2 * line], by = s.stats[2 * line + 1], left = s.left[line];
CU_UNROLL
        for (int r = 0; r < CU_EACH; r++) {
          const float times = s.sees(row, s.M + i - (e0 + cu_ty() + r * CU_SIDE), b, h);
          g[r][c] = cu_undo(times > 0 ? mn_expf(s.score(w[r][c]) - top) * by : 0, g[r][c], left);
        }
      }
      cu_put_weights(g);
      __syncthreads();
      cu_rows(d0, K, s.wide_k, s.of_head(s.xl.w, h), [&](int i) { return s.query(i0 + i, b, h); });
      __syncthreads();
      cu_mix(false, sum);
    }
CU_UNROLL
  for (int r = 0; r < CU_EACH; r++) {
    const int e = e0 + cu_ty() + r * CU_SIDE;
    const float4 x = { sum[r].x * s.scale, sum[r].y * s.scale, sum[r].z * s.scale, sum[r].w * s.scale };
    if (e < s.xl.distances)
      cu_write4(parts + (((long)group * s.xl.distances + e) * s.H + h) * K, d0 + 4 * cu_tx(), K, s.wide_k, x);
  }
}

/* ---- the op ---- */

template <bool XL> static Causal<XL> open_call(const mn_call *c) {
  mn_softmax m;
  mn_softmax_open(&m, c, "attention");
  Causal<XL> s = {};
  s.q = c->in[SM_Q].data, s.u = c->in[SM_U].data;
  s.y = c->out[SM_Y].data, s.stats = c->out[SM_STATS].data;
  s.at = { (long)m.B * m.H, m.H, 1 };
  s.part[0] = { c->in[SM_MK].data, c->in[SM_MV].data, c->in[SM_MK].grad, c->in[SM_MV].grad, s.at, m.M };
  s.part[1] = { c->in[SM_K].data, c->in[SM_V].data, c->in[SM_K].grad, c->in[SM_V].grad, s.at, m.T };
  s.parts = 2, s.H = m.H, s.heads = m.B * m.H, s.K = m.K, s.V = m.V, s.t0 = c->t0, s.t1 = c->t1;
  s.xl = { c->in[SM_W].data, c->in[SM_R].data, m.M, XL ? m.E : 0 };
  s.scale = m.scale, s.most = MN_SCORE_MOST;
  s.start = c->out[SM_START].i32, s.carried = c->out[SM_CARRIED].i32, s.mask = c->in[SM_MASK].data;
  s.B = m.B, s.M = m.M, s.window = m.window;
  return s;
}

template <bool XL> static void run_forward(mn_call *c) {
  Causal<XL> s = open_call<XL>(c);
  cu_attention_widths(&s, s.xl.w, s.xl.r);
  const Starts starts = { c->in[SM_DONE].u8, s.mask, c->out[SM_START].i32, c->out[SM_CARRIED].i32, s.B, s.M, s.t0, s.t1 };
  if (c->t0 == 0) cu_zero(c->out[SM_PACKED].data, sizeof(float) * (size_t)c->out[SM_PACKED].n);        /* neither is needed here */
  if (c->t0 == 0) cu_zero(c->out[SM_HALVES].data, sizeof(float) * (size_t)c->out[SM_HALVES].n);
  CU_LAUNCH(find_starts, (unsigned)s.B, START_THREADS, 0, starts);
  cu_attention_forward(s);
}

static void forward(mn_call *c) {
  if (c->in[SM_R].data) run_forward<true>(c);
  else run_forward<false>(c);
}

static void run_positions(mn_call *c, Causal<true> s, float *dr) {
  const int groups = cu_min(s.B, (int)GROUPS);
  const long n = (long)s.xl.distances * s.H * s.K;
  float *parts = groups > 1 ? mn_scratch(c->ctx, 3, groups * n) : dr;
  s.wide_k = s.wide_k && cu_quads(4, parts);
  const dim3 grid(cu_tiles(s.xl.distances) * (unsigned)(s.H * groups), cu_tiles(s.K));
  CU_LAUNCH(position_gradients<Causal<true>>, grid, CU_THREADS, CU_TILE_SHARED, s, groups, parts);
  if (groups > 1) cu_column_sums(c, 2, cu_given_rows{ parts, dr, n }, groups, n);
}

template <bool XL> static void run_backward(mn_call *c) {
  Causal<XL> s = open_call<XL>(c);
  const long rows = (long)s.B * cu_tiles(s.t1), HK = (long)s.H * s.K;
  float *du = c->in[SM_U].grad, *dw = XL ? c->in[SM_W].grad : NULL, *dr = XL ? c->in[SM_R].grad : NULL;
  s.dy = c->out[SM_Y].grad, s.dq = c->in[SM_Q].grad;
  s.left = mn_scratch(c->ctx, 0, (long)s.t1 * s.heads);
  float *parts = mn_scratch(c->ctx, 1, 2 * rows * HK);
  s.du = du ? parts : NULL, s.dw = dw ? parts + rows * HK : NULL;
  cu_attention_widths(&s, s.xl.w, s.xl.r);
  cu_attention_backward(s);
  if (du) cu_column_sums(c, 2, cu_given_rows{ s.du, du, HK }, rows, HK);
  if (dw) cu_column_sums(c, 2, cu_given_rows{ s.dw, dw, HK }, rows, HK);
  if constexpr (XL) if (dr) run_positions(c, s, dr);
}

static void backward(mn_call *c) {
  if (c->in[SM_R].data) run_backward<true>(c);
  else run_backward<false>(c);
}

}  // namespace

MN_KERNEL(attention, forward, backward)
