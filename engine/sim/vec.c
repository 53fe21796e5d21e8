/* vec.c -- num_envs environments with the same rules, stepped together.  Whatever is the same for every
** environment happens here, once: random bits, new episodes in the step that ended the old one,
** time limits, the return and length of episodes.  On a device a kernel does the same (vec_arrays.h). */
#include "vec.h"
#include "write_past.h"
#include <math.h>
#include <stdlib.h>

enum { MOST_ENVS = 1 << 20 };
enum { SMALL_BYTES = 1 << 10, NEAR_BYTES = 1 << 16, FAR_BYTES = 1 << 24 };     /* what is written at once; what a near cache holds; what none keeps */

/* ---- making ---- */

/* Zeros on the context's device. */
static bool numbers(mn_vec *v, void *out, size_t n, size_t size) {
  void *p = v->ctx->work.device->zeros((n * size + 63) / 64 * 64 + 64);
  memcpy(out, &p, sizeof p);
  return p != NULL;
}

static bool on_host(void *out, size_t n, size_t size) {
  void *p = calloc(n * size + 1, 1);
  memcpy(out, &p, sizeof p);
  return p != NULL;
}

/* Between the host and a device: where what it gives and takes lies meanwhile. */
static bool allocate_stage(mn_vec *v) {
  mn_vec_arrays *a = &v->all;
  mn_step_io *s = &v->stage;
  const size_t n = (size_t)a->n;
  double *param;
  if (!numbers(v, &param, 1, sizeof v->param) || !numbers(v, &a->wrong, 1, sizeof *a->wrong) ||
      !numbers(v, &s->action, n, mn_action_bytes(&a->actions, 1)) || !numbers(v, &s->obs, n, a->obs_bytes) ||
      !numbers(v, &s->reward, n, sizeof *s->reward) || !numbers(v, &s->terminated, n, 1) ||
      !numbers(v, &s->truncated, n, 1)) return false;
  if (mn_wait(v->ctx)) return false;
  memcpy(param, v->param, sizeof v->param);
  a->param = param;
  return on_host(&v->left, n, sizeof *v->left) && on_host(&v->ended.final_obs, n, a->obs_bytes) &&
         on_host(&v->ended.score, n, sizeof(float)) && on_host(&v->ended.ret, n, sizeof(float)) &&
         on_host(&v->ended.length, n, sizeof(int32_t));
}

static bool allocate(mn_vec *v) {
  mn_vec_arrays *a = &v->all;
  const size_t n = (size_t)a->n;
  v->canvas = mn_canvas_new(v->ctx);
  if (!v->canvas || !numbers(v, &a->streams, (size_t)v->chunks, sizeof *a->streams) || !numbers(v, &a->self, n, a->stride) ||
      !numbers(v, &a->before, n, a->stride) || !numbers(v, &a->last, n, sizeof *a->last) || !numbers(v, &a->changed, n, 1) ||
      (a->actions.kind != MN_DISCRETE && !numbers(v, &a->did, n, mn_action_bytes(&a->actions, 1))) ||
      !numbers(v, &a->length, n, sizeof *a->length) || !numbers(v, &a->sum, n, sizeof *a->sum) ||
      !numbers(v, &a->final_obs, n, a->obs_bytes) || !numbers(v, &a->score, n, sizeof *a->score) ||
      !numbers(v, &a->ret, n, sizeof *a->ret) || !numbers(v, &a->end_length, n, sizeof *a->end_length) ||
      !numbers(v, &v->shared, 1, v->space.shared_bytes) || !on_host(&v->one_obs, 1, a->obs_bytes) ||
      !on_host(&v->kept, n, sizeof *v->kept) || !on_host(&v->rare, n, 1)) return false;
  a->shared = v->env->facts->prepare ? v->shared : NULL;
  if (v->kernel) return allocate_stage(v);
  a->param = v->param;
  v->ended = (mn_endings){ a->final_obs, a->score, a->ret, a->end_length };
  return true;
}

uint64_t mn_digest(uint64_t h, const void *bytes, size_t n) {
  const uint8_t *a = bytes;
  for (size_t i = 0; i < n; i++) h = (h ^ a[i]) * 1099511628211u;
  return h;
}

