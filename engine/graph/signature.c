/* signature.c -- parses "x[T,D] w?[E,D]:01 -> y[T,E] | eps=1e-5", applies its shape rules and words the errors.
** One string gives the shape rule, the error, the Lua binding, the usage text and the test inputs. */
#include <ctype.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "signature.h"
#include "numerics/broadcast.h"
#include "registry.h"

static mn_op_entry table[MN_N_OPS];
static pthread_once_t once = PTHREAD_ONCE_INIT;

static const char *blanks(const char *s) { while (*s == ' ' || *s == '\n') s++; return s; }

/* One "~name?[A,B,...]:domain" or "~~name[...]", and blanks; NULL: not one. */
static const char *read_arg(const char *s, mn_arg_sig *a) {
  size_t n = 0;
  if (*s == '~') a->no_grad = true, s++;
  if (a->no_grad && *s == '~') a->work_space = true, s++;
  while (isalnum((unsigned char)*s) || *s == '_' || *s == '\'') {
    if (n + 1 >= sizeof a->name) return NULL;
    a->name[n++] = *s++;
  }
  if (*s == '?') a->optional = true, s++;
  if (!n || *s != '[') return NULL;
  for (n = 0, s++; *s && *s != ']'; s++) {
    if (*s == ',' || *s == ' ') continue;
    if (n > MN_AXES) return NULL;
    if (!strncmp(s, "...", 3)) s += 2;
    else if (!isupper((unsigned char)*s) && !isdigit((unsigned char)*s) && *s != MN_ANY && *s != MN_FREE) return NULL;
    a->axis[n++] = *s;
  }
  if (*s++ != ']') return NULL;
  if (*s == ':')
    for (n = 0, s++; isalnum((unsigned char)*s) || *s == '<'; s++) {
      if (n + 1 >= sizeof a->domain) return NULL;
      a->domain[n++] = *s;
    }
  a->dtype = !strcmp(a->domain, "bit") || !strcmp(a->domain, "u8") ? MN_U8
           : !strcmp(a->domain, "i32") || a->domain[0] == '<' ? MN_I32 : !strcmp(a->domain, "any") ? MN_ANY_TYPE : MN_F32;
  if (a->dtype == MN_I32 || a->dtype == MN_U8) a->no_grad = true;
  return blanks(s);
}

/* One "name=1e-5" or "name=a|b|c", and blanks; NULL: not one. */
static const char *read_option(const char *s, mn_option_sig *o) {
  size_t n = 0;
  while (*s && *s != '=' && *s != ' ') {
    if (n + 1 >= sizeof o->name) return NULL;
    o->name[n++] = *s++;
  }
  if (*s++ != '=') return NULL;
  char *end;
  o->value = strtod(s, &end);
  if (end != s && (*end == ' ' || !*end)) return blanks(end);
  for (n = 0, o->value = 0; *s && *s != ' '; s++) {
    if (n + 1 >= sizeof o->words) return NULL;
    o->words[n++] = *s;
  }
  return blanks(s);
}

const char *mn_read_signature(const char *s, mn_signature *g) {
  const char *at = blanks(s);
  while (*at && strncmp(at, "->", 2)) {
    const char *next = g->n_in < MN_INPUTS ? read_arg(at, &g->in[g->n_in++]) : NULL;
    if (!next) return at;
    at = next;
  }
  at = blanks(*at ? at + 2 : at);
  while (*at && *at != '|') {
    const char *next = g->n_out < MN_OUTPUTS ? read_arg(at, &g->out[g->n_out++]) : NULL;
    if (!next) return at;
    at = next;
  }
  if (*at == '|') at = blanks(at + 1);
  while (*at) {
    const char *next = g->n_options < MN_OPTIONS ? read_option(at, &g->option[g->n_options++]) : NULL;
    if (!next) return at;
    at = next;
  }
  return NULL;
}

static void read_all(void) {
  for (int i = 0; i < MN_N_OPS; i++) {
    table[i].name = mn_op_list[i].name;
    table[i].op = mn_op_list[i].op;
    table[i].kernel = (mn_kernel){ .forward = table[i].op->forward, .backward = table[i].op->backward,
                                    .fuse = table[i].op->fuse, .batch_parallel = table[i].op->batch_parallel };
    const char *wrong = mn_read_signature(table[i].op->sig, &table[i].sig);
    for (int k = 0; k < table[i].sig.n_in; k++) table[i].input_name[k] = table[i].sig.in[k].name;
    if (!wrong) continue;
    fprintf(stderr, "mneme: the signature of op %s is malformed at \"%s\"\n", table[i].name, wrong);    /* our own mistake */
    abort();
  }
}

