/* agalite_backward.cu -- backward of agalite (agalite.cuh).  The products of q with the keys, and of y's gradient with the
** values, are recomputed for all chunks at once from their checkpoints.  Then the gradients of the states, separately for
** values and keys, run from the last chunk to the first or side by side (agalite.cuh), over states recomputed a chunk at a time.  With M channels
** some 11 (M+1) K + 13 M V operations per token and head. */
#include "lib/agalite.cuh"
#include "lib/gated_step.cuh"

/* What a token writes in value i and keeps of it. */
struct Written { float write, decay; bool reset; };

static __device__ __forceinline__ Written value_at(const Agalite &g, int t, int bh, int i) {
  const long token = cu_token(g.p, t, bh);
  Written x;
  x.reset = g.a.done && g.a.done[(long)t * g.a.B + bh / g.a.H];
  x.write = cu_written_v(g.a, token, i);
  x.decay = x.reset ? 0.0f : cu_kept_v(g.a, token, i);
  return x;
}

static __device__ __forceinline__ float wave_at(const Agalite &g, int t, int bh, int m) {
  return g.w[((long)(bh / g.a.H) * g.a.T + t) * g.waves.M + m];
}

/* A warp is 32 values of a chunk and a group of channels: along = dy . v_m, in parts. */
CU_KERNEL values_again(const Agalite &g, const float *dy, int groups) {
  const CuChunks &p = g.p;
  const int lane = (int)threadIdx.x % 32, M = g.waves.M;
  const long warp = (long)blockIdx.x * AGALITE_WARPS + threadIdx.x / 32;
  if (warp >= (long)p.heads * p.chunks * groups * g.value_parts) return;
  const int part = (int)(warp % g.value_parts), i = part * 32 + lane, m0 = (int)(warp / g.value_parts % groups) * GROUP;
  const int c = (int)(warp / g.value_parts / groups % p.chunks), bh = p.head + (int)(warp / g.value_parts / groups / p.chunks);
  const int begin = cu_begin(p, c), n = cu_tokens(p, c);
  const bool real = i < g.a.V;
  float x[GROUP], sum[GROUP * CU_L];
CU_UNROLL
  for (int m = 0; m < GROUP; m++)
    x[m] = real && m0 + m < M
         ? cu_agalite_saved(g, bh, begin)[HEADER + (M + 1L) * g.Kp + (m0 + m) * (long)g.Vp + i] : 0.0f;
CU_UNROLL
  for (int t = 0; t < CU_L; t++) {
    const bool here = t < n && real;
    Written v = { 0.0f, 1.0f, false };
    if (here) v = value_at(g, begin + t, bh, i);
    const float d = here && dy ? dy[cu_token(p, begin + t, bh) * g.a.V + i] : 0.0f;
CU_UNROLL
    for (int m = 0; m < GROUP; m++) {
      const float w = t < n && m0 + m < M ? wave_at(g, begin + t, bh, m0 + m) : 0.0f;
      x[m] = fmaf(v.decay, v.reset ? 0.0f : x[m], v.write * w);
      sum[m * CU_L + t] = d * x[m];
    }
  }
  cu_warp_sums(sum, lane);
CU_UNROLL
  for (int s = 0; s < 2; s++) {
    const int m = m0 + (2 * lane + s) / CU_L, t = (2 * lane + s) % CU_L;
    if (m < M) g.along[((cu_place(p, bh, c) * CU_L + t) * M + m) * g.value_parts + part] = sum[s];
  }
}

/* A thread is a token: gradients of kappa and of s.q, which is that of the numerator along q. */
CU_KERNEL found_back(const Agalite &g) {
  const int M = g.waves.M;
  CU_LOOP(i, (long)g.p.heads * g.p.chunks * CU_L) {
    const float *kappa = g.kappa + i * (M + 1);
    const CuDenominator den = cu_den(g.a.normalise, g.a.scale, g.a.eps, g.a.den_clamp, kappa[M]);
    float along = 0.0f;
    for (int m = 0; m < M; m++) {
      float sum = 0.0f;
      for (int part = 0; part < g.value_parts; part++) sum += g.along[(i * M + m) * g.value_parts + part];
      const float d = cu_wave_weight(g.waves, m) * sum / den.value;
      g.dkappa[i * (M + 1) + m] = d;
      along = fmaf(d, kappa[m], along);
    }
    g.dkappa[i * (M + 1) + M] = -den.slope * along / den.value;
  }
}

