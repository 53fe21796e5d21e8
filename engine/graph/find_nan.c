/* find_nan.c -- finds where a NaN or infinity arose: the first call of a plan whose inputs are finite and whose result
** is not, with its inputs. */
#include <math.h>
#include <stdio.h>
#include "internal.h"

static bool has_nan(const float *x, long n) {
  for (long i = 0; i < n; i++) if (!isfinite(x[i])) return true;
  return false;
}

/* "x [8,16] -0.5..2" behind what is there; what has no room is left out. */
static void describe(char *text, size_t room, const char *name, const mn_arg *a) {
  size_t used = strlen(text);
#define MORE(...) do { if (used < room) used += (size_t)snprintf(text + used, room - used, __VA_ARGS__); } while (0)
  MORE("%s%s [", used ? ", " : "", name);
  for (int i = 0; i < a->ndim; i++) MORE("%s%d", i ? "," : "", a->shape[i]);
  MORE("]");
  if (a->dtype != MN_F32 || !a->n) return;
  float lo = INFINITY, hi = -INFINITY;
  long odd = 0;
  for (long i = 0; i < a->n; i++) {
    if (!isfinite(a->data[i])) odd++;
    else lo = fminf(lo, a->data[i]), hi = fmaxf(hi, a->data[i]);
  }
  if (odd < a->n) MORE(" %.3g..%.3g", (double)lo, (double)hi);
  if (odd) MORE(" (%ld of %ld not finite)", odd, a->n);
#undef MORE
}

void mn_describe_inputs(const mn_op_entry *e, const mn_call *c, char *text, size_t room) {
  text[0] = 0;
  for (int k = 0; k < c->n_in; k++)
    if (c->in[k].data) describe(text, room, e->sig.in[k].name, &c->in[k]);
}

/* What of a call is not finite: "input x", "output y", "the gradient of x", or NULL; part: its name. */
static const char *what_is_wrong(const mn_op_entry *e, const mn_call *c, bool forward, const char **part) {
  for (int k = 0; k < c->n_in; k++)
    if (c->in[k].data && c->in[k].dtype == MN_F32 && has_nan(c->in[k].data, c->in[k].n)) return *part = e->sig.in[k].name, "input";
  for (int k = 0; forward && k < c->n_out; k++)
    if (!e->sig.out[k].work_space && c->out[k].dtype == MN_F32 && has_nan(c->out[k].data, c->out[k].n)) return *part = e->sig.out[k].name, "output";
  for (int k = 0; !forward && k < c->n_in; k++)
    if (c->in[k].grad && has_nan(c->in[k].grad, c->in[k].n)) return *part = e->sig.in[k].name, "the gradient of";
  return NULL;
}

const char *mn_plan_find_nan(mn_plan *p, int *place) {
  static _Thread_local char text[600];
  char inputs[480];
  *place = 0;
  if (mn_wait(p->ctx)) return mn_error(p->ctx);
  for (int i = 0; i < p->n_commands; i++) {
    const mn_call *c = p->command[i].call;
    if (!c) continue;
    const mn_op_entry *e = mn_entry_of(c->op);
    const char *part = NULL, *what = what_is_wrong(e, c, p->command[i].kind == MN_FORWARD, &part);
    if (!what) continue;
    mn_describe_inputs(e, c, inputs, sizeof inputs);
    snprintf(text, sizeof text, "%s: %s %s is not finite; %s", e->name, what, part, inputs);
    *place = p->command[i].place;
    return text;
  }
  return NULL;
}