static int check_seed(mn_ctx *mn, const char *name, double seed) {
  if (seed >= 0 && seed <= 9007199254740992.0 && seed == floor(seed)) return 0;
  return mn_fail(mn, "%s: seed=%.17g, expected a whole number from 0 to 2^53", name, seed);
}

/* The random stream of one environment: that of environment `as` under that seed. */
static void start_stream(mn_vec *v, int index, double seed, int as) {
  uint32_t key[2];
  mn_streams *s = &v->all.streams[index / MN_ENVS_PER_BATCH];
  int lane = index % MN_ENVS_PER_BATCH;
  mn_random_key(seed, key);
  for (int w = 0; w < 2; w++) s->key[w][lane] = key[w], s->step[w][lane] = 0;
  s->index[lane] = (uint32_t)as;
}

static void start_streams(mn_vec *v) {
  for (int i = 0; i < v->all.n; i++) start_stream(v, i, v->seed, v->first + i);
}

/* What a new file may have forgotten, before anything depends on it. */
static int check_env(mn_ctx *mn, const mn_env *e) {
  const char *lacks = e->lacks();
  return lacks ? mn_fail(mn, "%s: its file defines no .%s; engine/env.h lists what an environment has", e->name, lacks) : 0;
}

/* Its action space; n_actions is the short form of a discrete one. */
static int read_actions(mn_ctx *mn, const mn_env *e, const mn_space *s, mn_action_space *to) {
  if (!s->actions.size) {
    to->kind = MN_DISCRETE, to->size = 1, to->n[0] = s->n_actions;
    return 0;
  }
  *to = s->actions;
  if (to->size < 1 || to->size > MN_ACTION_SIZE || to->kind < MN_DISCRETE || to->kind > MN_BOX || (to->kind == MN_DISCRETE && to->size != 1))
    return mn_fail(mn, "%s: spaces sets actions of kind %d with %d numbers, expected 1..%d", e->name, to->kind, to->size, MN_ACTION_SIZE);
  for (int k = 0; k < to->size; k++)
    if (to->kind == MN_BOX ? !(to->low[k] < to->high[k]) : to->n[k] < 1)
      return mn_fail(mn, "%s: spaces sets nothing to choose from in number %d of an action", e->name, k);
  return 0;
}

static int check_space(mn_ctx *mn, const mn_env *e, const mn_space *s) {
  bool sizes = s->ndim >= 1 && s->ndim <= MN_AXES;
  for (int i = 0; sizes && i < s->ndim; i++) sizes = s->shape[i] >= 1;
  if (!sizes) return mn_fail(mn, "%s: spaces sets an observation without a size: ndim=%d, shape[0]=%d", e->name, s->ndim, s->shape[0]);
  if (s->dtype != MN_F32 && s->dtype != MN_U8) return mn_fail(mn, "%s: spaces sets dtype=%d, expected MN_F32 or MN_U8", e->name, s->dtype);
  if (s->n_actions < 1 && !s->actions.size) return mn_fail(mn, "%s: spaces sets n_actions=%d, expected at least 1", e->name, s->n_actions);
  if (s->bytes < 1) return mn_fail(mn, "%s: spaces sets bytes=%d, expected sizeof(%s)", e->name, s->bytes, e->name);
  return 0;
}

