/* agalite.cu -- AGaLiTe (engine/ops/agalite.c).  For the few rows of acting: one launch, a block per head, each thread computes
** some features and some values.  For more rows: features first, then values (agalite.cuh); with M channels some
** 4 (M+1) K + 4 M V operations per token and head, and inputs are read and y is written once; with chunks side by side inputs are
** read twice, for some 1.5 times the operations. */
#include "lib/agalite.cuh"
extern "C" {
#include "numerics/random.h"
}

enum { THREADS = 128, WARPS = THREADS / 32, STEPWISE = 4 };

static __device__ int period_of(const Waves &x) { return x.form != CODE ? x.r : x.r > 1 ? 2 * (x.r - 1) : 2; }

/* As clock_after of engine/ops/agalite.c. */
static __device__ float clock_after(const Waves &x, float tick, int steps) {
  const int most = 1 << 24;
  const float sum = tick + (float)steps;
  if (!(sum >= (float)most)) return sum;
  return (float)((lrintf(tick) + steps) % (x.form == RANDOM_SIGN ? most : period_of(x)));
}

/* Channel m's weight at time tau of row b: cos or sin of 2 pi (step * tau mod period) / period, exact for any tau, or a
** random sign (engine/numerics/random.h). */
static __device__ float wave(const Waves &x, int b, int m, long tau) {
  if (x.form == RANDOM_SIGN) {
    const float env = x.env ? x.env[b] : (float)b;
    const uint32_t whose = !x.env ? (uint32_t)b : env >= 0 && env < 16777216.0f ? (uint32_t)env : 0u;
    const uint32_t k[6] = { x.seed[0], x.seed[1], (uint32_t)tau, (uint32_t)((uint64_t)tau >> 32), whose,
                            MN_FOR_SIGNS + (uint32_t)(m / 128) };
    uint32_t word[4];
    mn_philox(k, word);
    return word[m % 128 / 32] >> (m % 32) & 1u ? 1.0f : -1.0f;
  }
  const int cosines = x.r / 2 + 1, period = period_of(x);
  bool sine = x.form == COSSIN && m >= cosines;
  int step = sine ? m - cosines + 1 : m;
  if (x.all && x.form != CODE) sine = x.form == COSSIN && m >= x.r, step = m % x.r;
  if (x.form == CODE) step = x.r > 1 ? 2 * m - (x.r - 1) : 1;
  const long phase = (step * tau % period + period) % period;
  const double half_turns = 2.0 * (double)phase / period;
  return (float)(sine ? cu_sinpi(half_turns) : cu_cospi(half_turns));
}

CU_KERNEL agalite_steps(const Agalite &g, int t0, int t1) {
  const int bh = (int)blockIdx.x, H = g.a.H, b = bh / H, tid = (int)threadIdx.x, M = g.waves.M, K = g.a.K, V = g.a.V;
  const long tick = lrintf(g.tick[b]);
  cu_smem<float> sums = CU_SHARED(float, 0);           /* [M+1][WARPS] */
  cu_smem<float> weights = sums + (M + 1) * WARPS;     /* [2][M], even and odd t */
  for (int t = t0; t < t1; t++) {
    const long token = ((long)t * g.a.B + b) * H + bh % H;
    const bool reset = g.a.done && g.a.done[(long)t * g.a.B + b];
    const float keep = reset ? 0.0f : 1.0f, keep_keys = cu_keep(g.a, t, b, token);
    const States &from = t == t0 ? g.first : g.last;
    float *saved = t % CU_L ? NULL : cu_agalite_saved(g, bh, t);
    if (saved && tid < HEADER) saved[tid] = tid ? 0.0f : g.tick[b];
    cu_smem<float> w = weights + t % 2 * M;
    for (int m = tid; m < M; m += THREADS) w[m] = wave(g.waves, b, m, tick + t + 1);
    __syncthreads();                                   /* weights are there, sums are free */

    for (int m = 0; m <= M; m++) {
      const float weight = m == M ? 1.0f : w[m];
      float sum = 0.0f;
      for (int j = tid; j < K; j += THREADS) {
        const float *old = cu_keys_at(g, from, bh, m, j);
        const float x = old ? *old : 0.0f;
        if (saved) saved[HEADER + (long)m * g.Kp + j] = x;
        const CuKey key = cu_key(g.a, cu_feature(g.a, j), token, keep_keys);
        const float now = fmaf(key.decay, reset ? 0.0f : x, key.write * weight);
        *cu_keys_at(g, g.last, bh, m, j) = now;
        sum = fmaf(now, key.q, sum);
      }
      sum = cu_warp_sum(sum);
      if (tid % 32 == 0) sums[m * WARPS + tid / 32] = sum;
    }
    __syncthreads();                                   /* sums are there */

    float z = 0.0f;
    for (int i = 0; i < WARPS; i++) z += sums[M * WARPS + i];
    const float den = cu_den(g.a.normalise, g.a.scale, g.a.eps, g.a.den_clamp, z).value;
    for (int i = tid; i < V; i += THREADS) {
      const float write = cu_written_v(g.a, token, i), decay = keep * cu_kept_v(g.a, token, i);
      float num = 0.0f;
      for (int m = 0; m < M; m++) {
        const float *old = cu_values_at(g, from, bh, m, i);
        const float x = old ? *old : 0.0f;
        if (saved) saved[HEADER + (M + 1L) * g.Kp + (long)m * g.Vp + i] = x;
        float kappa = 0.0f;
        for (int p = 0; p < WARPS; p++) kappa += sums[m * WARPS + p];
        const float now = fmaf(decay, reset ? 0.0f : x, write * w[m]);
        *cu_values_at(g, g.last, bh, m, i) = now;
        num = fmaf(now, kappa * cu_wave_weight(g.waves, m), num);
      }
      g.y[token * V + i] = num / den;
    }
  }
  if (bh % H == 0 && tid == 0) g.tick_out[b] = clock_after(g.waves, g.tick[b], t1);
}

