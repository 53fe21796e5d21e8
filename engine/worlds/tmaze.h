/* tmaze.h -- the rules of both T-Mazes.  They differ in the observation: tmaze.c and tmaze_bakker.c define observe; tmaze_draw.h draws them.
** Rules: Bakker (2002), "Reinforcement learning with long short-term memory", with the rewards, the
** four actions and the distractors of Pramanik et al. (AGaLiTe). */
#ifndef MN_TMAZE_H
#define MN_TMAZE_H
#include "env.h"

enum { TMAZE_UP, TMAZE_DOWN, TMAZE_LEFT, TMAZE_RIGHT, TMAZE_ACTIONS };
enum { TMAZE_UNKNOWN = TMAZE_ACTIONS };          /* the cue, in the picture of an observation */
enum { TMAZE_CORRIDOR, TMAZE_DISTRACTORS };      /* parameters */
enum { TMAZE_LONGEST = 2048 };                   /* corridor: as .params of both say */

typedef struct tmaze {
  int16_t corridor, distractors; /* cells of the corridor, the junction included; bits of noise */
  int16_t position;              /* 0: where the cue is shown; corridor - 1: the junction */
  uint8_t cue;                   /* TMAZE_UP or TMAZE_DOWN: the turn that pays */
  uint8_t shown;                 /* 1 while the cue is seen: in the first observation only */
} tmaze;

MN_FN void tmaze_enter(tmaze *m, const mn_io *io) {
  m->corridor = (int16_t)io->param[TMAZE_CORRIDOR];
  m->distractors = (int16_t)io->param[TMAZE_DISTRACTORS];
  m->cue = io->bits[3] >> 31;
  m->shown = 1;
}

/* A turn at the junction ends the episode, +4 or -1; whatever else is done costs 0.1.  Up and down
** do nothing in the corridor, left and right nothing at the junction. */
MN_FN void tmaze_move(tmaze *m, mn_io *io) {
  int junction = m->position == m->corridor - 1, turn = io->action <= TMAZE_DOWN;
  int right = io->action == m->cue;
  int move = (io->action == TMAZE_RIGHT) - (io->action == TMAZE_LEFT && m->position > 0);
  m->shown = 0;
  m->position = (int16_t)(m->position + (junction ? 0 : move));
  io->terminated = junction & turn;
  io->reward = io->terminated ? (right ? 4.0f : -1.0f) : -0.1f;
  io->score = (float)(io->terminated & right);
}

MN_FN bool tmaze_valid(const tmaze *m, const mn_io *io) {
  return m->corridor == io->param[TMAZE_CORRIDOR] && m->distractors == io->param[TMAZE_DISTRACTORS] &&
         m->position >= 0 && m->position < m->corridor && m->cue <= TMAZE_DOWN && m->shown <= 1;
}

#define TMAZE_SETTABLE "cue=up|down position=0[0..2047]"

/* cue, then position. */
MN_FN bool tmaze_set(tmaze *m, const mn_io *io, int fact, double value) {
  (void)io;
  if (fact == 1 && value >= m->corridor) return false;
  if (fact == 0) m->cue = (uint8_t)value;
  else m->position = (int16_t)value;
  return true;
}

/* `count` numbers, 0 or 1: a bit each, the lowest first.  A constant count: one vector. */
MN_FN void tmaze_bits(uint32_t bits, int count, float *obs) {
#pragma omp simd
  for (int i = 0; i < count; i++) obs[i] = (float)(bits >> i & 1);
}

/* The distractors are fair bits, all zero in the first observation. */
MN_FN void tmaze_noise(const tmaze *m, const mn_io *io, float *obs) {
  uint64_t noise = m->shown ? 0 : (uint64_t)io->bits[1] << 32 | io->bits[0];
  int left = m->distractors;
  for (; left >= 8; left -= 8, obs += 8, noise >>= 8) tmaze_bits((uint32_t)noise, 8, obs);
  if (left >= 4) {
    tmaze_bits((uint32_t)noise, 4, obs);
    left -= 4, obs += 4, noise >>= 4;
  }
  for (int i = 0; i < left; i++) obs[i] = (float)(noise >> i & 1);
}

/* All move, then all observe: of two short loops each has its numbers in registers. */
MN_FN void observe(tmaze *m, mn_io *io);
static inline void tmaze_steps(const mn_batch *b) {
  tmaze *m = (tmaze *)(void *)b->self;           /* as far apart as stride says: a tmaze has no padding */
  for (int i = 0; i < b->n; i++) {
    mn_io io = { .action = b->action[i] };
    tmaze_move(&m[i], &io);
    mn_batch_end(b, i, io.reward, io.terminated, io.score);
  }
  for (int i = 0; i < b->n; i++) {
    mn_io io = mn_io_of(b, i);
    observe(&m[i], &io);
  }
}

MN_FN void tmaze_spaces(const double *param, int n_fixed, int time_limit, mn_space *out) {
  out->dtype = MN_F32;
  out->ndim = 1;
  out->shape[0] = n_fixed + (int)param[TMAZE_DISTRACTORS];
  out->n_actions = TMAZE_ACTIONS;
  out->time_limit = time_limit;
  out->bytes = sizeof(tmaze);
  out->no_bits = param[TMAZE_DISTRACTORS] == 0;
}

/* cue: the action that pays.  distance: steps to the junction. */
static inline int tmaze_truth(const tmaze *m, const mn_io *io, const char **names,
                              float *values) {
  (void)io;
  *names = "cue position corridor distance";
  values[0] = m->cue;
  values[1] = m->position;
  values[2] = m->corridor;
  values[3] = (float)(m->corridor - 1 - m->position);
  return 4;
}
/* Straight to the junction, and the right turn; without memory, any turn.  Random actions: half of the share that turns within the time
** limit, which the probabilities of the positions, step by step, give. */
static inline void tmaze_reference(const double *param, int time_limit, mn_reference *out) {
  const int end = (int)param[TMAZE_CORRIDOR] - 1;
  double at[TMAZE_LONGEST] = { 1 }, turned = 0;
  for (int step = 0; step < time_limit; step++) {
    double before = 0.25 * at[0];              /* left at 0 stays there */
    turned += 0.5 * at[end];
    at[end] = 0.5 * at[end] + 0.25 * at[end - 1];
    for (int i = 0; i < end; i++) {
      const double here = at[i];
      at[i] = 0.5 * here + before + (i + 1 < end ? 0.25 * at[i + 1] : 0);
      before = 0.25 * here;
    }
  }
  out->chance = 0.5 * turned;
  out->memoryless = 0.5;
  out->best = 1;
  out->best_return = 4 - 0.1 * end;
}
#endif
