/* vec.c -- many copies of one environment, stepped together.  Whatever is the same for every
** environment happens here, once: random bits, new episodes in the step that ended the old one,
** time limits, the return and length of episodes, saving and going on. */
#include "vec.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "op.h"

enum { MOST_COPIES = 1 << 20 };
enum { NEVER = -2, RESET = -1 };         /* what a copy did last, besides an action */

struct mn_vec {
  mn_ctx *ctx;
  const mn_env *env;
  mn_space space;
  int copies, chunks, n_params;
  int first;                     /* the number of copy 0 among those that were made: see mn_vec_keep */
  int time_limit;                /* 0: none */
  int waiting;                   /* copies that were never reset */
  size_t obs_bytes;
  size_t stride;                 /* of one copy's self */
  double param[MN_PARAMS], seed;
  void *shared;                  /* what the environment's prepare made; or NULL */
  uint64_t text;                 /* digest of the text it was made from */
  mn_streams *streams;           /* [chunks] */
  char *self, *before;           /* [copies, stride]: now, and before what was done last */
  int32_t *last;                 /* [copies]: what was done last: an action, RESET or NEVER */
  uint8_t *changed;              /* [copies]: by mn_vec_set since then */
  int32_t *length;               /* [copies]: steps, and */
  double *sum;                   /* reward, of the running episode */
  char *final_obs, *one_obs;     /* [copies, obs_bytes]; room for one observation */
  float *score, *end_return;     /* [copies]: of the episodes that ended in the last step */
  int32_t *end_length;
  float fact[MN_FACTS];
  mn_canvas *canvas;
};

/* ---- making ---- */

static void *zeros(size_t n, size_t size) {
  size_t bytes = (n * size + 63) / 64 * 64;
  void *p = aligned_alloc(64, bytes ? bytes : 64);
  return p ? memset(p, 0, bytes) : NULL;
}

static int allocate(mn_vec *v) {
  size_t n = (size_t)v->copies;
  v->streams = zeros((size_t)v->chunks, sizeof *v->streams);
  v->self = zeros(n, v->stride);
  v->before = zeros(n, v->stride);
  v->last = zeros(n, sizeof *v->last);
  v->changed = zeros(n, 1);
  v->length = zeros(n, sizeof *v->length);
  v->sum = zeros(n, sizeof *v->sum);
  v->final_obs = zeros(n, v->obs_bytes);
  v->one_obs = zeros(1, v->obs_bytes);
  v->score = zeros(n, sizeof *v->score);
  v->end_return = zeros(n, sizeof *v->end_return);
  v->end_length = zeros(n, sizeof *v->end_length);
  v->canvas = mn_canvas_new(v->ctx);
  return v->streams && v->self && v->before && v->last && v->changed && v->length && v->sum &&
         v->final_obs && v->one_obs && v->score && v->end_return && v->end_length && v->canvas ? 0 : -1;
}

/* FNV-1a, going on from h. */
static uint64_t digest(uint64_t h, const void *bytes, size_t n) {
  const uint8_t *a = bytes;
  for (size_t i = 0; i < n; i++) h = (h ^ a[i]) * 1099511628211u;
  return h;
}
#define DIGEST 14695981039346656037u

/* What all copies read. */
static int prepare(mn_vec *v, const char *text) {
  v->text = digest(DIGEST, text, strlen(text));
  if (!v->env->facts->prepare) return 0;
  v->shared = zeros(1, v->space.shared_bytes);
  if (!v->shared) return mn_fail(v->ctx, "%s: out of memory", v->env->name);
  return v->env->facts->prepare(v->ctx, v->param, text, v->shared);
}

static int check_seed(mn_ctx *mn, const char *name, double seed) {
  if (seed >= 0 && seed <= 9007199254740992.0 && seed == floor(seed)) return 0;
  return mn_fail(mn, "%s: seed=%.17g, expected a whole number from 0 to 2^53", name, seed);
}

