/* gated_step.cu -- one step of linear_attention and joint_gate_attention, and the keys' gradients with respect to their
** factors (gated_step.cuh). */
#include "lib/gated_step.cuh"

enum { STEP_THREADS = 256, STEP_WARPS = STEP_THREADS / 32, STEP_ROWS = 4 };

/* A block is a head: all of its state passes through, 8 K V bytes a token, for some 4 K V operations.  Its rows go to the
** warps, a few at a time, whose keys are read together. */
CU_KERNEL gated_step(const CuGatedInputs &a, const CuGatedState &x, bool joint, int t0, int t1) {
  const int bh = (int)blockIdx.x, b = bh / a.H, tid = (int)threadIdx.x, lane = tid % 32, warp = tid / 32, K = a.K;
  cu_smem<float> q = CU_SHARED(float, 0), write = q + K, decay = q + 2 * K, part = q + 3 * K;
  const long every = (long)MN_CHUNK * x.span, checkpoints = (a.T + every - 1) / every;
  for (int t = t0; t < t1; t++) {
    const long token = (long)t * a.B * a.H + bh;
    const bool reset = a.done && a.done[(long)t * a.B + b];
    const float keep = reset ? 0.0f : a.shrink ? a.shrink[token] : 1.0f;
    const float *C = t ? x.C : x.first_C, *s = t ? x.s : x.first_s;
    float *saved = t % every ? NULL : x.saved + (bh * checkpoints + t / every) * x.saved_row, z = 0.0f;
    __syncthreads();
    for (int j = tid; j < K; j += STEP_THREADS) {
      const CuKey key = cu_key(a, cu_feature(a, j), token, keep);
      const float old = s ? s[(long)bh * K + j] : 0.0f;
      const float now = reset ? key.write : fmaf(key.decay, old, key.write);
      if (saved) saved[(long)a.V * K + j] = old;
      x.s[(long)bh * K + j] = now;
      z = fmaf(now, key.q, z);
      q[j] = key.q, write[j] = key.write, decay[j] = joint ? keep - key.decay : key.decay;
    }
    z = a.normalise ? cu_block_sum(z, part) : 0.0f;
    __syncthreads();
    const float den = cu_den(a.normalise, a.scale, a.eps, a.den_clamp, z).value;
    for (int i = warp * STEP_ROWS; i < a.V; i += STEP_WARPS * STEP_ROWS) {
      float fade[STEP_ROWS], value[STEP_ROWS], num[STEP_ROWS];
CU_UNROLL
      for (int r = 0; r < STEP_ROWS; r++) {
        const bool real = i + r < a.V;
        fade[r] = real ? 1.0f - cu_kept_v(a, token, i + r) : 0.0f;
        value[r] = real ? cu_written_v(a, token, i + r) : 0.0f;
        num[r] = 0.0f;
      }
      for (int j = lane; j < K; j += 32) {
        const float qj = q[j], wj = write[j], dj = decay[j];
CU_UNROLL
        for (int r = 0; r < STEP_ROWS; r++) {
          if (i + r >= a.V) continue;
          const long at = ((long)bh * a.V + i + r) * K + j;
          const float old = C ? C[at] : 0.0f, kept = joint ? fmaf(-dj, fade[r], keep) : dj * (1.0f - fade[r]);
          const float now = reset ? wj * value[r] : fmaf(old, kept, wj * value[r]);
          if (saved) saved[(long)(i + r) * K + j] = old;
          x.C[at] = now;
          num[r] = fmaf(now, qj, num[r]);
        }
      }
CU_UNROLL
      for (int r = 0; r < STEP_ROWS; r++) {
        num[r] = cu_warp_sum(num[r]);
        if (lane == 0 && i + r < a.V) x.y[token * a.V + i + r] = num[r] / den;
      }
    }
  }
}

void cu_gated_step(const CuGatedInputs *a, const CuGatedState *s, bool joint, int t0, int t1) {
  const size_t shared = sizeof(float) * (3 * (size_t)a->K + STEP_WARPS);
  CU_LAUNCH(gated_step, (unsigned)(a->B * a->H), STEP_THREADS, shared, *a, *s, joint, t0, t1);
}

/* ---- the keys' gradients ---- */

enum { FOLD_THREADS = 128 };

struct FoldTo { float *q, *k, *gate, *p_q, *p_k, *p_gate, *keep; };

