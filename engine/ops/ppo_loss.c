/* ppo_loss.c -- the clipped loss of PPO in one op (Schulman et al. 2017, equations 7 and 9).
** With r = pi(a) / pi_old(a), and A normalised over the batch to mean 0 and (population) deviation 1 unless all are equal:
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

MN_MATH float clipped(float x, float low, float high) { return mn_at_most(mn_at_least(x, low), high); }

/* (exp(x) - 1) - x, from its series where the difference would lose its digits; r = exp(x). */
static double excess(double x, double r) {
  if (x < -0.125 || x > 0.125) return (r - 1) - x;
  return x * x * (1.0 / 2 + x * (1.0 / 6 + x * (1.0 / 24 + x * (1.0 / 120 + x / 720))));
}

/* What advantages are shifted and scaled by: not at all where they are equal, or there is one, which would leave nothing of them. */
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
  if (squares == 0) *mean = 0;
  else *scale = 1 / (sqrt(squares / n) + 1e-8);
}

/* The value loss of one row; its derivative by V in *slope. */
MN_MATH float value_error(float v, float old, float g, float clip, bool clips, float *slope) {
  const float error = v - g, near = old + clipped(v - old, -clip, clip) - g;
  const bool whole = !clips || near * near <= error * error;
  *slope = whole ? error : v - old > -clip && v - old < clip ? near : 0;
  return whole ? 0.5f * error * error : 0.5f * near * near;
}

/* What forward and backward read of rows from .. from + n - 1: policies, log r, r, A as it counts, the value loss and its derivative. */
typedef struct block { mn_policies of; float log_ratio[MN_POLICIES], r[MN_POLICIES], advantage[MN_POLICIES], value[MN_POLICIES], slope[MN_POLICIES]; } block;

static void block_of(const mn_call *c, long from, int n, double mean, double scale, float *room, block *k) {
  const int A = DIM(c, 'A');
  const float *old = c->in[IN_OLD_LOG_PROBS].data + from, *adv = c->in[IN_ADVANTAGES].data + from, clip = (float)OPT(c, CLIP);
  const float *v = c->in[IN_VALUES].data + from, *before = c->in[IN_OLD_VALUES].data + from, *g = c->in[IN_RETURNS].data + from;
  const bool clips = OPT(c, CLIP_VALUES) != 0;
  mn_policies_of(c->in[IN_LOGITS].data + from * A, n, A, room, &k->of);
  for (int i = 0; i < n; i++) {
    k->log_ratio[i] = mn_chosen(c->in[IN_LOGITS].data + (from + i) * A, c->in[IN_ACTIONS].i32[from + i], A) - k->of.lse[i] - old[i];
    k->advantage[i] = (float)((adv[i] - mean) * scale);
  }
  MN_PRAGMA(omp simd)
  for (int i = 0; i < n; i++) k->r[i] = mn_expf(k->log_ratio[i]);
  MN_PRAGMA(omp simd)
  for (int i = 0; i < n; i++) k->value[i] = value_error(v[i], before[i], g[i], clip, clips, &k->slope[i]);
}

static void forward(mn_call *c) {
  const int A = DIM(c, 'A');
  const long all = c->in[IN_VALUES].n;
  float *room = mn_scratch(c->ctx, 0, mn_policies_room(A)), clip = (float)OPT(c, CLIP);
  double mean, scale, policy = 0, value = 0, entropy = 0, kl = 0, outside = 0;
  block k;
  normaliser(c, &mean, &scale);
  for (long from = 0; from < all; from += MN_POLICIES) {
    const int n = all - from < MN_POLICIES ? (int)(all - from) : MN_POLICIES;
    block_of(c, from, n, mean, scale, room, &k);
    for (int i = 0; i < n; i++) {
      const float r = k.r[i], advantage = k.advantage[i];
      policy += (double)mn_at_least(-advantage * r, -advantage * clipped(r, 1 - clip, 1 + clip));
      value += (double)k.value[i];
      entropy += (double)k.of.entropy[i];
      kl += excess((double)k.log_ratio[i], (double)r);
      outside += r - 1 > clip || r - 1 < -clip;
    }
  }
  const double n = (double)all;
  policy /= n, value /= n, entropy /= n;
  c->out[0].data[0] = (float)(policy - OPT(c, ENTROPY_COEF) * entropy + OPT(c, VALUE_COEF) * value);
  c->out[1].data[0] = (float)policy;
  c->out[2].data[0] = (float)value;
  c->out[3].data[0] = (float)entropy;
  c->out[4].data[0] = (float)(kl / n);
  c->out[5].data[0] = (float)(outside / n);
}

/* Over n: dlogit = -A r ([chosen] - p) where the unclipped part counts, + entropy_coef p (log p + H). */
static void backward(mn_call *c) {
  const int A = DIM(c, 'A');
  const long all = c->in[IN_VALUES].n;
  float *dlogits = c->in[IN_LOGITS].grad, *dvalues = c->in[IN_VALUES].grad, share = c->out[0].grad[0] / (float)all;
  float *room = mn_scratch(c->ctx, 0, mn_policies_room(A)), clip = (float)OPT(c, CLIP), e = (float)OPT(c, ENTROPY_COEF), v = (float)OPT(c, VALUE_COEF);
  double mean, scale;
  block k;
  normaliser(c, &mean, &scale);
  for (long from = 0; from < all; from += MN_POLICIES) {
    const int n = all - from < MN_POLICIES ? (int)(all - from) : MN_POLICIES;
    const int32_t *action = c->in[IN_ACTIONS].i32 + from;
    block_of(c, from, n, mean, scale, room, &k);
    for (int i = 0; dvalues && i < n; i++) dvalues[from + i] = v * share * k.slope[i];
    for (int a = 0; dlogits && a < A; a++) {
      const float *l = k.of.logit + a * MN_POLICIES, *p = k.of.p + a * MN_POLICIES;
      for (int i = 0; i < n; i++) {
        const float r = k.r[i], advantage = k.advantage[i], chosen = a == action[i];
        const float counts = -advantage * r >= -advantage * clipped(r, 1 - clip, 1 + clip) ? advantage * r : 0;
        const float spread = p[i] > 0 ? p[i] * (l[i] - k.of.lse[i] + k.of.entropy[i]) : 0;
        dlogits[(from + i) * A + a] = share * MN_FMA(counts, p[i] - chosen, e * spread);
      }
    }
  }
  for (int i = IN_OLD_LOG_PROBS; i <= IN_RETURNS; i++)
    if (c->in[i].grad) memset(c->in[i].grad, 0, (size_t)c->in[i].n * sizeof(float));
}

const mn_op mn_op_ppo_loss = {
  .sig = "logits[T,B,A] values[T,B] actions[T,B]:<A ~old_log_probs[T,B] ~old_values[T,B] ~advantages[T,B] ~returns[T,B]"
         " -> loss[1] ~policy_loss[1] ~value_loss[1] ~entropy[1] ~approx_kl[1] ~clip_fraction[1]"
         " | clip=0.2 entropy_coef=0.01 value_coef=0.5 clip_values=0 normalise_advantages=1 over_ranks=0",
  .doc = "mean max(-A r, -A clip(r)) - entropy_coef entropy + value_coef 0.5 mean (V-G)^2, r = pi(a)/pi_old(a) "
         "(Schulman et al. 2017)",
  .time = MN_WHOLE, .forward = forward, .backward = backward,
};
