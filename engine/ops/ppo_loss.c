/* ppo_loss.c -- the clipped loss of PPO in one op (Schulman et al. 2017, equations 7 and 9).
** With r = pi(a) / pi_old(a), and A normalised over the batch to mean 0 and (population) deviation 1:
**   policy = mean max(-A r, -A clip(r, 1-clip, 1+clip))       value = 0.5 mean (V - G)^2
**   loss = policy - entropy_coef entropy + value_coef value
** clip_values: 0.5 mean max((V - G)^2, (V_old + clip(V - V_old) - G)^2), as in OpenAI's baselines.
** Everything but logits and values is a constant.  approx_kl = mean((r-1) - log r) (Schulman 2020, "Approximating
** KL divergence"); clip_fraction: the share of |r-1| > clip.  over_ranks: the batch is divided equally among
** processes, and A is normalised over all of it. */
#include <math.h>
#include <string.h>
#include "policy.h"

enum { IN_LOGITS, IN_VALUES, IN_ACTIONS, IN_OLD_LOG_PROBS, IN_OLD_VALUES, IN_ADVANTAGES, IN_RETURNS };
enum { CLIP, ENTROPY_COEF, VALUE_COEF, CLIP_VALUES, NORMALISE, OVER_RANKS };

static float clipped(float x, float low, float high) { return mn_at_most(mn_at_least(x, low), high); }

/* (exp(x) - 1) - x, from its series where the difference would lose its digits; r = exp(x). */
static double excess(double x, double r) {
  if (x < -0.125 || x > 0.125) return (r - 1) - x;
  return x * x * (1.0 / 2 + x * (1.0 / 6 + x * (1.0 / 24 + x * (1.0 / 120 + x / 720))));
}

/* What advantages are shifted and scaled by. */
static void normaliser(const mn_call *c, double *mean, double *scale) {
  const mn_arg *a = &c->in[IN_ADVANTAGES];
  bool over_ranks = OPT(c, OVER_RANKS) != 0;
  double sum = 0, squares = 0, n = (double)a->n * (over_ranks ? mn_ranks() : 1);
  *mean = 0, *scale = 1;
  if (OPT(c, NORMALISE) == 0) return;
  for (long i = 0; i < a->n; i++) sum += a->data[i];
  if (over_ranks) mn_ranks_sum(&sum, 1);
  *mean = sum / n;
  for (long i = 0; i < a->n; i++) squares += (a->data[i] - *mean) * (a->data[i] - *mean);
  if (over_ranks) mn_ranks_sum(&squares, 1);
  *scale = 1 / (sqrt(squares / n) + 1e-8);
}

/* The value loss of one row; its derivative by V in *slope. */
static float value_error(const mn_call *c, long i, float *slope) {
  float v = c->in[IN_VALUES].data[i], old = c->in[IN_OLD_VALUES].data[i], g = c->in[IN_RETURNS].data[i];
  float clip = (float)OPT(c, CLIP), error = v - g;
  *slope = error;
  if (OPT(c, CLIP_VALUES) == 0) return 0.5f * error * error;
  float near = old + clipped(v - old, -clip, clip) - g;
  if (near * near <= error * error) return 0.5f * error * error;
  *slope = v - old > -clip && v - old < clip ? near : 0;
  return 0.5f * near * near;
}

static void forward(mn_call *c) {
  int A = DIM(c, 'A');
  long n = c->in[IN_VALUES].n;
  float *p = mn_scratch(c->ctx, 0, A), clip = (float)OPT(c, CLIP), unused;
  double mean, scale, policy = 0, value = 0, entropy = 0, kl = 0, outside = 0;
  normaliser(c, &mean, &scale);
  for (long i = 0; i < n; i++) {
    const float *logit = c->in[IN_LOGITS].data + i * A;
    float lse = mn_policy(logit, p, A);
    float log_ratio = mn_chosen(logit, c->in[IN_ACTIONS].i32[i], A) - lse - c->in[IN_OLD_LOG_PROBS].data[i];
    float r = mn_expf(log_ratio), advantage = (float)((c->in[IN_ADVANTAGES].data[i] - mean) * scale);
    policy += (double)mn_at_least(-advantage * r, -advantage * clipped(r, 1 - clip, 1 + clip));
    value += (double)value_error(c, i, &unused);
    entropy += (double)mn_entropy(logit, p, lse, A);
    kl += excess((double)log_ratio, (double)r);
    outside += r - 1 > clip || r - 1 < -clip;
  }
  policy /= (double)n, value /= (double)n, entropy /= (double)n;
  c->out[0].data[0] = (float)(policy - OPT(c, ENTROPY_COEF) * entropy + OPT(c, VALUE_COEF) * value);
  c->out[1].data[0] = (float)policy;
  c->out[2].data[0] = (float)value;
  c->out[3].data[0] = (float)entropy;
  c->out[4].data[0] = (float)(kl / (double)n);
  c->out[5].data[0] = (float)(outside / (double)n);
}

/* Over n: dlogit = -A r ([chosen] - p) where the unclipped part counts, + entropy_coef p (log p + H). */
static void backward(mn_call *c) {
  int A = DIM(c, 'A');
  long n = c->in[IN_VALUES].n;
  float *dlogits = c->in[IN_LOGITS].grad, *dvalues = c->in[IN_VALUES].grad, share = c->out[0].grad[0] / (float)n;
  float *p = mn_scratch(c->ctx, 0, A), clip = (float)OPT(c, CLIP), e = (float)OPT(c, ENTROPY_COEF);
  double mean, scale;
  normaliser(c, &mean, &scale);
  for (long i = 0; i < n; i++) {
    const float *logit = c->in[IN_LOGITS].data + i * A;
    float slope, advantage = (float)((c->in[IN_ADVANTAGES].data[i] - mean) * scale);
    value_error(c, i, &slope);
    if (dvalues) dvalues[i] = (float)OPT(c, VALUE_COEF) * share * slope;
    if (!dlogits) continue;
    int action = c->in[IN_ACTIONS].i32[i];
    float lse = mn_policy(logit, p, A), h = mn_entropy(logit, p, lse, A);
    float r = mn_expf(mn_chosen(logit, action, A) - lse - c->in[IN_OLD_LOG_PROBS].data[i]);
    float counts = -advantage * r >= -advantage * clipped(r, 1 - clip, 1 + clip) ? advantage * r : 0;
    for (int a = 0; a < A; a++) {
      float chosen = a == action, spread = p[a] > 0 ? p[a] * (logit[a] - lse + h) : 0;
      dlogits[i * A + a] = share * (counts * (p[a] - chosen) + e * spread);
    }
  }
  for (int i = IN_OLD_LOG_PROBS; i <= IN_RETURNS; i++)
    if (c->in[i].grad) memset(c->in[i].grad, 0, (size_t)c->in[i].n * sizeof(float));
}

const mn_op mn_op_ppo_loss = {
  .sig = "logits[T,B,A] values[T,B] actions[T,B]:<A old_log_probs[T,B] old_values[T,B] advantages[T,B] returns[T,B]"
         " -> loss[1] ~policy_loss[1] ~value_loss[1] ~entropy[1] ~approx_kl[1] ~clip_fraction[1]"
         " | clip=0.2 entropy_coef=0.01 value_coef=0.5 clip_values=0 normalise_advantages=1 over_ranks=0",
  .doc = "mean max(-A r, -A clip(r)) - entropy_coef entropy + value_coef 0.5 mean (V-G)^2, r = pi(a)/pi_old(a) "
         "(Schulman et al. 2017)",
  .time = MN_WHOLE, .forward = forward, .backward = backward,
};
