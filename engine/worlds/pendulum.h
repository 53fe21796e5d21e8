/* pendulum.h -- a pendulum that is swung up by a torque, for the files that observe it in their ways: each defines rule_of.
** Physics: Gymnasium's Pendulum-v1, a rod of 1 m and 1 kg with g = 10 m/s^2 whose torque is at most 2 Nm, too little to lift it at once.
** The state is kept in double, as Gymnasium keeps it; sine and cosine by their series, so that every machine computes the same. */
#ifndef MN_PENDULUM_H
#define MN_PENDULUM_H
#include "env.h"
#include "numerics/fast_math.h"

typedef struct swing {
  double angle, speed;           /* rad from upright, clockwise negative, as Gymnasium counts; rad/s */
  double paid;                   /* rewards of the episode so far */
  float torque;                  /* of the last step; for the picture */
  int32_t steps;
} swing;

static const double PI = 3.141592653589793, MOST_SPEED = 8, STEP = 0.05, GRAVITY = 10;
static const float MOST_TORQUE = 2;
static const double WORST = 16.2736044;          /* the largest cost of a step: pi^2 + 0.1 8^2 + 0.001 2^2 */

/* What a file says of its settings. */
typedef struct pendulum_rule {
  float noise;                   /* standard deviation, of cosine and sine */
  int limit;
  bool speed, scaled;            /* is the speed seen; are rewards -1/limit .. 1/limit, as POPGym's? */
} pendulum_rule;
MN_FN pendulum_rule rule_of(const double *param);

MN_FN void spaces(const double *param, mn_space *out) {
  out->dtype = MN_F32;
  out->ndim = 1;
  out->shape[0] = rule_of(param).speed ? 3 : 2;
  out->actions.kind = MN_BOX;
  out->actions.size = 1;
  out->actions.low[0] = -MOST_TORQUE;
  out->actions.high[0] = MOST_TORQUE;
  out->time_limit = rule_of(param).limit;
  out->bytes = sizeof(swing);
  out->no_bits = rule_of(param).noise == 0;
}

/* Series to the last bit or so, of an angle brought to within a quarter turn's half of a multiple of pi / 2. */
MN_FN void sine_cosine(double angle, double *sine, double *cosine) {
  const double turns = __builtin_floor(angle * (2 / PI) + 0.5);
  const double x = (angle - turns * 1.5707963267948966) - turns * 6.123233995736766e-17, z = x * x;
  double s = -1 / 1307674368000.0 + z * (1 / 355687428096000.0);
  s = 1 / 6227020800.0 + z * s;
  s = -1 / 39916800.0 + z * s;
  s = 1 / 362880.0 + z * s;
  s = -1 / 5040.0 + z * s;
  s = 1 / 120.0 + z * s;
  s = -1 / 6.0 + z * s;
  double c = -1 / 87178291200.0 + z * (1 / 20922789888000.0);
  c = 1 / 479001600.0 + z * c;
  c = -1 / 3628800.0 + z * c;
  c = 1 / 40320.0 + z * c;
  c = -1 / 720.0 + z * c;
  c = 1 / 24.0 + z * c;
  s = x + x * (z * s);
  c = 1 - (0.5 * z - z * z * c);
  const double magic = turns + 0x1.8p52;                  /* the turns in its low bits */
  uint64_t n, of_s, of_c;
  memcpy(&n, &magic, sizeof n);
  memcpy(&of_s, &s, sizeof of_s);
  memcpy(&of_c, &c, sizeof of_c);
  const uint64_t swap = (of_s ^ of_c) & (0 - (n & 1));   /* by bits, not branches: angles are unpredictable */
  of_s ^= swap ^ (n & 2) << 62;
  of_c ^= swap ^ ((n + 1) & 2) << 62;
  memcpy(sine, &of_s, sizeof of_s);
  memcpy(cosine, &of_c, sizeof of_c);
}

/* What is seen there; normal: two of them, where the rule has noise. */
MN_FN void show(const pendulum_rule *rule, double sine, double cosine, double speed, const float *normal, float *obs) {
  obs[0] = (float)cosine;
  obs[1] = (float)sine;
  if (rule->speed) obs[2] = (float)speed;
  for (int i = 0; rule->noise > 0 && i < 2; i++) obs[i] = mn_at_most(mn_at_least(obs[i] + rule->noise * normal[i], -1), 1);
}

