/* recurrence.c -- runs a recorded body for every row of time: mn.recur.
** A body is a plan over one row.  Its inputs are leaves that stand for parts of a row of x, the state before, done, and what is
** given to all rows; its forward commands are followed by the way back from its outputs.  To run row t, every pointer of
** its calls is set: of what stands for a row, to that row; of what the body computes, to row t of `saved`.  Nothing
** is copied but each row's outputs, and every op computes what it would compute alone, so any division into rows has the same bits. */
#include <stdlib.h>
#include "internal.h"

/* Where a pointer leads: to memory of the row, whose address is known when the row is; the first are MN_BODY_X ... */
enum { DX = MN_BODY_DSTATE + 1, DSTATE_BEFORE, DONE_NONE, DSTART, DGIVEN, SAVED, BASES };

typedef struct part { mn_record *leaf; int what; long offset; } part;            /* offset: elements */
typedef struct result { void *data; long n, offset; bool state; } result;
typedef struct later { int command; mn_call call; long offset; } later;           /* offset: elements of a row of its copies */
typedef struct pointer { void **at; int base; size_t offset, stride; } pointer;  /* bytes; stride: of SAVED, from row to row */

struct mn_body {
  part *part;       int n_parts, cap_parts;
  result *result;   int n_results, cap_results;
  pointer *pointer; int n_pointers, cap_pointers;
  later *later;     int n_later, cap_later;      /* calls whose gradients of weights are computed after all rows */
  long later_size;               /* elements that a row of their copies takes */
  int n_forward;                 /* commands; those after them go back */
  int forward_pointers;          /* of the pointers, those of forward commands and results come first */
  size_t saved;                  /* bytes that a row of the body computes */
  long size[MN_BODY_DSTATE + 1]; /* elements of a row of each input */
  long y_size, state_size;       /* and of the outputs */
  float *zeros, *aside, *dstate[2];
  bool ended;
};

static mn_body *body_of(mn_plan *p, const char *what) {
  if (p->body && p->recording) return p->body;
  mn_fail(p->ctx, "recur: %s outside the recording of a body", what);
  return NULL;
}

static void free_body(mn_plan *p) {
  if (!p->body) return;
  free(p->body->part);
  free(p->body->result);
  free(p->body->pointer);
  free(p->body->later);
  free(p->body);
  p->body = NULL;
}

/* ---- recording ---- */

int mn_body_begin(mn_plan *p) {
  mn_body *b = calloc(1, sizeof *b);
  if (!b) return mn_fail(p->ctx, "recur: out of memory");
  if (mn_plan_begin_inside(p)) {
    free(b);
    return -1;
  }
  free_body(p);
  p->body = b;
  p->free_body = free_body;
  return 0;
}

int mn_body_input(mn_plan *p, int what, const mn_tensor *leaf) {
  mn_body *b = body_of(p, "an input");
  mn_record *r = b ? mn_find(p->ctx, leaf, "recur", "an input") : NULL;
  if (!r) return -1;
  if (what < 0 || what > MN_BODY_DSTATE || r->slot >= 0 || r->plan) return mn_fail(p->ctx, "recur: expected a leaf as an input of a body");
  if (r->dtype != (what == MN_BODY_DONE ? MN_U8 : MN_F32)) return mn_fail(p->ctx, "recur: inputs of a body are float32, done is uint8");
  if (mn_use(p->ctx, r, "recur", "an input") || mn_grow(p->ctx, &b->part, &b->cap_parts, b->n_parts + 1, sizeof *b->part)) return -1;
  b->part[b->n_parts++] = (part){ r, what, b->size[what] };
  b->size[what] += r->n;
  return 0;
}

int mn_body_output(mn_plan *p, bool state, const mn_tensor *t) {
  mn_body *b = body_of(p, "an output");
  mn_record *r = b ? mn_find(p->ctx, t, "recur", "an output") : NULL;
  if (!r) return -1;
  if (r->plan != p || r->dtype != MN_F32) return mn_fail(p->ctx, "recur: expected a float32 tensor that the body computed as its output");
  if (mn_grow(p->ctx, &b->result, &b->cap_results, b->n_results + 1, sizeof *b->result)) return -1;
  long *size = state ? &b->state_size : &b->y_size;
  b->result[b->n_results++] = (result){ r->data, r->n, *size, state };
  *size += r->n;
  return 0;
}

