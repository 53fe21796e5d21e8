/* vec_device.c -- copies that a device steps.  To whoever calls mn_vec_step nothing changes: actions go in
** and results come out, through buffers that both sides reach.  A rollout (mn_rollout) is stepped where it
** lies, on a device as on the CPU, and there no step waits for the one before. */
#include "vec.h"

/* A kernel has no way to fail but to leave word. */
static int settle(mn_vec *v) {
  if (mn_wait(v->ctx)) return -1;
  const int copy = v->kernel ? *v->all.wrong - 1 : -1;
  if (copy < 0) return 0;
  return mn_fail(v->ctx, "%s: copy %d was given an action that there is not, expected 0..%d", v->env->name, copy,
                 v->space.n_actions - 1);
}

int mn_vec_reset_there(mn_vec *v, void *obs) {
  mn_moves to = v->stage;
  to.action = NULL;
  if (mn_wait(v->ctx)) return -1;
  *v->all.wrong = 0;
  v->kernel->run(&v->all, &to);
  if (mn_wait(v->ctx)) return -1;
  memcpy(obs, to.obs, (size_t)v->all.n * v->all.obs_bytes);
  return 0;
}

int mn_vec_step_there(mn_vec *v, const int32_t *action, void *obs, float *reward, uint8_t *terminated,
                      uint8_t *truncated) {
  const mn_moves *s = &v->stage;
  const size_t n = (size_t)v->all.n;
  if (settle(v) || mn_env_actions_fit(v->ctx, v->env, v->space.n_actions, action, v->all.n)) return -1;
  memcpy((void *)s->action, action, n * sizeof *action);
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
int mn_vec_run_there(mn_vec *v, int rounds, const int32_t *action, int sets) {
  const size_t n = (size_t)v->all.n, bytes = n * (size_t)sets * sizeof *action;
  if (v->waiting) return mn_fail(v->ctx, "%s: step before reset", v->env->name);
  if (settle(v)) return -1;
  int32_t *all = v->ctx->device->zeros(bytes);
  if (!all) return mn_no_memory(v->ctx, v->ctx->device, v->env->name, (double)bytes, -1);
  mn_moves to = v->stage;
  int result = mn_wait(v->ctx);
  if (!result) memcpy(all, action, bytes);
  for (int k = 0; k < rounds && !result; k++) {
    to.action = all + (size_t)(k % sets) * n;
    v->kernel->run(&v->all, &to);
  }
  if (!result) result = settle(v);
  v->ctx->device->free(all);
  return result;
}

/* ---- rollouts ---- */

static mn_moves row_of(const mn_vec *v, const mn_rollout *r, int t, const int32_t *action) {
  const size_t n = (size_t)v->all.n;
  mn_moves to = { .action = action, .obs = (char *)r->obs + (size_t)(t + 1) * n * v->all.obs_bytes,
                  .reward = r->reward + (size_t)t * n, .terminated = r->terminated, .truncated = r->cut, .rollout = *r,
                  .t = t };
  return to;
}

static int note_all(const mn_rollout *r, int n, int t, const int32_t *action, size_t obs_bytes, const char *final_obs,
                    const float *score, const float *ret, const int32_t *length) {
  const float *reward = r->reward + (size_t)t * (size_t)n;
  int cut = 0;
  for (int i = 0; i < n; i++) {
    const mn_outcome o = { action[i], reward[i], r->terminated[i], r->cut[i], final_obs + (size_t)i * obs_bytes,
                           obs_bytes, score[i], ret[i], length[i] };
    mn_rollout_note(r, n, t, i, &o);
    cut |= r->cut[i];
  }
  return cut;
}

/* A rollout goes on where the last one ended: row T, which stays, becomes row 0.  obs_bytes: of a row. */
int mn_rollout_begin(mn_ctx *mn, const mn_rollout *r, int copies, int T, size_t obs_bytes) {
  const size_t n = (size_t)copies;
  const struct { void *rows; size_t bytes; } part[] = {
    { r->obs, obs_bytes }, { r->done, n }, { r->resets, n }, { r->told_action, n * sizeof *r->told_action },
    { r->told_reward, n * sizeof *r->told_reward },
  };
  for (size_t i = 0; i < sizeof part / sizeof *part; i++) {
    const char *last = (const char *)part[i].rows + (size_t)T * part[i].bytes;
    if (part[i].rows && mn_did(mn, mn->device->copy(part[i].rows, last, part[i].bytes))) return -1;
  }
  return 0;
}

/* Could the time limit end an episode in step t?  From what was known before the first one: a copy that has started
** anew since then has all its time. */
static int may_cut(const mn_vec *v, int t) {
  int may = t >= v->all.time_limit;
  for (int i = 0; i < v->all.n; i++) may |= v->left[i] == t + 1;
  return may;
}

/* Step t = 0 .. T-1, in turn, of a rollout, whose memory is of this context's leaves: from action[copies], there too.
** 1 if a time limit may have cut off an episode in this step: then V of uncut_obs is wanted, and mn_rollout_uncut.
** 0 if not; -1 on an error. */
int mn_vec_roll(mn_vec *v, const mn_rollout *r, int t, const int32_t *action) {
  const mn_copies *a = &v->all;
  mn_moves to = row_of(v, r, t, action);
  if (!v->kernel) {
    if (mn_vec_step(v, action, to.obs, to.reward, to.terminated, to.truncated)) return -1;
    return note_all(r, a->n, t, action, a->obs_bytes, a->final_obs, a->score, a->ret, a->end_length);
  }
  if (v->waiting) return mn_fail(v->ctx, "%s: step before reset", v->env->name);
  if (t == 0) {
    if (settle(v)) return -1;
    for (int i = 0; i < a->n; i++) v->left[i] = a->time_limit - a->length[i];
  }
  v->kernel->run(&v->all, &to);
  return v->time_limit && may_cut(v, t);
}

/* After a rollout: its rows may be read. */
int mn_vec_rolled(mn_vec *v) { return settle(v); }

/* Step t of environments that are not the engine's: obs, reward, terminated and cut are there, and the rest follows.
** final_obs [copies, ...], score, ret, length [copies]: of episodes that ended.  1 if a time limit has cut one off. */
int mn_rollout_noted(mn_ctx *mn, const mn_rollout *r, int copies, int t, const int32_t *action, int obs_bytes,
                     const void *final_obs, const float *score, const float *ret, const int32_t *length) {
  if (mn_wait(mn)) return -1;
  return note_all(r, copies, t, action, (size_t)obs_bytes, final_obs, score, ret, length);
}

/* Where a time limit has cut an episode off in step t, its reward takes in gamma V of what would have followed:
** value[copies], of uncut_obs. */
int mn_rollout_uncut(mn_ctx *mn, const mn_rollout *r, int copies, int t, double gamma, const float *value) {
  const mn_rollout_kernels *k;
  if (mn_device_rollout(mn, mn->device, &k)) return -1;
  if (k) k->add(r, copies, t, gamma, value);
  else for (int i = 0; i < copies; i++) mn_rollout_add(r, copies, t, i, gamma, value);
  return 0;
}
