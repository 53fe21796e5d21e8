/* cartpole.h -- a pole on a cart, for the files that observe it in their ways: each defines rule_of.
** Physics: Gymnasium's CartPole-v1 (Barto, Sutton and Anderson, 1983).  POPGym's (Morad et al., 2023) pay 1/limit a step.
** The state is kept in double, as Gymnasium keeps it, so that observations are equal to the last
** bit or two of a float: a pole that falls doubles a difference every ten steps. */
#ifndef MN_CARTPOLE_H
#define MN_CARTPOLE_H
#include "env.h"
#include "numerics/fast_math.h"

enum { X, X_DOT, ANGLE, ANGLE_DOT, STATE };

typedef struct cartpole {
  double state[STATE];           /* m, m/s, rad, rad/s */
  float seen[2];                 /* x and angle as the agent last saw them; for the picture */
  int32_t steps, unused;
} cartpole;

static const double LIMIT_X = 2.4, LIMIT_ANGLE = 12 * 2 * 3.141592653589793 / 360;

/* What a file says of its settings. */
enum { CARTPOLE_PLACES = 1, CARTPOLE_SPEEDS = 2 };
typedef struct cartpole_rule {
  float noise;                   /* standard deviation */
  int sees, limit;               /* sees: places, speeds or both */
  float pays;                    /* each step */
} cartpole_rule;
MN_FN cartpole_rule rule_of(const double *param);

MN_FN void spaces(const double *param, mn_space *out) {
  out->dtype = MN_F32;
  out->ndim = 1;
  out->shape[0] = rule_of(param).sees == (CARTPOLE_PLACES | CARTPOLE_SPEEDS) ? STATE : 2;
  out->n_actions = 2;
  out->time_limit = rule_of(param).limit;
  out->bytes = sizeof(cartpole);
  out->no_bits = rule_of(param).noise == 0;
}

/* Sine and cosine by their series, to the last bit or so of a double up to a quarter of a radian: a
** pole that leans further has fallen. */
MN_FN void series(double x, double *sine, double *cosine) {
  const double z = x * x;
  double s = 1 / 362880.0 - z * (1 / 39916800.0);
  s = -1 / 5040.0 + z * s;
  s = 1 / 120.0 + z * s;
  s = -1 / 6.0 + z * s;
  double c = -1 / 3628800.0 + z * (1 / 479001600.0);
  c = 1 / 40320.0 + z * c;
  c = -1 / 720.0 + z * c;
  c = 1 / 24.0 + z * c;
  *sine = x + x * (z * s);
  *cosine = 1 - (0.5 * z - z * z * c);
}

/* Gymnasium's velocities have no bounds. */
MN_FN float bounded(float x, double limit) {
  const float most = (float)(2 * limit);
  return mn_at_most(mn_at_least(x, -most), most);
}

/* What is seen of it; normal: of each number, where the rule has noise. */
MN_FN void show(const cartpole_rule *rule, cartpole *m, const float *normal, float *obs) {
  const float noise = rule->noise;
  const int all = rule->sees == (CARTPOLE_PLACES | CARTPOLE_SPEEDS);
  float see[STATE];
  for (int i = 0; i < STATE; i++) see[i] = (float)m->state[i];
  if (noise > 0) {
    see[X] = bounded(see[X] + noise * normal[X], LIMIT_X);
    see[ANGLE] = bounded(see[ANGLE] + noise * normal[ANGLE], LIMIT_ANGLE);
    if (all) {
      see[X_DOT] += noise * normal[X_DOT];
      see[ANGLE_DOT] += noise * normal[ANGLE_DOT];
    }
    m->seen[0] = see[X];
    m->seen[1] = see[ANGLE];
  }
  obs[0] = see[X];
  if (rule->sees == CARTPOLE_SPEEDS && m->steps > 0) {   /* POPGym shows the places after a reset */
    obs[0] = see[X_DOT];
    obs[1] = see[ANGLE_DOT];
  } else if (!all) {
    obs[1] = see[ANGLE];
  } else {
    for (int i = 1; i < STATE; i++) obs[i] = see[i];
  }
}

