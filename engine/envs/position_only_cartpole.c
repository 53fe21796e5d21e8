/* position_only_cartpole.c -- balance a pole on a cart from positions alone: the memory must estimate velocities.
** PositionOnlyCartPole of POPGym; physics in worlds/cartpole.h. */
#include "worlds/cartpole.h"

enum { LEVEL };                  /* parameters */
typedef cartpole position_only_cartpole;

MN_FN cartpole_rule rule_of(const double *param) {
  const int level = (int)param[LEVEL];
  const cartpole_rule rule = { 0, CARTPOLE_PLACES, 200 * (level + 1), 1 / (float)(200 * (level + 1)) };
  return rule;
}

MN_ENV(position_only_cartpole, .rules = "Push the cart left or right at every step so that the pole stays up and the cart between the posts; "
                                        "every step pays, and you see where they are, not how fast.", .see = see, .reference = reference, .steps = steps,
       .version = 0, .doc = "balance a pole, observed without velocities (POPGym)",
       .about = "level     easy 200 steps    medium 400    hard 600; each pays 1/steps",
       .params = "level=easy|medium|hard", .actions = "left right", .settable = CARTPOLE_SETTABLE,
       .to_know = CARTPOLE_TO_KNOW, .observes = "x angle",
       .spaces = spaces, .reset = reset, .step = step, .draw = draw, .truth = truth, .valid = valid, .set = set, .observe = observe)
