/* policy.cuh -- log-probabilities and entropy of a policy from its logits, by a team of threads, shared by the
** actor-critic losses (engine/ops/policy.h). */
#pragma once
#include "row_teams.cuh"
extern "C" {
#include "numerics/fast_math.h"
}

struct cu_policy {
  float top, sum, lse, entropy;
  __device__ __forceinline__ float p(float logit) const { return mn_expf(logit - top) / sum; }
  /* p (log p + H): the entropy's slope, with its sign turned */
  __device__ __forceinline__ float spread(float logit, float p) const { return p > 0 ? p * (logit - lse + entropy) : 0.0f; }
};

/* All threads of the block must come; A = 0 where a team has no row. */
static __device__ __forceinline__ cu_policy cu_policy_of(const cu_team &team, const float *logit, int A) {
  cu_policy x = { -INFINITY, 0, 0, 0 };
  for (int a = team.lane; a < A; a += team.width) x.top = logit[a] > x.top ? logit[a] : x.top;
  x.top = team.max(x.top);
  for (int a = team.lane; a < A; a += team.width) x.sum += mn_expf(logit[a] - x.top);
  x.sum = team.sum(x.sum);
  x.lse = x.top + mn_logf(x.sum);
  for (int a = team.lane; a < A; a += team.width) {
    const float p = x.p(logit[a]);
    x.entropy += p > 0 ? p * (x.lse - logit[a]) : 0.0f;
  }
  x.entropy = team.sum(x.entropy);
  return x;
}

/* The action's logit, or NaN where a replayed plan meets an action that does not exist. */
static __device__ __forceinline__ float cu_chosen(const float *logit, int action, int A) {
  return action >= 0 && action < A ? logit[action] : NAN;
}