/* Note the pointer at `at` if it leads to something that each row has its own of. */
static int note_pointer(mn_plan *p, void **at, size_t bytes) {
  mn_body *b = p->body;
  pointer found = { .at = at, .base = BASES };
  char *to = *at;
  size_t place;
  if (!to) return 0;
  for (int i = 0; i < b->n_parts && found.base == BASES; i++) {
    const part *q = &b->part[i];
    const long item = mn_item(q->leaf->dtype), offset = q->offset * item;
    char *data = q->leaf->data, *grad = (char *)q->leaf->grad;
    if (to >= data && to < data + q->leaf->n * item) found.base = q->what, found.offset = (size_t)(offset + (to - data));
    else if (grad && to >= grad && to < grad + q->leaf->n * item)
      found.base = DX + q->what, found.offset = (size_t)(offset + (to - grad));
  }
  if (found.base == BASES && mn_place_of(&p->memory.numbers, to, &place) && place < b->saved) {
    found.base = SAVED;
    found.offset = place;
    found.stride = mn_room_of(bytes);
  }
  if (found.base == BASES) return 0;
  if (mn_grow(p->ctx, &b->pointer, &b->cap_pointers, b->n_pointers + 1, sizeof *b->pointer)) return -1;
  b->pointer[b->n_pointers++] = found;
  return 0;
}

static int note_command(mn_plan *p, mn_command *k) {
  if (k->kind == MN_ADD || k->kind == MN_COPY)
    return note_pointer(p, (void **)&k->to, (size_t)k->bytes) || note_pointer(p, (void **)&k->from, (size_t)k->bytes) ? -1 : 0;
  mn_call *c = k->call;
  for (int i = 0; i < c->n_in + c->n_out; i++) {
    mn_arg *a = i < c->n_in ? &c->in[i] : &c->out[i - c->n_in];
    const size_t bytes = (size_t)a->n * mn_item(a->dtype);
    if (note_pointer(p, (void **)&a->data, bytes) || note_pointer(p, (void **)&a->grad, bytes)) return -1;
  }
  return 0;
}

/* Backward calls are copies of the forward ones, so each kind has pointers of its own. */
static int note_commands(mn_plan *p, int from, int to) {
  for (int i = from; i < to; i++) if (note_command(p, &p->command[i])) return -1;
  return 0;
}

/* Is it the same for all rows? */
static bool is_constant(const mn_plan *p, const mn_arg *a) {
  const mn_body *b = p->body;
  size_t place;
  for (int i = 0; i < b->n_parts; i++)
    if (a->data == b->part[i].leaf->data) return b->part[i].what == MN_BODY_GIVEN;
  return !a->data || !mn_place_of(&p->memory.numbers, a->data, &place);
}

/* Take the gradients of weights out of calls that would only add up over the rows. */
static int find_later(mn_plan *p) {
  mn_body *b = p->body;
  for (int i = b->n_forward; i < p->n_commands; i++) {
    mn_command *k = &p->command[i];
    if (k->kind != MN_BACKWARD || !k->call->op->sums_rows || !k->call->in[1].grad || !is_constant(p, &k->call->in[1]) ||
        !is_constant(p, &k->call->in[2])) continue;
    if (mn_grow(p->ctx, &b->later, &b->cap_later, b->n_later + 1, sizeof *b->later)) return -1;
    later *l = &b->later[b->n_later++];
    *l = (later){ i, *k->call, b->later_size };
    b->later_size += l->call.in[0].n + 2 * l->call.out[0].n;
    l->call.in[0].grad = NULL;
    k->call->in[1].grad = k->call->in[2].grad = NULL;
  }
  return 0;
}

static float *zeros(mn_plan *p, long n) {
  const size_t bytes = (size_t)(n > 0 ? n : 1) * sizeof(float);
  float *to = mn_take(p->ctx, &p->memory.numbers, bytes, "recur");
  return to && !mn_check_device(p->ctx, p->ctx->work.device->zero(to, bytes)) ? to : NULL;
}

