/* policy.h -- log-probabilities, entropy and samples of a policy from its logits. */
#ifndef MN_POLICY_H
#define MN_POLICY_H
#include "numerics/fast_math.h"
#include "op.h"

/* Of n <= MN_POLICIES rows p = softmax(logit), lse = log(sum of e^logit) and entropy = -sum p log p, a vector of rows at a time; value a of
** row i is at a * MN_POLICIES + i of `logit` and `p`. */
enum { MN_POLICIES = 64 };
typedef struct mn_policies { float *logit, *p, lse[MN_POLICIES], entropy[MN_POLICIES]; } mn_policies;

static inline long mn_policies_room(int A) { return 2L * A * MN_POLICIES; }

static inline void mn_policies_of(const float *logits, int n, int A, float *room, mn_policies *to) {
  float *const l = to->logit = room, *const p = to->p = room + (long)A * MN_POLICIES, *const lse = to->lse, *const h = to->entropy;
  float top[MN_POLICIES], sum[MN_POLICIES] = { 0 };
  for (int i = 0; i < n; i++) for (int a = 0; a < A; a++) l[a * MN_POLICIES + i] = logits[i * A + a];
  for (int i = 0; i < n; i++) top[i] = l[i];
  for (int a = 1; a < A; a++) {
    const float *x = l + a * MN_POLICIES;
    MN_PRAGMA(omp simd)
    for (int i = 0; i < n; i++) top[i] = x[i] > top[i] ? x[i] : top[i];
  }
  for (int a = 0; a < A; a++) {
    const float *x = l + a * MN_POLICIES;
    float *e = p + a * MN_POLICIES;
    MN_PRAGMA(omp simd)
    for (int i = 0; i < n; i++) sum[i] += e[i] = mn_expf(x[i] - top[i]);
  }
  MN_PRAGMA(omp simd)
  for (int i = 0; i < n; i++) lse[i] = top[i] + mn_logf(sum[i]);
  for (int i = 0; i < n; i++) h[i] = 0;
  for (int a = 0; a < A; a++) {
    const float *x = l + a * MN_POLICIES;
    float *e = p + a * MN_POLICIES, *const part = top;              /* rounded before it is added, on every machine */
    MN_PRAGMA(omp simd)
    for (int i = 0; i < n; i++) {
      e[i] /= sum[i];
      part[i] = e[i] * (lse[i] - x[i]);
    }
    MN_PRAGMA(omp simd)
    for (int i = 0; i < n; i++) h[i] += e[i] > 0 ? part[i] : 0;
  }
}

/* The action's logit, or NaN where a replayed plan meets an action that does not exist. */
static inline float mn_chosen(const float *logit, int action, int A) {
  return action >= 0 && action < A ? logit[action] : __builtin_nanf("");
}

/* The index that a uniform u in [0, 1) draws from softmax(logit); where rounding leaves none, the last that is not masked. */
static inline int mn_drawn(const float *logit, int A, float u) {
  float top = logit[0], sum = 0;
  for (int a = 1; a < A; a++) top = logit[a] > top ? logit[a] : top;
  for (int a = 0; a < A; a++) sum += mn_expf(logit[a] - top);
  float left = u * sum;
  for (int a = 0; a < A - 1; a++) {
    left -= mn_expf(logit[a] - top);
    if (left < 0) return a;
  }
  int last = A - 1;
  while (last > 0 && logit[last] - top < -105) last--;
  return last;
}

#endif
