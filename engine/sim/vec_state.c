/* vec_state.c -- one of the environments that are stepped together: draw it, save it, restore it.  All of this is
** the host's, which waits for a device before it looks. */
#include "vec.h"
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

enum { MOST_STEPS = 1 << 30 };   /* of one episode, in saved bytes */

static int check_index(mn_vec *v, const char *what, int index, bool needs_reset) {
  if (index < 0 || index >= v->all.n)
    return mn_fail(v->ctx, "%s: %s of environment %d, expected 0..%d", v->env->name, what, index,
                   v->all.n - 1);
  if (mn_wait(v->ctx)) return -1;
  if (needs_reset && v->all.last[index] == MN_NEVER)
    return mn_fail(v->ctx, "%s: %s before reset", v->env->name, what);
  return 0;
}

/* Draw one environment as it is now.  Borrowed until the next draw; NULL on an error. */
mn_canvas *mn_vec_draw(mn_vec *v, int index) {
  if (check_index(v, "draw", index, true)) return NULL;
  mn_canvas_clear(v->canvas);
  const mn_io io = { .param = v->param, .shared = v->all.shared };
  v->env->draw(v->all.self + (size_t)index * v->all.stride, &io, v->canvas);
  return v->canvas;
}

/* Draw an observation, whoever sees it.  NULL: its environment has no picture of it. */
mn_canvas *mn_vec_see(mn_vec *v, const void *obs) {
  if (!v->env->facts->see || v->facts) return NULL;
  mn_canvas_clear(v->canvas);
  const mn_io io = { .param = v->param, .pixels = (uint8_t *)(uintptr_t)obs };
  v->env->facts->see(&io, v->canvas);
  return v->canvas;
}

/* What random actions, no memory and a perfect memory get within the environment's own time limit.  Where observations hold the
** facts, nothing has to be remembered. */
void mn_vec_reference(mn_vec *v, mn_reference *out) {
  *out = (mn_reference){ NAN, NAN, NAN, NAN, 0 };
  if (!v->env->facts->reference || v->time_limit != v->space.time_limit || mn_wait(v->ctx)) return;
  v->env->facts->reference(v->param, v->all.shared, out);
  if (v->facts) out->memoryless = NAN;
}

/* What only the environment knows.  *names: "cue layout[121] ...", separated by blanks, a count where a
** name has several values; *values: the numbers in that order, borrowed until the next call.  How many
** numbers; or -1. */
int mn_vec_truth(mn_vec *v, int index, const char **names, const float **values) {
  if (check_index(v, "truth", index, true)) return -1;
  const mn_io io = { .param = v->param, .shared = v->all.shared };
  *values = v->fact;
  return v->env->truth(v->all.self + (size_t)index * v->all.stride, &io, names, v->fact);
}

/* What mn_vec_save writes before the environment's own bytes.  An environment is kept as it was before what it did
** last, and what that was: doing it again also gives the observation, which is not kept.  One that was
** changed since then is kept as it is, and only observed again. */
typedef struct stamp {
  char     kind[8], name[32];
  int32_t  version, stride, n_params, last, length, changed;
  uint32_t stream[6];            /* key, step, index, 0 */
  double   sum, param[MN_PARAMS];
  uint64_t text;
  uint64_t check;                /* of everything else */
} stamp;

/* Of both parts, the stamp's own check left out. */
static uint64_t check_of(const stamp *s, const char *self, size_t n) {
  return mn_digest(mn_digest(MN_DIGEST, s, offsetof(stamp, check)), self, n);
}

static void stamp_of(const mn_vec *v, stamp *s) {
  memset(s, 0, sizeof *s);
  memcpy(s->kind, "mn_env2", 8);
  snprintf(s->name, sizeof s->name, "%s", v->env->name);
  s->version = v->env->facts->version;
  s->stride = (int32_t)v->all.stride;
  s->n_params = v->n_params;
  memcpy(s->param, v->param, sizeof s->param);
  s->text = v->text;
}

/* Of an action of several numbers; one int is in the stamp. */
static size_t did_bytes(const mn_vec *v) { return v->all.did ? mn_action_bytes(&v->all.actions, 1) : 0; }

int mn_vec_bytes(mn_vec *v) { return (int)(sizeof(stamp) + v->all.stride + did_bytes(v)); }

