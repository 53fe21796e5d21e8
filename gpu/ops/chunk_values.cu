/* chunk_values.cu -- the values' side of matrix memories (chunk.cuh): denominators, gradients of values and their gates. */
#include "lib/galite_decay.cuh"
#include "lib/chunk_backward.cuh"

/* y of a row: num over the denominator of z.  2 reads and a write of V numbers a token; the last of forward's launches. */
CU_KERNEL divide(const CuChunks &p, const CuDivision &den, cu_divisor columns, long all) {
  const long first = (long)p.t0 / p.keys * p.B * p.H;
  CU_LOOP(i, all) {
    long column;
    const long token = first + columns.divide(i, &column);
    p.y[token * p.V + column] /= cu_den(den.normalise, den.scale, den.eps, den.clamp, p.z ? p.z[token] : 0.0f).value;
  }
}

void cu_chunk_divide(const CuChunks *p, const CuDivision *den) {
  const long all = (long)(p->t1 - p->t0) / p->keys * p->B * p->H * p->V;
  if (den->normalise || den->scale != 1.0f)
    CU_LAUNCH(divide, cu_blocks(all, 4), CU_THREADS, 0, *p, *den, cu_divisor(p->V), all);
}

/* A warp is a token: dnum = dy / den, and z's gradient from that of num along num, which is that of y along y. */
CU_KERNEL read_dy(const CuChunks &p, const CuDivision &den, const float *y, const float *dy) {
  const int lane = (int)threadIdx.x % 32;
  const long row = ((long)blockIdx.x * CU_THREADS + threadIdx.x) / 32;
  if (row >= (long)p.heads * p.chunks * CU_L) return;
  const int c = (int)(row / CU_L % p.chunks), bh = p.head + (int)(row / CU_L / p.chunks), i = (int)(row % CU_L);
  const bool real = dy && i < cu_tokens(p, c) && cu_reads(p, cu_begin(p, c) + i);
  const long token = cu_step(p, cu_begin(p, c) + i, bh);
  const CuDenominator d = cu_den(den.normalise, den.scale, den.eps, den.clamp, real && p.z ? p.z[token] : 0.0f);
  float *to = p.dy + row * p.cols, along = 0.0f;
  for (int j = lane; j < p.V; j += 32) {
    const float g = real ? dy[token * p.V + j] : 0.0f;
    to[j] = g / d.value;
    if (real && den.normalise) along = fmaf(g, y[token * p.V + j], along);
  }
  along = cu_warp_sum(along);
  if (lane == 0 && p.cols > p.V) to[p.V] = real ? -d.slope * along / d.value : 0.0f;
}

void cu_chunk_dy(const CuChunks *p, const CuDivision *den, const float *y, const float *dy) {
  const long rows = (long)p->heads * p->chunks * CU_L;
  CU_LAUNCH(read_dy, (unsigned)cu_parts(rows * 32, CU_THREADS), CU_THREADS, 0, *p, *den, y, dy);
}

/* A block is a chunk of a head, a thread a column: some 4 L operations a token and value. */
CU_KERNEL values_back(const CuChunks &p, float *dv, float *dgate, float *dkeep) {
  const int c = (int)(blockIdx.x % (unsigned)p.chunks), bh = p.head + (int)(blockIdx.x / (unsigned)p.chunks);
  const int begin = cu_begin(p, c), n = cu_tokens(p, c);
  const long place = cu_place(p, bh, c);
  const unsigned resets = cu_resets(p, bh, begin, n);
  const bool pair = p.tables > 1;
  cu_smem<float> scores = CU_SHARED(float, 0);
  for (int i = (int)threadIdx.x; i < CU_PAIRS; i += (int)blockDim.x) scores[i] = p.scores[place * p.tables * CU_PAIRS + i];
  __syncthreads();
  for (int i = (int)threadIdx.x; i < p.V; i += (int)blockDim.x) {
    float decay[CU_L], value[CU_L], dy[CU_L], dvalue[CU_L], ddecay[CU_L], dread[CU_L];
CU_UNROLL
    for (int t = 0; t < CU_L; t++) {
      const long token = cu_token(p, begin + t, bh), at = (place * CU_L + t) * p.cols + i;
      decay[t] = t < n ? cu_value_kept(p, token, i) : 1.0f;
      value[t] = t < n ? cu_value(p, token, i) : 0.0f;
      dy[t] = p.dy[at];
      dvalue[t] = p.dvalues[at];
      dread[t] = p.read ? dy[t] * p.read[at] : 0.0f;
      ddecay[t] = 0.0f;
    }
    if (!pair) {
      float unused[CU_L], ones[CU_L];
CU_UNROLL
      for (int t = 0; t < CU_L; t++) unused[t] = 0.0f, ones[t] = 1.0f;
      if (p.fades) cu_prefix_back<false, true>(decay, NULL, ones, p.dkept_v[place * p.cols + i], NULL, dread, ddecay);
      cu_key_back<false, true>(resets, decay, value, NULL, dy, scores, scores, dvalue, NULL, unused, ddecay);
    }
CU_UNROLL
    for (int t = 0; t < CU_L; t++) {
      if (t >= n) continue;
      const long at = cu_token(p, begin + t, bh) * p.V + i;
      const float to_kept = resets >> t & 1 ? 0.0f : ddecay[t];
      if (dv) dv[at] = p.gate_v ? dvalue[t] * p.gate_v[at] : dvalue[t];
      if (dgate) dgate[at] = fmaf(dvalue[t], p.v[at], p.fades && !p.keep_v ? -to_kept : 0.0f);
      if (dkeep) dkeep[at] = to_kept;
    }
  }
}

void cu_chunk_values_back(const CuChunks *p, float *dv, float *dgate, float *dkeep) {
  const int threads = cu_min((int)CU_SIDE_THREADS, cu_round_up(p->V, 32));
  if (dv || dgate || dkeep)
    CU_LAUNCH(values_back, (unsigned)(p->heads * p->chunks), (unsigned)threads, sizeof(float) * CU_PAIRS, *p, dv, dgate, dkeep);
}
