/* tape.c -- applies ops and runs them backward.
** Ops append to a tape as they run.  backward walks it newest first, from the loss until no gradient is left to hand on, and
** takes what it walked off the tape.  The first gradient that reaches a tensor is stored, later ones are added: nothing is
** zeroed.  While a plan records, the same calls go on the plan's tape and into its list of commands. */
#include <math.h>
#include <stdlib.h>
#include "internal.h"

/* ---- what a tape or a plan depends on ---- */

/* Keep what is used alive: a leaf is pinned by the recording plan, another plan is linked. */
int mn_use(mn_ctx *mn, mn_record *r, const char *op, const char *arg) {
  mn_plan *p = mn->recording;
  if (p && p->body && (r->slot >= 0 || (r->plan && r->plan != p)))
    return mn_fail(mn, "%s: %s was computed outside the recurrence's body: pass it in given = { ... }", op, arg);
  if (r->slot >= 0 && p)
    return mn_fail(mn, "%s: %s was computed outside the plan; pass it as an argument, or mn.keep() it", op, arg);
  if (p && r->timed && r->plan && r->plan != p && p->T && p->T != r->shape[0]) p->other_T = r->shape[0];
  if (r->plan && r->plan != p) {
    if (r->late && mn_plan_finish(r->plan, r->late)) return -1;
    if (!p && mn->no_grad) return 0;                         /* read at once, and nothing goes back through it */
    mn_tape *t = mn_current_tape(mn);
    for (int i = 0; i < t->n_links; i++)
      if (t->link[i].plan == r->plan->id && t->link[i].version == r->plan->version) {
        t->link[i].asked |= r->late == MN_ON_DEMAND;
        return 0;
      }
    if (t->n_links == MN_LINKS)
      return mn_fail(mn, "%s: depends on more than %d other plans", op, t->n_links);
    t->link[t->n_links++] = (mn_link){ r->plan->id, r->plan->version, r->late == MN_ON_DEMAND };
  } else if (p && !r->plan) {
    if (mn_grow(mn, &p->pinned, &p->cap_pinned, p->n_pinned + 1, sizeof *p->pinned)) return -1;
    p->pinned[p->n_pinned++] = r;
    r->pins++;
    if (r->timed) {
      if (p->T && p->T != r->shape[0])
        return mn_fail(mn, "%s: %s has %d rows of time, another sequence of this plan %d", op, arg, r->shape[0], p->T);
      p->T = r->shape[0];
    }
  }
  if (p && r->timed && !p->T) p->T = r->shape[0];
  return 0;
}

int mn_check_links(mn_ctx *mn, const mn_tape *t) {
  for (int i = 0; i < t->n_links; i++) {
    mn_plan *p = mn->plan[t->link[i].plan];
    if (!p || p->version != t->link[i].version)
      return mn_fail(mn, "a plan that this one depends on was freed or recorded again: record this one again");
    if (mn_plan_finish(p, MN_FINAL) || (t->link[i].asked && mn_plan_finish(p, MN_ON_DEMAND))) return -1;
  }
  return 0;
}

/* ---- forward ---- */

static void as_arg(const mn_record *r, mn_arg *a) {
  a->data = r->data;
  a->grad = NULL;
  a->dtype = r->dtype;
  a->ndim = r->ndim;
  memcpy(a->shape, r->shape, sizeof a->shape);
  a->n = r->n;
  a->timed = r->timed;
}

/* Indices outside their axis would read foreign memory, so they are checked always. */
static int check_indices(mn_ctx *mn, const mn_op_entry *e, const mn_call *c) {
  for (int i = 0; i < e->sig.n_in; i++) {
    const int size = c->in[i].data ? mn_index_bound(e, c, i) : 0;
    if (!size) continue;
    if (mn_wait(mn)) return -1;
    for (long k = 0; k < c->in[i].n; k++)
      if (c->in[i].i32[k] < 0 || c->in[i].i32[k] >= size)
        return mn_fail(mn, "%s: %s[%ld] is %d, expected 0 to %d", e->name, e->sig.in[i].name, k, c->in[i].i32[k], size - 1);
  }
  return 0;
}

