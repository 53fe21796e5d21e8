/* velocity_only_cartpole.c -- balance a pole on a cart from velocities alone: the memory must add them up to know where it is.
** VelocityOnlyCartPole of POPGym; physics in worlds/cartpole.h. */
#include "worlds/cartpole.h"

enum { LEVEL };                  /* parameters */
typedef cartpole velocity_only_cartpole;

MN_FN cartpole_rule rule_of(const double *param) {
  const int level = (int)param[LEVEL];
  const cartpole_rule rule = { 0, CARTPOLE_SPEEDS, 200 * (level + 1), 1 / (float)(200 * (level + 1)) };
  return rule;
}

MN_ENV(velocity_only_cartpole, .rules = "Push the cart left or right at every step so that the pole stays up and the cart between the posts; "
                                        "every step pays, and you see how fast they are, not where.", .see = see, .reference = reference, .steps = steps,
       .version = 0, .doc = "balance a pole, observed by its velocities (POPGym)",
       .about = "level     easy 200 steps    medium 400    hard 600; each pays 1/steps\n"
                "The first observation is position and angle, as in POPGym 1.0.7; all others are speeds.",
       .params = "level=easy|medium|hard", .actions = "left right", .settable = CARTPOLE_SETTABLE,
       .to_know = CARTPOLE_TO_KNOW, .observes = "x_dot angle_dot",
       .spaces = spaces, .reset = reset, .step = step, .draw = draw, .truth = truth, .valid = valid, .set = set, .observe = observe)
