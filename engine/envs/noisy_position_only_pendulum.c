/* noisy_position_only_pendulum.c -- swing a pendulum up, seen with noise and without its speed: the memory must estimate both.
** NoisyPositionOnlyPendulum of POPGym; physics in worlds/pendulum.h. */
#include "worlds/pendulum.h"

enum { LEVEL };                  /* parameters */
typedef swing noisy_position_only_pendulum;

MN_FN pendulum_rule rule_of(const double *param) {
  const int level = (int)param[LEVEL];
  const pendulum_rule rule = { level == 0 ? 0.1f : level == 1 ? 0.2f : 0.3f, 200, false, true };
  return rule;
}

MN_ENV(noisy_position_only_pendulum, .rules = "Swing the pendulum up and hold it upright by a weak torque; the nearer it is to there, the more each step pays, "
       "and you see roughly where it is, not how fast.",
       .see = see, .reference = reference, .steps = steps,
       .version = 0, .doc = "swing a pendulum up by a torque, observed with noise and without its speed (POPGym)",
       .about = "level     noise: easy 0.1    medium 0.2    hard 0.3; 200 steps\n"
                "score     (return + 1) / 2: 1 less the mean cost of a step over the largest there is",
       .params = "level=easy|medium|hard", .actions = "torque", .settable = PENDULUM_SETTABLE,
       .to_know = PENDULUM_TO_KNOW, .observes = "cosine sine",
       .spaces = spaces, .reset = reset, .step = step, .draw = draw, .truth = truth, .valid = valid, .set = set, .observe = observe)