/* Random numbers of one copy: those of copy number `as` of a task with that seed. */
static void start_stream(mn_vec *v, int copy, double seed, int as) {
  uint32_t key[2];
  mn_streams *s = &v->streams[copy / MN_LANES];
  int lane = copy % MN_LANES;
  mn_random_key(seed, key);
  for (int w = 0; w < 2; w++) s->key[w][lane] = key[w], s->step[w][lane] = 0;
  s->copy[lane] = (uint32_t)as;
}

static void start_streams(mn_vec *v) {
  for (int i = 0; i < v->copies; i++) start_stream(v, i, v->seed, v->first + i);
}

/* `copies` copies of environment number `env`.  seed: whole, 0..2^53.  params: one value for each
** of mn_env_params, in order (0 for a text); NULL: the defaults.  text: of the parameter that is a
** text, such as map=""; NULL: "".  time_limit: steps; 0 none; < 0 the environment's own.  NULL on an
** error. */
mn_vec *mn_vec_new(mn_ctx *mn, int env, int copies, double seed, const double *params,
                   const char *text, int time_limit) {
  const mn_env *e = mn_env_at(env);
  if (!e)
    return mn_fail(mn, "environment %d, there are 0..%d", env, mn_env_count() - 1), NULL;
  if (copies < 1 || copies > MOST_COPIES)
    return mn_fail(mn, "%s: num_envs=%d, expected 1..%d", e->name, copies, MOST_COPIES), NULL;
  if (check_seed(mn, e->name, seed)) return NULL;
  mn_vec *v = calloc(1, sizeof *v);
  if (!v) return mn_fail(mn, "%s: out of memory", e->name), NULL;
  v->ctx = mn;
  v->env = e;
  v->seed = seed;
  v->copies = v->waiting = copies;
  v->chunks = (copies + MN_LANES - 1) / MN_LANES;
  if ((v->n_params = mn_env_values(mn, e, params, v->param)) < 0) return free(v), NULL;
  e->facts->spaces(v->param, &v->space);
  v->time_limit = time_limit < 0 ? v->space.time_limit : time_limit;
  v->stride = ((size_t)v->space.bytes + 7) / 8 * 8;
  v->obs_bytes = v->space.dtype == MN_U8 ? 1 : 4;
  for (int i = 0; i < v->space.ndim; i++) v->obs_bytes *= (size_t)v->space.shape[i];
  if (allocate(v)) {
    mn_fail(mn, "%s: out of memory for num_envs=%d", e->name, copies);
    return mn_vec_free(v), NULL;
  }
  if (prepare(v, text ? text : "")) return mn_vec_free(v), NULL;
  for (int i = 0; i < copies; i++) v->last[i] = NEVER;
  start_streams(v);
  return v;
}

/* Keep copies first .. first + copies - 1 alone, before the first reset: they are counted from 0 now, and draw the
** random numbers that they would have drawn among the others. */
int mn_vec_keep(mn_vec *v, int first, int copies) {
  if (v->waiting < v->copies) return mn_fail(v->ctx, "%s: keep after reset", v->env->name);
  if (first < 0 || copies < 1 || copies > v->copies - first)
    return mn_fail(v->ctx, "%s: keep %d copies from %d, there are 0..%d", v->env->name, copies, first, v->copies - 1);
  v->first += first;
  v->copies = v->waiting = copies;
  v->chunks = (copies + MN_LANES - 1) / MN_LANES;
  start_streams(v);
  return 0;
}

void mn_vec_free(mn_vec *v) {
  if (!v) return;
  void *all[] = { v->streams, v->self, v->before, v->last, v->changed, v->length, v->sum, v->final_obs,
                  v->one_obs, v->score, v->end_return, v->end_length, v->shared };
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) free(all[i]);
  mn_canvas_free(v->canvas);
  free(v);
}

/* ---- what it is ---- */

int mn_vec_space(mn_vec *v, int *dtype, int *shape) {
  *dtype = v->space.dtype;
  for (int i = 0; i < v->space.ndim; i++) shape[i] = v->space.shape[i];
  return v->space.ndim;
}

