/* env_registry.c -- the list of environments, and the values their parameters may take.  The list is the
** folder engine/envs (the Makefile writes it down as registry.h); a parameter's rule is the text
** that its environment shows. */
#include "vec.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "op.h"
#include "registry.h"

const mn_env *mn_env_at(int env) { return env >= 0 && env < MN_N_ENVS ? mn_envs[env] : NULL; }

int mn_env_count(void) { return MN_N_ENVS; }

/* The number of "tmaze" or "tmaze-v0"; -1: no such environment, or not in that version. */
int mn_env_find(const char *name) {
  char full[96];
  for (int i = 0; i < MN_N_ENVS; i++) {
    snprintf(full, sizeof full, "%s-v%d", mn_envs[i]->name, mn_envs[i]->facts->version);
    if (!strcmp(name, mn_envs[i]->name) || !strcmp(name, full)) return i;
  }
  return -1;
}

/* The declarations of environment number `env`; NULL (version: -1) if there is none. */
const char *mn_env_name(int env) { return mn_env_at(env) ? mn_env_at(env)->name : NULL; }
int mn_env_version(int env) { return mn_env_at(env) ? mn_env_at(env)->facts->version : -1; }
const char *mn_env_params(int env) { return mn_env_at(env) ? mn_env_at(env)->facts->params : NULL; }
const char *mn_env_settable(int env) { return mn_env_at(env) ? mn_env_at(env)->facts->settable : NULL; }
const char *mn_env_observes(int env) { return mn_env_at(env) ? mn_env_at(env)->facts->observes : NULL; }
const char *mn_env_to_know(int env) { return mn_env_at(env) ? mn_env_at(env)->facts->to_know : NULL; }
const char *mn_env_outcomes(int env) { return mn_env_at(env) ? mn_env_at(env)->facts->outcomes : NULL; }
const char *mn_env_needs(int env) { return mn_env_at(env) ? mn_env_at(env)->facts->needs : NULL; }
const char *mn_env_rules(int env) { return mn_env_at(env) ? mn_env_at(env)->facts->rules : NULL; }
const char *mn_env_doc(int env) { return mn_env_at(env) ? mn_env_at(env)->facts->doc : NULL; }
const char *mn_env_about(int env) { return mn_env_at(env) ? mn_env_at(env)->facts->about : NULL; }
const char *mn_env_actions(int env) {
  return mn_env_at(env) ? mn_env_at(env)->facts->actions : NULL;
}

const char *mn_word(const char *list, int i, char *buf, int size) {
  while (i-- > 0) {
    list += strcspn(list, " ");
    list += strspn(list, " ");
  }
  int n = (int)strcspn(list, " ");
  snprintf(buf, (size_t)size, "%.*s", n ? n : 1, n ? list : "?");
  return buf;
}

/* ---- parameters ---- */

typedef struct rule {            /* corridor=160[2..256], noise=0.1[0..1], mode=grid|torus, map="" */
  char name[32];
  double value, lo, hi;          /* the default; both ends are allowed */
  bool whole;
  const char *words;             /* "grid|torus ...", or NULL for a number */
} rule;

/* Read the rule at `text`; where the next one begins. */
static const char *read_rule(const char *text, rule *r) {
  int n = (int)strcspn(text, "=");
  snprintf(r->name, sizeof r->name, "%.*s", n, text);
  const char *value = text + n + 1, *end = value + strcspn(value, " ");
  const char *range = memchr(value, '[', (size_t)(end - value));
  r->words = NULL;
  r->value = 0;
  r->whole = true;
  if (range) {
    r->value = strtod(value, NULL);
    r->whole = !memchr(value, '.', (size_t)(range - value));
    r->lo = strtod(range + 1, NULL);
    r->hi = strtod(strstr(range, "..") + 2, NULL);
  } else {
    r->words = value;
    r->lo = r->hi = 0;           /* of a text, too: what it says does not pass here */
    for (const char *s = value; s < end; s++) r->hi += *s == '|';
  }
  return end + strspn(end, " ");
}

