/* attention_weights.cuh -- the attention weights of one row, as engine/attention/attention_weights.h on the CPU.  They are
** for display, so one warp per head is enough. */
#pragma once
#include "runtime/kernel.cuh"
#include "numerics/fast_math.h"
extern "C" {
#include "attention/attention_weights.h"
}

/* q.k over the root of D, by one lane; `more` is added to q, NULL: zeros. */
static __device__ __forceinline__ float cu_weight_score(int D, const float *q, const float *more, const float *k) {
  float sum = 0;
  for (int d = 0; d < D; d++) sum = fmaf(q[d] + (more ? more[d] : 0), k[d], sum);
  return sum / sqrtf((float)D);
}

/* From n scores, left in `weight` by the lanes of this warp, to their softmax; entries n .. N-1 become 0. */
static __device__ __forceinline__ void cu_weights_finish(mn_weight *w, int n, int N) {
  const int lane = (int)threadIdx.x % 32;
  float top = -__builtin_inff();
  double sum = 0;
  __syncwarp();
  for (int i = lane; i < n; i += 32) top = w[i].weight > top ? w[i].weight : top;
  for (int by = 16; by > 0; by >>= 1) top = cu_max(top, __shfl_xor_sync(0xffffffffu, top, by));
  for (int i = lane; i < n; i += 32) sum += w[i].weight = mn_expf(w[i].weight - top);
  for (int by = 16; by > 0; by >>= 1) sum += __shfl_xor_sync(0xffffffffu, sum, by);
  for (int i = lane; i < n; i += 32) w[i].weight = (float)(w[i].weight / sum);
  for (int i = n + lane; i < N; i += 32) w[i] = { 0, 0, 0 };
}