int mn_vec_codes(mn_vec *v) { return v->space.codes; }
int mn_vec_actions(mn_vec *v) { return v->space.n_actions; }
int mn_vec_time_limit(mn_vec *v) { return v->time_limit; }
const void *mn_vec_final_obs(mn_vec *v) { return v->final_obs; }
const float *mn_vec_score(mn_vec *v) { return v->score; }
const float *mn_vec_return(mn_vec *v) { return v->end_return; }
const int32_t *mn_vec_length(mn_vec *v) { return v->end_length; }

/* ---- episodes ---- */

/* Where a new episode's first observation and a step's results go. */
typedef struct target { char *obs; float *reward; uint8_t *terminated, *truncated; } target;

static mn_batch batch_of(mn_vec *v, int first, int n, uint32_t purpose, uint32_t bits[4][MN_LANES],
                         char *obs) {
  return (mn_batch){
    .n = n, .stride = (int)v->stride, .purpose = purpose, .obs_bytes = v->obs_bytes,
    .self = v->self + (size_t)first * v->stride, .obs = obs, .param = v->param,
    .shared = v->shared, .streams = &v->streams[first / MN_LANES], .bits = (const uint32_t (*)[MN_LANES])bits,
    .first = first % MN_LANES,
  };
}

/* Start an episode in one copy at its present step. */
static void start(mn_vec *v, int copy, uint32_t bits[4][MN_LANES], char *obs) {
  memset(v->self + (size_t)copy * v->stride, 0, v->stride);
  mn_batch b = batch_of(v, copy, 1, MN_FOR_RESET, bits, obs);
  v->env->reset(&b);
  v->last[copy] = RESET;
  v->changed[copy] = 0;
  v->length[copy] = 0;
  v->sum[copy] = 0;
}

static void advance(mn_streams *s, int from, int n) {
  for (int i = from; i < from + n; i++) s->step[1][i] += ++s->step[0][i] == 0;
}

static void start_all(mn_vec *v, void *obs) {
  for (int c = 0; c < v->chunks; c++) {
    uint32_t bits[4][MN_LANES];
    int first = c * MN_LANES, n = v->copies - first < MN_LANES ? v->copies - first : MN_LANES;
    mn_random_lanes(&v->streams[c], MN_FOR_RESET, n, bits);
    for (int i = first; i < first + n; i++)
      start(v, i, bits, (char *)obs + (size_t)i * v->obs_bytes);
    advance(&v->streams[c], 0, n);
  }
  v->waiting = 0;
}

/* Start every copy anew; obs: [copies, ...].  seed >= 0: from that seed; < 0: the streams go on. */
int mn_vec_reset(mn_vec *v, double seed, void *obs) {
  if (!(seed < 0)) {
    if (check_seed(v->ctx, v->env->name, seed)) return -1;
    v->seed = seed;
    start_streams(v);
  }
  start_all(v, obs);
  return 0;
}

/* Start every copy anew, each from a seed of its own: copy i does what copy 0 of a task with seed[i]
** does.  On an error nothing has changed. */
int mn_vec_reset_each(mn_vec *v, const double *seed, void *obs) {
  for (int i = 0; i < v->copies; i++)
    if (check_seed(v->ctx, v->env->name, seed[i])) return -1;
  for (int i = 0; i < v->copies; i++) start_stream(v, i, seed[i], 0);
  start_all(v, obs);
  return 0;
}

/* Episodes that end in this step: keep what they came to, and begin the next ones. */
static void end_episodes(mn_vec *v, int c, int first, int n, target to) {
  uint32_t bits[4][MN_LANES];
  mn_random_lanes(&v->streams[c], MN_FOR_RESET, n, bits);
  for (int i = first; i < first + n; i++) {
    if (!to.terminated[i] && !to.truncated[i]) continue;
    char *obs = to.obs + (size_t)i * v->obs_bytes;
    memcpy(v->final_obs + (size_t)i * v->obs_bytes, obs, v->obs_bytes);
    v->end_return[i] = (float)v->sum[i];
    v->end_length[i] = v->length[i];
    start(v, i, bits, obs);
  }
}