/* Write one environment into bytes[mn_vec_bytes]: its state, random stream, and its episode's length and
** return.  Restored, here or in another mn_vec of the same environment and params, it goes on bit
** for bit. */
int mn_vec_save(mn_vec *v, int index, void *bytes) {
  if (check_index(v, "save", index, true)) return -1;
  const mn_streams *m = &v->all.streams[index / MN_ENVS_PER_BATCH];
  int lane = index % MN_ENVS_PER_BATCH;
  stamp s;
  stamp_of(v, &s);
  s.last = v->all.last[index];
  s.length = v->all.length[index];
  s.sum = v->all.sum[index];
  s.stream[0] = m->key[0][lane], s.stream[1] = m->key[1][lane];
  s.stream[2] = m->step[0][lane] - 1;
  s.stream[3] = m->step[1][lane] - (m->step[0][lane] == 0);
  s.stream[4] = m->index[lane];
  char *self = (char *)bytes + sizeof s;
  s.changed = v->all.changed[index];
  if (s.changed) memcpy(self, v->all.self + (size_t)index * v->all.stride, v->all.stride);
  else if (s.last == MN_STARTED) memset(self, 0, v->all.stride);
  else memcpy(self, v->all.before + (size_t)index * v->all.stride, v->all.stride);
  if (v->all.did) memcpy(self + v->all.stride, v->all.did + mn_action_words(&v->all.actions, index), did_bytes(v));
  s.check = check_of(&s, self, v->all.stride + did_bytes(v));
  memcpy(bytes, &s, sizeof s);
  return 0;
}

/* A check of bytes keeps accidents out, not forgers: could an episode have reached this state?  An environment
** that has just started is made again, and its own bytes are not read. */
static bool could_be(const mn_vec *v, const stamp *s, const char *self) {
  const mn_io io = { .param = v->param, .shared = v->all.shared };
  if (s->length < 0 || s->length >= MOST_STEPS || !isfinite(s->sum)) return false;
  if (s->last == MN_STARTED && !s->changed) return true;
  void *aligned = malloc(v->all.stride);
  if (!aligned) return false;
  memcpy(aligned, self, v->all.stride);
  const bool is = v->env->valid(aligned, &io);
  free(aligned);
  return is;
}

/* Why saved bytes do not fit here: -1 with the error; 0 if they do. */
static int check_stamp(mn_vec *v, const stamp *s, const char *self, int n) {
  const char *name = v->env->name;
  stamp want;
  stamp_of(v, &want);
  if (n < (int)sizeof *s || memcmp(s->kind, want.kind, sizeof s->kind))
    return mn_fail(v->ctx, "%s: restore: these %d bytes are not a saved environment", name, n);
  if (strncmp(s->name, want.name, sizeof s->name) || s->version != want.version)
    return mn_fail(v->ctx, "%s: restore: the bytes were saved from %.31s-v%d, this is %s-v%d", name, s->name,
                   s->version, name, want.version);
  for (int i = 0; i < v->n_params; i++) {
    char word[96];
    if (s->param[i] == want.param[i]) continue;
    mn_word(v->env->facts->params, i, word, sizeof word);
    return mn_fail(v->ctx, "%s: restore: saved with %.*s=%.15g, here it is %.15g", name,
                   (int)strcspn(word, "="), word, s->param[i], want.param[i]);
  }
  if (s->text != want.text)
    return mn_fail(v->ctx, "%s: restore: saved with a different map or text", name);
  if (s->n_params != want.n_params || s->stride != want.stride || n != mn_vec_bytes(v))
    return mn_fail(v->ctx, "%s: restore: %d bytes, expected %d", name, n, mn_vec_bytes(v));
  if (s->check != check_of(s, self, v->all.stride + did_bytes(v)) || s->last < MN_STARTED ||
      s->last >= (v->all.did ? 1 : v->space.actions.n[0]) ||
      (s->changed && !v->env->facts->settable))
    return mn_fail(v->ctx, "%s: restore: the bytes are damaged", name);
  if (!could_be(v, s, self)) return mn_fail(v->ctx, "%s: restore: no episode reaches such a state", name);
  if (!v->all.did || s->last != 0) return 0;
  int32_t did[MN_ACTION_SIZE];
  memcpy(did, self + v->all.stride, did_bytes(v));
  return mn_env_actions_fit(v->ctx, v->env, &v->all.actions, did, 1);
}

