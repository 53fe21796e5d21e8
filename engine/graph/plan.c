/* plan.c -- op calls recorded once and run again with one C call, on the same buffers.
** A plan owns the tensors it computes, so its activations stay for a backward pass that another plan records:
** acting row by row fills the buffers that the update's backward pass reads. */
#include <stdio.h>
#include <stdlib.h>
#include "internal.h"
#include "base/denormals.h"

mn_command *mn_record_command(mn_plan *p, mn_kind kind) {
  if (mn_grow(p->ctx, &p->command, &p->cap_commands, p->n_commands + 1, sizeof *p->command)) return NULL;
  mn_command *c = &p->command[p->n_commands++];
  *c = (mn_command){ .kind = kind, .place = p->ctx->place };
  return c;
}

mn_plan *mn_plan_new(mn_ctx *mn) {
  mn_plan *p = calloc(1, sizeof *p);
  int id = 0;
  while (id < mn->n_plans && mn->plan[id]) id++;
  if (!p || mn_grow(mn, &mn->plan, &mn->cap_plans, id + 1, sizeof *mn->plan)) {
    free(p);
    return mn_fail(mn, "plan: out of memory"), NULL;
  }
  p->ctx = mn;
  mn_memory_open(mn, &p->memory);
  p->id = id;
  if (id == mn->n_plans) mn->n_plans++;
  return mn->plan[id] = p;
}

/* Forget what was recorded; the memory stays for the next recording. */
static void clear(mn_plan *p) {
  mn_graphs_drop(p);
  for (int i = 0; i < p->n_own; i++) mn_drop_record(p->ctx, p->own[i]);
  for (int i = 0; i < p->n_pinned; i++) mn_unpin(p->ctx, p->pinned[i]);
  p->n_own = p->n_pinned = p->n_graded = p->n_changes = p->n_commands = p->T = p->other_T = 0;
  p->rows_checked = false;
  p->next_row = 0;
  p->late = 0;
  p->tape = (mn_tape){ 0 };
  mn_rewind(&p->memory.numbers, 0);
  mn_rewind(&p->memory.records, 0);
  p->memory.n_pool = 0;
  p->version = ++p->ctx->next_version;
}

void mn_plan_free(mn_plan *p) {
  if (!p) return;
  if (p->ctx->recording == p) mn_plan_end(p);                  /* the one around it goes on */
  for (mn_plan *q = p->ctx->recording; q; q = q->outer)
    if (q->outer == p) q->outer = p->outer, q->outer_no_grad += p->outer_no_grad;
  clear(p);
  if (p->free_body) p->free_body(p);
  p->ctx->plan[p->id] = NULL;
  mn_memory_close(&p->memory);
  free(p->command);
  free(p->own);
  free(p->pinned);
  free(p->graded);
  free(p->changes);
  free(p->graph);
  free(p);
}

int mn_plan_begin(mn_plan *p) {
  if (p->ctx->recording) return mn_fail(p->ctx, "plan: another plan is recording");
  clear(p);
  p->recording = true;
  p->ctx->recording = p;
  return 0;
}

void mn_plan_later(mn_plan *p) { p->later = p->recording && !p->ctx->debug; }

int mn_plan_begin_inside(mn_plan *p) {
  mn_ctx *mn = p->ctx;
  mn_plan *outer = mn->recording;
  mn->recording = NULL;
  if (mn_plan_begin(p)) return mn->recording = outer, -1;
  p->outer = outer;
  p->outer_no_grad = mn->no_grad;
  mn->no_grad = 0;
  return 0;
}

int mn_plan_end(mn_plan *p) {
  if (p->ctx->recording != p) return mn_fail(p->ctx, "plan: not recording");
  p->recording = p->later = false;
  p->began = p->ran = p->ctx->changes;
  p->ctx->recording = p->outer;
  p->ctx->no_grad += p->outer_no_grad;
  p->outer = NULL;
  p->outer_no_grad = 0;
  return 0;
}

/* ---- running ---- */

static mn_call *rows_of(const mn_command *k, int t0, int t1) {
  mn_slice_rows(k, k->rows, t0, t1);
  return k->rows;
}