/* `n_envs` environments of the kind with number `env`.  seed: whole, 0..2^53.  params: one value for each
** of mn_env_params, in order (0 for a text); NULL: the defaults.  text: of the parameter that is a
** text, such as map=""; NULL: "".  time_limit: steps; 0 none; < 0 the environment's own.  NULL on an
** error. */
mn_vec *mn_vec_new(mn_ctx *mn, int env, int n_envs, double seed, const double *params,
                   const char *text, int time_limit) {
  const mn_env *e = mn_env_at(env);
  if (!e)
    return mn_fail(mn, "environment %d, there are 0..%d", env, mn_env_count() - 1), NULL;
  if (n_envs < 1 || n_envs > MOST_ENVS)
    return mn_fail(mn, "%s: num_envs=%d, expected 1..%d", e->name, n_envs, MOST_ENVS), NULL;
  if (check_env(mn, e) || check_seed(mn, e->name, seed)) return NULL;
  mn_vec *v = calloc(1, sizeof *v);
  if (!v) return mn_fail(mn, "%s: out of memory", e->name), NULL;
  v->ctx = mn;
  v->env = e;
  v->seed = seed;
  v->all.n = v->waiting = n_envs;
  v->chunks = (n_envs + MN_ENVS_PER_BATCH - 1) / MN_ENVS_PER_BATCH;
  if ((v->n_params = mn_env_values(mn, e, params, v->param)) < 0) return free(v), NULL;
  if (mn_vec_find_kernel(v)) return free(v), NULL;
  e->facts->spaces(v->param, &v->space);
  if (check_space(mn, e, &v->space) || read_actions(mn, e, &v->space, &v->all.actions)) return free(v), NULL;
  v->space.actions = v->all.actions;
  v->time_limit = time_limit < 0 ? v->space.time_limit : time_limit;
  v->all.time_limit = v->time_limit ? v->time_limit : INT32_MAX;
  v->all.stride = ((size_t)v->space.bytes + 7) / 8 * 8;
  v->all.obs_bytes = v->space.dtype == MN_U8 ? 1 : 4;
  for (int i = 0; i < v->space.ndim; i++) v->all.obs_bytes *= (size_t)v->space.shape[i];
  v->few = NEAR_BYTES / (int)(2 * v->all.stride + v->all.obs_bytes);
  v->few = v->few < 1 ? 1 : v->few < MN_ENVS_PER_BATCH ? v->few : (int)MN_ENVS_PER_BATCH;
  if (!allocate(v)) {
    mn_fail(mn, "%s: out of memory for num_envs=%d", e->name, n_envs);
    return mn_vec_free(v), NULL;
  }
  text = text ? text : "";
  v->text = mn_digest(MN_DIGEST, text, strlen(text));
  if (mn_wait(mn) || (v->all.shared && e->facts->prepare(mn, v->param, text, v->shared))) return mn_vec_free(v), NULL;
  for (int i = 0; i < n_envs; i++) v->all.last[i] = MN_NEVER;
  start_streams(v);
  return v;
}

/* Observations end with the facts of the environment (mn_vec_truth) from now on: an agent sees what it would have to remember.  Codes
** become as many numbers, one of which is 1.  Not for pictures; on the host; before the first reset. */
int mn_vec_show_facts(mn_vec *v) {
  mn_vec_arrays *a = &v->all;
  const char *names;
  if (v->facts) return 0;
  if (v->waiting < a->n) return mn_fail(v->ctx, "%s: show_facts is called after reset", v->env->name);
  if (v->space.dtype == MN_U8 && !v->space.codes)
    return mn_fail(v->ctx, "%s: facts=1 needs an observation of numbers or codes, this one is a picture", v->env->name);
  if (v->kernel) return mn_fail(v->ctx, "%s: facts=1 needs device=cpu", v->env->name);
  uint32_t bits[4][MN_ENVS_PER_BATCH];
  mn_random_lanes(&a->streams[0], MN_FOR_RESET, 1, bits);
  mn_vec_start(v, 0, bits, v->one_obs);         /* an episode, to count them; reset begins another */
  a->last[0] = MN_NEVER;
  const mn_io io = { .param = v->param, .shared = a->shared };
  const int n = v->env->truth(a->self, &io, &names, v->fact);
  const size_t codes = v->space.dtype == MN_U8 ? a->obs_bytes : 0;
  const size_t width = (codes ? codes * (size_t)v->space.codes : a->obs_bytes / sizeof(float)) + (size_t)n;
  char *one = realloc(v->one_obs, width * sizeof(float)), *all = NULL;
  if (one) v->one_obs = one;
  if (!one || !numbers(v, &all, (size_t)a->n, width * sizeof(float)) || (codes && !numbers(v, &v->code, (size_t)a->n, codes))) {
    v->ctx->work.device->free(all);
    return mn_fail(v->ctx, "%s: out of memory for num_envs=%d", v->env->name, a->n);
  }
  v->ctx->work.device->free(a->final_obs);
  v->ended.final_obs = a->final_obs = all;
  a->obs_bytes = width * sizeof(float);
  v->code_bytes = codes;
  v->facts = n;
  v->space.dtype = MN_F32;
  v->space.ndim = 1;
  v->space.shape[0] = (int)width;
  return 0;
}