MN_FN void observe(cartpole *m, mn_io *io) {
  const cartpole_rule rule = rule_of(io->param);
  float normal[STATE] = { 0, 0, 0, 0 };
  if (rule.noise > 0) {
    const bool first = m->steps == 0;          /* which has used its bits for the state */
    uint32_t bits[4];
    for (int i = 0; i < 4; i++) bits[i] = first ? mn_rand(io) : io->bits[i];
    mn_normals(bits[0], bits[1], &normal[X], &normal[ANGLE]);
    if (rule.sees == (CARTPOLE_PLACES | CARTPOLE_SPEEDS)) mn_normals(bits[2], bits[3], &normal[X_DOT], &normal[ANGLE_DOT]);
  }
  show(&rule, m, normal, io->obs);
}

MN_FN void reset(cartpole *m, mn_io *io) {
  for (int i = 0; i < STATE; i++) m->state[i] = 0.1 * (((double)io->bits[i] + 0.5) * 0x1p-32) - 0.05;
  observe(m, io);
}

/* Florian (2007), "Correct equations for the dynamics of the cart-pole system", by Euler's rule: as
** in Gymnasium, places move by the velocities from before.  Without branches: side by side with others, it is a lane of a vector. */
MN_FN void roll(double *x, double *x_dot, double *angle, double *angle_dot, bool right) {
  const double gravity = 9.8, pole = 0.1, total = 1.1, half = 0.5, tau = 0.02;
  const double force = right ? 10.0 : -10.0, lever = pole * half;
  double sine, cosine;
  series(*angle, &sine, &cosine);
  const double push = (force + lever * *angle_dot * *angle_dot * sine) * (1 / total);
  const double turn = (gravity * sine - cosine * push) /
                      (half * (4 / 3.0 - pole / total * cosine * cosine));
  const double pull = push - lever / total * turn * cosine;
  *x += tau * *x_dot;
  *x_dot += tau * pull;
  *angle += tau * *angle_dot;
  *angle_dot += tau * turn;
}

MN_FN bool fallen(const double *s) {
  return (s[X] < -LIMIT_X) | (s[X] > LIMIT_X) | (s[ANGLE] < -LIMIT_ANGLE) | (s[ANGLE] > LIMIT_ANGLE);
}
MN_FN float lasted(const cartpole_rule *rule, int steps) { return steps < rule->limit ? (float)steps / (float)rule->limit : 1; }

MN_FN void step(cartpole *m, mn_io *io) {
  const cartpole_rule rule = rule_of(io->param);
  double *s = m->state;
  roll(&s[X], &s[X_DOT], &s[ANGLE], &s[ANGLE_DOT], io->action != 0);
  m->steps++;
  io->terminated = fallen(m->state);
  io->reward = rule.pays;
  io->score = lasted(&rule, m->steps);
  observe(m, io);
}