static void step_chunk(mn_vec *v, int c, const int32_t *action, target to) {
  uint32_t bits[4][MN_LANES];
  int first = c * MN_LANES, n = v->copies - first < MN_LANES ? v->copies - first : MN_LANES;
  int limit = v->time_limit ? v->time_limit : INT32_MAX, ended = 0;
  mn_random_lanes(&v->streams[c], MN_FOR_STEP, n, bits);
  size_t from = (size_t)first * v->stride;
  memcpy(v->before + from, v->self + from, (size_t)n * v->stride);
  memcpy(v->last + first, action + first, (size_t)n * sizeof *action);
  memset(v->changed + first, 0, (size_t)n);
  mn_batch b = batch_of(v, first, n, MN_FOR_STEP, bits, to.obs + (size_t)first * v->obs_bytes);
  b.action = action + first;
  b.reward = to.reward + first;
  b.score = v->score + first;
  b.terminated = to.terminated + first;
  v->env->step(&b);
  for (int i = first; i < first + n; i++) {
    v->sum[i] += (double)to.reward[i];
    v->length[i]++;
    to.truncated[i] = (v->length[i] >= limit) & !to.terminated[i];
    ended |= to.terminated[i] | to.truncated[i];
  }
  if (ended) end_episodes(v, c, first, n, to);
  advance(&v->streams[c], 0, n);
}

/* One step of every copy.  In: action[copies].  Out: obs [copies, ...], reward, terminated,
** truncated [copies].  Where an episode ends, obs is the first of the next one, and
** mn_vec_final_obs, _score, _return and _length tell of the one that ended.  On an error nothing has
** changed. */
int mn_vec_step(mn_vec *v, const int32_t *action, void *obs, float *reward, uint8_t *terminated,
                uint8_t *truncated) {
  if (v->waiting) return mn_fail(v->ctx, "%s: step before reset", v->env->name);
  if (mn_env_actions_fit(v->ctx, v->env, v->space.n_actions, action, v->copies)) return -1;
  target to = { obs, reward, terminated, truncated };
  long work = (long)v->copies * (16 + (long)v->obs_bytes / 4);
  if (v->chunks == 1 || work < 50000) {  /* not even a team of one: it takes longer than the step */
    for (int c = 0; c < v->chunks; c++) step_chunk(v, c, action, to);
  } else {
    MN_PARALLEL(v->ctx, work)
    for (int c = 0; c < v->chunks; c++) step_chunk(v, c, action, to);
  }
  return 0;
}

/* `rounds` steps of every copy, with the sets of action [sets, copies] in turn: stepping without its
** caller, to be timed. */
int mn_vec_run(mn_vec *v, int rounds, const int32_t *action, int sets, void *obs, float *reward,
               uint8_t *terminated, uint8_t *truncated) {
  for (int k = 0; k < rounds; k++) {
    const int32_t *set = action + (size_t)(k % sets) * (size_t)v->copies;
    if (mn_vec_step(v, set, obs, reward, terminated, truncated)) return -1;
  }
  return 0;
}

/* ---- one copy: looking at it, saving it, going on from it ---- */

static int check_copy(mn_vec *v, const char *what, int copy, bool needs_reset) {
  if (copy < 0 || copy >= v->copies)
    return mn_fail(v->ctx, "%s: %s of copy %d, there are 0..%d", v->env->name, what, copy,
                   v->copies - 1);
  if (needs_reset && v->last[copy] == NEVER)
    return mn_fail(v->ctx, "%s: %s before reset", v->env->name, what);
  return 0;
}

/* A picture of one copy as it is now.  Borrowed until the next draw; NULL on an error. */
mn_canvas *mn_vec_draw(mn_vec *v, int copy) {
  if (check_copy(v, "draw", copy, true)) return NULL;
  mn_canvas_clear(v->canvas);
  const mn_io io = { .param = v->param, .shared = v->shared };
  v->env->draw(v->self + (size_t)copy * v->stride, &io, v->canvas);
  return v->canvas;
}

/* What only the environment knows.  *names: "cue layout[121] ...", parted by blanks, a count where a
** name has several values; *values: the numbers in that order, borrowed until the next call.  How many
** numbers; or -1. */
int mn_vec_truth(mn_vec *v, int copy, const char **names, const float **values) {
  if (check_copy(v, "truth", copy, true)) return -1;
  const mn_io io = { .param = v->param, .shared = v->shared };
  *values = v->fact;
  return v->env->truth(v->self + (size_t)copy * v->stride, &io, names, v->fact);
}