/* Observe again, with the random bits of the last reset or step; the stream goes from before it to after it. */
static void observe(mn_vec *v, int index, char *obs) {
  uint32_t bits[4][MN_ENVS_PER_BATCH];
  const uint32_t purpose = v->all.last[index] == MN_STARTED ? MN_FOR_RESET : MN_FOR_STEP;
  mn_random_lane(&v->all.streams[index / MN_ENVS_PER_BATCH], purpose, index % MN_ENVS_PER_BATCH, bits);
  mn_batch b = mn_vec_batch(v, index, 1, purpose, bits, obs);
  v->env->observe(&b);
  mn_vec_write_facts(v, index, obs);
  mn_stream_advance(&v->all.streams[index / MN_ENVS_PER_BATCH], index % MN_ENVS_PER_BATCH);
}

/* Repeat the last reset or step. */
static void repeat(mn_vec *v, int index, const stamp *s, const char *self, char *obs) {
  uint32_t bits[4][MN_ENVS_PER_BATCH];
  mn_streams *m = &v->all.streams[index / MN_ENVS_PER_BATCH];
  int lane = index % MN_ENVS_PER_BATCH;
  mn_random_lane(m, s->last == MN_STARTED ? MN_FOR_RESET : MN_FOR_STEP, lane, bits);
  if (s->last == MN_STARTED) {
    mn_vec_start(v, index, bits, obs);
  } else {
    float reward, score;
    uint8_t terminated;
    memcpy(v->all.before + (size_t)index * v->all.stride, self, v->all.stride);
    v->kept[index] = (int32_t)v->all.stride;
    memcpy(v->all.self + (size_t)index * v->all.stride, self, v->all.stride);
    mn_batch b = mn_vec_batch(v, index, 1, MN_FOR_STEP, bits, obs);
    b.action = v->all.did ? NULL : &s->last;
    b.actions = v->all.did ? v->all.did + mn_action_words(&v->all.actions, index) : NULL;
    b.reward = &reward, b.score = &score, b.terminated = &terminated;
    v->env->step(&b);
    mn_vec_write_facts(v, index, obs);
  }
  mn_stream_advance(&v->all.streams[index / MN_ENVS_PER_BATCH], index % MN_ENVS_PER_BATCH);
}

/* Restore one environment from saved bytes; obs: its observation ([...], without the axis num_envs), or NULL.
** Bytes of another environment, version, params or size are refused, and nothing has changed. */
int mn_vec_restore(mn_vec *v, int index, const void *bytes, int n, void *obs) {
  stamp s = { .version = 0 };
  const char *self = (const char *)bytes + sizeof s;
  if (check_index(v, "restore", index, false)) return -1;
  if (n >= (int)sizeof s) memcpy(&s, bytes, sizeof s);
  if (check_stamp(v, &s, self, n)) return -1;
  mn_streams *m = &v->all.streams[index / MN_ENVS_PER_BATCH];
  int lane = index % MN_ENVS_PER_BATCH;
  for (int w = 0; w < 2; w++) m->key[w][lane] = s.stream[w], m->step[w][lane] = s.stream[2 + w];
  m->index[lane] = s.stream[4];
  v->waiting -= v->all.last[index] == MN_NEVER;
  v->all.last[index] = s.last;
  if (v->all.did) memcpy(v->all.did + mn_action_words(&v->all.actions, index), self + v->all.stride, did_bytes(v));
  v->rare[index] = 1;
  if (s.changed) {
    memcpy(v->all.self + (size_t)index * v->all.stride, self, v->all.stride);
    observe(v, index, obs ? obs : v->one_obs);
  } else repeat(v, index, &s, self, obs ? obs : v->one_obs);
  v->all.changed[index] = s.changed != 0;
  v->all.length[index] = s.length;
  v->all.sum[index] = s.sum;
  return 0;
}

/* Give a settable fact of one environment a value, between two steps; obs: its observation then, as if the
** world had been so when it was last observed, or NULL.  1; 0 where that cannot be now, and nothing has changed;
** -1 on an error. */
int mn_vec_set(mn_vec *v, int index, const char *fact, double value, void *obs) {
  if (check_index(v, "set", index, true)) return -1;
  const int number = mn_env_fact(v->ctx, v->env, fact, value);
  const mn_io io = { .param = v->param, .shared = v->all.shared };
  if (number < 0) return -1;
  if (!v->env->set(v->all.self + (size_t)index * v->all.stride, &io, number, value)) return 0;
  mn_streams *m = &v->all.streams[index / MN_ENVS_PER_BATCH];
  const int lane = index % MN_ENVS_PER_BATCH;
  m->step[1][lane] -= m->step[0][lane]-- == 0;
  observe(v, index, obs ? obs : v->one_obs);
  v->all.changed[index] = v->rare[index] = 1;
  return 1;
}
