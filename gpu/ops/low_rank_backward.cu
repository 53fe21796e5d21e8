/* low_rank_backward.cu -- backward of low_rank_attention (engine/ops/low_rank_attention.c has the equations): recomputes sixteen
** tokens from a checkpoint, with the saved truncations, then runs backward; some 4 n r (K + V) operations per token. */
#include "lib/gated_step.cuh"
#include "lib/low_rank.cuh"

struct LowBack {
  const float *y, *dy;
  CuValueGrads values;
  float *keys;                   /* gradients of the features, [16,3,K] a chunk of the slice */
  float *scratch;
  long each;                     /* floats of it that a head has */
};

/* What a token's way back needs besides: gradients of num and of kappa, of z; what was discarded, [r,n] each. */
struct Room { float *dnum, *dkappa, *along, *across_U, *across_W; };

static __host__ __device__ inline long room_size(const LowRank &g) {
  return g.Vp + (g.r + 15) / 16 * 16 + (long)g.r * g.r + 2L * g.r * g.n;
}

/* across[i][c] = d_i . (x_c - sum_k A[k][c] y_k) / sigma_i: rows x before the cut, y after it, d the gradient of y. */
static __device__ void discarded_back(const LowRank &g, int width, long row, const LowCut &by, const float *A, const float *x,
                                      const float *y, const float *d, float *along, float *across) {
  const int lane = (int)threadIdx.x % 32;
  for (int i = (int)threadIdx.x / 32; i < g.r; i += LOW_WARPS) {
    const float weight = by.root[i] * by.root[i];
    for (int k = 0; k < g.r; k++) {
      const float dot = low_dot(width, d + i * row, y + k * row);
      if (lane == 0) along[i * g.r + k] = dot;
    }
    __syncwarp();
    for (int c = 0; c < g.n; c++) {
      float sum = low_dot(width, d + i * row, x + c * row);
      for (int k = 0; k < g.r; k++) sum = fmaf(-A[k * g.n + c], along[i * g.r + k], sum);
      if (lane == 0) across[i * g.n + c] = weight == 0 ? 0.0f : sum * weight;
    }
  }
}

/* Column j of one factor: the gradient of its n rows before the cut from those after it, and of what they were scaled by.
** d becomes the gradient of the rows before the token.  Returns that of the new number; *ddecay is added to. */
static __device__ __forceinline__ float cut_back(const LowRank &g, int j, long row, bool reset, const float *A,
                                                 const float *across, const float *after, const float *before, float decay,
                                                 float *d, float *rows, float *ddecay) {
  float fresh = 0.0f;
  for (int c = 0; c < g.n; c++) {
    float sum = 0.0f;
    for (int i = 0; i < g.r; i++)
      sum = fmaf(d[i * row + j], A[i * g.n + c], fmaf(after[i * row + j], across[i * g.n + c], sum));
    if (c < g.r) rows[c * row + j] = sum;
    else fresh = sum;
  }
  for (int c = 0; c < g.r; c++) {
    const float sum = rows[c * row + j];
    if (!reset) *ddecay = fmaf(sum, before[c * row + j], *ddecay);
    d[c * row + j] = reset ? 0.0f : sum * decay;
  }
  return fresh;
}

static __device__ void token_back(const LowRank &g, const LowBack &b, int bh, int t, float z, const LowToken &x,
                                  const LowState &before, const LowState &after, const LowState &d, const Room &room,
                                  cu_smem<float> part) {
  const int tid = (int)threadIdx.x, r = g.r, K = g.a.K, V = g.a.V;
  const long token = cu_token(g.p, t, bh);
  const LowCut by = low_cut(g, token);
  const bool reset = low_reset(g, t, bh);
  const CuDenominator den = cu_den(g.a.normalise, g.a.scale, g.a.eps, g.a.den_clamp, z);
  float along = 0.0f;
  for (int i = tid; i < V; i += LOW_THREADS) {
    const float dy = b.dy ? b.dy[token * V + i] : 0.0f;
    room.dnum[i] = dy / den.value;
    along = fmaf(dy, b.y[token * V + i], along);
  }
  const float dz = -den.slope * cu_block_sum(along, part) / den.value;
  __syncthreads();
  for (int i = tid / 32; i < r; i += LOW_WARPS) {      /* num = sum_i (W'_i . q) U'_i */
    const float dkappa = low_dot(V, after.U + (long)i * g.Vp, room.dnum);
    if (tid % 32 == 0) room.dkappa[i] = dkappa;
  }
  __syncthreads();
  float *keys = b.keys + (cu_place(g.p, bh, t / CU_L) * CU_L + t % CU_L) * 3 * K;
  for (int j = tid; j < K; j += LOW_THREADS) {
    float dq = after.s[j] * dz;
    d.s[j] = fmaf(x.q[j], dz, d.s[j]);
    for (int i = 0; i < r; i++) {
      const long at = (long)i * g.Kp + j;
      d.W[at] = fmaf(x.q[j], room.dkappa[i], d.W[at]);
      dq = fmaf(after.W[at], room.dkappa[i], dq);
    }
    keys[j] = dq;
  }
  for (int i = tid; i < V; i += LOW_THREADS)
    for (int c = 0; c < r; c++) d.U[(long)c * g.Vp + i] = fmaf(room.dnum[i], x.kappa[c], d.U[(long)c * g.Vp + i]);
  __syncthreads();
  discarded_back(g, K, g.Kp, by, by.A, x.W, after.W, d.W, room.along, room.across_U);
  __syncthreads();
  discarded_back(g, V, g.Vp, by, by.B, x.U, after.U, d.U, room.along, room.across_W);
  __syncthreads();
  for (int j = tid; j < K; j += LOW_THREADS) {         /* x.W and x.U are not needed any more: room for the rows */
    float ddecay = reset ? 0.0f : d.s[j] * before.s[j];
    const float dwrite = cut_back(g, j, g.Kp, reset, by.B, room.across_W, after.W, before.W, x.kd[j], d.W, x.W, &ddecay);
    keys[K + j] = dwrite + d.s[j];
    keys[2L * K + j] = ddecay;
    d.s[j] = reset ? 0.0f : d.s[j] * x.kd[j];
  }
  for (int i = tid; i < V; i += LOW_THREADS) {
    float ddecay = 0.0f;
    const float dwrite = cut_back(g, i, g.Vp, reset, by.A, room.across_U, after.U, before.U, x.vd[i], d.U, x.U, &ddecay);
    cu_value_back(g.a, b.values, token, i, dwrite, reset ? 0.0f : ddecay, true);
  }
  __syncthreads();
}