MN_FN void observe(swing *p, mn_io *io) {
  const pendulum_rule rule = rule_of(io->param);
  double sine, cosine;
  float normal[2] = { 0, 0 };
  sine_cosine(p->angle, &sine, &cosine);
  if (rule.noise > 0) {
    const bool first = p->steps == 0;            /* which has used its bits for the state */
    const uint32_t a = first ? mn_rand(io) : io->bits[0], b = first ? mn_rand(io) : io->bits[1];
    mn_normals(a, b, &normal[0], &normal[1]);
  }
  show(&rule, sine, cosine, p->speed, normal, io->obs);
}

/* Any angle, and up to 1 rad/s either way. */
MN_FN void reset(swing *p, mn_io *io) {
  p->angle = PI * (((double)io->bits[0] + 0.5) * 0x1p-31 - 1);
  p->speed = ((double)io->bits[1] + 0.5) * 0x1p-31 - 1;
  observe(p, io);
}

/* A step without branches: side by side with others, it is a lane of a vector. */
MN_FN void swing_on(const pendulum_rule *rule, swing *p, float u, double *sine, double *cosine, float *reward, float *score) {
  const double turn = 2 * PI;                    /* Gymnasium's products with u are of floats */
  const double off = p->angle + PI - __builtin_floor((p->angle + PI) * (1 / turn)) * turn - PI;     /* from upright, -pi .. pi */
  const double cost = off * off + 0.1 * p->speed * p->speed + (double)(0.001f * (u * u));
  sine_cosine(p->angle, sine, cosine);
  const double speed = p->speed + (1.5 * GRAVITY * *sine + (double)(3.0f * u)) * STEP;
  p->speed = speed < -MOST_SPEED ? -MOST_SPEED : speed > MOST_SPEED ? MOST_SPEED : speed;
  p->angle += p->speed * STEP;
  p->paid -= cost;
  p->torque = u;
  p->steps++;
  sine_cosine(p->angle, sine, cosine);
  *reward = (float)(rule->scaled ? (WORST / 2 - cost) / (WORST / 2) / rule->limit : -cost);
  const double share = 1 + p->paid / (WORST * (double)p->steps);
  *score = share > 0 ? share < 1 ? (float)share : 1 : 0;
}

MN_FN void step(swing *p, mn_io *io) {
  const pendulum_rule rule = rule_of(io->param);
  double sine, cosine;
  float normal[2] = { 0, 0 };
  swing_on(&rule, p, io->box[0], &sine, &cosine, &io->reward, &io->score);
  if (rule.noise > 0) mn_normals(io->bits[0], io->bits[1], &normal[0], &normal[1]);
  show(&rule, sine, cosine, p->speed, normal, io->obs);
}

static inline void steps(const mn_batch *b) {
  enum { N = MN_ENVS_PER_BATCH };
  const pendulum_rule rule = rule_of(b->param);
  double angle[N], speed[N], paid[N], sine[N], cosine[N];
  float u[N], reward[N], score[N], normal[2][N];
  int32_t count[N];
  swing *p = (swing *)(void *)b->self;           /* as far apart as stride says: a swing has no padding */
  memcpy(u, b->actions, sizeof(float) * (size_t)b->n);
  for (int i = 0; i < b->n; i++) angle[i] = p[i].angle, speed[i] = p[i].speed, paid[i] = p[i].paid, count[i] = p[i].steps;
#pragma omp simd
  for (int i = 0; i < b->n; i++) {
    swing one = { angle[i], speed[i], paid[i], 0, count[i] };
    swing_on(&rule, &one, u[i], &sine[i], &cosine[i], &reward[i], &score[i]);
    angle[i] = one.angle, speed[i] = one.speed, paid[i] = one.paid;
  }
  if (rule.noise > 0) {
#pragma omp simd
    for (int i = 0; i < b->n; i++) mn_normals(b->bits[0][b->first + i], b->bits[1][b->first + i], &normal[0][i], &normal[1][i]);
  }
  for (int i = 0; i < b->n; i++) {
    const float noise[2] = { normal[0][i], normal[1][i] };
    p[i].angle = angle[i], p[i].speed = speed[i], p[i].paid = paid[i], p[i].torque = u[i], p[i].steps = count[i] + 1;
    show(&rule, sine[i], cosine[i], speed[i], noise, (float *)(void *)(b->obs + (size_t)i * b->obs_bytes));
    mn_batch_end(b, i, reward[i], false, score[i]);
  }
}

