/* custom_gradient.c -- an op whose backward pass was written in Lua: mn.custom_gradient.
** What it returns was computed by other ops, from the same arguments; forward hands it on.  backward runs a plan that was recorded with
** stand-ins for the gradient of y, the arguments and y, and takes the gradients of the arguments from it. */
#include <setjmp.h>
#include <stdlib.h>
#include "internal.h"

enum { ARGUMENTS = MN_INPUTS - 1 };

struct mn_way_back {
  int n;                         /* arguments */
  mn_record *dy, *x[ARGUMENTS], *y;          /* stand-ins */
  mn_record *dx[ARGUMENTS];                  /* NULL: no gradient */
};

/* ---- recording ---- */

static void free_way_back(mn_plan *p) {
  free(p->way_back);
  p->way_back = NULL;
}

int mn_way_back_begin(mn_plan *p) {
  if (mn_plan_begin_inside(p)) return -1;
  free_way_back(p);
  p->free_body = free_way_back;
  return 0;
}

static mn_record *part(mn_plan *p, const mn_tensor *t, const char *what, long n) {
  mn_record *r = mn_find(p->ctx, t, "custom_gradient", what);
  if (!r || mn_use(p->ctx, r, "custom_gradient", what)) return NULL;
  if (r->dtype != MN_F32 || (n >= 0 && r->n != n))
    return mn_fail(p->ctx, "custom_gradient: %s has %ld elements, expected %ld of float32", what, r->n, n), NULL;
  return r;
}

int mn_way_back_end(mn_plan *p, int n, const mn_tensor *in, const mn_tensor *out) {
  if (!p->recording || n < 1 || n > ARGUMENTS) return mn_fail(p->ctx, "custom_gradient: %d arguments, expected 1 to %d", n, ARGUMENTS);
  mn_way_back *w = calloc(1, sizeof *w);
  if (!w) return mn_fail(p->ctx, "custom_gradient: out of memory");
  w->n = n;
  bool fine = (w->dy = part(p, &in[0], "the gradient of y", -1)) && (w->y = part(p, &in[n + 1], "y", -1));
  for (int i = 0; fine && i < n; i++) {
    fine = (w->x[i] = part(p, &in[i + 1], "an argument", -1)) != NULL;
    if (fine && out[i].gen) fine = (w->dx[i] = part(p, &out[i], "a gradient", w->x[i]->n)) != NULL;
  }
  if (!fine) {
    free(w);
    return -1;
  }
  p->way_back = w;
  return 0;
}

/* ---- the op ---- */

enum { PLAN, VERSION };                      /* options */
enum { Y, X };                               /* inputs; those from X on are arguments */

static mn_plan *plan_of(const mn_call *c) {
  mn_ctx *mn = c->ctx;
  const double id = OPT(c, PLAN);
  mn_plan *p = id >= 0 && id < mn->n_plans ? mn->plan[(int)id] : NULL;
  if (p && p->way_back && !p->recording && p->version == (uint32_t)OPT(c, VERSION)) return p;
  mn_fail(mn, "custom_gradient: its backward pass was freed: mn.custom_gradient records one, which must live as long as what it computed");
  return NULL;
}

int mn_custom_gradient_shape(mn_call *c) {
  const mn_plan *p = plan_of(c);
  if (!p) return -1;
  const mn_way_back *w = p->way_back;
  bool fits = c->in[Y].n == w->y->n && c->in[Y].n == w->dy->n;
  for (int i = 0; i < ARGUMENTS; i++) fits = fits && (i < w->n ? c->in[X + i].data && c->in[X + i].n == w->x[i]->n : !c->in[X + i].data);
  return fits ? 0 : mn_fail(c->ctx, "custom_gradient: other sizes than its backward pass was recorded with");
}

static void check(const mn_call *c, int code) {
  if (mn_check_device(c->ctx, code)) longjmp(c->ctx->work.unless_scratch, 1);
}

static void copy(const mn_call *c, float *to, const float *from, long n) {
  check(c, c->ctx->work.device->copy(to, from, (size_t)n * sizeof(float)));
}

void mn_custom_gradient_forward(mn_call *c) { copy(c, c->out[0].data, c->in[Y].data, c->in[Y].n); }

static void run(const mn_call *c, const mn_command *k) {
  if (k->kind == MN_ADD) check(c, c->ctx->work.device->add(k->to, k->from, k->bytes / 4));
  else if (k->kind == MN_COPY) check(c, c->ctx->work.device->copy(k->to, k->from, (size_t)k->bytes));
  else if (k->kind == MN_FORWARD) k->call->kernel->forward(k->call);
  else k->call->kernel->backward(k->call);
}

void mn_custom_gradient_backward(mn_call *c) {
  const mn_plan *p = plan_of(c);
  if (!p) longjmp(c->ctx->work.unless_scratch, 1);
  const mn_way_back *w = p->way_back;
  copy(c, w->dy->data, c->out[0].grad, w->dy->n);
  copy(c, w->y->data, c->in[Y].data, w->y->n);
  for (int i = 0; i < w->n; i++) copy(c, w->x[i]->data, c->in[X + i].data, w->x[i]->n);
  for (int i = 0; i < p->n_commands; i++) run(c, &p->command[i]);
  for (int i = 0; i < w->n; i++) {
    const mn_arg *x = &c->in[X + i];
    if (x->grad && w->dx[i]) copy(c, x->grad, w->dx[i]->data, x->n);
    else if (x->grad) check(c, c->ctx->work.device->zero(x->grad, (size_t)x->n * sizeof(float)));
  }
}