void mn_vec_write_facts(const mn_vec *v, int index, char *obs) {
  if (!v->facts) return;
  const mn_io io = { .param = v->param, .shared = v->all.shared };
  const char *names;
  float *number = (float *)(void *)obs;
  const uint8_t *code = (const uint8_t *)v->code + (size_t)index * v->code_bytes;
  if (v->code_bytes) memset(number, 0, v->all.obs_bytes);
  for (size_t i = 0; i < v->code_bytes; i++) number[i * (size_t)v->space.codes + code[i]] = 1;
  v->env->truth(v->all.self + (size_t)index * v->all.stride, &io, &names, number + v->all.obs_bytes / sizeof(float) - v->facts);
}

/* Keep only environments first .. first + n_envs - 1, before the first reset: they are numbered from 0 now, and draw the
** random numbers that they would have drawn among the others. */
int mn_vec_keep(mn_vec *v, int first, int n_envs) {
  if (v->waiting < v->all.n) return mn_fail(v->ctx, "%s: keep is called after reset", v->env->name);
  if (first < 0 || n_envs < 1 || n_envs > v->all.n - first)
    return mn_fail(v->ctx, "%s: keep %d environments from %d, expected 0..%d", v->env->name, n_envs, first, v->all.n - 1);
  if (mn_wait(v->ctx)) return -1;
  v->first += first;
  v->all.n = v->waiting = n_envs;
  v->chunks = (n_envs + MN_ENVS_PER_BATCH - 1) / MN_ENVS_PER_BATCH;
  start_streams(v);
  return 0;
}

void mn_vec_free(mn_vec *v) {
  if (!v) return;
  const mn_vec_arrays *a = &v->all;
  const mn_step_io *s = &v->stage;
  void *numbers[] = { a->streams, a->self, a->before, a->last, a->did, a->changed, a->length, a->sum, a->final_obs, a->score, a->ret,
                      a->end_length, a->wrong, v->shared, v->kernel ? (void *)a->param : NULL, v->code, (void *)s->action, s->obs,
                      s->reward, s->terminated, s->truncated };
  void *host[] = { v->one_obs, v->kept, v->rare };
  void *staged[] = { v->left, v->ended.final_obs, v->ended.score, v->ended.ret, v->ended.length };    /* as allocate_stage made them */
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) v->ctx->work.device->free(numbers[i]);
  for (size_t i = 0; i < sizeof host / sizeof *host; i++) free(host[i]);
  for (size_t i = 0; v->kernel && i < sizeof staged / sizeof *staged; i++) free(staged[i]);
  free(v->outcome);
  mn_canvas_free(v->canvas);
  free(v);
}

/* What episodes that end from now on have reached. */
const uint8_t *mn_vec_outcomes(mn_vec *v) {
  const char *names = v->env->facts->outcomes;
  if (v->outcome) return v->outcome;
  if (!names) return mn_fail(v->ctx, "%s: its episodes have no outcomes (.outcomes of engine/env.h)", v->env->name), NULL;
  if (v->kernel) return mn_fail(v->ctx, "%s: outcomes need device=cpu", v->env->name), NULL;
  v->outcomes = 1;
  for (const char *c = names; *c; c++) v->outcomes += *c == ' ';
  v->outcome = calloc((size_t)v->all.n, (size_t)v->outcomes);
  if (!v->outcome) mn_fail(v->ctx, "%s: out of memory for num_envs=%d", v->env->name, v->all.n);
  return v->outcome;
}

/* ---- what it is ---- */