static int check_outputs(mn_ctx *mn, const mn_op_entry *e, const mn_call *c) {
  if (mn_wait(mn)) return -1;
  for (int i = 0; i < c->n_out; i++)
    for (long k = 0; !e->sig.out[i].work_space && c->out[i].dtype == MN_F32 && k < c->out[i].n; k++)
      if (isnan(c->out[i].data[k])) {
        char inputs[400];
        mn_describe_inputs(e, c, inputs, sizeof inputs);
        return mn_fail(mn, "%s: %s[%ld] is NaN; %s", e->name, e->sig.out[i].name, k, inputs);
      }
  return 0;
}

/* The first symbol of the input that carries time: outputs that begin with it carry time too. */
static char time_symbol(const mn_op_entry *e, const mn_call *c, int *T) {
  for (int i = 0; i < e->sig.n_in; i++)
    if (c->in[i].data && c->in[i].timed) return *T = c->in[i].shape[0], e->sig.in[i].axis[0];
  return 0;
}

static int make_outputs(mn_ctx *mn, const mn_op_entry *e, mn_call *c, mn_record **in, mn_record **out, bool wants_grad,
                        bool shared) {
  int T = 0;
  char symbol = time_symbol(e, c, &T);
  for (int i = 0; i < c->n_out; i++) {
    mn_arg *a = &c->out[i];
    if (shared) a->data = c->in[0].data;
    else if (!(a->data = mn_take(mn, &mn_current_memory(mn)->numbers, (size_t)a->n * mn_item(a->dtype), e->name))) return -1;
    mn_record *r = out[i] = mn_new_record(mn);
    if (!r) return -1;
    r->dtype = a->dtype;
    r->ndim = a->ndim;
    memcpy(r->shape, a->shape, sizeof r->shape);
    r->n = a->n;
    r->data = a->data;
    r->wants_grad = wants_grad && !e->sig.out[i].no_grad && a->dtype == MN_F32;
    char first = e->sig.out[i].axis[0];
    r->timed = a->timed = symbol && (c->time == MN_PER_ROW || c->time == MN_SCAN) && a->ndim && a->shape[0] == T
                          && (first == symbol || e->op->alias);
    r->of = shared && !mn->recording ? in[0] : NULL;
    r->late = !mn->recording ? 0 : c->time == MN_FINAL || c->time == MN_ON_DEMAND ? c->time : shared ? in[0]->late : 0;
  }
  return 0;
}

int mn_note_leaf(mn_ctx *mn, mn_record ***list, int *n, int *cap, mn_record *leaf) {
  for (int i = *n; i-- > 0; ) if ((*list)[i] == leaf) return 0;
  if (mn_grow(mn, list, cap, *n + 1, sizeof **list)) return -1;
  (*list)[(*n)++] = leaf;
  return 0;
}

/* A replay must know whose gradients it makes or reads. */
static int note_graded(mn_plan *p, mn_record *leaf) { return mn_note_leaf(p->ctx, &p->graded, &p->n_graded, &p->cap_graded, leaf); }

/* An op off the tape works on leaves in place, their gradients included. */
static int lend_gradients(mn_ctx *mn, const mn_op_entry *e, mn_call *c, mn_record **in) {
  for (int i = 0; i < c->n_in; i++) {
    if (!in[i]) continue;
    if (in[i]->slot >= 0) return mn_fail(mn, "%s: %s was computed; %s acts on leaves", e->name, e->sig.in[i].name, e->name);
    mn_record *leaf = in[i]->of ? in[i]->of : in[i];
    if (e->op->writes >> i & 1 && !in[i]->plan && mn_note_change(mn, leaf)) return -1;
    if (!in[i]->grad || in[i]->plan) continue;
    if (mn->recording && note_graded(mn->recording, leaf)) return -1;
    if (mn_settle_grad(mn, leaf)) return -1;
    c->in[i].grad = in[i]->grad;
  }
  return 0;
}

static void rewind_to(mn_ctx *mn, mn_mark m) {
  mn_rewind(&mn->memory.numbers, m.numbers);
  mn_rewind(&mn->memory.records, m.records);
  mn->n_computed = m.n_computed;
}

