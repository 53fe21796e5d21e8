/* vec_arrays.h -- num_envs environments with the same rules, as arrays on the context's device, and the bookkeeping of
** a reset or step that all environments share.  engine/sim/vec.c steps MN_ENVS_PER_BATCH of them
** together on the CPU; on a GPU, gpu/runtime/envs.cuh runs one thread for each. */
#ifndef MN_VEC_ARRAYS_H
#define MN_VEC_ARRAYS_H
#include "env.h"
#include "rollout.h"

enum { MN_NEVER = -2, MN_STARTED = -1 };         /* what an environment did last, other than an action */

/* final_obs, score, ret and end_length hold where the last step ended an episode. */
typedef struct mn_vec_arrays {
  int n, time_limit;             /* time_limit: INT32_MAX where there is none */
  mn_action_space actions;
  size_t stride, obs_bytes;      /* of one environment's self, a multiple of 8; of one observation */
  const double *param;
  const void *shared;            /* what the environment's prepare made; or NULL */
  mn_streams *streams;           /* [n / MN_ENVS_PER_BATCH, rounded up] */
  char *self, *before;           /* [n, stride]: now, and before what was done last */
  int32_t *last;                 /* [n]: what was done last: an action (0: that of did), MN_STARTED or MN_NEVER */
  int32_t *did;                  /* [n, actions.size]: actions of several numbers, as the environments took them; NULL: they are one int */
  uint8_t *changed;              /* [n]: by mn_vec_set since then */
  int32_t *length;               /* [n]: steps of the running episode */
  double *sum;                   /* [n]: its rewards so far */
  char *final_obs;               /* [n, obs_bytes]: the episode's last observation */
  float *score, *ret;            /* [n]: its score and return */
  int32_t *end_length;           /* [n]: its steps */
  int32_t *wrong;                /* on a device: 1 + an environment with an unknown action; 0: none */
} mn_vec_arrays;

/* The actions that a step of all environments reads and the results it writes; action NULL: reset all. */
typedef struct mn_step_io {
  const void *action;            /* [n] or [n, actions.size] */
  char *obs;                     /* [n, obs_bytes] */
  float *reward;                 /* [n] */
  uint8_t *terminated, *truncated;
  mn_rollout rollout;            /* whose step t this is; rollout.obs NULL: of none */
  int t;
} mn_step_io;

/* Steps and resets of an environment on a device: mn_env_kernel_NAME in its plugin. */
typedef struct mn_env_kernel {
  size_t arrays_bytes, io_bytes;                /* of the structs it was built with */
  void (*run)(const mn_vec_arrays *all, const mn_step_io *to);
} mn_env_kernel;

/* The numbers of an action, and its bytes. */
MN_FN size_t mn_action_words(const mn_action_space *s, int n) { return (size_t)s->size * (size_t)n; }
MN_FN size_t mn_action_bytes(const mn_action_space *s, int n) { return 4 * mn_action_words(s, n); }

/* Is the k-th number at `action` one of the space's, and finite? */
MN_FN bool mn_action_fits(const mn_action_space *s, const void *action, int k) {
  if (s->kind != MN_BOX) return (uint32_t)((const int32_t *)action)[k] < (uint32_t)s->n[k];
  const float x = ((const float *)action)[k];
  return x - x == 0;
}

/* Environment i takes the action of several numbers at `action`, those of a box clipped to its bounds. */
MN_FN void mn_action_take(const mn_vec_arrays *v, int i, const void *action) {
  const mn_action_space *s = &v->actions;
  int32_t *did = v->did + mn_action_words(s, i);
  memcpy(did, action, mn_action_bytes(s, 1));
  v->last[i] = 0;
  if (s->kind != MN_BOX) return;
  float *x = (float *)(void *)did;
  for (int k = 0; k < s->size; k++) x[k] = x[k] < s->low[k] ? s->low[k] : x[k] > s->high[k] ? s->high[k] : x[k];
}

/* A step is done, counted in the episode's length and the sum of its rewards: is it the last that the limit allows?  Ended by the task itself, it is not. */
MN_FN bool mn_env_count_step(int32_t *length, double *sum, int limit, float reward, bool terminated) {
  *sum += (double)reward;
  ++*length;
  return (*length >= limit) & !terminated;
}

/* The episode of environment i has ended with this observation: keep its outcome. */
MN_FN void mn_env_end_episode(const mn_vec_arrays *v, int i, const char *obs) {
  memcpy(v->final_obs + (size_t)i * v->obs_bytes, obs, v->obs_bytes);
  v->ret[i] = (float)v->sum[i];
  v->end_length[i] = v->length[i];
}

/* Before the environment's own reset. */
MN_FN void mn_env_clear(const mn_vec_arrays *v, int i) {
  memset(v->self + (size_t)i * v->stride, 0, v->stride);
  v->last[i] = MN_STARTED;
  if (v->did) memset(v->did + mn_action_words(&v->actions, i), 0, mn_action_bytes(&v->actions, 1));
  v->changed[i] = 0;
  v->length[i] = 0;
  v->sum[i] = 0;
}

#endif