/* ---- many rows ---- */

CU_KERNEL waves_of(const Agalite &g, cu_divisor M, cu_divisor rows, long all) {
  CU_LOOP(i, all) {
    long m, t;
    const long b = rows.divide(M.divide(i, &m), &t);
    t += g.p.t0;
    g.w[(b * g.a.T + t) * g.waves.M + m] = wave(g.waves, (int)b, (int)m, lrintf(g.tick[b]) + t + 1);
    if (t == g.p.t0 && m == 0 && g.tick_out) g.tick_out[b] = clock_after(g.waves, g.tick[b], g.p.t1);
  }
}

void cu_agalite_waves(const Agalite *g) {
  const long all = (long)g->a.B * (g->p.t1 - g->p.t0) * g->waves.M;
  CU_LAUNCH(waves_of, cu_blocks(all), CU_THREADS, 0, *g, cu_divisor(g->waves.M),
            cu_divisor(g->p.t1 - g->p.t0), all);
}

/* A thread is a value of a channel's state: from chunk to chunk, from the state that is given. */
CU_KERNEL scan(const Agalite &g, bool keys, bool back, cu_divisor numbers, cu_divisor channels, long all) {
  const CuChunks &p = g.p;
  const int wide = keys ? g.Kp : g.Vp, count = (int)channels.by;
  CU_LOOP(i, all) {
    long j, channel;
    const int bh = p.head + (int)channels.divide(numbers.divide(i, &j), &channel), m = (int)channel;
    const float *given = keys ? cu_keys_at(g, g.first, bh, m, (int)j) : cu_values_at(g, g.first, bh, m, (int)j);
    float x = given ? *given : 0.0f;
    for (int k = 0; k < p.chunks; k++) {
      const int c = back ? p.chunks - 1 - k : k;
      float *at = cu_state_of(g, bh, c, count, m, wide) + j;
      const float own = *at;
      bool reset = false;
      for (int t = 0; t < cu_tokens(p, c); t++) reset |= g.a.done && g.a.done[(cu_begin(p, c) + (long)t) * g.a.B + bh / g.a.H];
      *at = x;
      x = reset ? own : fmaf(g.kept[cu_place(p, bh, c) * wide + j], x, own);
    }
  }
}

void cu_agalite_scan(const Agalite *g, bool keys, bool back) {
  const long numbers = keys ? g->a.K : g->a.V, channels = g->waves.M + (keys ? 1L : 0L), all = g->p.heads * channels * numbers;
  CU_LAUNCH(scan, cu_blocks(all), CU_THREADS, 0, *g, keys, back, cu_divisor(numbers), cu_divisor(channels), all);
}