int mn_apply(mn_ctx *mn, int op, const mn_tensor *in, const double *options, mn_tensor *out) {
  const mn_op_entry *e = mn_op_at(op);
  if (!e) return mn_fail(mn, "there is no op with index %d", op);
  mn_tape *tape = mn_current_tape(mn);
  mn_memory *memory = mn_current_memory(mn);
  mn_mark before = { memory->numbers.used, memory->records.used, mn->n_computed };
  mn_node here = { .place = mn->place, .made = mn->changes,
                   .call = { .op = e->op, .ctx = mn, .name = e->name, .input_name = e->input_name,
                             .time = e->op->time, .n_in = e->sig.n_in, .n_out = e->sig.n_out } };
  mn_call *c = &here.call;
  bool wants_grad = false;
  for (int i = 0; i < c->n_in; i++) {
    if (!in[i].gen) continue;
    mn_record *r = here.in[i] = mn_find(mn, &in[i], e->name, e->sig.in[i].name);
    if (!r) return -1;
    as_arg(r, &c->in[i]);
    const bool constant = e->sig.in[i].no_grad;
    if (constant && r->wants_grad && r->dtype == MN_F32 && !mn->no_grad && e->op->backward)
      return mn_fail(mn, "%s: %s requires a gradient, and none goes through it: pass it as x:detach()", e->name, e->sig.in[i].name);
    if (r->wants_grad && !mn->no_grad && e->op->cpu_grads >> i & 1 && mn->work.device->library)
      return mn_fail(mn, "%s: the gradient of %s is computed with device=cpu alone: pass it as x:detach()", e->name, e->sig.in[i].name);
    wants_grad |= r->wants_grad && !constant;
  }
  for (int i = 0; i < e->sig.n_options; i++) c->option[i] = options ? options[i] : e->sig.option[i].value;
  wants_grad &= !mn->no_grad && !e->op->off_tape;
  if (mn_bind(mn, e, c) || check_indices(mn, e, c)) return -1;
  for (int i = 0; i < c->n_in; i++)        /* a sequence whose only axis is not among `...` has no rows */
    if (c->in[i].data && c->in[i].timed && e->sig.in[i].axis[0] == MN_REST && c->in[i].ndim < (int)strlen(e->sig.in[i].axis))
      c->time = MN_WHOLE;
  c->t1 = c->time == MN_WHOLE || !c->in[0].data ? 1 : c->in[0].shape[0];
  bool open_end = false;
  for (int i = 0; i < c->n_out; i++) open_end |= !e->sig.out[i].no_grad && c->out[i].dtype == MN_F32;
  if (wants_grad && open_end && !e->op->backward)
    return mn_fail(mn, "%s has no gradient, but an input requires one: wrap it in mn.no_grad", e->name);
  wants_grad &= open_end;
  c->taped = wants_grad;
  if (!(c->kernel = mn_kernel_of(mn, op, wants_grad))) return -1;
  const bool debug = mn->debug && !(mn->recording && mn->recording->body);      /* a body records on zeros */
  if (debug && (mn_wait(mn) || mn_check_domains(mn, e, c))) return -1;
  for (int i = 0; i < c->n_in; i++)
    if (here.in[i] && mn_use(mn, here.in[i], e->name, e->sig.in[i].name)) return -1;
  if (e->op->off_tape && lend_gradients(mn, e, c, here.in)) return -1;
  /* Shared values must last as long as both tensors: within one arena, or within one plan. */
  bool shared = e->op->alias && here.in[0]->plan == mn->recording && (here.in[0]->slot >= 0 || mn->recording);
  if (make_outputs(mn, e, c, here.in, here.out, wants_grad, shared)) goto undo;

  mn_node *node = &here;
  mn_command *command = NULL;
  if (wants_grad || mn->recording) {
    if (!(node = mn_take(mn, &memory->records, sizeof *node, e->name))) goto undo;
    *node = here;
    c = &node->call;
    for (int i = 0; i < c->n_in; i++) if (!e->sig.in[i].no_grad) node->lends |= 1u << i;
  }
  if (mn->recording && !shared && !(command = mn_record_command(mn->recording, MN_FORWARD))) goto undo;
  if (command) command->call = c;
  const bool later = mn->recording && mn->recording->later && (mn_runs_by_rows(c) || mn_runs_when_read(c));
  if (!shared && !later && mn_do(mn, c->kernel->forward, c)) goto undo;
  if (wants_grad) {
    node->older = tape->newest;
    if (node->older) node->older->newer = node;
    tape->newest = node;
    for (int i = 0; i < c->n_out; i++) here.out[i]->maker = node;
  }
  for (int i = 0; i < c->n_out; i++) out[i] = (mn_tensor){ here.out[i]->slot, here.out[i]->gen };
  if (debug && check_outputs(mn, e, c)) return -1;
  return c->n_out;
undo:
  if (!mn->recording) rewind_to(mn, before);
  return -1;
}