static inline void steps(const mn_batch *b) {
  enum { N = MN_ENVS_PER_BATCH };
  const cartpole_rule rule = rule_of(b->param);
  const bool all = rule.sees == (CARTPOLE_PLACES | CARTPOLE_SPEEDS);
  const uint32_t (*bits)[MN_ENVS_PER_BATCH] = b->bits;
  double state[STATE][N];
  float normal[STATE][N], score[N];
  cartpole *m = (cartpole *)(void *)b->self;     /* as far apart as stride says: a cartpole has no padding */
  for (int i = 0; i < b->n; i++)
    for (int k = 0; k < STATE; k++) state[k][i] = m[i].state[k];
#pragma omp simd
  for (int i = 0; i < b->n; i++) roll(&state[X][i], &state[X_DOT][i], &state[ANGLE][i], &state[ANGLE_DOT][i], b->action[i] != 0);
  if (rule.noise > 0) {
#pragma omp simd
    for (int i = 0; i < b->n; i++) mn_normals(bits[0][b->first + i], bits[1][b->first + i], &normal[X][i], &normal[ANGLE][i]);
  }
  if (rule.noise > 0 && all) {
#pragma omp simd
    for (int i = 0; i < b->n; i++) mn_normals(bits[2][b->first + i], bits[3][b->first + i], &normal[X_DOT][i], &normal[ANGLE_DOT][i]);
  }
  for (int i = 0; i < b->n; i++) m[i].steps++;
#pragma omp simd
  for (int i = 0; i < b->n; i++) score[i] = lasted(&rule, m[i].steps);
  for (int i = 0; i < b->n; i++) {
    float noise[STATE];
    for (int k = 0; k < STATE; k++) m[i].state[k] = state[k][i], noise[k] = normal[k][i];
    show(&rule, &m[i], noise, (float *)(void *)(b->obs + (size_t)i * b->obs_bytes));
    mn_batch_end(b, i, rule.pays, fallen(m[i].state), score[i]);
  }
}

/* ---- the picture: metres, the cart's axle at y = 0 ---- */

static inline void cart(mn_canvas *c, const float x, float angle, uint32_t body, uint32_t pole) {
  float sine, cosine;
  mn_sincosf(angle, &sine, &cosine);
  mn_canvas_add(c, MN_RECT, body, x - 0.25f, -0.12f, 0.5f, 0.24f);
  mn_canvas_add(c, MN_LINE, pole, x, 0, x + sine, -cosine);
  mn_canvas_data(c, 0.09f);
}

/* The ghost stands where the agent sees cart and pole. */
static inline void scene(const cartpole *m, bool ghost, mn_canvas *c) {
  const float end = (float)LIMIT_X;
  mn_canvas_add(c, MN_RECT, 0x00000000, -1.3f * end, -1.25f, 2.6f * end, 1.75f);
  mn_canvas_add(c, MN_LINE, 0x6B7A90FF, -1.3f * end, 0.2f, 1.3f * end, 0.2f);
  mn_canvas_data(c, 0.03f);
  for (int side = -1; side <= 1; side += 2) {
    mn_canvas_add(c, MN_LINE, 0xD55E00FF, (float)side * end, -0.1f, (float)side * end, 0.32f);
    mn_canvas_data(c, 0.05f);
  }
  cart(c, (float)m->state[X], (float)m->state[ANGLE], 0x35608CFF, 0xE69F00FF);
  mn_canvas_add(c, MN_DISC, 0xE8EDF4FF, (float)m->state[X], 0, 0.05f, 0.05f);
  if (ghost) cart(c, m->seen[0], m->seen[1], 0x56B4E950, 0xF0E44270);
}

/* Of places or speeds alone the speeds are drawn, too: where cart and tip of the pole will be in a sixth of a second. */
static inline void draw(const cartpole *m, const mn_io *io, mn_canvas *c) {
  const cartpole_rule rule = rule_of(io->param);
  scene(m, rule.noise > 0, c);
  if (rule.noise > 0 || rule.sees == (CARTPOLE_PLACES | CARTPOLE_SPEEDS)) return;
  float sine, cosine;
  mn_sincosf((float)m->state[ANGLE], &sine, &cosine);
  const float x = (float)m->state[X], tip = mn_at_most(mn_at_least((float)m->state[ANGLE_DOT] / 6, -0.5f), 0.5f);
  mn_canvas_add(c, MN_LINE, 0x56B4E9FF, x, 0.32f, x + mn_at_most(mn_at_least((float)m->state[X_DOT] / 6, -0.7f), 0.7f), 0.32f);
  mn_canvas_data(c, 0.06f);
  mn_canvas_add(c, MN_LINE, 0x56B4E9FF, x + sine, -cosine, x + sine + tip * cosine, -cosine + tip * sine);
  mn_canvas_data(c, 0.06f);
}