mn_op_entry *mn_ops_all(int *n) {
  pthread_once(&once, read_all);
  if (n) *n = MN_N_OPS;
  return table;
}

const mn_op_entry *mn_entry_of(const mn_op *op) {
  const mn_op_entry *e = mn_ops_all(NULL);
  while (e->op != op) e++;
  return e;
}

static const char *dtype_name(int d) { return d == MN_F32 ? "float32" : d == MN_I32 ? "int32" : "uint8"; }

typedef struct binding {
  int by[26];                       /* which input bound a letter */
  int rest[MN_AXES], n_rest, rest_by;   /* n_rest < 0: not yet */
  int type, type_by;                /* of arguments marked :any; type_by < 0: not yet */
} binding;

/* The type of one input: as the signature says, or as the first :any has. */
static int bind_type(mn_ctx *mn, const mn_op_entry *e, const mn_call *c, int i, binding *b) {
  const mn_arg_sig *g = &e->sig.in[i];
  const int type = c->in[i].dtype;
  if (g->dtype != MN_ANY_TYPE)
    return type == g->dtype ? 0 : mn_fail(mn, "%s: %s is %s, expected %s%s", e->name, g->name, dtype_name(type), dtype_name(g->dtype),
                                       g->dtype == MN_F32 ? " (x:to \"f32\" changes a type)" : "");
  if (b->type_by < 0) b->type = type, b->type_by = i;
  if (type == b->type) return 0;
  return mn_fail(mn, "%s: %s is %s, expected %s as %s (x:to \"f32\" changes a type)", e->name, g->name, dtype_name(type), dtype_name(b->type),
                 e->sig.in[b->type_by].name);
}

/* Letters of one input: bind at first use, compare after. */
static int bind_input(mn_ctx *mn, const mn_op_entry *e, mn_call *c, int i, binding *b) {
  const mn_arg_sig *g = &e->sig.in[i];
  const mn_arg *a = &c->in[i];
  int fixed = 0, axis = 0;
  bool rest = false;
  for (const char *s = g->axis; *s; s++) { if (*s == MN_REST || *s == MN_FREE) rest = true; else fixed++; }
  if (bind_type(mn, e, c, i, b)) return -1;
  if (rest ? a->ndim < fixed : a->ndim != fixed)
    return mn_fail(mn, "%s: %s has %d axes, expected %s%d", e->name, g->name, a->ndim, rest ? "at least " : "", fixed);
  for (const char *s = g->axis; *s; s++) {
    if (*s == MN_REST) {
      int n = a->ndim - fixed;
      if (b->n_rest < 0) {
        b->n_rest = n;
        b->rest_by = i;
        memcpy(b->rest, a->shape + axis, sizeof(int) * (size_t)n);
      } else if (n != b->n_rest)
        return mn_fail(mn, "%s: %s has %d axes, expected %d as %s", e->name, g->name, a->ndim,
                       fixed + b->n_rest, e->sig.in[b->rest_by].name);
      for (int k = 0; k < n; k++)
        if (a->shape[axis + k] != b->rest[k])
          return mn_fail(mn, "%s: axis %d of %s is %d, expected %d as in %s", e->name, axis + k, g->name,
                         a->shape[axis + k], b->rest[k], e->sig.in[b->rest_by].name);
      axis += n;
      continue;
    }
    if (*s == MN_FREE) { axis += a->ndim - fixed; continue; }
    int size = a->shape[axis];
    if (isdigit((unsigned char)*s)) {
      if (size != *s - '0')
        return mn_fail(mn, "%s: axis %d of %s is %d, expected %c", e->name, axis, g->name, size, *s);
    } else if (*s != MN_ANY) {
      int *dim = &DIM(c, *s);
      if (!*dim) *dim = size, b->by[*s - 'A'] = i;
      else if (*dim != size)
        return mn_fail(mn, "%s: axis %d (%c) of %s is %d, expected %d as in %s", e->name, axis, *s, g->name,
                       size, *dim, e->sig.in[b->by[*s - 'A']].name);
    }
    axis++;
  }
  return 0;
}