int mn_body_end(mn_plan *p, bool forward) {
  mn_body *b = body_of(p, "the end");
  if (!b) return -1;
  if (forward) {
    b->n_forward = p->n_commands;
    b->saved = p->memory.numbers.used;
    return 0;
  }
  long most = b->size[MN_BODY_X];
  for (int i = 0; i <= MN_BODY_DSTATE; i++) if (b->size[i] > most) most = b->size[i];
  if (b->state_size != b->size[MN_BODY_STATE] || (b->size[MN_BODY_START] && b->size[MN_BODY_START] != b->state_size))
    return mn_fail(p->ctx, "recur: the state has %ld elements before the body and %ld after it", b->size[MN_BODY_STATE], b->state_size);
  if (!(b->zeros = zeros(p, most)) || !(b->aside = zeros(p, most)) || !(b->dstate[0] = zeros(p, b->size[MN_BODY_STATE])) ||
      !(b->dstate[1] = zeros(p, b->size[MN_BODY_STATE]))) return -1;
  if (note_commands(p, 0, b->n_forward)) return -1;
  for (int i = 0; i < b->n_results; i++)
    if (note_pointer(p, &b->result[i].data, (size_t)b->result[i].n * sizeof(float))) return -1;
  b->forward_pointers = b->n_pointers;
  if (find_later(p) || note_commands(p, b->n_forward, p->n_commands)) return -1;
  for (int i = 0; i < b->n_later; i++) {
    mn_arg *in = b->later[i].call.in;
    for (int k = 1; k <= 2; k++)
      if (note_pointer(p, (void **)&in[k].data, 0) || note_pointer(p, (void **)&in[k].grad, 0)) return -1;
  }
  b->ended = true;
  return 0;
}

/* What recorded before records on. */
uint32_t mn_plan_version(mn_plan *p, int *id) {
  *id = p->id;
  return p->version;
}

bool mn_plan_leaf(mn_plan *p, int i, mn_tensor *leaf) {
  if (i < 0 || i >= p->n_pinned) return false;
  *leaf = (mn_tensor){ p->pinned[i]->slot, p->pinned[i]->gen };
  return true;
}

bool mn_plan_graded(mn_plan *p, int i, mn_tensor *leaf) {
  if (i < 0 || i >= p->n_graded) return false;
  *leaf = (mn_tensor){ p->graded[i]->slot, p->graded[i]->gen };
  return true;
}

/* ---- the op ---- */

enum { BODY, VERSION, KEEP };                                  /* options */
enum { X, STATE, GIVEN, DONE, START };                         /* inputs */
enum { Y, STATES, ROOM, LATER };                                    /* outputs */

static mn_plan *plan_of(const mn_call *c) {
  mn_ctx *mn = c->ctx;
  const double id = OPT(c, BODY);
  mn_plan *p = id >= 0 && id < mn->n_plans ? mn->plan[(int)id] : NULL;
  if (p && p->body && p->body->ended && p->version == (uint32_t)OPT(c, VERSION)) return p;
  mn_fail(mn, "recur: its body was freed: mn.recur records one, and the function given to it must live as long as what it computed");
  return NULL;
}

int mn_recur_shape(mn_call *c) {
  const mn_plan *p = plan_of(c);
  if (!p) return -1;
  const mn_body *b = p->body;
  static const struct { int in, what; } match[] = { { X, MN_BODY_X }, { STATE, MN_BODY_STATE }, { GIVEN, MN_BODY_GIVEN }, { DONE, MN_BODY_DONE },
    { START, MN_BODY_START } };
  for (size_t i = 0; i < sizeof match / sizeof *match; i++) {
    const mn_arg *a = &c->in[match[i].in];
    const long row = !a->data ? 0 : match[i].in == X || match[i].in == DONE ? a->n / a->shape[0] : a->n;
    if (row != b->size[match[i].what])
      return mn_fail(c->ctx, "recur: %s has %ld elements a row, the body was recorded with %ld", mn_input_name(c, match[i].in), row,
                     b->size[match[i].what]);
  }
  c->out[Y].shape[1] = (int)b->y_size;
  c->out[ROOM].shape[0] = OPT(c, KEEP) != 0 ? DIM(c, 'T') : 1;
  c->out[ROOM].shape[1] = (int)(b->saved / sizeof(float)) + 1;
  c->out[LATER].shape[1] = (int)b->later_size + 1;
  return 0;
}

static void leave(const mn_call *c) { longjmp(c->ctx->work.unless_scratch, 1); }
static void check(const mn_call *c, int code) { if (mn_check_device(c->ctx, code)) leave(c); }

/* Point the calls of the body to row t. */
typedef struct row { char *base[BASES]; size_t rows, at; } row;

static void set_pointers(const mn_body *b, int from, int to, const row *r) {
  for (int i = from; i < to; i++) {
    const pointer *q = &b->pointer[i];
    *q->at = r->base[q->base] + (q->base == SAVED ? q->offset * r->rows + r->at * q->stride : q->offset);
  }
}

