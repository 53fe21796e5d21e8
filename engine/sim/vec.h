/* vec.h -- the inside of mn_vec, shared by env_registry.c, vec.c, vec_state.c, vec_device.c and rollout.c of this folder. */
#ifndef MN_VEC_H
#define MN_VEC_H
#include "graph/internal.h"
#include "vec_arrays.h"

/* What came of episodes that ended in the last step of mn_vec_step, for the host. */
typedef struct mn_endings { char *final_obs; float *score, *ret; int32_t *length; } mn_endings;

struct mn_vec {
  mn_ctx *ctx;
  const mn_env *env;
  const mn_env_kernel *kernel;   /* how the device steps it; NULL: vec.c does */
  mn_space space;
  mn_vec_arrays all;                 /* in memory of the context's device */
  mn_endings ended;              /* on the CPU all's own */
  mn_step_io stage;                /* on a device: from and to the host */
  int32_t *left;                 /* on a device: steps that a rollout's environments had left when it began */
  int chunks, n_params, time_limit;
  int first;                     /* the number of environment 0 among those that were made: see mn_vec_keep */
  int waiting;                   /* environments that were never reset */
  double param[MN_PARAMS], seed;
  uint64_t text;                 /* digest of the text that shared was made from */
  void *shared;                  /* what the environment's prepare makes */
  char *one_obs;                 /* room for one observation */
  int few;                       /* environments that are stepped one after another, so that a near cache holds them */
  int32_t *kept;                 /* [n]: bytes of all.before that may not be zero, where an environment says how many it uses */
  uint8_t *rare;                 /* [n]: all.before may differ from all.self in more than .keep copies */
  int facts;                     /* values of truth at the end of an observation: see mn_vec_show_facts; 0: none */
  size_t code_bytes;             /* with facts, of an observation in codes; 0: it is written as numbers at once */
  char *code;                    /* those of all environments, as they write them */
  float fact[MN_FACTS];
  uint8_t *outcome;              /* of the episodes that ended last, once mn_vec_outcomes was called */
  int outcomes;                  /* of an episode */
  mn_canvas *canvas;
};

const mn_env *mn_env_at(int env);                 /* NULL: no such number */

/* Fill value[MN_PARAMS] from `given`, one for each of the environment's parameters (NULL: the
** defaults).  Their count; or -1, naming the parameter, the value and the range. */
int mn_env_values(mn_ctx *mn, const mn_env *e, const double *given, double *value);

/* The number of a settable fact, its value checked; or -1, naming what there is. */
int mn_env_fact(mn_ctx *mn, const mn_env *e, const char *name, double value);

/* The i-th word of a list separated by blanks, in buf; "?" where there is none. */
const char *mn_word(const char *list, int i, char *buf, int size);

/* 0 if every action is one of the space; else the first that is not is the error. */
int mn_env_actions_fit(mn_ctx *mn, const mn_env *e, const mn_action_space *s, const void *action, int n_envs);

/* FNV-1a, going on from h. */
#define MN_DIGEST 14695981039346656037u
uint64_t mn_digest(uint64_t h, const void *bytes, size_t n);

/* vec.c, on the host: environments first .. of a chunk as a batch for their rules; an episode started in one. */
mn_batch mn_vec_batch(mn_vec *v, int first, int n, uint32_t purpose, uint32_t bits[4][MN_ENVS_PER_BATCH], char *obs);
void mn_vec_start(mn_vec *v, int index, uint32_t bits[4][MN_ENVS_PER_BATCH], char *obs);

/* vec.c: where the facts are shown, write those of one environment at the end of its observation, and codes as numbers before them. */
void mn_vec_write_facts(const mn_vec *v, int index, char *obs);

/* vec_device.c: find the device's kernel (v->kernel; NULL: vec.c steps); wait for the device, and report what went wrong there;
** the same as mn_vec_reset, _step and _run, by the device's kernel. */
int mn_vec_find_kernel(mn_vec *v);
int mn_vec_settle(mn_vec *v);
int mn_vec_device_reset(mn_vec *v, void *obs);
int mn_vec_device_step(mn_vec *v, const void *action, void *obs, float *reward, uint8_t *terminated,
                      uint8_t *truncated);
int mn_vec_device_run(mn_vec *v, int rounds, const void *action, int sets);

#endif