/* A warp is 32 values of a head, or of a chunk of it, a group of channels after the other, back through time. */
template <CuPass PASS> CU_KERNEL values_backward(const Agalite &g, const float *dy, const CuValueGrads &grads) {
  const CuChunks &p = g.p;
  const int parts = PASS == CU_WALK ? 1 : p.chunks, lane = (int)threadIdx.x % 32, M = g.waves.M, V = g.a.V;
  const long warp = (long)blockIdx.x * AGALITE_WARPS + threadIdx.x / 32;
  const int i = (int)(warp % g.value_parts) * 32 + lane;
  if (warp >= (long)p.heads * parts * g.value_parts || i >= V) return;
  const int bh = p.head + (int)(warp / g.value_parts / parts), from = (int)(warp / g.value_parts % parts);
  const int end = PASS == CU_WALK ? p.chunks : from + 1;
  for (int m0 = 0; m0 < M; m0 += GROUP) {
    float dx[GROUP], kept = 1.0f;
CU_UNROLL
    for (int m = 0; m < GROUP; m++) {
      const float *at = PASS == CU_ENDS || m0 + m >= M ? NULL
                      : PASS == CU_READ ? cu_state_of(g, bh, from, M, m0 + m, g.Vp) + i
                      : cu_values_at(g, g.first, bh, m0 + m, i);
      dx[m] = at ? *at : 0.0f;
    }
    for (int c = end - 1; c >= from; c--) {
      const int begin = cu_begin(p, c), n = cu_tokens(p, c);
      const float *saved = cu_agalite_saved(g, bh, begin) + HEADER + (M + 1L) * g.Kp + i;
      float was[CU_L][GROUP], x[GROUP];
CU_UNROLL
      for (int m = 0; m < GROUP; m++) x[m] = PASS != CU_ENDS && m0 + m < M ? saved[(m0 + m) * (long)g.Vp] : 0.0f;
CU_UNROLL
      for (int t = 0; t < CU_L; t++) {
        if (PASS == CU_ENDS || t >= n) continue;
        const Written v = value_at(g, begin + t, bh, i);
CU_UNROLL
        for (int m = 0; m < GROUP; m++) {
          was[t][m] = v.reset ? 0.0f : x[m];
          x[m] = fmaf(v.decay, was[t][m], m0 + m < M ? v.write * wave_at(g, begin + t, bh, m0 + m) : 0.0f);
        }
      }
CU_UNROLL
      for (int back = 0; back < CU_L; back++) {
        const int t = CU_L - 1 - back;
        if (t >= n) continue;
        const Written v = value_at(g, begin + t, bh, i);
        const long at = cu_token(p, begin + t, bh) * V + i, row = cu_place(p, bh, c) * CU_L + t;
        const float out = dy ? dy[at] : 0.0f;
        float dwrite = 0.0f, ddecay = 0.0f;
        kept *= v.decay;
CU_UNROLL
        for (int m = 0; m < GROUP; m++) {
          if (m0 + m >= M) continue;
          const float d = fmaf(out, g.factor[row * M + m0 + m], dx[m]);
          dx[m] = v.reset ? 0.0f : d * v.decay;
          if (PASS == CU_ENDS) continue;
          dwrite = fmaf(d, wave_at(g, begin + t, bh, m0 + m), dwrite);
          ddecay = fmaf(d, was[t][m], ddecay);
        }
        if (PASS != CU_ENDS) cu_value_back(g.a, grads, cu_token(p, begin + t, bh), i, dwrite, ddecay, m0 == 0);
      }
    }
    if (PASS == CU_ENDS && m0 == 0) g.kept[cu_place(p, bh, from) * g.Vp + i] = kept;
    if (PASS == CU_READ && from) continue;
CU_UNROLL
    for (int m = 0; m < GROUP; m++) {
      float *to = m0 + m >= M ? NULL : PASS == CU_ENDS ? cu_state_of(g, bh, from, M, m0 + m, g.Vp) + i
                : cu_values_at(g, g.last, bh, m0 + m, i);
      if (to) *to = dx[m];
    }
  }
}

