/* a2c_loss.c -- the loss of advantage actor-critic in one op (Mnih et al. 2016).
** actor = mean(-log pi(a) A) with A = G - V, value = mean((G - V)^2),
** loss = actor - entropy_coef entropy + value_coef value.
** G, and A in the actor's part, are constants; the last row of logits and values, which
** only the returns needed, has no gradient. */
#include <string.h>
#include "policy.h"

static int shape(mn_call *c) {
  int T = DIM(c, 'T'), S = DIM(c, 'S');
  if (S == T + 1) return 0;
  return mn_fail(c->ctx,
                 "a2c_loss: axis 0 (T) of returns is %d, expected %d: one row less than logits", T,
                 S - 1);
}

static void forward(mn_call *c) {
  int A = DIM(c, 'A');
  long n = c->in[2].n;
  const float *logits = c->in[0].data, *values = c->in[1].data, *returns = c->in[2].data;
  const int32_t *action = c->in[3].i32;
  float *room = mn_scratch(c->ctx, 0, mn_policies_room(A));
  double actor = 0, value = 0, entropy = 0;
  mn_policies of;
  for (long from = 0; from < n; from += MN_POLICIES) {
    const int rows = n - from < MN_POLICIES ? (int)(n - from) : MN_POLICIES;
    mn_policies_of(logits + from * A, rows, A, room, &of);
    for (int i = 0; i < rows; i++) {
      float advantage = returns[from + i] - values[from + i], chosen = mn_chosen(logits + (from + i) * A, action[from + i], A);
      actor += (double)((of.lse[i] - chosen) * advantage);
      value += (double)(advantage * advantage);
      entropy += (double)of.entropy[i];
    }
  }
  actor /= (double)n;
  value /= (double)n;
  entropy /= (double)n;
  c->out[0].data[0] = (float)(actor - OPT(c, 0) * entropy + OPT(c, 1) * value);
  c->out[1].data[0] = (float)actor;
  c->out[2].data[0] = (float)value;
  c->out[3].data[0] = (float)entropy;
}

/* Over n: dlogit = A (p - [chosen]) + entropy_coef p (log p + H), dvalue = 2 value_coef (V - G). */
static void backward(mn_call *c) {
  int A = DIM(c, 'A');
  long n = c->in[2].n, B = DIM(c, 'B');
  const float *values = c->in[1].data, *returns = c->in[2].data;
  float *dlogits = c->in[0].grad, *dvalues = c->in[1].grad, scale = c->out[0].grad[0] / (float)n;
  float e = (float)OPT(c, 0), v = (float)OPT(c, 1), *room = mn_scratch(c->ctx, 0, mn_policies_room(A));
  mn_policies of;
  for (long i = 0; dvalues && i < n; i++) dvalues[i] = -2 * v * scale * (returns[i] - values[i]);
  for (long from = 0; dlogits && from < n; from += MN_POLICIES) {
    const int rows = n - from < MN_POLICIES ? (int)(n - from) : MN_POLICIES;
    mn_policies_of(c->in[0].data + from * A, rows, A, room, &of);
    for (int a = 0; a < A; a++) {
      const float *l = of.logit + a * MN_POLICIES, *p = of.p + a * MN_POLICIES;
      for (int i = 0; i < rows; i++) {
        const float advantage = returns[from + i] - values[from + i], chosen = a == c->in[3].i32[from + i];
        const float spread = p[i] > 0 ? p[i] * (l[i] - of.lse[i] + of.entropy[i]) : 0;
        dlogits[(from + i) * A + a] = scale * MN_FMA(advantage, p[i] - chosen, e * spread);
      }
    }
  }
  if (dlogits) memset(dlogits + n * A, 0, (size_t)(B * A) * sizeof *dlogits);
  if (dvalues) memset(dvalues + n, 0, (size_t)B * sizeof *dvalues);
  if (c->in[2].grad) memset(c->in[2].grad, 0, (size_t)n * sizeof(float));
}

const mn_op mn_op_a2c_loss = {
  .sig = "logits[S,B,A] values[S,B] ~returns[T,B] actions[T,B]:<A -> loss[1] ~actor_loss[1] "
         "~value_loss[1]"
         " ~entropy[1] | entropy_coef=0.01 value_coef=0.5",
  .doc = "loss = mean(-log pi(a) A) - entropy_coef entropy + value_coef mean((G-V)^2), A = G - V "
         "(Mnih et al. 2016); S = T + 1",
  .time = MN_WHOLE, .shape = shape, .forward = forward, .backward = backward,
};
