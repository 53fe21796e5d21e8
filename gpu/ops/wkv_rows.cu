/* wkv_rows.cu -- wkv_decay wkv7_keys wkv_out: the row-wise ops of RWKV-6 and RWKV-7 before and after their
** memory.  One pass over the rows each way; gradients of parameters are sums over all rows (sums.cuh). */
#include "lib/sums.cuh"
extern "C" {
#include "numerics/fast_math.h"
}

/* ---- wkv_decay ---- */

#define SOFT 0.60653065971f                /* e^{-1/2} */

CU_KERNEL decay(const float *x, float *w, long n, bool sigmoid) {
  CU_LOOP(i, n) w[i] = sigmoid ? mn_expf(-SOFT * mn_sigmoidf(x[i])) : mn_expf(-mn_expf(x[i]));
}

CU_KERNEL decay_back(const float *x, const float *w, const float *dw, float *dx,
                     long n, bool sigmoid) {
  CU_LOOP(i, n) {
    const float s = sigmoid ? mn_sigmoidf(x[i]) : 0.0f, d = dw ? dw[i] : 0.0f;
    dx[i] = sigmoid ? -SOFT * d * w[i] * s * (1 - s) : -d * w[i] * mn_expf(mn_at_most(x[i], 80));
  }
}

static void wkv_decay_forward(mn_call *c) {
  const long n = c->out[0].n;
  CU_LAUNCH(decay, cu_blocks(n, 4), CU_THREADS, 0, c->in[0].data, c->out[0].data, n, OPT(c, 0) != 0);
}

static void wkv_decay_backward(mn_call *c) {
  const long n = c->out[0].n;
  if (c->in[0].grad)
    CU_LAUNCH(decay_back, cu_blocks(n, 4), CU_THREADS, 0, c->in[0].data, c->out[0].data, c->out[0].grad,
              c->in[0].grad, n, OPT(c, 0) != 0);
}

MN_KERNEL(wkv_decay, wkv_decay_forward, wkv_decay_backward)

/* ---- wkv7_keys ---- */

#define LEAST 1e-12f

struct WkvKeys {                 /* rows [n,K] of heads, n = T*B*H; parameters [H,K] */
  const float *k, *a, *k_k, *k_a;
  float *write, *out, *back, *norm;
  const float *dwrite, *dout, *dback;
  float *dk, *da, *dz;           /* dz: of z = k * k_k, scratch */
  long rows;
  int K, H, width;
};

static __device__ __forceinline__ float given(const float *p, long i) { return p ? p[i] : 0.0f; }

CU_KERNEL keys_forward(const WkvKeys &x) {
  const cu_team team(x.width);
  for (long row = team.first(); team.any(row, x.rows); row = team.next(row)) {
    const bool any = row < x.rows;
    const float *k = x.k + row * x.K, *k_k = x.k_k + row % x.H * x.K, *k_a = x.k_a + row % x.H * x.K;
    float sum = 0.0f, top = 0.0f, small = 0.0f;
    for (int j = team.lane; any && j < x.K; j += x.width) {
      const float z = k[j] * k_k[j];
      sum = fmaf(z, z, sum);
      top = mn_at_least(fabsf(z), top);
    }
    sum = team.sum(sum);
    top = team.max(top);
    for (int j = team.lane; any && top > 0 && j < x.K; j += x.width) {  /* where squares leave float's range */
      const float z = k[j] * k_k[j] / top;
      small = fmaf(z, z, small);
    }
    small = team.sum(small);
    const bool fits = sum > 1e-30f && sum < 1e37f;
    const float size = fits ? sqrtf(sum) : top > 0 ? top * sqrtf(small) : sum == sum ? top : sum;
    const float scale = 1 / mn_at_least(size, LEAST);
    for (int j = team.lane; any && j < x.K; j += x.width) {
      const long at = row * x.K + j;
      const float a = x.a[at], out = k[j] * k_k[j] * scale;
      x.out[at] = out;
      x.back[at] = a * out;
      x.write[at] = k[j] * (1 + (a - 1) * k_a[j]);
    }
    if (any && team.lane == 0) x.norm[row] = size;
  }
}

CU_KERNEL keys_backward(const WkvKeys &x) {
  const cu_team team(x.width);
  for (long row = team.first(); team.any(row, x.rows); row = team.next(row)) {
    const bool any = row < x.rows;
    const float *k_k = x.k_k + row % x.H * x.K, *k_a = x.k_a + row % x.H * x.K;
    float along = 0.0f, size = any ? x.norm[row] : 1.0f;
    for (int j = team.lane; any && j < x.K; j += x.width) {
      const long at = row * x.K + j;
      along = fmaf(given(x.dout, at) + x.a[at] * given(x.dback, at), x.out[at], along);
    }
    along = team.sum(along);
    if (size < LEAST) size = LEAST, along = 0.0f;
    const float scale = 1 / size;
    for (int j = team.lane; any && j < x.K; j += x.width) {
      const long at = row * x.K + j;
      const float a = x.a[at], k = x.k[at], out = x.out[at], to_write = given(x.dwrite, at), to_back = given(x.dback, at);
      const float dz = (given(x.dout, at) + a * to_back - out * along) * scale;
      x.dz[at] = dz;
      if (x.dk) x.dk[at] = dz * k_k[j] + to_write * (1 + (a - 1) * k_a[j]);
      if (x.da) x.da[at] = out * to_back + to_write * k * k_a[j];
    }
  }
}

