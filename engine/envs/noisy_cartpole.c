/* noisy_cartpole.c -- balance a pole on a cart from noisy positions without velocities: the memory must estimate
** velocities, and average positions over many observations.
** Rules: NoisyPositionOnlyCartPole of POPGym (Morad et al., 2023), whose easy, medium and hard are
** noise=0.1, 0.2 and 0.3.  noise=0 velocities=1 is Gymnasium's CartPole-v1: 500 steps of reward 1 instead of 200 steps of 1/200. */
#include "worlds/cartpole.h"

enum { NOISE, VELOCITIES };      /* parameters */
typedef cartpole noisy_cartpole;

MN_FN cartpole_rule rule_of(const double *param) {
  cartpole_rule rule = { (float)param[NOISE], CARTPOLE_PLACES, 200, 1.0f / 200 };
  if (param[VELOCITIES] == 1) rule.sees |= CARTPOLE_SPEEDS;
  if (param[NOISE] == 0 && param[VELOCITIES] == 1) {
    rule.limit = 500;
    rule.pays = 1;
  }
  return rule;
}

MN_ENV(noisy_cartpole, .rules = "Push the cart left or right at every step so that the pole stays up and the cart between the posts; "
                                "every step pays, and what you see is noisy and may lack the speeds.", .see = see, .reference = reference, .steps = steps,
       .version = 0,
       .doc = "balance a pole, observed with noise and without velocities (noise=0 velocities=1: CartPole-v1)",
       .about = "noise=0.1, 0.2, 0.3: POPGym's NoisyPositionOnlyCartPole easy, medium, hard; 200 steps, 1/200 for each\n"
                "noise=0 velocities=1: Gymnasium's CartPole-v1; 500 steps, 1 for each\n"
                "velocities=0: observe the cart's position and the pole's angle; 1: also their velocities",
       .params = "noise=0.1[0..1] velocities=0[0..1]", .actions = "left right",
       .settable = CARTPOLE_SETTABLE,
       .to_know = CARTPOLE_TO_KNOW,
       .observes = "x x_dot[velocities] angle angle_dot[velocities]",
       .spaces = spaces, .reset = reset, .step = step, .draw = draw, .truth = truth, .valid = valid, .set = set,
       .observe = observe)