CU_KERNEL low_backward(const LowRank &g, const LowBack &b, const LowTensors &final, const LowTensors &first) {
  const int bh = g.p.head + (int)blockIdx.x;
  float *at = b.scratch + blockIdx.x * b.each;
  const LowState d = low_state(g, at);
  at += low_size(g);
  const Room room = { at, at + g.Vp, at + g.Vp + (g.r + 15) / 16 * 16, at + room_size(g) - 2L * g.r * g.n,
                      at + room_size(g) - (long)g.r * g.n };
  at += room_size(g);
  float *states = at, *tokens = at + CU_L * low_size(g);
  cu_smem<float> part = CU_SHARED(float, 0), z = part + LOW_WARPS;
  low_take(g, bh, final, d);
  for (int c = g.p.chunks - 1; c >= 0; c--) {
    const int begin = cu_begin(g.p, c), n = cu_tokens(g.p, c);
    for (int i = 0; i < n; i++) {
      const LowState after = low_state(g, states + i * low_size(g));
      const LowState before = low_state(g, i ? states + (i - 1) * low_size(g) : low_saved(g, bh, begin));
      const LowToken x = low_token(g, tokens + i * low_token_size(g));
      const float own = low_enter(g, bh, begin + i, before, x, after.s, part);
      if (threadIdx.x == 0) z[i] = own;
      low_apply(g, x, low_cut(g, cu_token(g.p, begin + i, bh)), after);
    }
    for (int i = n - 1; i >= 0; i--) {
      const LowState after = low_state(g, states + i * low_size(g));
      const LowState before = low_state(g, i ? states + (i - 1) * low_size(g) : low_saved(g, bh, begin));
      token_back(g, b, bh, begin + i, z[i], low_token(g, tokens + i * low_token_size(g)), before, after, d, room, part);
    }
  }
  low_give(g, bh, d, first);
}

void cu_low_rank_backward(mn_call *c) {
  mn_attention of;
  LowRank g = cu_low_rank(c, 0, DIM(c, 'T'), &of);
  const mn_arg *in = c->in, *out = c->out;
  const LowTensors final = { out[OUT_U].grad, out[OUT_W].grad, out[OUT_S].grad };
  const LowTensors first = { in[IN_U].grad, in[IN_W].grad, in[IN_S].grad };
  const long keys = 3L * g.p.chunks * CU_L * g.a.K;
  const long each = (low_size(g) + room_size(g) + CU_L * (low_size(g) + low_token_size(g)) + 15) / 16 * 16;
  g.p.heads = (int)cu_max(1L, cu_min((long)g.a.B * g.a.H, 3 * CU_SLICE / (each + keys)));
  LowBack b = { out[OUT_Y].data, out[OUT_Y].grad, cu_value_grads(&of),
                mn_scratch(c->ctx, 1, keys * g.p.heads), mn_scratch(c->ctx, 0, each * g.p.heads), each };
  CU_SLICES(g.p) {
    const CuKeyGrads grads = { b.keys, 1, 0, g.p.head, g.p.heads, g.p.chunks };
    CU_LAUNCH(low_backward, (unsigned)g.p.heads, LOW_THREADS, sizeof(float) * (LOW_WARPS + CU_L), g, b, final, first);
    cu_keys_fold(&g.a, &grads, &of);
  }
}