/* ---- backward ---- */

static float *pool_take(mn_ctx *mn, mn_memory *m, long n) {
  for (int i = m->n_pool; i-- > 0; )
    if (m->pool[i].n == n) {
      float *at = m->pool[i].at;
      m->pool[i] = m->pool[--m->n_pool];
      return at;
    }
  return mn_take(mn, &m->numbers, (size_t)n * sizeof(float), "backward");
}

static int pool_give(mn_ctx *mn, mn_memory *m, float *at, long n) {
  if (mn_grow(mn, &m->pool, &m->cap_pool, m->n_pool + 1, sizeof *m->pool)) return -1;
  m->pool[m->n_pool++] = (mn_block){ at, n };
  return 0;
}

static int record_move(mn_ctx *mn, mn_kind kind, float *to, const float *from, long n) {
  mn_command *c = mn->recording ? mn_record_command(mn->recording, kind) : NULL;
  if (!c) return mn->recording ? -1 : 0;
  c->to = to;
  c->from = from;
  c->bytes = n * (long)sizeof(float);
  return 0;
}

/* to += from, now and in replays. */
static int add_into(mn_ctx *mn, float *to, const float *from, long n) {
  return mn_check_device(mn, mn->work.device->add(to, from, n)) ? -1 : record_move(mn, MN_ADD, to, from, n);
}

/* to = from, now and in replays. */
static int copy_over(mn_ctx *mn, float *to, const float *from, long n) {
  return mn_check_device(mn, mn->work.device->copy(to, from, (size_t)n * sizeof(float))) ? -1 : record_move(mn, MN_COPY, to, from, n);
}

/* A tensor's gradient is complete: whoever wants to see it gets it. */
static int show_gradient(mn_ctx *mn, const mn_record *r) {
  const mn_tensor t = r->keeps;
  mn_record *to = t.gen && -(long)t.slot <= mn->n_leaves ? mn->leaf[-(t.slot + 1)] : NULL;
  return !to || to->gen != t.gen || to->dead ? 0 : mn_note_change(mn, to) || copy_over(mn, to->data, r->grad, r->n) ? -1 : 0;
}

/* Nobody needs this gradient any more. */
static int drop_gradient(mn_ctx *mn, mn_record *r) {
  float *used = r->lent ? NULL : r->grad;
  r->grad = NULL;
  r->lent = false;
  return used ? pool_give(mn, mn_current_memory(mn), used, r->n) : 0;
}

static bool is_eager(const mn_record *r) { return r->slot >= 0; }

/* The first gradient reaches a tensor: its node is to be run as well. */
static int receives(mn_ctx *mn, const mn_node *node, const mn_record *r) {
  if (!is_eager(r)) return 0;
  if (!r->maker)
    return mn_fail(mn, "backward: an input of %s was computed before an earlier backward, which freed the graph behind it: "
                       "x:detach() uses its numbers alone, loss:backward { retain = true } keeps the graph", mn_call_name(&node->call));
  mn->open++;
  return 0;
}

/* Another shape of the same numbers: the gradient itself is handed on. */
static int alias_backward(mn_ctx *mn, mn_node *node) {
  mn_record *in = node->in[0], *out = node->out[0];
  if (!in->grad && receives(mn, node, in)) return -1;
  if (in->grad) return add_into(mn, in->grad, out->grad, in->n) ? -1 : drop_gradient(mn, out);
  in->grad = out->grad;
  in->lent = out->lent;
  out->grad = NULL;
  out->lent = false;
  return 0;
}