/* The letter that stands for time in an op's signature, or 0. */
static char time_letter(const mn_call *c) {
  const mn_signature *sig = &mn_entry_of(c->op)->sig;
  for (int i = 0; i < c->n_in; i++)
    if (c->in[i].data && c->in[i].timed && sig->in[i].axis[0] >= 'A' && sig->in[i].axis[0] <= 'Z') return sig->in[i].axis[0];
  return 0;
}

static const char *kind_name(mn_kind kind) {
  static const char *const name[] = { "a forward pass", "a backward pass", "adding gradients", "a copy" };
  return name[kind];
}

/* The input of command i, which is made once, before all rows, that the rows make; NULL: there is none. */
static const char *made_by_rows(const mn_plan *p, int i) {
  const mn_call *c = p->command[i].call;
  const mn_signature *sig = &mn_entry_of(c->op)->sig;
  for (int j = 0; j < c->n_in; j++)
    for (int m = 0; c->in[j].data && m < i; m++) {
      const mn_call *before = p->command[m].call;
      if (!mn_runs_by_rows(before) && !mn_runs_when_read(before)) continue;
      for (int k = 0; k < before->n_out; k++) if (before->out[k].data == c->in[j].data) return sig->in[j].name;
    }
  return NULL;
}

static int check_rows(mn_plan *p, int t0, int t1) {
  mn_ctx *mn = p->ctx;
  if (!p->T) return mn_fail(mn, "plan: none of its inputs is a sequence, so it has no rows");
  if (t0 < 0 || t1 > p->T || t0 >= t1) return mn_fail(mn, "plan: rows %d to %d of %d", t0, t1, p->T);
  if (p->rows_checked) return 0;
  if (p->other_T) return mn_fail(mn, "plan: sequences of %d and of %d rows, so it cannot run by rows", p->T, p->other_T);
  for (int i = 0; i < p->n_commands; i++) {
    const mn_command *k = &p->command[i];
    if (k->kind != MN_FORWARD) return mn_fail(mn, "plan: %s cannot run by rows", kind_name(k->kind));
    const mn_op_entry *e = mn_entry_of(k->call->op);
    const bool shared = k->call->n_out && k->call->out[0].data == k->call->in[0].data;         /* another shape, no copy */
    const char *made = mn_runs_by_rows(k->call) || mn_runs_when_read(k->call) || shared ? NULL : made_by_rows(p, i);
    if (made) return mn_fail(mn, "plan: %s of %s is a final state of the rows, so the plan cannot run by rows", made, e->name);
    if (!mn_carries_time(k->call)) continue;
    bool once = k->call->time == MN_FIRST || mn_made_when_read(k->call), whole = k->call->time == MN_WHOLE;
    for (int j = 0; once && j < k->call->n_in; j++)
      whole |= k->call->in[j].data && k->call->in[j].timed && e->sig.in[j].axis[0] != e->sig.in[0].axis[0];
    if (whole || (!once && k->call->n_out && !k->call->out[0].timed))
      return mn_fail(mn, "plan: %s needs the whole sequence, so the plan cannot run by rows", e->name);
    char symbol = 0;
    for (int j = 0; j < k->call->n_in && !symbol; j++) if (k->call->in[j].data && k->call->in[j].timed) symbol = e->sig.in[j].axis[0];
    for (int j = 0; j < k->call->n_in; j++) {
      const mn_arg *a = &k->call->in[j];
      if (a->data && !a->timed && e->sig.in[j].axis[0] == symbol && symbol != MN_ANY && symbol != MN_FREE)
        return mn_fail(mn, "plan: %s of %s is not a sequence (mn.sequence), so the plan cannot run by rows", e->sig.in[j].name, e->name);
    }
  }
  p->rows_checked = true;
  return 0;
}

/* When everything that was asked for is done. */
static double now(mn_plan *p) {
  p->ctx->work.device->wait();
  return mn_clock(false);
}

/* Calls to bend, and what does not depend on time, once. */
static int prepare_rows(mn_plan *p) {
  for (int i = 0; i < p->n_commands; i++) {
    mn_command *k = &p->command[i];
    if (!k->rows) {
      if (!(k->rows = mn_take(p->ctx, &p->memory.records, sizeof *k->rows, "plan"))) return -1;
      *k->rows = *k->call;
      k->rows->by_rows = true;
      k->time_letter = time_letter(k->call);
    }
    if (!mn_runs_by_rows(k->call) && !mn_runs_when_read(k->call) && mn_do(p->ctx, k->call->kernel->forward, k->call)) return -1;
  }
  mn_find_batch_parallel(p);
  return 0;
}

