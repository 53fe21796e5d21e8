/* pendulum.c -- swing a pendulum up and hold it there by a torque: a continuous action.
** Gymnasium's Pendulum-v1; physics in worlds/pendulum.h.
** velocity=hidden leaves the speed out of the observation, which a memory must then estimate; position_only_pendulum is POPGym's. */
#include "worlds/pendulum.h"

enum { VELOCITY };               /* parameters */
enum { SHOWN, HIDDEN };
typedef swing pendulum;

MN_FN pendulum_rule rule_of(const double *param) {
  const pendulum_rule rule = { 0, 200, param[VELOCITY] == SHOWN, false };
  return rule;
}

MN_ENV(pendulum, .rules = "Swing the pendulum up and hold it upright by a weak torque; the farther it is from there, the more each step costs.",
       .see = see, .reference = reference, .steps = steps, .version = 1,
       .doc = "swing a pendulum up by a torque, a continuous action (Gymnasium's Pendulum-v1)",
       .about = "velocity=shown: Gymnasium's Pendulum-v1, 200 steps; hidden: cosine and sine of the angle alone, so that a memory must estimate the speed\n"
                "score: 1 less the mean cost of a step over the largest there is, 16.27",
       .params = "velocity=shown|hidden", .actions = "torque", .settable = PENDULUM_SETTABLE,
       .to_know = PENDULUM_TO_KNOW, .observes = "cosine sine speed[*]",
       .spaces = spaces, .reset = reset, .step = step, .draw = draw, .truth = truth, .valid = valid, .set = set, .observe = observe)