/* A warp is 32 features of a group of channels of a head, or of a chunk of it. */
template <CuPass PASS> CU_KERNEL keys_forward(const Agalite &g) {
  const CuChunks &p = g.p;
  const int parts = PASS == CU_WALK ? 1 : p.chunks, lane = (int)threadIdx.x % 32, M = g.waves.M;
  const long i = (long)blockIdx.x * AGALITE_WARPS + threadIdx.x / 32;
  if (i >= (long)p.heads * parts * g.groups * g.key_parts) return;
  const int part = (int)(i % g.key_parts), j = part * 32 + lane, m0 = (int)(i / g.key_parts % g.groups) * GROUP;
  const int from = (int)(i / g.key_parts / g.groups % parts), bh = p.head + (int)(i / g.key_parts / g.groups / parts);
  const int b = bh / g.a.H, end = PASS == CU_WALK ? p.chunks : from + 1;
  const bool real = j < g.a.K;
  const CuFeature f = cu_feature(g.a, real ? j : 0);
  float x[GROUP], kept = 1.0f;
CU_UNROLL
  for (int m = 0; m < GROUP; m++) {
    const float *at = PASS == CU_AGAIN ? cu_agalite_saved(g, bh, from * CU_L) + HEADER + (m0 + m) * (long)g.Kp + j
                    : PASS == CU_ENDS || m0 + m > M ? NULL
                    : PASS == CU_READ ? cu_state_of(g, bh, from, M + 1, m0 + m, g.Kp) + j
                    : cu_keys_at(g, g.first, bh, m0 + m, j);
    x[m] = real && m0 + m <= M && at ? *at : 0.0f;
  }
  for (int c = from; c < end; c++) {
    const int begin = cu_begin(p, c), n = cu_tokens(p, c);
    float sum[GROUP * CU_L], *saved = PASS == CU_AGAIN || PASS == CU_ENDS || begin % CU_L ? NULL : cu_agalite_saved(g, bh, begin);
CU_UNROLL
    for (int m = 0; m < GROUP; m++)
      if (saved && real && m0 + m <= M) saved[HEADER + (m0 + m) * (long)g.Kp + j] = x[m];
CU_UNROLL
    for (int t = 0; t < CU_L; t++) {
      CuKey key = { 0.0f, 0.0f, 1.0f };
      const long token = cu_token(p, begin + t, bh);
      bool reset = false;
      if (t < n) {
        reset = g.a.done && g.a.done[(long)(begin + t) * g.a.B + b];
        if (real) key = cu_key(g.a, f, token, cu_keep(g.a, begin + t, b, token));
      }
      kept *= key.decay;
CU_UNROLL
      for (int m = 0; m < GROUP; m++) {
        const float w = t < n && m0 + m < M ? g.w[((long)b * g.a.T + begin + t) * M + m0 + m] : 1.0f;
        x[m] = fmaf(key.decay, reset ? 0.0f : x[m], key.write * w);
        sum[m * CU_L + t] = x[m] * key.q;
      }
    }
    if (PASS != CU_ENDS) cu_warp_sums(sum, lane);
CU_UNROLL
    for (int s = 0; s < 2; s++) {
      const int m = m0 + (2 * lane + s) / CU_L, t = (2 * lane + s) % CU_L;
      if (PASS != CU_ENDS && m <= M) g.found[((cu_place(p, bh, c) * CU_L + t) * (M + 1) + m) * g.key_parts + part] = sum[s];
    }
  }
  if (PASS == CU_ENDS && real && m0 == 0) g.kept[cu_place(p, bh, from) * g.Kp + j] = kept;
  const bool stores = PASS != CU_AGAIN && (PASS == CU_ENDS || end == p.chunks);
CU_UNROLL
  for (int m = 0; m < GROUP; m++)
    if (stores && real && m0 + m <= M)
      *(PASS == CU_ENDS ? cu_state_of(g, bh, from, M + 1, m0 + m, g.Kp) + j : cu_keys_at(g, g.last, bh, m0 + m, j)) = x[m];
}