/* The state itself; the observation has the first and third with noise. */
static inline int truth(const cartpole *m, const mn_io *io, const char **names, float *values) {
  (void)io;
  *names = "x x_dot angle angle_dot";
  for (int i = 0; i < STATE; i++) values[i] = (float)m->state[i];
  return STATE;
}

MN_FN bool set(cartpole *m, const mn_io *io, int fact, double value) {
  (void)io;
  m->state[fact] = value;
  return true;
}

/* Velocities grow by no more than some ten a second squared, and within a few metres: no pole swings so fast. */
static inline bool valid(const cartpole *m, const mn_io *io) {
  const double most[STATE] = { LIMIT_X, 1e3, LIMIT_ANGLE, 1e3 };
  bool is = m->steps >= 0 && m->steps < 1 << 30;
  (void)io;
  for (int i = 0; i < STATE; i++) is &= m->state[i] >= -most[i] && m->state[i] <= most[i];
  for (int i = 0; i < 2; i++) is &= m->seen[i] >= -1e3f && m->seen[i] <= 1e3f;
  return is;
}

/* Where it seems to be; of speeds alone, how far that takes it in a fifth of a second from upright. */
static inline void see(const mn_io *io, mn_canvas *c) {
  cartpole m = { .steps = 0 };
  const cartpole_rule rule = rule_of(io->param);
  const bool all = rule.sees == (CARTPOLE_PLACES | CARTPOLE_SPEEDS), speeds = rule.sees == CARTPOLE_SPEEDS;
  m.state[X] = io->obs[0] * (speeds ? 0.2 : 1);
  m.state[ANGLE] = io->obs[all ? ANGLE : 1] * (speeds ? 0.2 : 1);
  scene(&m, false, c);
}

/* Random actions keep the pole up for 22.2 steps, whatever is seen.  Who sees the exact places can balance it, and needs no memory with the
** speeds; with noise a Kalman filter and a push by its mean are the best that is known, over 10,000 episodes each.  Without memory: by speeds
** alone, pushing right where angle_dot + k x_dot > 0, k 0.1 (0.2 of 200 steps), over 1,200 episodes; by places alone, the best that a network
** without memory learned in 3M steps of PPO, over 10,000. */
static inline void reference(const double *param, const void *shared, mn_reference *out) {
  const cartpole_rule rule = rule_of(param);
  (void)shared;
  out->chance = 22.218 / rule.limit;
  out->episodes = 100000;
  if (rule.sees == CARTPOLE_SPEEDS) out->memoryless = rule.limit == 200 ? 1 : rule.limit == 400 ? 0.998 : 0.859;
  if (rule.sees == CARTPOLE_PLACES && rule.noise == 0) out->memoryless = 49.6 / rule.limit;
  const float noise[] = { 0.1f, 0.2f, 0.3f };                  /* POPGym's levels */
  const double no_memory[] = { 0.256, 0.206, 0.176 }, filter[] = { 0.9964, 0.6457, 0.3806 };
  for (int i = 0; i < 3; i++)
    if (rule.sees == CARTPOLE_PLACES && rule.noise == noise[i]) {
      out->memoryless = no_memory[i];
      out->best = out->best_return = filter[i];
    }
  if (rule.noise > 0) return;
  out->best = 1;
  out->best_return = rule.pays == 1 ? rule.limit : 1;
  if (rule.sees == (CARTPOLE_PLACES | CARTPOLE_SPEEDS)) out->memoryless = 1;
}

#define CARTPOLE_SETTABLE "x=0.0[-2.4..2.4] x_dot=0.0[-10..10] angle=0.0[-0.209..0.209] angle_dot=0.0[-10..10]"
#define CARTPOLE_TO_KNOW "angle=number angle_dot=number x=number x_dot=number"
#endif
