/* noisy_position_only_cartpole.c -- balance a pole on a cart from noisy positions: the memory must estimate velocities, and average.
** NoisyPositionOnlyCartPole of POPGym; physics in worlds/cartpole.h. */
#include "worlds/cartpole.h"

enum { LEVEL };                  /* parameters */
typedef cartpole noisy_position_only_cartpole;

MN_FN cartpole_rule rule_of(const double *param) {
  const int level = (int)param[LEVEL];
  const cartpole_rule rule = { level == 0 ? 0.1f : level == 1 ? 0.2f : 0.3f, CARTPOLE_PLACES, 200, 1.0f / 200 };
  return rule;
}

MN_ENV(noisy_position_only_cartpole, .rules = "Push the cart left or right at every step so that the pole stays up and the cart between the posts; "
                                              "every step pays, and you see roughly where they are, not how fast.",
       .see = see, .reference = reference, .steps = steps,
       .version = 0, .doc = "balance a pole, observed with noise and without velocities (POPGym)",
       .about = "level     noise: easy 0.1    medium 0.2    hard 0.3; 200 steps, 1/200 for each: noisy_cartpole with that noise",
       .params = "level=easy|medium|hard", .actions = "left right", .settable = CARTPOLE_SETTABLE,
       .to_know = CARTPOLE_TO_KNOW, .observes = "x angle",
       .spaces = spaces, .reset = reset, .step = step, .draw = draw, .truth = truth, .valid = valid, .set = set, .observe = observe)