/* A thread is a token: kappa and the channels' factors. */
CU_KERNEL factors(const Agalite &g) {
  const int M = g.waves.M;
  CU_LOOP(i, (long)g.p.heads * g.p.chunks * CU_L) {
    float *kappa = g.kappa + i * (M + 1);
    for (int m = 0; m <= M; m++) {
      float sum = 0.0f;
      for (int part = 0; part < g.key_parts; part++) sum += g.found[(i * (M + 1) + m) * g.key_parts + part];
      kappa[m] = sum;
    }
    const float den = cu_den(g.a.normalise, g.a.scale, g.a.eps, g.a.den_clamp, kappa[M]).value;
    for (int m = 0; m < M; m++) g.factor[i * M + m] = cu_wave_weight(g.waves, m) * kappa[m] / den;
  }
}

template <CuPass PASS> static void run_keys(const Agalite *g) {
  const long warps = (long)g->p.heads * (PASS == CU_WALK ? 1 : g->p.chunks) * g->groups * g->key_parts;
  CU_LAUNCH(keys_forward<PASS>, (unsigned)cu_parts(warps, AGALITE_WARPS), 32 * AGALITE_WARPS, 0, *g);
}

void cu_agalite_keys(const Agalite *g, bool again) {
  if (again) run_keys<CU_AGAIN>(g);
  else if (g->states) {
    run_keys<CU_ENDS>(g);
    cu_agalite_scan(g, true, false);
    run_keys<CU_READ>(g);
  } else run_keys<CU_WALK>(g);
  CU_LAUNCH(factors, cu_blocks((long)g->p.heads * g->p.chunks * CU_L), CU_THREADS, 0, *g);
}

/* A warp is 32 values of a head, or of a chunk of it, a group of channels after the other. */
template <CuPass PASS> CU_KERNEL values_forward(const Agalite &g) {
  const CuChunks &p = g.p;
  const int parts = PASS == CU_WALK ? 1 : p.chunks, lane = (int)threadIdx.x % 32, M = g.waves.M;
  const long warp = (long)blockIdx.x * AGALITE_WARPS + threadIdx.x / 32;
  const int i = (int)(warp % g.value_parts) * 32 + lane;
  if (warp >= (long)p.heads * parts * g.value_parts || i >= g.a.V) return;
  const int from = (int)(warp / g.value_parts % parts), bh = p.head + (int)(warp / g.value_parts / parts), b = bh / g.a.H;
  const int end = PASS == CU_WALK ? p.chunks : from + 1;
  for (int m0 = 0; m0 < M; m0 += GROUP) {
    float x[GROUP], kept = 1.0f;
CU_UNROLL
    for (int m = 0; m < GROUP; m++) {
      const float *at = PASS == CU_ENDS || m0 + m >= M ? NULL
                      : PASS == CU_READ ? cu_state_of(g, bh, from, M, m0 + m, g.Vp) + i
                      : cu_values_at(g, g.first, bh, m0 + m, i);
      x[m] = at ? *at : 0.0f;
    }
    for (int c = from; c < end; c++) {
      const int begin = cu_begin(p, c), n = cu_tokens(p, c);
      float *saved = PASS == CU_ENDS || begin % CU_L ? NULL : cu_agalite_saved(g, bh, begin);
      if (saved && i == 0 && m0 == 0) saved[0] = g.tick[b];
CU_UNROLL
      for (int m = 0; m < GROUP; m++)
        if (saved && m0 + m < M) saved[HEADER + (M + 1L) * g.Kp + (m0 + m) * (long)g.Vp + i] = x[m];
CU_UNROLL
      for (int t = 0; t < CU_L; t++) {
        if (t >= n) continue;
        const long token = cu_token(p, begin + t, bh), row = cu_place(p, bh, c) * CU_L + t;
        const bool reset = g.a.done && g.a.done[(long)(begin + t) * g.a.B + b];
        const float write = cu_written_v(g.a, token, i), decay = cu_kept_v(g.a, token, i);
        float y = m0 && PASS != CU_ENDS ? g.y[token * g.a.V + i] : 0.0f;
        kept *= decay;
CU_UNROLL
        for (int m = 0; m < GROUP; m++) {
          if (m0 + m >= M) continue;
          const float w = g.w[((long)b * g.a.T + begin + t) * M + m0 + m], old = reset ? 0.0f : x[m];
          x[m] = fmaf(decay, old, write * w);
          if (PASS != CU_ENDS) y = fmaf(g.factor[row * M + m0 + m], x[m], y);
        }
        if (PASS != CU_ENDS) g.y[token * g.a.V + i] = y;
      }
    }
    if (PASS == CU_ENDS && m0 == 0) g.kept[cu_place(p, bh, from) * g.Vp + i] = kept;
    if (PASS == CU_READ && end < p.chunks) continue;
CU_UNROLL
    for (int m = 0; m < GROUP; m++)
      if (m0 + m < M)
        *(PASS == CU_ENDS ? cu_state_of(g, bh, from, M, m0 + m, g.Vp) + i : cu_values_at(g, g.last, bh, m0 + m, i)) = x[m];
  }
}