static WkvKeys wkv_keys(const mn_call *c) {
  WkvKeys x = {};
  x.k = c->in[0].data, x.a = c->in[1].data, x.k_k = c->in[2].data, x.k_a = c->in[3].data;
  x.write = c->out[0].data, x.out = c->out[1].data, x.back = c->out[2].data, x.norm = c->out[3].data;
  x.K = DIM(c, 'K'), x.H = DIM(c, 'H');
  x.rows = c->in[0].n / x.K;
  x.width = cu_team_width(x.K);
  return x;
}

static void wkv7_keys_forward(mn_call *c) {
  const WkvKeys x = wkv_keys(c);
  CU_LAUNCH(keys_forward, cu_team_blocks(x.rows, x.width), CU_THREADS, CU_TEAM_SHARED, x);
}

/* The terms of the parameters' gradients, of element at[0] of [T*B,H*K]. */
struct WkvKeyTerm {
  const float *k, *dz;
  __device__ __forceinline__ float operator()(const long *at) const { return dz[at[0]] * k[at[0]]; }
};
struct WkvWriteTerm {
  const float *k, *a, *dwrite;
  __device__ __forceinline__ float operator()(const long *at) const {
    return given(dwrite, at[0]) * k[at[0]] * (a[at[0]] - 1);
  }
};

static void wkv7_keys_backward(mn_call *c) {
  WkvKeys x = wkv_keys(c);
  x.dwrite = c->out[0].grad, x.dout = c->out[1].grad, x.dback = c->out[2].grad;
  x.dk = c->in[0].grad, x.da = c->in[1].grad;
  x.dz = mn_scratch(c->ctx, 0, x.rows * x.K);
  CU_LAUNCH(keys_backward, cu_team_blocks(x.rows, x.width), CU_THREADS, CU_TEAM_SHARED, x);
  const cu_fold rows = cu_fold_of(1, x.rows / x.H, (long)x.H * x.K);
  if (c->in[2].grad) cu_sum(c, rows, WkvKeyTerm{ x.k, x.dz }, c->in[2].grad);
  if (c->in[3].grad) cu_sum(c, rows, WkvWriteTerm{ x.k, x.a, x.dwrite }, c->in[3].grad);
}

MN_KERNEL(wkv7_keys, wkv7_keys_forward, wkv7_keys_backward)

/* ---- wkv_out ---- */

struct WkvOut {                  /* rows [n,V] and [n,K] of heads */
  const float *y, *weight, *bias, *gate, *r, *k, *bonus, *v;
  float *z, *stats;              /* stats: mean, scale and sum r bonus k of a row */
  const float *dz;
  float *dy, *dgate, *dr, *dk, *dv, *own;  /* own: gradient of that sum, scratch [n] */
  long rows;
  int V, K, H, width;
  bool silu;
  float eps;
};

/* act(x), and its slope. */
static __device__ __forceinline__ float gate_of(bool silu, float x) { return silu ? x * mn_sigmoidf(x) : x; }
static __device__ __forceinline__ float gate_slope(bool silu, float x) {
  if (!silu) return 1.0f;
  const float s = mn_sigmoidf(x);
  return s * (1 + x * (1 - s));
}

CU_KERNEL out_forward(const WkvOut &x) {
  const cu_team team(x.width);
  for (long row = team.first(); team.any(row, x.rows); row = team.next(row)) {
    const bool any = row < x.rows;
    const long own_at = row % x.H;
    float sum = 0.0f, squares = 0.0f, own = 0.0f;
    for (int j = team.lane; any && j < x.V; j += x.width) sum += x.y[row * x.V + j];
    const float mean = team.sum(sum) / (float)x.V;
    for (int j = team.lane; any && j < x.V; j += x.width) {
      const float d = x.y[row * x.V + j] - mean;
      squares = fmaf(d, d, squares);
    }
    const float scale = 1 / sqrtf(team.sum(squares) / (float)x.V + x.eps);
    for (int j = team.lane; any && j < x.K; j += x.width)
      own = fmaf(x.r[row * x.K + j] * x.k[row * x.K + j], x.bonus[own_at * x.K + j], own);
    own = team.sum(own);
    for (int j = team.lane; any && j < x.V; j += x.width) {
      const long at = row * x.V + j;
      float z = (x.y[at] - mean) * scale * x.weight[own_at * x.V + j] + x.bias[own_at * x.V + j];
      if (x.v) z = fmaf(own, x.v[at], z);
      x.z[at] = z * gate_of(x.silu, x.gate[at]);
    }
    if (any && team.lane == 0) x.stats[3 * row] = mean, x.stats[3 * row + 1] = scale, x.stats[3 * row + 2] = own;
  }
}