/* A warp is 32 features of a group of channels of a head, or of a chunk of it, back through time. */
template <CuPass PASS> CU_KERNEL keys_backward(const Agalite &g) {
  const CuChunks &p = g.p;
  const int parts = PASS == CU_WALK ? 1 : p.chunks, lane = (int)threadIdx.x % 32, M = g.waves.M, K = g.a.K;
  const long warp = (long)blockIdx.x * AGALITE_WARPS + threadIdx.x / 32;
  const int j = (int)(warp % g.key_parts) * 32 + lane, group = (int)(warp / g.key_parts % g.groups), m0 = group * GROUP;
  if (warp >= (long)p.heads * parts * g.groups * g.key_parts || j >= K) return;
  const int from = (int)(warp / g.key_parts / g.groups % parts), end = PASS == CU_WALK ? p.chunks : from + 1;
  const int bh = p.head + (int)(warp / g.key_parts / g.groups / parts), b = bh / g.a.H;
  const CuFeature f = cu_feature(g.a, j);
  float dx[GROUP], kept = 1.0f;
CU_UNROLL
  for (int m = 0; m < GROUP; m++) {
    const float *at = PASS == CU_ENDS || m0 + m > M ? NULL
                    : PASS == CU_READ ? cu_state_of(g, bh, from, M + 1, m0 + m, g.Kp) + j
                    : cu_keys_at(g, g.first, bh, m0 + m, j);
    dx[m] = at ? *at : 0.0f;
  }
  for (int c = end - 1; c >= from; c--) {
    const int begin = cu_begin(p, c), n = cu_tokens(p, c);
    const float *saved = cu_agalite_saved(g, bh, begin) + HEADER + j;
    float was[CU_L][GROUP], x[GROUP];
CU_UNROLL
    for (int m = 0; m < GROUP; m++) x[m] = PASS != CU_ENDS && m0 + m <= M ? saved[(m0 + m) * (long)g.Kp] : 0.0f;
CU_UNROLL
    for (int t = 0; t < CU_L; t++) {
      if (PASS == CU_ENDS || t >= n) continue;
      const long token = cu_token(p, begin + t, bh);
      const bool reset = g.a.done && g.a.done[(long)(begin + t) * g.a.B + b];
      const CuKey key = cu_key(g.a, f, token, cu_keep(g.a, begin + t, b, token));
CU_UNROLL
      for (int m = 0; m < GROUP; m++) {
        const float w = m0 + m < M ? wave_at(g, begin + t, bh, m0 + m) : 1.0f;
        was[t][m] = reset ? 0.0f : x[m];
        x[m] = fmaf(key.decay, was[t][m], key.write * w);
      }
    }
CU_UNROLL
    for (int back = 0; back < CU_L; back++) {
      const int t = CU_L - 1 - back;
      if (t >= n) continue;
      const long token = cu_token(p, begin + t, bh), row = cu_place(p, bh, c) * CU_L + t;
      const bool reset = g.a.done && g.a.done[(long)(begin + t) * g.a.B + b];
      const CuKey key = cu_key(g.a, f, token, cu_keep(g.a, begin + t, b, token));
      float dq = 0.0f, dwrite = 0.0f, ddecay = 0.0f;
      kept *= key.decay;
CU_UNROLL
      for (int m = 0; m < GROUP; m++) {
        if (m0 + m > M) continue;
        const float to = g.dkappa[row * (M + 1) + m0 + m], d = fmaf(to, key.q, dx[m]);
        dx[m] = reset ? 0.0f : d * key.decay;
        if (PASS == CU_ENDS) continue;
        const float w = m0 + m < M ? wave_at(g, begin + t, bh, m0 + m) : 1.0f, after = fmaf(key.decay, was[t][m], key.write * w);
        dq = fmaf(to, after, dq);
        dwrite = fmaf(d, w, dwrite);
        ddecay = fmaf(d, was[t][m], ddecay);
      }
      float *to = g.keys + ((long)group * p.heads * p.chunks * CU_L + row) * 3 * K + j;
      if (PASS != CU_ENDS) to[0] = dq, to[K] = dwrite, to[2L * K] = ddecay;
    }
  }
  if (PASS == CU_ENDS && m0 == 0) g.kept[cu_place(p, bh, from) * g.Kp + j] = kept;
  if (PASS == CU_READ && from) return;
CU_UNROLL
  for (int m = 0; m < GROUP; m++) {
    float *to = m0 + m > M ? NULL : PASS == CU_ENDS ? cu_state_of(g, bh, from, M + 1, m0 + m, g.Kp) + j
              : cu_keys_at(g, g.last, bh, m0 + m, j);
    if (to) *to = dx[m];
  }
}