template <CuPass PASS> static void run_values(const Agalite *g) {
  const long warps = (long)g->p.heads * (PASS == CU_WALK ? 1 : g->p.chunks) * g->value_parts;
  CU_LAUNCH(values_forward<PASS>, (unsigned)cu_parts(warps, AGALITE_WARPS), 32 * AGALITE_WARPS, 0, *g);
}

Agalite cu_agalite(const mn_call *c, int t0, int t1, mn_attention *of) {
  const mn_arg *in = c->in, *out = c->out;
  Agalite g = {};
  mn_attention &a = *of;
  mn_attention_open(&a, c, "agalite", 2);
  Waves &w = g.waves;
  w.form = (int)OPT(c, 0), w.r = (int)OPT(c, 1), w.M = out[OUT_VS].shape[1];
  w.all = OPT(c, 5) != 0 && w.form != RANDOM_SIGN;
  mn_random_key(OPT(c, 6), w.seed);
  w.env = in[IN_ENV].data;
  mn_attention_beta_of_values(&a);
  a.scale = w.form == RANDOM_SIGN ? 1.0f : w.form == COSSIN ? (float)w.r : 2.0f * (float)w.r;
  g.a = cu_gated_inputs(&a);
  g.p.K = g.a.K;
  cu_chunks_set(&g.p, c, false, false, t0, t1);
  g.p.done = g.a.done;
  g.tick = in[IN_TICK].data;
  g.saved = out[OUT_SAVED].data;
  g.Kp = a.Kp, g.Vp = a.Vp;
  g.key_parts = (int)cu_parts(g.a.K, 32), g.value_parts = (int)cu_parts(g.a.V, 32);
  g.groups = (int)cu_parts(w.M + 1, GROUP);
  return g;
}

static void forward(mn_call *c) {
  mn_attention of;
  Agalite g = cu_agalite(c, c->t0, c->t1, &of);
  const int M = g.waves.M;
  const States given = { c->in[IN_VS].data, c->in[IN_KS].data, c->in[IN_S].data };
  g.last = { c->out[OUT_VS].data, c->out[OUT_KS].data, c->out[OUT_S].data };
  g.first = c->t0 ? g.last : given;
  g.y = c->out[OUT_Y].data, g.tick_out = c->out[OUT_TICK].data;
  const size_t shared = sizeof(float) * ((size_t)(M + 1) * WARPS + 2 * (size_t)M);
  if (c->t1 - c->t0 < STEPWISE && shared <= 48 << 10) {
    CU_LAUNCH(agalite_steps, (unsigned)(g.a.B * g.a.H), THREADS, shared, g, c->t0, c->t1);
    return;
  }
  const bool side_by_side = cu_agalite_side_by_side(g);
  const long states = side_by_side ? cu_agalite_states(g) : 0;
  const long each = (long)g.p.chunks * (CU_L * ((M + 1L) * g.key_parts + M + 1 + M) + states);
  g.p.heads = (int)cu_max(1L, cu_min((long)g.a.B * g.a.H, CU_SLICE / each));
  const long tokens = (long)g.p.heads * g.p.chunks * CU_L;
  g.w = mn_scratch(c->ctx, 1, (long)g.a.B * g.a.T * M);
  g.found = mn_scratch(c->ctx, 0, each * g.p.heads);
  g.kappa = g.found + tokens * (M + 1) * g.key_parts;
  g.factor = g.kappa + tokens * (M + 1);
  cu_agalite_set_states(&g, side_by_side, g.factor + tokens * M);
  cu_agalite_waves(&g);
  CU_SLICES(g.p) {
    cu_agalite_keys(&g, false);
    if (side_by_side) {
      run_values<CU_ENDS>(&g);
      cu_agalite_scan(&g, false, false);
      run_values<CU_READ>(&g);
    } else run_values<CU_WALK>(&g);
  }
}

MN_KERNEL(agalite, forward, cu_agalite_backward)
