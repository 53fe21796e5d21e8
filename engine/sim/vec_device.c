/* vec_device.c -- environments that a device steps.  To the caller of mn_vec_step nothing changes: actions go in and results
** come out, through buffers that both sides reach. */
#include "vec.h"

int mn_vec_find_kernel(mn_vec *v) {
  const mn_device *d = v->ctx->work.device;
  const mn_env_kernel *k = v->kernel = mn_device_export(d, "env", v->env->name);
  if (!d->library) return 0;
  if (!k) return mn_fail(v->ctx, "%s: has no kernel for device=%s", v->env->name, d->name);
  return k->arrays_bytes == sizeof(mn_vec_arrays) && k->io_bytes == sizeof(mn_step_io) ? 0 : mn_device_outdated(v->ctx, d);
}

/* A kernel has no way to fail but to leave word. */
int mn_vec_settle(mn_vec *v) {
  if (mn_wait(v->ctx)) return -1;
  const int index = v->kernel ? *v->all.wrong - 1 : -1;
  if (index < 0) return 0;
  if (v->space.actions.kind != MN_DISCRETE)
    return mn_fail(v->ctx, "%s: environment %d got an action outside its space, or not finite", v->env->name, index);
  return mn_fail(v->ctx, "%s: environment %d got an unknown action, expected 0..%d", v->env->name, index,
                 v->space.actions.n[0] - 1);
}

int mn_vec_device_reset(mn_vec *v, void *obs) {
  mn_step_io to = v->stage;
  to.action = NULL;
  if (mn_wait(v->ctx)) return -1;
  *v->all.wrong = 0;
  v->kernel->run(&v->all, &to);
  if (mn_wait(v->ctx)) return -1;
  memcpy(obs, to.obs, (size_t)v->all.n * v->all.obs_bytes);
  return 0;
}

int mn_vec_device_step(mn_vec *v, const void *action, void *obs, float *reward, uint8_t *terminated,
                      uint8_t *truncated) {
  const mn_step_io *s = &v->stage;
  const size_t n = (size_t)v->all.n;
  if (mn_vec_settle(v) || mn_env_actions_fit(v->ctx, v->env, &v->all.actions, action, v->all.n)) return -1;
  memcpy((void *)(uintptr_t)s->action, action, mn_action_bytes(&v->all.actions, v->all.n));
  v->kernel->run(&v->all, s);
  if (mn_wait(v->ctx)) return -1;
  memcpy(obs, s->obs, n * v->all.obs_bytes);
  memcpy(reward, s->reward, n * sizeof *reward);
  memcpy(terminated, s->terminated, n);
  memcpy(truncated, s->truncated, n);
  memcpy(v->ended.score, v->all.score, n * sizeof(float));
  memcpy(v->ended.ret, v->all.ret, n * sizeof(float));
  memcpy(v->ended.length, v->all.end_length, n * sizeof(int32_t));
  for (size_t i = 0; i < n; i++)
    if (terminated[i] | truncated[i]) {
      const size_t at = i * v->all.obs_bytes;
      memcpy(v->ended.final_obs + at, v->all.final_obs + at, v->all.obs_bytes);
    }
  return 0;
}

/* Results stay there. */
int mn_vec_device_run(mn_vec *v, int rounds, const void *action, int sets) {
  const size_t set = mn_action_bytes(&v->all.actions, v->all.n), bytes = set * (size_t)sets;
  if (v->waiting) return mn_fail(v->ctx, "%s: step before reset", v->env->name);
  if (mn_vec_settle(v)) return -1;
  char *all = v->ctx->work.device->zeros(bytes);
  if (!all) return mn_out_of_memory(v->ctx, v->ctx->work.device, v->env->name, (double)bytes, "");
  mn_step_io to = v->stage;
  int result = mn_wait(v->ctx);
  if (!result) memcpy(all, action, bytes);
  for (int k = 0; k < rounds && !result; k++) {
    to.action = all + (size_t)(k % sets) * set;
    v->kernel->run(&v->all, &to);
  }
  if (!result) result = mn_vec_settle(v);
  v->ctx->work.device->free(all);
  return result;
}