/* A feature p (x) x of D by E, from its gradient `to`: x's, dx[d] = sum_e p[e] to[e,d], and p's, dp[e] = sum_d x[d] to[e,d]. */
static __device__ void fold(int D, int E, const float *x, const float *p, cu_smem<float> to, float *dx, float *dp) {
  const int tid = (int)threadIdx.x, lane = tid % 32;
  if (dx)
    for (int d = tid; d < D; d += FOLD_THREADS) {
      float sum = 0.0f;
      for (int e = 0; e < E; e++) sum = p ? fmaf(p[e], to[e * D + d], sum) : sum + to[e * D + d];
      dx[d] = sum;
    }
  if (dp)
    for (int e = tid / 32; e < E; e += FOLD_THREADS / 32) {
      float sum = 0.0f;
      for (int d = lane; d < D; d += 32) sum = fmaf(x[d], to[e * D + d], sum);
      sum = cu_warp_sum(sum);
      if (lane == 0) dp[e] = sum;
    }
}

#define AT(p, row) ((p) ? (p) + (row) : NULL)

/* A block is a token of a head: 12 K bytes a part are read, as many operations. */
CU_KERNEL keys_fold(const CuGatedInputs &a, const CuKeyGrads &g, const FoldTo &to) {
  const int K = a.K, i = (int)(blockIdx.x % MN_CHUNK), c = (int)(blockIdx.x / MN_CHUNK % (unsigned)g.chunks);
  const int bh = g.head + (int)(blockIdx.x / MN_CHUNK / (unsigned)g.chunks), t = c * MN_CHUNK + i;
  if (t >= a.T) return;
  const long token = (long)t * a.B * a.H + bh;
  const float *from = g.parts + (long)blockIdx.x * 3 * K, keep = cu_keep(a, t, bh / a.H, token);
  const bool each = to.keep && a.kept_k == MN_KEPT_EACH, of_head = to.keep && a.kept_k == MN_KEPT_HEAD;
  cu_smem<float> dq = CU_SHARED(float, 0), dk = dq + K, dg = dq + 2 * K, part = dq + 3 * K;
  float total = 0.0f, kept = 0.0f;
  for (int j = (int)threadIdx.x; j < K; j += FOLD_THREADS) {
    float sum[3] = { 0.0f, 0.0f, 0.0f };
    for (int m = 0; m < g.n; m++)
      for (int w = 0; w < 3; w++) sum[w] += from[m * g.apart + (long)w * K + j];
    dq[j] = sum[0];
    const float ddecay = keep == 0.0f ? 0.0f : keep * sum[2];
    if (each) to.keep[token * K + j] = ddecay;
    kept += ddecay;
    if (a.gate_k) {
      const CuFeature f = cu_feature(a, j);
      const float gate = cu_gate(a, f, token);
      float k = a.k[token * a.D + f.d];
      if (a.p_k) k *= a.p_k[token * a.E + f.e];
      dg[j] = fmaf(k, sum[1], a.kept_k == MN_KEPT_REST ? -ddecay : 0.0f);
      sum[1] *= gate;
      total += dg[j];
    }
    dk[j] = sum[1];
  }
  if (a.scalar && to.gate) {
    total = cu_warp_sum(total);
    if (threadIdx.x % 32 == 0) part[(int)threadIdx.x / 32] = total;
  }
  if (of_head) {
    kept = cu_warp_sum(kept);
    if (threadIdx.x % 32 == 0) part[FOLD_THREADS / 32 + (int)threadIdx.x / 32] = kept;
  }
  __syncthreads();
  fold(a.D, a.E, a.q + token * a.D, AT(a.p_q, token * a.E), dq, AT(to.q, token * a.D), AT(to.p_q, token * a.E));
  fold(a.D, a.E, a.k + token * a.D, AT(a.p_k, token * a.E), dk, AT(to.k, token * a.D), AT(to.p_k, token * a.E));
  if (a.gate_k && !a.scalar)
    fold(a.Dg, a.Eg, a.gate_k + token * a.Dg, AT(a.p_gate_k, token * a.Eg), dg, AT(to.gate, token * a.Dg),
         AT(to.p_gate, token * a.Eg));
  if (threadIdx.x == 0) {
    float sums[2] = { 0.0f, 0.0f };
    for (int w = 0; w < FOLD_THREADS / 32; w++) {
      if (a.scalar && to.gate) sums[0] += part[w];
      if (of_head) sums[1] += part[FOLD_THREADS / 32 + w];
    }
    if (a.scalar && to.gate) to.gate[token] = sums[0];
    if (of_head) to.keep[token] = sums[1];
  }
}

void cu_keys_fold(const CuGatedInputs *a, const CuKeyGrads *g, const mn_attention *of) {
  const mn_arg *in = of->c->in;
  const FoldTo to = { in[IN_Q].grad, in[IN_K].grad, in[of->gate_k].grad, in[IN_P_Q].grad, in[IN_P_K].grad, in[of->p_gate_k].grad,
                      in[IN_KEEP_K].grad };
  const size_t shared = sizeof(float) * (3 * (size_t)a->K + 2 * (FOLD_THREADS / 32));
  CU_LAUNCH(keys_fold, (unsigned)(g->heads * g->chunks * MN_CHUNK), FOLD_THREADS, shared, *a, *g, to);
}