static void *row_of(const mn_arg *a, long size, int t) { return a->data ? (char *)a->data + (size_t)t * size * mn_item(a->dtype) : NULL; }

/* The row's inputs. */
static void find_row(const mn_call *c, const mn_body *b, int t, row *r) {
  r->rows = (size_t)c->out[ROOM].shape[0];
  r->at = r->rows > 1 ? (size_t)t : 0;
  r->base[MN_BODY_X] = row_of(&c->in[X], b->size[MN_BODY_X], t);
  r->base[MN_BODY_STATE] = t ? row_of(&c->out[STATES], b->size[MN_BODY_STATE], t - 1) : (char *)c->in[STATE].data;
  r->base[MN_BODY_DONE] = row_of(&c->in[DONE], b->size[MN_BODY_DONE], t);
  r->base[MN_BODY_START] = (char *)c->in[START].data;
  r->base[MN_BODY_GIVEN] = (char *)c->in[GIVEN].data;
  r->base[SAVED] = (char *)c->out[ROOM].data;
}

/* The copies of all rows of one: x, y and dy. */
static float *copies_of(const mn_call *c, const later *l) { return c->out[LATER].data + l->offset * DIM(c, 'T'); }

/* Copy what row t of a call reads, for after all rows. */
static void keep_for_later(const mn_call *c, const later *l, const mn_call *now, int t) {
  const mn_device *d = c->ctx->work.device;
  const long T = DIM(c, 'T'), n = now->in[0].n, m = now->out[0].n;
  float *x = copies_of(c, l), *y = x + n * T, *dy = y + m * T;
  check(c, d->copy(x + n * t, now->in[0].data, (size_t)n * sizeof(float)));
  if (OPT(now, 0) != 0) check(c, d->copy(y + m * t, now->out[0].data, (size_t)m * sizeof(float)));
  check(c, d->copy(dy + m * t, now->out[0].grad, (size_t)m * sizeof(float)));
}

static void run_later(const mn_call *c, const later *l) {
  const long T = DIM(c, 'T'), n = l->call.in[0].n, m = l->call.out[0].n;
  mn_call all = l->call;
  all.in[0].data = copies_of(c, l);
  all.out[0].data = all.in[0].data + n * T;
  all.out[0].grad = all.out[0].data + m * T;
  all.in[0].n *= T, all.out[0].n *= T;
  all.in[0].shape[0] *= (int)T, all.out[0].shape[0] *= (int)T;
  all.kernel->backward(&all);
}

static void run_back(const mn_call *c, mn_plan *p, int t) {
  const mn_body *b = p->body;
  const mn_device *d = c->ctx->work.device;
  const later *l = b->later, *end = l + b->n_later;
  for (int i = b->n_forward; i < p->n_commands; i++) {
    const mn_command *k = &p->command[i];
    if (k->kind == MN_ADD) check(c, d->add(k->to, k->from, k->bytes / 4));
    else if (k->kind == MN_COPY) check(c, d->copy(k->to, k->from, (size_t)k->bytes));
    else {
      const bool kept = l < end && l->command == i;
      if (kept) keep_for_later(c, l++, k->call, t);
      if (!kept || k->call->in[0].grad) k->call->kernel->backward(k->call);
    }
  }
}

static void run_forward(mn_plan *p) {
  for (int i = 0; i < p->body->n_forward; i++) p->command[i].call->kernel->forward(p->command[i].call);
}

/* ---- matrices that stay the same for all rows: mn_constant_form ---- */

typedef struct constants { const float *from, *end; uint32_t run; } constants;

/* From here on what is given to all rows stays the same; returns what did before. */
static constants hold_given(const mn_call *c) {
  mn_ctx *mn = c->ctx;
  const constants before = { mn->work.constant, mn->work.constant_end, mn->work.constant_run };
  mn->work.constant = c->in[GIVEN].data;
  mn->work.constant_end = c->in[GIVEN].data ? c->in[GIVEN].data + c->in[GIVEN].n : NULL;
  mn->work.constant_run = ++mn->work.constant_runs;
  return before;
}

static void release_given(mn_ctx *mn, constants before) {
  mn->work.constant = before.from, mn->work.constant_end = before.end, mn->work.constant_run = before.run;
}

/* ---- the rows ---- */

