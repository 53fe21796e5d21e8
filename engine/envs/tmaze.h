/* tmaze.h -- the maze that both T-Mazes share: its rules and its picture.  They differ in what the agent
** sees of it, and that is what tmaze.c and tmaze_bakker.c hold.
** Rules: Bakker (2002), "Reinforcement learning with long short-term memory", with the rewards, the
** four actions and the distractors of Pramanik et al. (AGaLiTe). */
#ifndef MN_TMAZE_H
#define MN_TMAZE_H
#include "env.h"

enum { TMAZE_UP, TMAZE_DOWN, TMAZE_LEFT, TMAZE_RIGHT, TMAZE_ACTIONS };
enum { TMAZE_CORRIDOR, TMAZE_DISTRACTORS };      /* parameters */

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

/* A turn at the junction ends the episode, +4 or -1; whatever else is done costs 0.1.  Up and down do
** nothing in the corridor, left and right nothing at the junction. */
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

/* The distractors are fair bits, all zero in the first observation. */
MN_FN void tmaze_noise(const tmaze *m, const mn_io *io, float *obs) {
  uint64_t noise = m->shown ? 0 : (uint64_t)io->bits[1] << 32 | io->bits[0];
  const int n = m->distractors;
  for (int from = 0; from < n; from += 8, noise >>= 8) {
    const uint32_t word = (uint32_t)noise;
#pragma omp simd
    for (int i = 0; i < 8; i++) if (from + i < n) obs[from + i] = (float)(word >> i & 1);
  }
}
#endif