static unsigned blocks_of(long warps) { return (unsigned)cu_parts(warps, AGALITE_WARPS); }

template <CuPass PASS> static void walk_back(const Agalite &g, const float *dy, const mn_attention &of, bool keys) {
  const long walks = (long)g.p.heads * (PASS == CU_WALK ? 1 : g.p.chunks);
  if (keys) CU_LAUNCH(keys_backward<PASS>, blocks_of(walks * g.groups * g.key_parts), 32 * AGALITE_WARPS, 0, g);
  else CU_LAUNCH(values_backward<PASS>, blocks_of(walks * g.value_parts), 32 * AGALITE_WARPS, 0, g, dy, cu_value_grads(&of));
}

void cu_agalite_backward(mn_call *c) {
  mn_attention of;
  Agalite g = cu_agalite(c, 0, DIM(c, 'T'), &of);
  const CuChunks &p = g.p;
  const mn_arg *in = c->in, *out = c->out;
  const float *dy = out[OUT_Y].grad;
  const long M = g.waves.M, groups = cu_parts(M, GROUP);
  g.first = { out[OUT_VS].grad, out[OUT_KS].grad, out[OUT_S].grad };
  g.last = { in[IN_VS].grad, in[IN_KS].grad, in[IN_S].grad };
  const bool side_by_side = cu_agalite_side_by_side(g);
  const long token = (M + 1) * g.key_parts + 2 * (M + 1) + M + M * g.value_parts + 3L * g.groups * g.a.K;
  const long chunk = token * CU_L + (side_by_side ? cu_agalite_states(g) : 0);
  g.p.heads = (int)cu_max(1L, cu_min((long)g.a.B * g.a.H, 3 * CU_SLICE / (chunk * p.chunks)));
  const long tokens = (long)p.heads * p.chunks * CU_L;
  g.w = mn_scratch(c->ctx, 1, (long)g.a.B * g.a.T * M);
  g.found = mn_scratch(c->ctx, 0, chunk * p.heads * p.chunks);
  g.kappa = g.found + tokens * (M + 1) * g.key_parts;
  g.dkappa = g.kappa + tokens * (M + 1);
  g.factor = g.dkappa + tokens * (M + 1);
  g.along = g.factor + tokens * M;
  g.keys = g.along + tokens * M * g.value_parts;
  cu_agalite_set_states(&g, side_by_side, g.keys + 3L * g.groups * g.a.K * tokens);
  cu_agalite_waves(&g);
  CU_SLICES(g.p) {
    const long places = (long)p.heads * p.chunks;
    const CuKeyGrads grads = { g.keys, g.groups, places * CU_L * 3 * g.a.K, p.head, p.heads, p.chunks };
    cu_agalite_keys(&g, true);
    CU_LAUNCH(values_again, blocks_of(places * groups * g.value_parts), 32 * AGALITE_WARPS, 0, g, dy, (int)groups);
    CU_LAUNCH(found_back, cu_blocks(places * CU_L), CU_THREADS, 0, g);
    for (int keys = 0; keys < 2; keys++)
      if (side_by_side) {
        walk_back<CU_ENDS>(g, dy, of, keys);
        cu_agalite_scan(&g, keys, true);
        walk_back<CU_READ>(g, dy, of, keys);
      } else walk_back<CU_WALK>(g, dy, of, keys);
    cu_keys_fold(&g.a, &grads, &of);
  }
}
