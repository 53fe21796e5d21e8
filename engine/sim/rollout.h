/* rollout.h -- records each step of a rollout (mn_rollout in mneme.h): on the CPU, and
** on a GPU in the kernel that steps the environment.  The host reads nothing
** before the rollout is over. */
#ifndef MN_ROLLOUT_H
#define MN_ROLLOUT_H
#include <string.h>
#include "mneme.h"
#include "numerics/random.h"

/* The outcome of the last step of one environment; the rest only where it ended an episode. */
typedef struct mn_outcome {
  const void *action;
  float reward;
  bool terminated, cut;          /* cut: by a time limit */
  const char *final_obs;
  size_t obs_bytes;
  float score, ret;
  int32_t length;
} mn_outcome;

/* Element i of [.., action_size]: an action, or where there is none -1, of floats 0. */
MN_FN void mn_rollout_tell(const mn_rollout *r, void *to, size_t i, const void *action) {
  const size_t size = r->action_size ? (size_t)r->action_size : 1;
  int32_t *at = (int32_t *)to + i * size;
  if (action) memcpy(at, action, 4 * size);
  else for (size_t k = 0; k < size; k++) at[k] = r->floats ? 0 : -1;
}

/* Environment i of n has done step t. */
MN_FN void mn_rollout_note(const mn_rollout *r, int n, int t, int i, const mn_outcome *o) {
  const size_t here = (size_t)t * (size_t)n + (size_t)i, next = here + (size_t)n;
  const bool over = o->terminated | o->cut;
  const int32_t seen = r->seen[i] + 1;
  const bool full = r->context > 0 && seen >= r->context, clear = full || (over && r->reset_on_done);
  mn_rollout_tell(r, r->played, here, o->action);
  r->done[next] = over;
  r->resets[next] = clear;
  r->seen[i] = clear ? 0 : seen;
  if (r->told_action) mn_rollout_tell(r, r->told_action, next, over ? NULL : o->action);
  if (r->told_reward) r->told_reward[next] = over ? 0 : o->reward;
  if (!over) return;
  r->score[here] = o->score;
  r->ret[here] = o->ret;
  r->length[here] = o->length;
  if (!o->cut || !r->uncut_obs) return;
  memcpy((char *)r->uncut_obs + (size_t)i * o->obs_bytes, o->final_obs, o->obs_bytes);
  r->uncut_resets[i] = full;
  if (r->uncut_action) mn_rollout_tell(r, r->uncut_action, (size_t)i, o->action);
  if (r->uncut_reward) r->uncut_reward[i] = o->reward;
}

/* Where a time limit cut an episode off in step t, the reward takes in what would have followed. */
MN_FN void mn_rollout_add(const mn_rollout *r, int n, int t, int i, double gamma, const float *value) {
  float *reward = &r->reward[(size_t)t * (size_t)n + (size_t)i];
  if (r->cut[i]) *reward = (float)((double)*reward + gamma * (double)value[i]);
}

/* The same for all n environments, on a device: mn_rollout_kernel in its plugin. */
typedef struct mn_rollout_kernels {
  size_t rollout_bytes;          /* of the struct it was built with */
  void (*add)(const mn_rollout *r, int n, int t, double gamma, const float *value);
} mn_rollout_kernels;

#endif