/* As mn_do: how many calls the kernel took. */
static int do_together(mn_plan *p, const mn_kernel *kernel, mn_call *const *calls, int n, bool back) {
  const unsigned before = mn_flush_all(p->ctx);
  const int done = _setjmp(p->ctx->work.unless_scratch) ? -1 : kernel->fuse(calls, n, back);
  mn_unflush(before);
  return done;
}

/* The calls from command i on, forward for rows t0 .. t1-1 or for all (t1 < 0), or back: the first, or with it those
** after it that its kernel takes in one go.  Returns how many, or -1. */
static int call_from(mn_plan *p, int i, int t0, int t1) {
  enum { MOST = 256 };
  mn_call *calls[MOST];
  mn_command *k = &p->command[i];
  const mn_kernel *kernel = k->call->kernel;
  const bool back = k->kind == MN_BACKWARD;
  int n = 0;
  while (kernel->fuse && n < MOST && i + n < p->n_commands && k[n].kind == k->kind && k[n].call->kernel == kernel &&
         (t1 < 0 || mn_runs_by_rows(k[n].call))) {
    calls[n] = t1 < 0 ? k[n].call : rows_of(&k[n], t0, t1);
    n++;
  }
  const int done = n ? do_together(p, kernel, calls, n, back) : 0;
  if (done) return done;
  if (mn_do(p->ctx, back ? kernel->backward : kernel->forward, back || t1 < 0 ? k->call : rows_of(k, t0, t1))) return -1;
  return 1;
}

static int rows(mn_plan *p, int t0, int t1) {
  if (t0 == 0 && prepare_rows(p)) return -1;
  for (int i = 0, n; i < p->n_commands; i += n) {
    mn_command *k = &p->command[i];
    double start = p->profile ? now(p) : 0;
    n = t0 && t1 == t0 + 1 ? mn_run_batch_parallel(p, i, t0) : 0;
    if (!n && (n = mn_runs_by_rows(k->call) ? call_from(p, i, t0, t1) : 1) < 0) return -1;
    if (p->profile) k->seconds += now(p) - start;
  }
  return 0;
}

static int run_by_rows(mn_plan *p, int t0, int t1) {
  if ((t0 == 0 || t1 > p->T || t0 >= t1 || t0 < 0) && check_rows(p, t0, t1)) return -1;
  if (t0 && t0 != p->next_row)
    return mn_fail(p->ctx, "plan: rows from %d, expected from 0 or from %d, where the last run ended", t0, p->next_row);
  p->next_row = 0;
  p->late = 0;
  if (mn_graphs_run(p, t0, t1, rows)) return -1;
  p->next_row = t1;
  p->late = 1u << MN_FINAL | 1u << MN_ON_DEMAND;
  return 0;
}

int mn_plan_finish(mn_plan *p, mn_time late) {
  if (!(p->late & 1u << late)) return 0;
  for (int i = 0; i < p->n_commands; i++) {
    mn_command *k = &p->command[i];
    if (k->kind != MN_FORWARD || k->call->time != late || !mn_runs_when_read(k->call)) continue;
    mn_call c = *rows_of(k, 0, p->next_row);
    if (k->to) c.out[0].data = k->to;
    if (mn_do(p->ctx, c.kernel->forward, &c)) return -1;
  }
  p->late &= ~(1u << late);
  return 0;
}

/* The command that makes the final state `from` and may write it over the leaf `to`, which no other final state reads; NULL: there is none. */
static mn_command *writer_over(const mn_plan *p, const mn_record *from, const mn_record *to) {
  mn_command *found = NULL;
  for (int i = 0; i < p->n_commands; i++) {
    mn_command *k = &p->command[i];
    const mn_call *c = k->call;
    if (k->kind != MN_FORWARD || c->time != MN_FINAL) continue;
    if (c->op->over && c->out[0].data == from->data && c->in[c->op->over - 1].data == to->data && mn_runs_when_read(c)) found = k;
    else for (int j = 0; j < c->n_in; j++) if (c->in[j].data == to->data) return NULL;
  }
  return mn_on_cpu(p->ctx) ? found : NULL;
}

