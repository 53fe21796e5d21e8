/* qa_episode.h -- environments that show things and ask for them later: their rewards, their levels, and
** the drawing of a row of tiles.  Rewards are those of POPGym (Morad et al., 2023, "POPGym: Benchmarking
** partially observable reinforcement learning"): the right answer to one of n questions pays 1/n, a
** wrong one costs as much; actions while nothing is asked do not matter.
** The first parameter of each is level=easy|medium|hard; any other that is 0 gets the level's value. */
#ifndef MN_QA_EPISODE_H
#define MN_QA_EPISODE_H
#include "env.h"

typedef struct quiz {
  uint16_t questions;            /* in a whole episode, at least 1 */
  uint16_t asked, right;         /* answered so far */
  int16_t answer;                /* to what the present observation asks; -1: it asks nothing */
} quiz;

/* Parameter i, or what the level says of it. */
MN_FN int quiz_setting(const double *param, int i, int easy, int medium, int hard) {
  const int level = (int)param[0];
  if (param[i] != 0) return (int)param[i];
  return level == 0 ? easy : level == 1 ? medium : hard;
}

/* Take the answer to the observation before; the last one ends the episode.  score: the share of all
** questions that were answered rightly. */
MN_FN void quiz_mark(quiz *q, mn_io *io) {
  const int due = q->answer >= 0, right = io->action == q->answer;
  const float n = (float)q->questions;
  q->asked = (uint16_t)(q->asked + due);
  q->right = (uint16_t)(q->right + right);
  io->reward = (float)(2 * right - due) / n;
  io->terminated = q->asked == q->questions;
  io->score = (float)q->right / n;
}

/* In the midst of an episode of that many questions, asking for `answer`? */
MN_FN bool quiz_valid(const quiz *q, int questions, int answer) {
  return q->questions == questions && q->asked < questions && q->right <= q->asked && q->answer == answer;
}

/* For names that begin with QUIZ_TRUTH; how many values. */
#define QUIZ_TRUTH "answer asked right questions "
static inline int quiz_truth(const quiz *q, float *values) {
  values[0] = q->answer;
  values[1] = q->asked;
  values[2] = q->right;
  values[3] = q->questions;
  return 4;
}

/* ---- the picture: tiles of 1 x 1.4 ---- */

enum { QUIZ_ROW = 13 };          /* tiles side by side, at most */

/* Tiles side by side where there are n: fewer are drawn larger. */
static inline int quiz_columns(int n) { return n < 3 ? 3 : n < QUIZ_ROW ? n : QUIZ_ROW; }

/* One tile: x, y its upper left corner.  text NULL: it lies on its face. */
static inline void quiz_tile(mn_canvas *c, float x, float y, uint32_t paper, uint32_t ink,
                             const char *text) {
  mn_canvas_add(c, MN_RECT, 0x0F131AFF, x + 0.04f, y + 0.04f, 0.92f, 1.32f);
  mn_canvas_add(c, MN_RECT, paper, x + 0.07f, y + 0.07f, 0.86f, 1.26f);
  if (text) mn_canvas_text(c, ink, x + (text[0] & 0x80 ? 0.22f : 0.27f), y + 0.96f, 0.7f, text);
  else mn_canvas_add(c, MN_FRAME, 0x56B4E9A0, x + 0.2f, y + 0.2f, 0.6f, 1);
}

static inline void quiz_frame(mn_canvas *c, float x, float y, uint32_t color) {
  mn_canvas_add(c, MN_FRAME, color, x - 0.02f, y - 0.02f, 1.04f, 1.44f);
  mn_canvas_data(c, 0.08f);
}

/* A bar below some columns: answered rightly, wrongly, and what is still to come. */
static inline void quiz_bar(const quiz *q, int columns, float y, mn_canvas *c) {
  const float wide = (float)columns, unit = wide / (float)q->questions;
  const float right = unit * (float)q->right, asked = unit * (float)q->asked;
  mn_canvas_add(c, MN_RECT, 0x2C3645FF, 0, y, wide, 0.3f);
  mn_canvas_add(c, MN_RECT, 0x9A4A12FF, 0, y, asked, 0.3f);
  mn_canvas_add(c, MN_RECT, 0x009E73FF, 0, y, right, 0.3f);
}
/* ---- what the agent sees ---- */

/* Room for one or two tiles; it cannot be seen. */
static inline void quiz_table(mn_canvas *c) { mn_canvas_add(c, MN_RECT, 0x1A202800, -2.5f, -0.6f, 6, 2.6f); }

/* Of n answers one is right; a perfect memory knows all of them, the best policy without one this share. */
static inline void quiz_reference(int n, double memoryless, mn_reference *out) {
  out->chance = 1 / (double)n;
  out->memoryless = memoryless;
  out->best = out->best_return = 1;
}
#endif