/* What mn_vec_save writes before the copy's own bytes.  A copy is kept as it was before what it did
** last, and what that was: doing it again also gives the observation, which is not kept.  One that was
** changed since then is kept as it is, and only observed again. */
typedef struct stamp {
  char     kind[8], name[32];
  int32_t  version, stride, n_params, last, length, changed;
  uint32_t stream[6];            /* key, step, copy, 0 */
  double   sum, param[MN_PARAMS];
  uint64_t text;
  uint64_t check;                /* of everything else */
} stamp;

/* Of both parts, the stamp's own check left out. */
static uint64_t check_of(const stamp *s, const char *self, size_t n) {
  return digest(digest(DIGEST, s, offsetof(stamp, check)), self, n);
}

static void stamp_of(const mn_vec *v, stamp *s) {
  memset(s, 0, sizeof *s);
  memcpy(s->kind, "mn_env2", 8);
  snprintf(s->name, sizeof s->name, "%s", v->env->name);
  s->version = v->env->facts->version;
  s->stride = (int32_t)v->stride;
  s->n_params = v->n_params;
  memcpy(s->param, v->param, sizeof s->param);
  s->text = v->text;
}

int mn_vec_bytes(mn_vec *v) { return (int)(sizeof(stamp) + v->stride); }

/* Write one copy into bytes[mn_vec_bytes]: its state, random stream, and its episode's length and
** return.  Restored, here or in another mn_vec of the same environment and params, it goes on bit
** for bit. */
int mn_vec_save(mn_vec *v, int copy, void *bytes) {
  if (check_copy(v, "save", copy, true)) return -1;
  const mn_streams *m = &v->streams[copy / MN_LANES];
  int lane = copy % MN_LANES;
  stamp s;
  stamp_of(v, &s);
  s.last = v->last[copy];
  s.length = v->length[copy];
  s.sum = v->sum[copy];
  s.stream[0] = m->key[0][lane], s.stream[1] = m->key[1][lane];
  s.stream[2] = m->step[0][lane] - 1;
  s.stream[3] = m->step[1][lane] - (m->step[0][lane] == 0);
  s.stream[4] = m->copy[lane];
  char *self = (char *)bytes + sizeof s;
  s.changed = v->changed[copy];
  if (s.changed) memcpy(self, v->self + (size_t)copy * v->stride, v->stride);
  else if (s.last == RESET) memset(self, 0, v->stride);
  else memcpy(self, v->before + (size_t)copy * v->stride, v->stride);
  s.check = check_of(&s, self, v->stride);
  memcpy(bytes, &s, sizeof s);
  return 0;
}

/* Why saved bytes do not fit here: -1 with the error; 0 if they do. */
static int check_stamp(mn_vec *v, const stamp *s, const char *self, int n) {
  const char *name = v->env->name;
  stamp want;
  stamp_of(v, &want);
  if (n < (int)sizeof *s || memcmp(s->kind, want.kind, sizeof s->kind))
    return mn_fail(v->ctx, "%s: restore: these %d bytes are not a saved environment", name, n);
  if (strncmp(s->name, want.name, sizeof s->name) || s->version != want.version)
    return mn_fail(v->ctx, "%s: restore: the bytes are of %.31s-v%d, this is %s-v%d", name, s->name,
                   s->version, name, want.version);
  for (int i = 0; i < v->n_params; i++) {
    char word[96];
    if (s->param[i] == want.param[i]) continue;
    mn_word(v->env->facts->params, i, word, sizeof word);
    return mn_fail(v->ctx, "%s: restore: saved with %.*s=%.15g, here it is %.15g", name,
                   (int)strcspn(word, "="), word, s->param[i], want.param[i]);
  }
  if (s->text != want.text)
    return mn_fail(v->ctx, "%s: restore: saved with another text than this one was made from", name);
  if (s->n_params != want.n_params || s->stride != want.stride || n != mn_vec_bytes(v))
    return mn_fail(v->ctx, "%s: restore: %d bytes, expected %d", name, n, mn_vec_bytes(v));
  if (s->check != check_of(s, self, v->stride) || s->last < RESET || s->last >= v->space.n_actions ||
      (s->changed && !v->env->facts->settable))
    return mn_fail(v->ctx, "%s: restore: the bytes are damaged", name);
  return 0;
}

