/* handles.c -- the records behind tensor handles: finds, creates, counts and frees them. */
#include <stdlib.h>
#include "internal.h"

/* Make room for `need` items in a growing array (`array` points to the pointer). */
int mn_grow(mn_ctx *mn, void *array, int *cap, int need, size_t item) {
  if (need <= *cap) return 0;
  int n = *cap ? *cap * 2 : 64;
  while (n < need) n *= 2;
  void *p = realloc(*(void **)array, (size_t)n * item);
  if (!p) return mn_fail(mn, "out of memory");
  *(void **)array = p;
  *cap = n;
  return 0;
}

static uint32_t fresh_gen(mn_ctx *mn) {
  if (!++mn->next_gen) ++mn->next_gen;
  return mn->next_gen;
}

/* A record with a lasting slot: leaves, and whatever a plan makes. */
mn_record *mn_new_leaf(mn_ctx *mn) {
  mn_record *r = mn->unused;
  if (r) mn->unused = r->of;
  else {
    if (mn_grow(mn, &mn->leaf, &mn->cap_leaves, mn->n_leaves + 1, sizeof *mn->leaf)) return NULL;
    r = malloc(sizeof *r);
    if (!r) return mn_fail(mn, "out of memory"), NULL;
    mn->leaf[mn->n_leaves++] = r;
    r->slot = -mn->n_leaves;
  }
  int slot = r->slot;
  memset(r, 0, sizeof *r);
  r->slot = slot;
  r->gen = fresh_gen(mn);
  return r;
}

static mn_record *until_sweep(mn_ctx *mn) {
  int i = mn->n_computed;
  if (i == mn->cap_computed) {
    int old = mn->cap_computed;
    if (mn_grow(mn, &mn->computed, &mn->cap_computed, i + 1, sizeof *mn->computed)) return NULL;
    memset(mn->computed + old, 0, sizeof *mn->computed * (size_t)(mn->cap_computed - old));
  }
  if (!mn->computed[i] && !(mn->computed[i] = malloc(sizeof(mn_record)))) return mn_fail(mn, "out of memory"), NULL;
  mn_record *r = mn->computed[i];
  memset(r, 0, sizeof *r);
  r->slot = i;
  r->gen = fresh_gen(mn);
  mn->n_computed++;
  return r;
}

mn_record *mn_new_record(mn_ctx *mn) {
  mn_plan *p = mn->recording;
  if (!p) return until_sweep(mn);
  if (mn_grow(mn, &p->own, &p->cap_own, p->n_own + 1, sizeof *p->own)) return NULL;
  mn_record *r = mn_new_leaf(mn);
  if (!r) return NULL;
  r->plan = p;
  return p->own[p->n_own++] = r;
}

void mn_free_slot(mn_ctx *mn, mn_record *r) {
  r->gen = 0;
  r->data = NULL;
  r->grad = NULL;
  r->of = mn->unused;
  mn->unused = r;
}

void mn_drop_record(mn_ctx *mn, mn_record *r) {
  if (!r->of && !r->plan) {
    mn->leaf_bytes -= (double)r->n * (r->grad ? 8 : mn_item(r->dtype));
    mn->work.device->free(r->data);
    mn->work.device->free(r->grad);
  }
  mn_record *of = r->of;
  mn_free_slot(mn, r);
  if (of) mn_unpin(mn, of);
}

void mn_unpin(mn_ctx *mn, mn_record *r) {
  if (--r->pins == 0 && r->dead) mn_drop_record(mn, r);
}

void mn_free_deferred(mn_ctx *mn) {
  for (int i = 0; i < mn->n_grave; i++) mn_unpin(mn, mn->grave[i]);
  mn->n_grave = 0;
}

mn_record *mn_find(mn_ctx *mn, const mn_tensor *t, const char *op, const char *arg) {
  mn_record *r = NULL;
  if (!t) return mn_fail(mn, "%s: %s is nil, expected a tensor (a method needs the colon: t:shape())", op, arg), NULL;
  if (t->slot >= 0 && t->slot < mn->n_computed) r = mn->computed[t->slot];
  else if (t->slot < 0 && -(long)t->slot <= mn->n_leaves) r = mn->leaf[-(t->slot + 1)];
  if (r && t->gen && r->gen == t->gen && !r->dead) return r;
  mn_fail(mn, t->slot >= 0
          ? "%s: %s was computed before the last sweep (or inside mn.no_grad) and was freed; mn.keep() copies what must last"
          : "%s: %s was freed, or belongs to a plan that was recorded again", op, arg);
  return NULL;
}

static void free_all(mn_record **r, int n) {
  for (int i = 0; i < n; i++) free(r[i]);
  free(r);
}

void mn_records_close(mn_ctx *mn) {
  for (int i = 0; i < mn->n_leaves; i++)
    if (mn->leaf[i]->gen && !mn->leaf[i]->of) mn_drop_record(mn, mn->leaf[i]);
  free_all(mn->leaf, mn->n_leaves);
  free_all(mn->computed, mn->cap_computed);
  free(mn->grave);
}