int mn_vec_space(mn_vec *v, int *dtype, int *shape) {
  *dtype = v->space.dtype;
  for (int i = 0; i < v->space.ndim; i++) shape[i] = v->space.shape[i];
  return v->space.ndim;
}

int mn_vec_codes(mn_vec *v) { return v->space.codes; }
int mn_vec_actions(mn_vec *v) { return v->all.did ? 0 : v->all.actions.n[0]; }
void mn_vec_action_space(mn_vec *v, mn_action_space *out) { *out = v->all.actions; }
int mn_vec_time_limit(mn_vec *v) { return v->time_limit; }
const void *mn_vec_final_obs(mn_vec *v) { return v->ended.final_obs; }
const float *mn_vec_score(mn_vec *v) { return v->ended.score; }
const float *mn_vec_return(mn_vec *v) { return v->ended.ret; }
const int32_t *mn_vec_length(mn_vec *v) { return v->ended.length; }

/* ---- episodes, on the CPU ---- */

/* Where a new episode's first observation and a step's results go. */
typedef struct target { char *obs; float *reward; uint8_t *terminated, *truncated; } target;

mn_batch mn_vec_batch(mn_vec *v, int first, int n, uint32_t purpose, uint32_t bits[4][MN_ENVS_PER_BATCH], char *obs) {
  const mn_vec_arrays *a = &v->all;
  return (mn_batch){
    .n = n, .stride = (int)a->stride, .purpose = purpose, .obs_bytes = v->code_bytes ? v->code_bytes : a->obs_bytes,
    .self = a->self + (size_t)first * a->stride, .obs = v->code_bytes ? v->code + (size_t)first * v->code_bytes : obs, .param = v->param,
    .shared = a->shared, .streams = &a->streams[first / MN_ENVS_PER_BATCH], .bits = (const uint32_t (*)[MN_ENVS_PER_BATCH])bits,
    .first = first % MN_ENVS_PER_BATCH, .action_size = a->actions.size,
  };
}

/* Start an episode in one environment at its current step. */
void mn_vec_start(mn_vec *v, int index, uint32_t bits[4][MN_ENVS_PER_BATCH], char *obs) {
  mn_env_clear(&v->all, index);
  v->rare[index] = 1;
  mn_batch b = mn_vec_batch(v, index, 1, MN_FOR_RESET, bits, obs);
  v->env->reset(&b);
  mn_vec_write_facts(v, index, obs);
}

static int in_chunk(const mn_vec *v, int c) {
  const int left = v->all.n - c * MN_ENVS_PER_BATCH;
  return left < MN_ENVS_PER_BATCH ? left : MN_ENVS_PER_BATCH;
}

static void start_all(mn_vec *v, char *obs) {
  for (int c = 0; c < v->chunks; c++) {
    uint32_t bits[4][MN_ENVS_PER_BATCH];
    const int first = c * MN_ENVS_PER_BATCH, n = in_chunk(v, c);
    mn_random_lanes(&v->all.streams[c], MN_FOR_RESET, n, bits);
    for (int i = first; i < first + n; i++) mn_vec_start(v, i, bits, obs + (size_t)i * v->all.obs_bytes);
    for (int i = 0; i < n; i++) mn_stream_advance(&v->all.streams[c], i);
  }
}

/* The `ended` episodes that end in this step: keep what they came to, and begin the next ones. */
static void end_episodes(mn_vec *v, int c, int ended, target to) {
  enum { FEW = 4 };                /* whose random bits cost less one by one */
  uint32_t bits[4][MN_ENVS_PER_BATCH];
  const int first = c * MN_ENVS_PER_BATCH, n = in_chunk(v, c);
  if (ended > FEW) mn_random_lanes(&v->all.streams[c], MN_FOR_RESET, n, bits);
  for (int i = first; i < first + n; i++) {
    if (!to.terminated[i] && !to.truncated[i]) continue;
    char *obs = to.obs + (size_t)i * v->all.obs_bytes;
    if (ended <= FEW) mn_random_lane(&v->all.streams[c], MN_FOR_RESET, i - first, bits);
    mn_env_end_episode(&v->all, i, obs);
    if (v->outcome) v->env->outcome(v->all.self + (size_t)i * v->all.stride, v->outcome + (size_t)i * (size_t)v->outcomes);
    mn_vec_start(v, i, bits, obs);
  }
}