static int check_rule(mn_ctx *mn, const mn_env *e, const rule *r, double x) {
  if (x >= r->lo && x <= r->hi && (!r->whole || x == floor(x))) return 0;
  if (isnan(x)) x = (double)NAN;         /* it may be a negative one, which prints as -nan */
  if (r->words)
    return mn_fail(mn, "%s: %s=%g, expected the index of one of %.*s, counted from 0", e->name,
                   r->name, x, (int)strcspn(r->words, " "), r->words);
  return mn_fail(mn, "%s: %s=%.15g, expected a%s number from %g to %g", e->name, r->name, x,
                 r->whole ? " whole" : "", r->lo, r->hi);
}

int mn_env_fact(mn_ctx *mn, const mn_env *e, const char *name, double value) {
  const char *all = e->facts->settable;
  if (!all) return mn_fail(mn, "%s: it has no settable facts", e->name);
  char known[256] = "";
  for (int n = 0; *all; n++) {
    rule r;
    all = read_rule(all, &r);
    if (!strcmp(r.name, name)) return check_rule(mn, e, &r, value) ? -1 : n;
    size_t used = strlen(known);
    snprintf(known + used, sizeof known - used, " %s", r.name);
  }
  return mn_fail(mn, "%s: %.40s cannot be set; known:%s", e->name, name, known);
}

int mn_env_values(mn_ctx *mn, const mn_env *e, const double *given, double *value) {
  int n = 0;
  for (const char *s = e->facts->params; *s; n++) {
    rule r;
    s = read_rule(s, &r);
    if (n == MN_PARAMS) return mn_fail(mn, "%s: more than %d parameters", e->name, MN_PARAMS);
    value[n] = given ? given[n] : r.value;
    if (check_rule(mn, e, &r, value[n])) return -1;
  }
  return n;
}

/* Length of the first n words of a list separated by blanks. */
static int words(const char *list, int n) {
  const char *at = list;
  for (int i = 0; i < n && *at; i++) {
    at += strspn(at, " ");
    at += strcspn(at, " ");
  }
  return (int)(at - list);
}

/* Actions of several numbers. */
static int several_fit(mn_ctx *mn, const mn_env *e, const mn_action_space *s, const char *action, int n_envs) {
  for (int i = 0; i < n_envs; i++, action += mn_action_bytes(s, 1))
    for (int k = 0; k < s->size; k++) {
      char word[96];
      if (mn_action_fits(s, action, k)) continue;
      mn_word(e->facts->actions, k, word, sizeof word);
      if (s->kind == MN_BOX) return mn_fail(mn, "%s: action[%d][%d] (%s) is not finite", e->name, i, k, word);
      return mn_fail(mn, "%s: action[%d][%d]=%d, expected 0..%d (%s)", e->name, i, k, ((const int32_t *)(const void *)action)[k], s->n[k] - 1, word);
    }
  return 0;
}

int mn_env_actions_fit(mn_ctx *mn, const mn_env *e, const mn_action_space *s, const void *actions, int n_envs) {
  const char *names = e->facts->actions;
  const int32_t *action = actions;
  const int n = s->n[0];
  if (s->kind != MN_DISCRETE) return several_fit(mn, e, s, actions, n_envs);
  uint32_t bad = 0;
  for (int i = 0; i < n_envs; i++) bad |= (uint32_t)action[i] >= (uint32_t)n;
  for (int i = 0; bad && i < n_envs; i++)
    if ((uint32_t)action[i] >= (uint32_t)n)
      return mn_fail(mn, "%s: action[%d]=%d, expected 0..%d%s%.*s%s", e->name, i, action[i], n - 1, *names ? " (" : "",
                     words(names, n), names, *names ? ")" : "");
  return 0;
}