/* ---- the picture: metres, the pivot at 0, 0 ---- */

static inline void rod(mn_canvas *c, float sine, float cosine, uint32_t color) {
  mn_canvas_add(c, MN_LINE, color, 0, 0, -sine, -cosine);
  mn_canvas_data(c, 0.16f);
}

static inline void draw(const swing *p, const mn_io *io, mn_canvas *c) {
  double sine, cosine;
  (void)io;
  sine_cosine(p->angle, &sine, &cosine);
  mn_canvas_add(c, MN_RECT, 0x00000000, -1.25f, -1.25f, 2.5f, 2.5f);
  mn_canvas_add(c, MN_LINE, 0x6B7A90FF, 0, -1.12f, 0, -1.2f);              /* upright */
  mn_canvas_data(c, 0.03f);
  rod(c, (float)sine, (float)cosine, 0xD55E00FF);
  const float tip = 0.08f * (float)p->speed;                                     /* the speed: where the tip will be in a twelfth of a second */
  mn_canvas_add(c, MN_LINE, 0x56B4E9FF, (float)-sine, (float)-cosine, (float)-sine - tip * (float)cosine, (float)-cosine + tip * (float)sine);
  mn_canvas_data(c, 0.06f);
  mn_canvas_add(c, MN_DISC, 0xE8EDF4FF, 0, 0, 0.05f, 0.05f);
  mn_canvas_add(c, MN_LINE, 0x56B4E9FF, 0, 1.15f, -0.5f * p->torque, 1.15f);     /* the torque */
  mn_canvas_data(c, 0.06f);
}

static inline void see(const mn_io *io, mn_canvas *c) {
  mn_canvas_add(c, MN_RECT, 0x00000000, -1.25f, -1.25f, 2.5f, 2.5f);
  mn_canvas_add(c, MN_LINE, 0x6B7A90FF, 0, -1.12f, 0, -1.2f);
  mn_canvas_data(c, 0.03f);
  rod(c, io->obs[1], io->obs[0], 0xE69F00FF);
}

static inline int truth(const swing *p, const mn_io *io, const char **names, float *values) {
  (void)io;
  *names = "angle speed";
  values[0] = (float)p->angle;
  values[1] = (float)p->speed;
  return 2;
}

MN_FN bool set(swing *p, const mn_io *io, int fact, double value) {
  (void)io;
  double *of = fact == 0 ? &p->angle : &p->speed;
  if ((float)*of != (float)value) *of = value;          /* truth is in float: what it says already stays to the last bit */
  return true;
}

static inline bool valid(const swing *p, const mn_io *io) {
  (void)io;
  return p->steps >= 0 && p->steps < 1 << 30 && p->angle >= -1e9 && p->angle <= 1e9 && p->speed >= -MOST_SPEED && p->speed <= MOST_SPEED &&
         p->paid <= 0 && p->paid >= -WORST * 1.001 * (double)p->steps - 1 && p->torque >= -MOST_TORQUE && p->torque <= MOST_TORQUE;
}

/* Torques drawn at random.  Without memory and speed: the best that a network without memory learned in 3M steps of PPO, over 10,000 episodes.
** With one, two angles give the speed, and the torque is what dynamic programming says (a finer grid gains 0.0004); with noise 600 particles follow
** the state: over 1,000 and 800 episodes, to within 0.002. */
static inline void reference(const double *param, const void *shared, mn_reference *out) {
  const pendulum_rule rule = rule_of(param);
  const int limit = rule.limit;
  (void)shared;
  out->chance = limit == 200 ? 0.6227 : limit == 150 ? 0.6224 : 0.6218;
  out->episodes = 100000;
  if (rule.scaled) {
    out->best = rule.noise == 0.1f ? 0.9338 : rule.noise == 0.2f ? 0.8720 : rule.noise > 0 ? 0.8424 : limit == 200 ? 0.9571 : limit == 150 ? 0.9436 : 0.9170;
    out->best_return = 2 * out->best - 1;
  }
  if (!rule.speed) out->memoryless = rule.noise == 0 ? 0.679 : rule.noise == 0.1f ? 0.653 : rule.noise == 0.2f ? 0.658 : 0.660;
}

#define PENDULUM_SETTABLE "angle=0.0[-3.1415..3.1415] speed=0.0[-8..8]"
#define PENDULUM_TO_KNOW "speed=number angle=number"
#endif