CU_KERNEL out_backward(const WkvOut &x) {
  const cu_team team(x.width);
  for (long row = team.first(); team.any(row, x.rows); row = team.next(row)) {
    const bool any = row < x.rows;
    const float mean = any ? x.stats[3 * row] : 0.0f, scale = any ? x.stats[3 * row + 1] : 0.0f;
    const float bonus = any ? x.stats[3 * row + 2] : 0.0f, *weight = x.weight + row % x.H * x.V;
    float sum = 0.0f, along = 0.0f, own = 0.0f;
    for (int j = team.lane; any && j < x.V; j += x.width) {
      const long at = row * x.V + j;
      const float n = (x.y[at] - mean) * scale, d = given(x.dz, at) * gate_of(x.silu, x.gate[at]), g = d * weight[j];
      sum += g;
      along = fmaf(g, n, along);
      if (x.v) own = fmaf(d, x.v[at], own);
    }
    sum = team.sum(sum) / (float)x.V;
    along = team.sum(along) / (float)x.V;
    own = team.sum(own);
    for (int j = team.lane; any && j < x.V; j += x.width) {
      const long at = row * x.V + j;
      const float n = (x.y[at] - mean) * scale, gate = x.gate[at], dz = given(x.dz, at), d = dz * gate_of(x.silu, gate);
      if (x.dy) x.dy[at] = scale * (d * weight[j] - sum - n * along);
      if (x.dv) x.dv[at] = bonus * d;
      if (x.dgate) {
        float z = n * weight[j] + x.bias[row % x.H * x.V + j];
        if (x.v) z = fmaf(bonus, x.v[at], z);
        x.dgate[at] = dz * z * gate_slope(x.silu, gate);
      }
    }
    for (int j = team.lane; any && j < x.K; j += x.width) {
      const long at = row * x.K + j;
      const float b = own * x.bonus[row % x.H * x.K + j];
      if (x.dr) x.dr[at] = b * x.k[at];
      if (x.dk) x.dk[at] = b * x.r[at];
    }
    if (any && team.lane == 0 && x.own) x.own[row] = own;
  }
}

static WkvOut wkv_out(const mn_call *c) {
  const mn_arg *in = c->in;
  WkvOut x = {};
  x.y = in[0].data, x.weight = in[1].data, x.bias = in[2].data, x.gate = in[3].data;
  x.r = in[4].data, x.k = in[5].data, x.bonus = in[6].data, x.v = in[7].data;
  x.z = c->out[0].data, x.stats = c->out[1].data, x.dz = c->out[0].grad;
  x.dy = in[0].grad, x.dgate = in[3].grad, x.dr = in[4].grad, x.dk = in[5].grad, x.dv = in[7].grad;
  x.V = DIM(c, 'V'), x.K = x.r ? DIM(c, 'K') : 0, x.H = DIM(c, 'H');
  x.rows = in[0].n / x.V;
  x.width = cu_team_width(cu_max(x.V, x.K));
  x.silu = OPT(c, 1) != 0, x.eps = (float)OPT(c, 0);
  return x;
}

static void wkv_out_forward(mn_call *c) {
  const WkvOut x = wkv_out(c);
  CU_LAUNCH(out_forward, cu_team_blocks(x.rows, x.width), CU_THREADS, CU_TEAM_SHARED, x);
}

/* The terms of the parameters' gradients, of element at[0] of [T*B,H*V] or [T*B,H*K]. */
struct WkvScaleTerm {            /* of weight; of bias, where it is not normalised */
  WkvOut x;
  cu_divisor V;
  bool bias;
  __device__ __forceinline__ float operator()(const long *at) const {
    const float d = given(x.dz, at[0]) * gate_of(x.silu, x.gate[at[0]]);
    if (bias) return d;
    long unused;
    const long row = V.divide(at[0], &unused);
    return d * (x.y[at[0]] - x.stats[3 * row]) * x.stats[3 * row + 1];
  }
};
struct WkvBonusTerm {
  WkvOut x;
  cu_divisor K;
  __device__ __forceinline__ float operator()(const long *at) const {
    long unused;
    return x.own[K.divide(at[0], &unused)] * x.r[at[0]] * x.k[at[0]];
  }
};

static void wkv_out_backward(mn_call *c) {
  WkvOut x = wkv_out(c);
  if (x.v) x.own = mn_scratch(c->ctx, 0, x.rows);
  CU_LAUNCH(out_backward, cu_team_blocks(x.rows, x.width), CU_THREADS, CU_TEAM_SHARED, x);
  const cu_fold rows = cu_fold_of(1, x.rows / x.H, (long)x.H * x.V);
  for (int i = 0; i < 2; i++)
    if (c->in[1 + i].grad) cu_sum(c, rows, WkvScaleTerm{ x, cu_divisor(x.V), i == 1 }, c->in[1 + i].grad);
  if (c->in[6].grad)
    cu_sum(c, cu_fold_of(1, x.rows / x.H, (long)x.H * x.K), WkvBonusTerm{ x, cu_divisor(x.K) }, c->in[6].grad);
}

MN_KERNEL(wkv_out, wkv_out_forward, wkv_out_backward)
