/* agalite.cu -- forward of engine/ops/agalite.c, one time step at a time: rows t0..t1 of a sequence,
** or the one row that acting asks for.  A block is one head.  Each thread owns some features and some
** values, and alone touches their state, which stays in the op's own outputs; only the weights of the
** waves and the sums over features cross threads, through shared memory, with two barriers a step.
** The sum of keys s is one more channel of keys, of constant weight 1.
** Any sizes of heads, features and values; 48 KB of shared memory hold some 2,000 channels. */
#include "kernel.cuh"
extern "C" {
#include "attention.h"
}

enum { CODE, PAPER, COSSIN };
enum { IN_TICK = IN_STATE, IN_VS, IN_KS, IN_S };
enum { OUT_Y, OUT_VS, OUT_KS, OUT_S, OUT_TICK, OUT_SAVED };
enum { THREADS = 128, WARPS = THREADS / 32, HEADER = 16 };

struct States { float *vs, *ks, *s; };     /* [B,M,H,V], [B,M,H,K], [B,H,K]; NULL: zeros */

struct Args {
  const float *q, *k, *v, *beta, *gamma, *p_q, *p_k, *p_gamma, *tick;
  const uint8_t *done;
  float *y, *tick_out, *saved;
  States first, running;
  int B, H, V, K, D, E, Dg, Eg;            /* as in mn_attention */
  int M, chunks;                           /* stored channels; checkpoints of a head */
  int form, r, t0, t1;
  bool normalise;
  float eps, den_clamp, scale;
};

/* How many channels of the form stored channel m stands for, and its weight cos or sin of
** 2 pi (step * tau mod period) / period; exact for any tau. */
static __device__ float channels_of(int form, int r, int m) {
  if (form == CODE) return 2 * m == r - 1 ? 1.0f : 2.0f;
  if (form == PAPER) return 2 * m == r ? 1.0f : 2.0f;
  return m == 0 || 2 * m == r ? 1.0f : 2.0f;
}

static __device__ float wave(int form, int r, int m, long tau) {
  const int cosines = r / 2 + 1, period = form != CODE ? r : r > 1 ? 2 * (r - 1) : 2;
  const bool sine = form == COSSIN && m >= cosines;
  const int step = form == CODE ? (r > 1 ? 2 * m - (r - 1) : 1) : sine ? m - cosines + 1 : m;
  const long phase = (step * tau % period + period) % period;
  const double half_turns = 2.0 * (double)phase / period;
  return (float)(sine ? cu_sinpi(half_turns) : cu_cospi(half_turns));
}

/* Feature j of a token: what is asked for, what is written (g*k), what is kept (keep*(1-g)). */
struct Key { float q, write, decay; };

static __device__ Key key_at(const Args &a, long token, int j, float keep) {
  const int e = j / a.D, d = j - e * a.D;
  Key x = { a.q[token * a.D + d], a.k[token * a.D + d], keep };
  if (a.p_q) {
    x.q *= a.p_q[token * a.E + e];
    x.write *= a.p_k[token * a.E + e];
  }
  if (a.gamma) {
    const int eg = j / a.Dg;
    float g = a.gamma[token * a.Dg + j - eg * a.Dg];
    if (a.p_gamma) g *= a.p_gamma[token * a.Eg + eg];
    x.write *= g;
    x.decay *= 1.0f - g;
  }
  return x;
}

static __device__ float denominator(const Args &a, float z) {
  if (!a.normalise) return a.scale;
  const float den = fmaf(a.scale, z, a.eps);
  if (fabsf(den) >= a.den_clamp) return den;
  return den < 0 ? -a.den_clamp : a.den_clamp;
}