void mn_recur_forward(mn_call *c) {
  mn_plan *p = plan_of(c);
  if (!p) leave(c);
  mn_body *b = p->body;
  const mn_device *d = c->ctx->work.device;
  row r = { 0 };
  const constants before = hold_given(c);
  for (int t = c->t0; t < c->t1; t++) {
    find_row(c, b, t, &r);
    set_pointers(b, 0, b->forward_pointers, &r);
    run_forward(p);
    char *y = row_of(&c->out[Y], b->y_size, t), *state = row_of(&c->out[STATES], b->size[MN_BODY_STATE], t);
    for (int i = 0; i < b->n_results; i++) {
      const result *q = &b->result[i];
      check(c, d->copy((q->state ? state : y) + q->offset * 4, q->data, (size_t)q->n * sizeof(float)));
    }
  }
  release_given(c->ctx, before);
}

void mn_recur_backward(mn_call *c) {
  mn_plan *p = plan_of(c);
  if (!p || (p->n_commands == p->body->n_forward && mn_fail(c->ctx, "recur: its body was recorded without a way back"))) leave(c);
  mn_body *b = p->body;
  const mn_device *d = c->ctx->work.device;
  const int T = DIM(c, 'T');
  const size_t state_bytes = (size_t)b->size[MN_BODY_STATE] * sizeof(float);
  const bool again = OPT(c, KEEP) == 0;
  row r = { 0 };
  static const struct { int in, base; } grads[] = { { X, DX }, { START, DSTART }, { GIVEN, DGIVEN } };
  for (size_t i = 0; i < sizeof grads / sizeof *grads; i++) {
    const mn_arg *a = &c->in[grads[i].in];
    r.base[grads[i].base] = (char *)(a->grad ? a->grad : b->aside);
    if (a->grad) check(c, d->zero(a->grad, (size_t)a->n * sizeof(float)));
  }
  char *dx = r.base[DX];
  check(c, d->zero(b->dstate[T & 1], state_bytes));
  const constants before = hold_given(c);
  for (int t = T - 1; t >= 0; t--) {
    find_row(c, b, t, &r);
    if (c->in[X].grad) r.base[DX] = dx + (size_t)t * b->size[MN_BODY_X] * sizeof(float);
    r.base[MN_BODY_DY] = c->out[Y].grad ? (char *)(c->out[Y].grad + (long)t * b->y_size) : (char *)b->zeros;
    r.base[MN_BODY_DSTATE] = (char *)b->dstate[(t + 1) & 1];
    r.base[DSTATE_BEFORE] = (char *)b->dstate[t & 1];
    check(c, d->zero(b->dstate[t & 1], state_bytes));
    if (c->out[STATES].grad) check(c, d->add(b->dstate[(t + 1) & 1], c->out[STATES].grad + (long)t * b->state_size, b->state_size));
    set_pointers(b, again ? 0 : b->forward_pointers, b->n_pointers, &r);
    if (again) run_forward(p);
    run_back(c, p, t);
  }
  release_given(c->ctx, before);
  for (int i = 0; i < b->n_later; i++) run_later(c, &b->later[i]);
  if (c->in[STATE].grad) check(c, d->copy(c->in[STATE].grad, b->dstate[0], state_bytes));
}

/* ---- the state that it ends with ---- */

static void part_of(const mn_call *c, long *from, long *to) {
  *from = (long)OPT(c, 0);
  *to = OPT(c, 1) < DIM(c, 'N') ? (long)OPT(c, 1) : DIM(c, 'N');
}

int mn_last_row_shape(mn_call *c) {
  long from, to;
  part_of(c, &from, &to);
  if (from < 0 || from >= to) return mn_fail(c->ctx, "last_row: from %ld to %ld of %d", from, to, DIM(c, 'N'));
  c->out[0].shape[0] = (int)(to - from);
  return 0;
}

void mn_last_row_forward(mn_call *c) {
  long from, to;
  part_of(c, &from, &to);
  check(c, c->ctx->work.device->copy(c->out[0].data, c->in[0].data + (long)(c->t1 - 1) * DIM(c, 'N') + from, (size_t)(to - from) * sizeof(float)));
}

void mn_last_row_backward(mn_call *c) {
  long from, to;
  part_of(c, &from, &to);
  const mn_device *d = c->ctx->work.device;
  check(c, d->zero(c->in[0].grad, (size_t)c->in[0].n * sizeof(float)));
  check(c, d->copy(c->in[0].grad + (long)(DIM(c, 'T') - 1) * DIM(c, 'N') + from, c->out[0].grad, (size_t)(to - from) * sizeof(float)));
}