/* A gradient that is computed from other values than the forward pass used is wrong. */
static int check_unchanged(mn_ctx *mn, const mn_node *node) {
  const mn_plan *in = node->out[0]->plan;          /* a plan's node was applied when the plan ran last */
  const uint64_t made = in ? in->ran : node->made;
  if (in && in->began > in->ran)
    return mn_fail(mn, "backward: a result of the plan that ran %s was changed in place: run it again, or write into a copy", mn_call_name(&node->call));
  for (int i = 0; i < node->call.n_in; i++) {
    const mn_record *r = node->in[i];
    if (!r || r->slot >= 0 || (r->plan && r->plan == in)) continue;
    if ((r->plan ? r->plan->began : (r->of ? r->of : r)->changed) <= made) continue;
    if (r->plan)
      return mn_fail(mn, "backward: %s of %s was computed by a plan that ran again, or was written into, after it was used here: "
                         "call backward() before that, or use a copy, mn.keep(x)", mn_input_name(&node->call, i), mn_call_name(&node->call));
    return mn_fail(mn, "backward: %s of %s was changed in place after it was used here (by fill(), copy(), env:step() or whatever else writes into it): "
                       "call backward() before that, or use a copy, mn.keep(x)", mn_input_name(&node->call, i), mn_call_name(&node->call));
  }
  return 0;
}

/* One node: lend its gradients, run, add what was not the first, give its outputs' gradients back. */
static int node_backward(mn_ctx *mn, mn_node *node) {
  mn_memory *m = mn_current_memory(mn);
  mn_call b = node->call;
  bool reached = false;
  b.adding = 0;
  for (int i = 0; i < b.n_out; i++) {
    if (!(b.out[i].grad = node->out[i]->grad)) continue;
    reached = true;
    mn->open -= is_eager(node->out[i]);
    if (show_gradient(mn, node->out[i])) return -1;
  }
  if (!reached) return 0;
  if ((is_eager(node->out[0]) || !mn->recording) && check_unchanged(mn, node)) return -1;
  node->walk = mn->walks;
  if (b.op->alias && b.out[0].data == b.in[0].data) return alias_backward(mn, node);
  float *aside[MN_INPUTS] = { 0 };
  bool any = false;
  for (int i = 0; i < b.n_in; i++) {
    mn_record *r = node->in[i];
    b.in[i].grad = NULL;
    if (!r || !(node->lends >> i & 1) || !r->wants_grad || r->dtype != MN_F32) continue;
    const bool leaf = r->slot < 0 && !r->plan;
    if (mn->seeks && !r->sought && (leaf || (mn->recording && r->plan == mn->recording && !r->leads))) continue;
    any = true;
    const bool in_body = mn->recording && mn->recording->body;      /* a leaf stands for a row's, which is always added to */
    if (leaf && mn->recording && !in_body && !mn->seeks) {       /* replays store only what this plan empties itself, and else add */
      if (note_graded(mn->recording, r)) return -1;
      if (r->emptied_in != mn->recording->version && mn_settle_grad(mn, r)) return -1;
    }
    const bool first = leaf ? r->fresh && !in_body : !r->grad;
    if (first) {
      if (!leaf && (receives(mn, node, r) || !(r->grad = pool_take(mn, m, r->n)))) return -1;
      if (leaf) r->fresh = false;
      b.in[i].grad = r->grad;
    } else if (b.op->accumulates) {
      b.in[i].grad = r->grad;
      b.adding |= 1u << i;
    } else if (!(b.in[i].grad = aside[i] = pool_take(mn, m, r->n))) return -1;
  }
  if (any) {
    mn_call *run = &b;
    if (mn->recording) {
      mn_command *c = mn_record_command(mn->recording, MN_BACKWARD);
      if (!c || !(run = mn_take(mn, &m->records, sizeof *run, "backward"))) return -1;
      *run = b;
      mn->recording->command[mn->recording->n_commands - 1].call = run;
    }
    if (mn_do(mn, run->kernel->backward, run)) return -1;
  }
  for (int i = 0; i < b.n_in; i++) {
    if (!aside[i]) continue;
    mn_record *r = node->in[i];
    if (add_into(mn, r->grad, aside[i], r->n) || pool_give(mn, m, aside[i], r->n)) return -1;
  }
  for (int i = 0; i < b.n_out; i++) if (drop_gradient(mn, node->out[i])) return -1;
  return 0;
}

