/* rollout.c -- rollouts: T steps of all environments, written where the learner reads them, on the CPU or on a device,
** where the host does not wait between steps; and minibatches copied out of them. */
#include "vec.h"

static mn_step_io row_of(const mn_vec *v, const mn_rollout *r, int t, const void *action) {
  const size_t n = (size_t)v->all.n;
  mn_step_io to = { .action = action, .obs = (char *)r->obs + (size_t)(t + 1) * n * v->all.obs_bytes,
                  .reward = r->reward + (size_t)t * n, .terminated = r->terminated, .truncated = r->cut, .rollout = *r,
                  .t = t };
  return to;
}

static int note_all(const mn_rollout *r, int n, int t, const void *action, size_t obs_bytes, const char *final_obs,
                    const float *score, const float *ret, const int32_t *length) {
  const float *reward = r->reward + (size_t)t * (size_t)n;
  const size_t size = 4 * (size_t)(r->action_size ? r->action_size : 1);
  int cut = 0;
  for (int i = 0; i < n; i++) {
    const mn_outcome o = { (const char *)action + (size_t)i * size, reward[i], r->terminated[i], r->cut[i], final_obs + (size_t)i * obs_bytes,
                           obs_bytes, score[i], ret[i], length[i] };
    mn_rollout_note(r, n, t, i, &o);
    cut |= r->cut[i];
  }
  return cut;
}

/* A rollout continues where the last one ended: row T, which stays, becomes row 0.  obs_bytes: of a row. */
int mn_rollout_begin(mn_ctx *mn, const mn_rollout *r, int n_envs, int T, size_t obs_bytes) {
  const size_t n = (size_t)n_envs, told = 4 * n * (size_t)(r->action_size ? r->action_size : 1);
  const struct { void *rows; size_t bytes; } part[] = {
    { r->obs, obs_bytes }, { r->done, n }, { r->resets, n }, { r->told_action, told },
    { r->told_reward, n * sizeof *r->told_reward },
  };
  for (size_t i = 0; i < sizeof part / sizeof *part; i++) {
    const char *last = (const char *)part[i].rows + (size_t)T * part[i].bytes;
    if (part[i].rows && mn_check_device(mn, mn->work.device->copy(part[i].rows, last, part[i].bytes))) return -1;
  }
  return 0;
}

/* Could the time limit end an episode in step t?  From what was known before the first one: an environment
** that has been reset since then has its full time limit. */
static int may_cut(const mn_vec *v, int t) {
  int may = t >= v->all.time_limit;
  for (int i = 0; i < v->all.n; i++) may |= v->left[i] == t + 1;
  return may;
}

/* Step t = 0 .. T-1, in turn, of a rollout, whose memory is of this context's leaves: from action[num_envs], [num_envs, size], there too.
** 1 if a time limit may have cut off an episode in this step: then V of uncut_obs is wanted, and mn_rollout_uncut.
** 0 if not; -1 on an error. */
int mn_vec_roll(mn_vec *v, const mn_rollout *r, int t, const void *action) {
  const mn_vec_arrays *a = &v->all;
  mn_step_io to = row_of(v, r, t, action);
  if (!v->kernel) {
    if (mn_vec_step(v, action, to.obs, to.reward, to.terminated, to.truncated)) return -1;
    return note_all(r, a->n, t, action, a->obs_bytes, a->final_obs, a->score, a->ret, a->end_length);
  }
  if (v->waiting) return mn_fail(v->ctx, "%s: step before reset", v->env->name);
  if (t == 0) {
    if (mn_vec_settle(v)) return -1;
    for (int i = 0; i < a->n; i++) v->left[i] = a->time_limit - a->length[i];
  }
  v->kernel->run(&v->all, &to);
  return v->time_limit && may_cut(v, t);
}

/* After a rollout: its rows may be read. */
int mn_vec_rolled(mn_vec *v) { return mn_vec_settle(v); }

/* Step t of environments that are not the engine's: obs, reward, terminated and cut are there, and the rest follows.
** final_obs [num_envs, ...], score, ret, length [num_envs]: of episodes that ended.  1 if a time limit has cut one off. */
int mn_rollout_noted(mn_ctx *mn, const mn_rollout *r, int n_envs, int t, const void *action, int obs_bytes,
                     const void *final_obs, const float *score, const float *ret, const int32_t *length) {
  if (mn_wait(mn)) return -1;
  return note_all(r, n_envs, t, action, (size_t)obs_bytes, final_obs, score, ret, length);
}

/* Where a time limit has cut an episode off in step t, its reward takes in gamma V of what would have followed:
** value[num_envs], of uncut_obs. */
int mn_rollout_uncut(mn_ctx *mn, const mn_rollout *r, int n_envs, int t, double gamma, const float *value) {
  const mn_device *d = mn->work.device;
  const mn_rollout_kernels *k = mn_device_export(d, "rollout", "");
  if (d->library && (!k || k->rollout_bytes != sizeof(mn_rollout))) return mn_device_outdated(mn, d);
  if (k) k->add(r, n_envs, t, gamma, value);
  else for (int i = 0; i < n_envs; i++) mn_rollout_add(r, n_envs, t, i, gamma, value);
  return 0;
}

/* ---- minibatches ---- */

/* One environment's column of a [rows, environments, ...] block, moved into another such block. */
void mn_copy_column(void *to, int to_width, int to_index, const void *from, int from_width, int from_index, double rows,
                    double bytes) {
  size_t n = (size_t)bytes;
  char *d = (char *)to + n * (size_t)to_index;
  const char *s = (const char *)from + n * (size_t)from_index;
  /* A number or two, as most columns have: a copy whose length the compiler knows, not a call for each. */
#define MN_COPY(bytes) for (long r = 0; r < (long)rows; r++, d += n * (size_t)to_width, s += n * (size_t)from_width) memcpy(d, s, bytes)
  if (n == 4) MN_COPY(4);
  else if (n == 8) MN_COPY(8);
  else if (n == 1) MN_COPY(1);
  else MN_COPY(n);
#undef MN_COPY
}