int mn_plan_carry(mn_plan *p, int n, const mn_tensor *from, const mn_tensor *to) {
  const bool late = p->late & 1u << MN_FINAL;
  for (int pass = 0; pass < 2; pass++) {
    for (int i = 0; i < n; i++) {
      mn_record *a = mn_find(p->ctx, &from[i], "carry", "the final state"), *b = a ? mn_find(p->ctx, &to[i], "carry", "the leaf") : NULL;
      mn_command *k = b && late ? writer_over(p, a, b) : NULL;
      if (!b) return -1;
      if (k) k->to = pass == 0 ? b->data : NULL;
      if (pass == 1 && (k ? mn_note_change(p->ctx, b) : mn_copy(p->ctx, &from[i], &to[i]))) return -1;
    }
    if (pass == 0 && mn_plan_finish(p, MN_FINAL)) return -1;
  }
  p->next_row = 0;
  return 0;
}

/* Runs command i, and with it those after it that its kernel takes in one go: how many, or -1. */
static int run_from(mn_plan *p, int i) {
  const mn_device *d = p->ctx->work.device;
  const mn_command *k = &p->command[i];
  switch (k->kind) {
  case MN_FORWARD:
  case MN_BACKWARD: return call_from(p, i, 0, -1);
  case MN_ADD:      return mn_check_device(p->ctx, d->add(k->to, k->from, k->bytes / 4)) ? -1 : 1;
  case MN_COPY:     return mn_check_device(p->ctx, d->copy(k->to, k->from, (size_t)k->bytes)) ? -1 : 1;
  }
  return 1;
}

static int everything(mn_plan *p, int t0, int t1) {
  (void)t0, (void)t1;
  for (int i = 0, n; i < p->n_commands; i += n) {
    double start = p->profile ? now(p) : 0;
    if ((n = run_from(p, i)) < 0) return -1;
    if (p->profile) p->command[i].seconds += now(p) - start;
  }
  return 0;
}

static int run(mn_plan *p, int t0, int t1) {
  mn_ctx *mn = p->ctx;
  if (mn->recording) return mn_fail(mn, "plan: cannot run while a plan records");
  if (!p->n_commands) return mn_fail(mn, "plan: nothing was recorded");
  if (p->body) return mn_fail(mn, "plan: the body of a recurrence runs in mn.recur alone");
  if (mn_check_links(mn, &p->tape)) return -1;
  for (int i = 0; i < p->n_changes; i++) p->changes[i]->changed = ++mn->changes;
  p->ran = ++mn->changes;
  if (t0 <= 0) p->began = p->ran;
  if (t1 >= 0) return run_by_rows(p, t0, t1);
  p->late = 0;
  p->next_row = 0;                               /* what rows went on from is no longer there */
  for (int i = 0; i < p->n_graded; i++)          /* as asked for by zero_grad since the last run */
    if (mn_settle_grad(mn, p->graded[i])) return -1;
  return mn_graphs_run(p, 0, -1, everything);
}

int mn_plan_run(mn_plan *p, int t0, int t1) {
  mn_workspace *w = mn_work(p->ctx);
  const unsigned before = mn_flush_all(p->ctx);      /* once for all of its ops */
  const bool outer = w->in_plan;
  w->in_plan = true;
  const int failed = run(p, t0, t1);
  w->in_plan = outer;
  mn_unflush(before);
  return failed;
}

/* ---- looking inside ---- */

int mn_plan_calls(mn_plan *p) { return p->n_commands; }
int mn_plan_place(mn_plan *p, int call) { return call >= 0 && call < p->n_commands ? p->command[call].place : 0; }
void mn_plan_set_profile(mn_plan *p, bool on) { p->profile = on; }

const char *mn_plan_profile(mn_plan *p, int call, double *seconds) {
  static _Thread_local char text[64];
  if (call < 0 || call >= p->n_commands) return NULL;
  const mn_command *k = &p->command[call];
  *seconds = k->seconds;
  if (!k->call) return kind_name(k->kind);
  snprintf(text, sizeof text, "%s %s", mn_entry_of(k->call->op)->name, k->kind == MN_FORWARD ? "forward" : "backward");
  return text;
}