/* The tapes to walk: the current one, then every plan it depends on, the latest recorded first. */
static int tapes_to_walk(mn_ctx *mn, mn_tape **walk, int max) {
  int n = 1, next = 0;
  walk[0] = mn_current_tape(mn);
  for (; next < n; next++) {
    if (mn_check_links(mn, walk[next])) return -1;
    for (int i = 0; i < walk[next]->n_links; i++) {
      mn_tape *t = &mn->plan[walk[next]->link[i].plan]->tape;
      int k = 0;
      while (k < n && walk[k] != t) k++;
      if (k < n) continue;
      if (n == max) return mn_fail(mn, "backward: depends on more than %d other plans", max);
      walk[n++] = t;
    }
  }
  for (int i = 1; i < n; i++)          /* plans by version, latest first */
    for (int k = i; k > 1; k--) {
      mn_plan *a = (mn_plan *)((char *)walk[k - 1] - offsetof(mn_plan, tape));
      mn_plan *b = (mn_plan *)((char *)walk[k] - offsetof(mn_plan, tape));
      if (a->version >= b->version) break;
      mn_tape *t = walk[k]; walk[k] = walk[k - 1]; walk[k - 1] = t;
    }
  return n;
}

/* Take the nodes that this walk ran off the tape; tensors that they made keep their numbers. */
static void forget_walked(mn_ctx *mn, mn_node *from, const mn_node *end) {
  for (mn_node *node = from, *older; node != end; node = older) {
    older = node->older;
    if (node->walk != mn->walks) continue;
    if (node->newer) node->newer->older = older;
    else mn->tape.newest = older;
    if (older) older->newer = node->newer;
    for (int i = 0; i < node->call.n_out; i++) node->out[i]->maker = NULL;
  }
  if (mn->tape.newest) return;
  mn->tape.n_links = 0;
  mn_free_deferred(mn);
  if (!mn->no_grad) mn_rewind(&mn->memory.records, 0);       /* the next nodes lie where these did, in cache */
}

static void drop_all_gradients(mn_node *node) {
  for (; node; node = node->older)
    for (int k = 0; k < node->call.n_out; k++) node->out[k]->grad = NULL, node->out[k]->lent = false;
}

/* Walk back from the tensors that have a gradient; the newest of their nodes on the context's tape is `from`.  On that tape the
** walk ends where no node is left that a gradient has reached; plans' tapes are walked as a whole. */
static int walk_back(mn_ctx *mn, mn_node *from, bool retain) {
  mn_tape *walk[MN_LINKS + 8];
  int n = tapes_to_walk(mn, walk, MN_LINKS + 8), result = n < 0 ? -1 : 0;
  mn_node *end = from;
  const int place = mn->place;
  mn->walks++;
  for (int i = 0; i < n && !result; i++) {
    const bool eager = walk[i] == &mn->tape;
    mn_node *node = eager ? from : walk[i]->newest;
    for (; node && !result && (!eager || mn->open); node = node->older) {
      mn->place = node->place;                     /* what is recorded for it belongs to its op */
      result = node_backward(mn, node);
    }
    if (eager) end = node;
  }
  mn->place = place;
  mn->open = 0;
  if (!result && !retain && !mn->recording) forget_walked(mn, from, end);
  for (int i = 0; result && i < n; i++) drop_all_gradients(walk[i]->newest);
  return result;
}