/* Observe once more, with the bits of what the copy did last; its stream stands before that, then after. */
static void observe(mn_vec *v, int copy, char *obs) {
  uint32_t bits[4][MN_LANES];
  const uint32_t purpose = v->last[copy] == RESET ? MN_FOR_RESET : MN_FOR_STEP;
  mn_random_lanes(&v->streams[copy / MN_LANES], purpose, copy % MN_LANES + 1, bits);
  mn_batch b = batch_of(v, copy, 1, purpose, bits, obs);
  v->env->observe(&b);
  advance(&v->streams[copy / MN_LANES], copy % MN_LANES, 1);
}

/* Do once more what the copy did last. */
static void repeat(mn_vec *v, int copy, const stamp *s, const char *self, char *obs) {
  uint32_t bits[4][MN_LANES];
  mn_streams *m = &v->streams[copy / MN_LANES];
  int lane = copy % MN_LANES;
  mn_random_lanes(m, s->last == RESET ? MN_FOR_RESET : MN_FOR_STEP, lane + 1, bits);
  if (s->last == RESET) {
    start(v, copy, bits, obs);
  } else {
    float reward, score;
    uint8_t terminated;
    memcpy(v->before + (size_t)copy * v->stride, self, v->stride);
    memcpy(v->self + (size_t)copy * v->stride, self, v->stride);
    mn_batch b = batch_of(v, copy, 1, MN_FOR_STEP, bits, obs);
    b.action = &s->last;
    b.reward = &reward, b.score = &score, b.terminated = &terminated;
    v->env->step(&b);
  }
  advance(m, lane, 1);
}

/* Put saved bytes into one copy; obs: its observation ([...], without the axis of copies), or NULL.
** Bytes of another environment, version, params or size are refused, and nothing has changed. */
int mn_vec_restore(mn_vec *v, int copy, const void *bytes, int n, void *obs) {
  stamp s = { .version = 0 };
  const char *self = (const char *)bytes + sizeof s;
  if (check_copy(v, "restore", copy, false)) return -1;
  if (n >= (int)sizeof s) memcpy(&s, bytes, sizeof s);
  if (check_stamp(v, &s, self, n)) return -1;
  mn_streams *m = &v->streams[copy / MN_LANES];
  int lane = copy % MN_LANES;
  for (int w = 0; w < 2; w++) m->key[w][lane] = s.stream[w], m->step[w][lane] = s.stream[2 + w];
  m->copy[lane] = s.stream[4];
  v->waiting -= v->last[copy] == NEVER;
  v->last[copy] = s.last;
  if (s.changed) {
    memcpy(v->self + (size_t)copy * v->stride, self, v->stride);
    observe(v, copy, obs ? obs : v->one_obs);
  } else repeat(v, copy, &s, self, obs ? obs : v->one_obs);
  v->changed[copy] = s.changed != 0;
  v->length[copy] = s.length;
  v->sum[copy] = s.sum;
  return 0;
}

/* Give a settable fact of one copy a value, between two steps; obs: its observation then, as if the
** world had been so when it was last observed.  1; 0 where that cannot be now, and nothing has changed;
** -1 on an error. */
int mn_vec_set(mn_vec *v, int copy, const char *fact, double value, void *obs) {
  if (check_copy(v, "set", copy, true)) return -1;
  const int number = mn_env_fact(v->ctx, v->env, fact, value);
  const mn_io io = { .param = v->param, .shared = v->shared };
  if (number < 0) return -1;
  if (!v->env->set(v->self + (size_t)copy * v->stride, &io, number, value)) return 0;
  mn_streams *m = &v->streams[copy / MN_LANES];
  const int lane = copy % MN_LANES;
  m->step[1][lane] -= m->step[0][lane]-- == 0;
  observe(v, copy, obs);
  v->changed[copy] = 1;
  return 1;
}