/* Keep an environment as it is before a step; past: past caches. */
static void keep(const mn_vec *v, int i, bool past) {
  const mn_vec_arrays *a = &v->all;
  const mn_facts *is = v->env->facts;
  const char *self = a->self + (size_t)i * a->stride;
  char *before = a->before + (size_t)i * a->stride;
  if (is->keep && !v->rare[i]) {
    is->keep(self, before);
    return;
  }
  size_t n = a->stride;
  if (is->used) {
    const size_t used = is->used(self), was = (size_t)v->kept[i];
    n = used > was ? used : was;
    v->kept[i] = (int32_t)used;
  }
  if (past) mn_write_past(before, self, n);
  else memcpy(before, self, n);
}

static void step_few(mn_vec *v, int first, int n, uint32_t bits[4][MN_ENVS_PER_BATCH], const int32_t *action, char *obs, target to) {
  mn_batch b = mn_vec_batch(v, first, n, MN_FOR_STEP, bits, obs);
  if (action) b.action = action + first;
  else b.actions = v->all.did + mn_action_words(&v->all.actions, first);
  b.reward = to.reward + first;
  b.score = v->all.score + first;
  b.terminated = to.terminated + first;
  b.rare = v->rare + first;
  v->env->step(&b);
}

/* As many as a near cache holds, one after another: they are kept and then stepped. */
static void step_near(mn_vec *v, int first, int n, uint32_t bits[4][MN_ENVS_PER_BATCH], const int32_t *action, target to) {
  const mn_vec_arrays *a = &v->all;
  for (int i = first; i < first + n; i += v->few) {
    const int some = first + n - i < v->few ? first + n - i : v->few;
    if (v->env->facts->used || v->env->facts->keep)
      for (int k = i; k < i + some; k++) keep(v, k, false);
    else memcpy(a->before + (size_t)i * a->stride, a->self + (size_t)i * a->stride, (size_t)some * a->stride);
    step_few(v, i, some, bits, action, to.obs + (size_t)i * a->obs_bytes, to);
  }
}

/* Where all observations together are more than caches hold, each is made in one and then written past them. */
static void step_far(mn_vec *v, int first, int n, uint32_t bits[4][MN_ENVS_PER_BATCH], const int32_t *action, target to) {
  const mn_vec_arrays *a = &v->all;
  char obs[NEAR_BYTES] __attribute__((aligned(64)));
  for (int i = first; i < first + n; i++) {
    keep(v, i, true);
    step_few(v, i, 1, bits, action, obs, to);
    mn_write_past(to.obs + (size_t)i * a->obs_bytes, obs, a->obs_bytes);
  }
  mn_written_past();
}

/* Of n environments; returns how many episodes end. */
static int count_steps(const mn_vec_arrays *a, int first, int n, target to) {
  int32_t *restrict length = a->length + first;
  double *restrict sum = a->sum + first;
  const float *restrict reward = to.reward + first;
  const uint8_t *restrict terminated = to.terminated + first;
  uint8_t *restrict truncated = to.truncated + first;
  const int limit = a->time_limit;
  int ended = 0;
#pragma omp simd reduction(+ : ended)
  for (int i = 0; i < n; i++) {
    truncated[i] = mn_env_count_step(&length[i], &sum[i], limit, reward[i], terminated[i] != 0);
    ended += (terminated[i] | truncated[i]) != 0;
  }
  return ended;
}