/* Where a walk begins; *from is the newest node of those it begins at.  Its gradient stays as it is for replays, so that no
** other may have its place. */
static mn_record *begin_of_walk(mn_ctx *mn, const mn_tensor *t, const char *what, mn_node **from) {
  mn_record *r = mn_find(mn, t, "backward", what);
  if (!r) return NULL;
  if (!r->wants_grad || (r->slot < 0 && !r->plan))
    return mn_fail(mn, "backward: no input of %s requires a gradient", what), NULL;
  if (is_eager(r) && !r->maker)
    return mn_fail(mn, "backward: an earlier backward has walked from %s and freed its graph: loss:backward { retain = true } keeps it", what), NULL;
  if (is_eager(r) && mn->recording)                /* its nodes are on a tape that a plan does not walk */
    return mn_fail(mn, "backward: %s was computed outside the plan: compute it inside, or call backward() outside", what), NULL;
  if (r->plan != mn->recording && mn_use(mn, r, "backward", what)) return NULL;      /* link the plan, so that its tape is walked */
  if (r->grad) return r;                           /* given twice */
  if (!(r->grad = mn_take(mn, &mn_current_memory(mn)->numbers, (size_t)r->n * sizeof(float), "backward"))) return NULL;
  r->lent = true;
  if (!is_eager(r)) return r;
  mn->open++;
  mn_node *newer = *from;                          /* is r's node newer?  then the other one is among the older ones */
  while (newer && newer != r->maker) newer = newer->newer;
  if (!*from || (newer && newer != *from)) *from = r->maker;
  return r;
}

/* The walk is over, or failed: leave no gradient behind where it began. */
static int end_of_walk(mn_ctx *mn, int n, const mn_tensor *of, int result) {
  mn->open = 0;
  for (int i = 0; i < n; i++) {
    mn_record *r = mn_find(mn, &of[i], "backward", "a tensor");
    if (r) r->grad = NULL, r->lent = false;
  }
  return result;
}

int mn_backward(mn_ctx *mn, const mn_tensor *loss, bool retain) {
  mn_record *r = mn_find(mn, loss, "backward", "the loss");
  if (!r) return -1;
  if (r->n != 1) return mn_fail(mn, "backward: the loss has %ld elements, expected 1 (use :sum() or :mean())", r->n);
  mn_node *from = NULL;
  if (!begin_of_walk(mn, loss, "this number", &from)) return -1;
  bool failed = mn_check_device(mn, mn->work.device->copy_in(r->grad, &(float){ 1 }, sizeof(float))) || walk_back(mn, from, retain);
  return end_of_walk(mn, 1, loss, failed ? -1 : 0);
}

/* ---- gradients of any tensors ---- */

/* A leaf for the gradient of a tensor; a plan that records uses it. */
static int find_room(mn_ctx *mn, const char *what, const mn_tensor *t, const mn_record *of) {
  mn_record *to = mn_find(mn, t, what, "the gradient");
  if (!to) return -1;
  if (to->slot >= 0 || to->plan || to->dtype != MN_F32 || to->n != of->n) return mn_fail(mn, "%s: expected a leaf of %ld elements", what, of->n);
  if (mn->recording && mn->recording->body)
    return mn_fail(mn, "%s: a row of a recurrence is one of many: its gradient cannot be read inside of mn.recur", what);
  return mn_use(mn, to, what, "the gradient");
}

int mn_retain_grad(mn_ctx *mn, const mn_tensor *t, const mn_tensor *into) {
  mn_record *r = mn_find(mn, t, "retain_grad", "the tensor");
  if (!r) return -1;
  if (!r->wants_grad) return mn_fail(mn, "retain_grad: no gradient flows to this tensor");
  if (r->slot < 0 && !r->plan) return 1;
  if (find_room(mn, "retain_grad", into, r)) return -1;
  r->keeps = *into;
  return 0;
}

typedef struct sought { mn_record *of; float *grad; bool fresh; mn_tensor keeps; } sought;

/* From now on the gradient of r goes to `into`; *before: where it went. */
static int seek(mn_ctx *mn, const mn_tensor *t, const mn_tensor *into, sought *before) {
  mn_record *r = mn_find(mn, t, "grad", "a tensor");
  if (!r || find_room(mn, "grad", into, r)) return -1;
  const bool leaf = r->slot < 0 && !r->plan;
  if (!r->wants_grad)
    return mn_fail(mn, leaf && r->of ? "grad: a window on packed parameters has no gradient of its own" : "grad: no gradient flows to this tensor");
  if (r->sought) return mn_fail(mn, "grad: a tensor was given twice");
  *before = (sought){ r, r->grad, r->fresh, r->keeps };
  r->sought = true;
  mn_record *to = mn_find(mn, into, "grad", "the gradient");
  if (leaf && mn_note_change(mn, to)) return -1;
  if (leaf) r->grad = to->data, r->fresh = true;
  else r->keeps = *into;
  return 0;
}

