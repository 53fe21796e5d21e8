/* position_only_pendulum.c -- swing a pendulum up, seen without its speed: the memory must estimate it.
** PositionOnlyPendulum of POPGym; physics in worlds/pendulum.h. */
#include "worlds/pendulum.h"

enum { LEVEL };                  /* parameters */
typedef swing position_only_pendulum;

MN_FN pendulum_rule rule_of(const double *param) {
  const int level = (int)param[LEVEL];
  const pendulum_rule rule = { 0, 200 - 50 * level, false, true };
  return rule;
}

MN_ENV(position_only_pendulum, .rules = "Swing the pendulum up and hold it upright by a weak torque; the nearer it is to there, the more each step pays, "
       "and you see where it is, not how fast.",
       .see = see, .reference = reference, .steps = steps,
       .version = 0, .doc = "swing a pendulum up by a torque, observed without its speed (POPGym)",
       .about = "level     easy 200 steps    medium 150    hard 100: the shorter, the harder\n"
                "score     (return + 1) / 2: 1 less the mean cost of a step over the largest there is",
       .params = "level=easy|medium|hard", .actions = "torque", .settable = PENDULUM_SETTABLE,
       .to_know = PENDULUM_TO_KNOW, .observes = "cosine sine",
       .spaces = spaces, .reset = reset, .step = step, .draw = draw, .truth = truth, .valid = valid, .set = set, .observe = observe)