static void step_chunk(mn_vec *v, int c, const void *actions, target to) {
  const mn_vec_arrays *a = &v->all;
  const int32_t *const action = a->did ? NULL : actions;
  uint32_t bits[4][MN_ENVS_PER_BATCH];
  int first = c * MN_ENVS_PER_BATCH, n = in_chunk(v, c);
  if (!v->space.no_bits) mn_random_lanes(&a->streams[c], MN_FOR_STEP, n, bits);
  if (action) memcpy(a->last + first, action + first, (size_t)n * sizeof *action);
  else for (int i = first; i < first + n; i++) mn_action_take(a, i, (const char *)actions + mn_action_bytes(&a->actions, i));
  memset(a->changed + first, 0, (size_t)n);
  const bool far = (size_t)a->n * a->obs_bytes >= FAR_BYTES && a->obs_bytes >= SMALL_BYTES && a->obs_bytes <= NEAR_BYTES && !v->facts;
  if (far) step_far(v, first, n, bits, action, to);
  else step_near(v, first, n, bits, action, to);
  for (int i = first; v->facts && i < first + n; i++) mn_vec_write_facts(v, i, to.obs + (size_t)i * a->obs_bytes);
  const int ended = count_steps(a, first, n, to);
  if (ended) end_episodes(v, c, ended, to);
  for (int i = 0; i < n; i++) mn_stream_advance(&a->streams[c], i);
}

static int step_all(mn_vec *v, const void *action, target to) {
  if (mn_env_actions_fit(v->ctx, v->env, &v->all.actions, action, v->all.n)) return -1;
  long work = (long)v->all.n * (16 + (long)v->all.obs_bytes / 4);
  if (v->chunks == 1 || work < 50000) {  /* not even a team of one: it takes longer than the step */
    for (int c = 0; c < v->chunks; c++) step_chunk(v, c, action, to);
  } else {
    MN_PARALLEL(v->ctx, work)
    for (int c = 0; c < v->chunks; c++) step_chunk(v, c, action, to);
  }
  return 0;
}

/* ---- episodes ---- */

static int reset(mn_vec *v, void *obs) {
  v->waiting = 0;
  if (v->kernel) return mn_vec_device_reset(v, obs);
  start_all(v, obs);
  return 0;
}

/* Reset every environment; obs: [num_envs, ...].  seed >= 0: from that seed; < 0: the streams continue. */
int mn_vec_reset(mn_vec *v, double seed, void *obs) {
  if (!(seed < 0)) {
    if (check_seed(v->ctx, v->env->name, seed) || mn_wait(v->ctx)) return -1;
    v->seed = seed;
    start_streams(v);
  }
  return reset(v, obs);
}

/* Reset every environment, each from a seed of its own: environment i does what environment 0 with seed[i]
** does.  On an error nothing has changed. */
int mn_vec_reset_each(mn_vec *v, const double *seed, void *obs) {
  for (int i = 0; i < v->all.n; i++)
    if (check_seed(v->ctx, v->env->name, seed[i])) return -1;
  if (mn_wait(v->ctx)) return -1;
  for (int i = 0; i < v->all.n; i++) start_stream(v, i, seed[i], 0);
  return reset(v, obs);
}

/* One step of every environment.  In: action[num_envs], or [num_envs, size] of several numbers.  Out: obs [num_envs, ...], reward, terminated,
** truncated [num_envs].  Where an episode ends, obs is the first of the next one, and
** mn_vec_final_obs, _score, _return and _length describe the one that ended.  On an error nothing has
** changed. */
int mn_vec_step(mn_vec *v, const void *action, void *obs, float *reward, uint8_t *terminated,
                uint8_t *truncated) {
  const target to = { obs, reward, terminated, truncated };
  if (v->waiting) return mn_fail(v->ctx, "%s: step before reset", v->env->name);
  return v->kernel ? mn_vec_device_step(v, action, obs, reward, terminated, truncated) : step_all(v, action, to);
}

/* `rounds` steps of every environment, with the sets of action [sets, num_envs] in turn: stepping without its
** caller, to be timed. */
int mn_vec_run(mn_vec *v, int rounds, const void *action, int sets, void *obs, float *reward,
               uint8_t *terminated, uint8_t *truncated) {
  if (v->kernel) return mn_vec_device_run(v, rounds, action, sets);
  for (int k = 0; k < rounds; k++) {
    const char *set = (const char *)action + (size_t)(k % sets) * mn_action_bytes(&v->all.actions, v->all.n);
    if (mn_vec_step(v, set, obs, reward, terminated, truncated)) return -1;
  }
  return 0;
}
