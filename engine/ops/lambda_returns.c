/* lambda_returns.c -- returns and advantages that mix sampled rewards with the critic's values.
** G[t] = r[t] + gamma (1 - done[t+1]) ((1 - lambda) V[t+1] + lambda G[t+1]), G[T] = V[T]; the advantage is G - V (Sutton and Barto 2018,
** section 12.3), which is GAE(gamma, lambda) (Schulman et al. 2016, equation 16).  done[t] = 1: observation t starts a new episode. */
#include "op.h"

static int shape(mn_call *c) {
  int T = DIM(c, 'T'), S = DIM(c, 'S');
  if (S == T + 1) return 0;
  return mn_fail(c->ctx, "lambda_returns: axis 0 (S) of values is %d, expected %d: "
                 "one row more than rewards", S, T + 1);
}

static void forward(mn_call *c) {
  long T = DIM(c, 'T'), B = DIM(c, 'B');
  const float *r = c->in[0].data, *v = c->in[1].data;
  const uint8_t *done = c->in[2].u8;
  float *g = c->out[0].data, *advantage = c->out[1].data;
  float gamma = (float)OPT(c, 0), lambda = (float)OPT(c, 1);
  for (long i = T * B - 1; i >= 0; i--) {
    float next = i + B < T * B ? g[i + B] : v[i + B];
    g[i] = r[i] + (done[i + B] ? 0 : gamma * ((1 - lambda) * v[i + B] + lambda * next));
    advantage[i] = g[i] - v[i];
  }
}

const mn_op mn_op_lambda_returns = {
  .sig = "rewards[T,B] values[S,B] done[S,B]:bit -> ~returns[T,B] ~advantages[T,B]"
         " | gamma=0.99 lambda=0.95",
  .doc = "G[t] = r[t] + gamma (1-done[t+1]) ((1-lambda) V[t+1] + lambda G[t+1]), advantages G - V, which are GAE; "
         "S = T + 1",
  .time = MN_WHOLE, .shape = shape, .forward = forward,
};