static void restore_sought(const sought *before) {
  mn_record *r = before->of;
  r->sought = false;
  r->keeps = before->keeps;
  if (r->slot < 0 && !r->plan) r->grad = before->grad, r->fresh = before->fresh;
}

/* Which tensors of the plan that records were computed from one that is sought: the walk goes no other way. */
static void mark_ways(mn_node *newest) {
  mn_node *node = newest;
  while (node && node->older) node = node->older;
  for (; node; node = node->newer) {
    bool leads = false;
    for (int i = 0; i < node->call.n_in; i++) {
      const mn_record *r = node->in[i];
      leads |= r && (r->sought || r->leads || (r->plan && r->plan != node->out[0]->plan));
    }
    for (int i = 0; i < node->call.n_out; i++) node->out[i]->leads = leads;
  }
}

int mn_grad(mn_ctx *mn, const mn_tensor *loss, int n, const mn_tensor *of, const mn_tensor *into, bool retain) {
  sought *before = calloc((size_t)n + 1, sizeof *before);
  int set = 0, result = before ? 0 : mn_fail(mn, "out of memory");
  while (!result && set < n) {
    result = seek(mn, &of[set], &into[set], &before[set]);
    set += !result;
  }
  if (!result && mn->recording) mark_ways(mn->recording->tape.newest);
  mn->seeks = true;
  if (!result) result = mn_backward(mn, loss, retain);
  mn->seeks = false;
  while (set > 0) restore_sought(&before[--set]);
  free(before);
  return result;
}

/* The gradient that a walk begins with, now and in replays. */
static int give_gradient(mn_ctx *mn, mn_record *r, mn_record *g, bool again) {
  if (again) return add_into(mn, r->grad, g->data, r->n);
  return mn_use(mn, g, "backward", "a gradient") ? -1 : copy_over(mn, r->grad, g->data, r->n);
}

int mn_backward_from(mn_ctx *mn, int n, const mn_tensor *of, const mn_tensor *grad) {
  mn_node *from = NULL;
  for (int i = 0; i < n; i++) {
    mn_record *g = mn_find(mn, &grad[i], "backward", "a gradient"), *r = g ? mn_find(mn, &of[i], "backward", "a tensor") : NULL;
    if (!r) return end_of_walk(mn, i, of, -1);
    if (g->dtype != MN_F32 || g->n != r->n) {
      mn_fail(mn, "backward: a gradient has %ld elements, its tensor %ld", g->n, r->n);
      return end_of_walk(mn, i, of, -1);
    }
    const bool again = r->grad != NULL;
    if (!begin_of_walk(mn, &of[i], "a tensor", &from)) return end_of_walk(mn, i, of, -1);
    if (give_gradient(mn, r, g, again)) return end_of_walk(mn, i + 1, of, -1);
  }
  return end_of_walk(mn, n, of, walk_back(mn, from, false));
}

/* ---- forgetting ---- */

void mn_sweep(mn_ctx *mn) {
  mn->tape = (mn_tape){ 0 };
  rewind_to(mn, (mn_mark){ 0 });
  mn->memory.n_pool = 0;
  for (int i = 0; i < mn->no_grad; i++) mn->mark[i] = (mn_mark){ 0 };
  mn_free_deferred(mn);
}

int mn_no_grad(mn_ctx *mn, bool on) {
  if (on) {
    if (mn->no_grad == (int)(sizeof mn->mark / sizeof *mn->mark)) return mn_fail(mn, "no_grad: nested too deeply");
    mn->mark[mn->no_grad++] = (mn_mark){ mn->memory.numbers.used, mn->memory.records.used, mn->n_computed };
    return 0;
  }
  if (!mn->no_grad) return mn_fail(mn, "no_grad: ended without a beginning");
  mn_mark m = mn->mark[--mn->no_grad];
  if (mn->recording) return 0;
  mn_memory *memory = &mn->memory;
  rewind_to(mn, m);
  int kept = 0;                         /* gradient buffers that a backward pass took meanwhile go too */
  for (int i = 0; i < memory->n_pool; i++)
    if (mn_taken_before(&memory->numbers, memory->pool[i].at, m.numbers)) memory->pool[kept++] = memory->pool[i];
  memory->n_pool = kept;
  return 0;
}