int mn_bind(mn_ctx *mn, const mn_op_entry *e, mn_call *c) {
  binding b = { .n_rest = -1, .type_by = -1 };
  for (int i = 0; i < e->sig.n_in; i++) {
    if (!c->in[i].data) {
      if (!e->sig.in[i].optional) return mn_fail(mn, "%s: %s is missing", e->name, e->sig.in[i].name);
      continue;
    }
    if (bind_input(mn, e, c, i, &b)) return -1;
  }
  for (int i = 0; i < e->sig.n_out; i++) {
    const mn_arg_sig *g = &e->sig.out[i];
    mn_arg *a = &c->out[i];
    a->dtype = g->dtype == MN_ANY_TYPE ? b.type : g->dtype;
    a->ndim = 0;
    for (const char *s = g->axis; *s; s++) {
      int n = *s == MN_REST ? b.n_rest < 0 ? 0 : b.n_rest : *s != MN_FREE;
      if (a->ndim + n > MN_AXES) return mn_fail(mn, "%s: %s would have more than %d axes", e->name, g->name, MN_AXES);
      for (int k = 0; k < n; k++)
        a->shape[a->ndim++] = *s == MN_REST ? b.rest[k] : isdigit((unsigned char)*s) ? *s - '0'
                            : *s == MN_ANY ? 0 : DIM(c, *s);
    }
  }
  if (e->op->shape && e->op->shape(c)) return -1;
  for (int i = 0; i < e->sig.n_out; i++) {
    mn_arg *a = &c->out[i];
    a->n = 1;
    for (int k = 0; k < a->ndim; k++) {
      if (a->shape[k] < 1)
        return mn_fail(mn, "%s: axis %d of %s would be %d, expected at least 1", e->name, k, e->sig.out[i].name, a->shape[k]);
      if (a->n > MN_NUMBERS / a->shape[k])
        return mn_fail(mn, "%s: %s would have more elements than fit in memory", e->name, e->sig.out[i].name);
      a->n *= a->shape[k];
    }
  }
  return 0;
}

int mn_index_bound(const mn_op_entry *e, const mn_call *c, int i) {
  const char *domain = e->sig.in[i].domain;
  if (domain[0] != '<') return 0;
  if (strcmp(domain, "<axis")) return DIM(c, domain[1]);
  int k = 0;
  while (k < e->sig.n_options && strcmp(e->sig.option[k].name, "axis")) k++;
  return c->in[0].shape[mn_axis_of(&c->in[0], OPT(c, k))];
}

int mn_check_domains(mn_ctx *mn, const mn_op_entry *e, const mn_call *c) {
  for (int i = 0; i < e->sig.n_in; i++) {
    const mn_arg_sig *g = &e->sig.in[i];
    const mn_arg *a = &c->in[i];
    if (!a->data) continue;
    for (long k = 0; k < a->n; k++) {
      double x = a->dtype == MN_F32 ? a->data[k] : a->dtype == MN_I32 ? a->i32[k] : a->u8[k];
      const char *want = isnan(x) ? "a number"
        : !strcmp(g->domain, "bit") && x > 1 ? "0 or 1"
        : !strcmp(g->domain, "01") && (x < 0 || x > 1) ? "0 to 1"
        : !strcmp(g->domain, "pos") && x <= 0 ? "greater than 0"
        : g->domain[0] == '<' && (x < 0 || x >= mn_index_bound(e, c, i)) ? "an index below the size of its axis" : NULL;
      if (want)
        return mn_fail(mn, "%s: %s[%ld] is %g, expected %s", e->name, g->name, k, x, want);
    }
  }
  return 0;
}

/* ---- ops by number, for Lua ---- */

int mn_op_count(void) { int n; mn_ops_all(&n); return n; }

const mn_op_entry *mn_op_at(int op) {
  int n;
  const mn_op_entry *all = mn_ops_all(&n);
  return op >= 0 && op < n ? &all[op] : NULL;
}

int mn_op_find(const char *name) {
  int n;
  const mn_op_entry *all = mn_ops_all(&n);
  for (int i = 0; i < n; i++) if (!strcmp(all[i].name, name)) return i;
  return -1;
}

const char *mn_op_name(int op) { const mn_op_entry *e = mn_op_at(op); return e ? e->name : NULL; }
const char *mn_op_sig(int op)  { const mn_op_entry *e = mn_op_at(op); return e ? e->op->sig : NULL; }
const char *mn_op_doc(int op)  { const mn_op_entry *e = mn_op_at(op); return e ? e->op->doc : NULL; }
bool mn_op_broadcasts(int op) { const mn_op_entry *e = mn_op_at(op); return e && e->op->shape == mn_broadcast_shape; }
bool mn_op_differentiable(int op) { const mn_op_entry *e = mn_op_at(op); return e && e->op->backward; }
