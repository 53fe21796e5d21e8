/* policy.h -- log-probabilities, entropy and samples of a policy from its logits. */
#ifndef MN_POLICY_H
#define MN_POLICY_H
#include "numerics/fast_math.h"
#include "op.h"

/* p = softmax(logit), and log(sum of e^logit) */
static inline float mn_policy(const float *logit, float *p, int A) {
  float top = logit[0], sum = 0;
  for (int a = 1; a < A; a++) top = logit[a] > top ? logit[a] : top;
  for (int a = 0; a < A; a++) sum += p[a] = mn_expf(logit[a] - top);
  for (int a = 0; a < A; a++) p[a] /= sum;
  return top + mn_logf(sum);
}

/* -sum p log p */
static inline float mn_entropy(const float *logit, const float *p, float lse, int A) {
  float h = 0;
  for (int a = 0; a < A; a++) h += p[a] > 0 ? p[a] * (lse - logit[a]) : 0;
  return h;
}

/* The action's logit, or NaN where a replayed plan meets an action that does not exist. */
static inline float mn_chosen(const float *logit, int action, int A) {
  return action >= 0 && action < A ? logit[action] : __builtin_nanf("");
}

/* The index that a uniform u in [0, 1) draws from softmax(logit). */
static inline int mn_drawn(const float *logit, int A, float u) {
  float top = logit[0], sum = 0;
  for (int a = 1; a < A; a++) top = logit[a] > top ? logit[a] : top;
  for (int a = 0; a < A; a++) sum += mn_expf(logit[a] - top);
  float left = u * sum;
  for (int a = 0; a < A - 1; a++) {
    left -= mn_expf(logit[a] - top);
    if (left < 0) return a;
  }
  return A - 1;
}

#endif