static __global__ void __launch_bounds__(THREADS, 4) agalite_steps(Args a) {
  const int bh = (int)blockIdx.x, b = bh / a.H, h = bh - b * a.H, tid = (int)threadIdx.x;
  const long tick = lrintf(a.tick[b]);
  const int Kp = (a.K + 15) / 16 * 16, Vp = (a.V + 15) / 16 * 16;      /* checkpoints are padded */
  const long saved_row = HEADER + (long)a.M * (Kp + Vp) + Kp;
  cu_smem<float> sums = CU_SHARED(float, 0);                           /* [M+1][WARPS] */
  cu_smem<float> weights = sums + (a.M + 1) * WARPS;                   /* [2][M], even and odd t */

  for (int t = a.t0; t < a.t1; t++) {
    const long token = ((long)t * a.B + b) * a.H + h;
    const float keep = a.done && a.done[(long)t * a.B + b] ? 0.0f : 1.0f;
    const States from = t ? a.running : a.first;
    float *saved = t % MN_CHUNK ? NULL : a.saved + ((long)bh * a.chunks + t / MN_CHUNK) * saved_row;
    if (saved && tid < HEADER) saved[tid] = tid ? 0.0f : a.tick[b];
    cu_smem<float> w = weights + t % 2 * a.M;
    for (int m = tid; m < a.M; m += THREADS) w[m] = wave(a.form, a.r, m, tick + t + 1);
    __syncthreads();                                 /* weights are there, sums are free */

    for (int m = 0; m <= a.M; m++) {
      const bool is_s = m == a.M;
      const long row = (is_s ? bh : ((long)b * a.M + m) * a.H + h) * a.K;
      const float *old = is_s ? from.s : from.ks, weight = is_s ? 1.0f : w[m];
      float *now = (is_s ? a.running.s : a.running.ks) + row, sum = 0.0f;
      for (int j = tid; j < Kp; j += THREADS) {
        const float x = old && j < a.K ? old[row + j] : 0.0f;
        if (saved) saved[HEADER + (long)m * Kp + j] = x;
        if (j >= a.K) continue;
        const Key key = key_at(a, token, j, keep);
        now[j] = fmaf(key.decay, x, key.write * weight);
        sum = fmaf(now[j], key.q, sum);
      }
      sum = cu_warp_sum(sum);
      if (tid % 32 == 0) sums[m * WARPS + tid / 32] = sum;
    }
    __syncthreads();                                 /* sums are there */

    float z = 0.0f;
    for (int i = 0; i < WARPS; i++) z += sums[a.M * WARPS + i];
    const float den = denominator(a, z);
    for (int i = tid; i < Vp; i += THREADS) {
      const bool real = i < a.V;
      const float gate = a.beta && real ? a.beta[token * a.V + i] : 1.0f;
      const float write = real ? gate * a.v[token * a.V + i] : 0.0f;
      const float decay = a.beta ? keep * (1.0f - gate) : keep;
      float num = 0.0f;
      for (int m = 0; m < a.M; m++) {
        const long at = (((long)b * a.M + m) * a.H + h) * a.V + i;
        const float x = from.vs && real ? from.vs[at] : 0.0f;
        if (saved) saved[HEADER + ((long)a.M + 1) * Kp + (long)m * Vp + i] = x;
        if (!real) continue;
        float kappa = 0.0f;
        for (int p = 0; p < WARPS; p++) kappa += sums[m * WARPS + p];
        const float now = fmaf(decay, x, write * w[m]);
        a.running.vs[at] = now;
        num = fmaf(now, kappa * channels_of(a.form, a.r, m), num);
      }
      if (real) a.y[token * a.V + i] = num / den;
    }
  }
  if (h == 0 && tid == 0) a.tick_out[b] = a.tick[b] + (float)a.t1;
}

static void forward(mn_call *c) {
  mn_attention g;
  mn_attention_open(&g, c, "agalite", 2);
  Args a = {};
  a.q = c->in[IN_Q].data;
  a.k = c->in[IN_K].data;
  a.v = c->in[IN_V].data;
  a.beta = c->in[IN_BETA].data;
  a.gamma = c->in[IN_GAMMA].data;
  a.p_q = c->in[IN_P_Q].data;
  a.p_k = c->in[IN_P_K].data;
  a.p_gamma = c->in[IN_P_GAMMA].data;
  a.tick = c->in[IN_TICK].data;
  a.done = c->in[IN_DONE].u8;
  a.y = c->out[OUT_Y].data;
  a.tick_out = c->out[OUT_TICK].data;
  a.saved = c->out[OUT_SAVED].data;
  a.first = { c->in[IN_VS].data, c->in[IN_KS].data, c->in[IN_S].data };
  a.running = { c->out[OUT_VS].data, c->out[OUT_KS].data, c->out[OUT_S].data };
  a.B = g.B, a.H = g.H, a.V = g.V, a.K = g.K, a.D = g.D, a.E = g.E, a.Dg = g.Dg, a.Eg = g.Eg;
  a.M = c->out[OUT_VS].shape[1];
  a.chunks = mn_chunks(g.T);
  a.form = (int)OPT(c, 0);
  a.r = (int)OPT(c, 1);
  a.t0 = c->t0;
  a.t1 = c->t1;
  a.normalise = g.normalise;
  a.eps = g.eps;
  a.den_clamp = g.den_clamp;
  a.scale = a.form == COSSIN ? (float)a.r : 2.0f * (float)a.r;
  const size_t shared = sizeof(float) * ((size_t)(a.M + 1) * WARPS + 2 * (size_t)a.M);
  CU_LAUNCH(agalite_steps, a.B * a.H, THREADS, shared, MN_STREAM, a);
}

MN_KERNEL(agalite, forward, NULL)
