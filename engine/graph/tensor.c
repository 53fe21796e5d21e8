/* tensor.c -- tensors as the caller holds them: leaves, views of leaves, and access to their values.
** A leaf owns its values and outlives sweeps; the handle of a computed tensor becomes invalid. */
#include <stdlib.h>
#include "internal.h"

static int check_shape(mn_ctx *mn, int dtype, int ndim, const int *shape, long *n) {
  if (dtype < MN_F32 || dtype > MN_U8) return mn_fail(mn, "tensor: element type %d, expected %d to %d", dtype, MN_F32, MN_U8);
  if (ndim < 0 || ndim > MN_AXES) return mn_fail(mn, "tensor: %d axes, expected 0 to %d", ndim, MN_AXES);
  *n = 1;
  for (int i = 0; i < ndim; i++) {
    if (shape[i] < 1) return mn_fail(mn, "tensor: axis %d is %d, expected at least 1", i, shape[i]);
    if (*n > MN_NUMBERS / shape[i]) return mn_fail(mn, "tensor: the shape has more elements than fit in memory");
    *n *= shape[i];
  }
  return 0;
}

static void describe(mn_record *r, int dtype, int ndim, const int *shape, long n) {
  r->dtype = dtype;
  r->ndim = ndim;
  r->n = n;
  for (int i = 0; i < ndim; i++) r->shape[i] = shape[i];
}

int mn_leaf_new(mn_ctx *mn, int dtype, int ndim, const int *shape, bool wants_grad, mn_tensor *out) {
  long n;
  if (check_shape(mn, dtype, ndim, shape, &n)) return -1;
  if (wants_grad && dtype != MN_F32) return mn_fail(mn, "tensor: only float32 tensors have a gradient");
  mn_record *r = mn_new_leaf(mn);
  if (!r) return -1;
  describe(r, dtype, ndim, shape, n);
  size_t bytes = (size_t)(n * mn_item(dtype));
  mn_device *d = mn->work.device;
  bool fits = (double)bytes < d->free_bytes();
  r->data = fits ? d->zeros(bytes) : NULL;
  r->grad = wants_grad && r->data ? d->zeros(bytes) : NULL;
  if (!r->data || (wants_grad && !r->grad)) {
    d->free(r->data);
    mn_free_slot(mn, r);
    return mn_out_of_memory(mn, d, "tensor", (double)bytes, "");
  }
  r->wants_grad = r->fresh = wants_grad;
  mn->leaf_bytes += (double)n * (wants_grad ? 8 : (double)mn_item(dtype));
  *out = (mn_tensor){ r->slot, r->gen };
  return 0;
}

/* What is recorded from now on gives this leaf no gradient; its numbers and names stay. */
int mn_leaf_freeze(mn_ctx *mn, const mn_tensor *t) {
  mn_record *r = mn_find(mn, t, "freeze", "the parameter");
  if (!r || mn_zero_grad(mn, t)) return -1;
  r->wants_grad = false;
  return 0;
}

int mn_leaf_like(mn_ctx *mn, const mn_tensor *of, mn_tensor *out) {
  mn_record *r = mn_find(mn, of, "tensor", "it");
  if (!r || mn_leaf_new(mn, r->dtype, r->ndim, r->shape, false, out)) return -1;
  return mn_leaf_time(mn, out, r->timed);
}

/* What was computed is not written into. */
static int not_a_leaf(mn_ctx *mn, const char *what) {
  return mn_fail(mn, "%s: the target was computed, and so are x[i], slices and other shapes, which do not share memory with x: write x[i] = v "
                     "into a leaf x, or make a new tensor (mn.where, x:masked_fill, mn.full)", what);
}

/* A window on a leaf's numbers, for naming a part of it (state dicts).  No gradient flows through it;
** mn_tensor_grad of it is the same window on the leaf's gradient. */
int mn_leaf_view(mn_ctx *mn, const mn_tensor *of, double offset, int ndim, const int *shape, mn_tensor *out) {
  mn_record *leaf = mn_find(mn, of, "view", "the tensor");
  long n;
  if (!leaf || check_shape(mn, leaf->dtype, ndim, shape, &n)) return -1;
  if (leaf->slot >= 0 || leaf->plan) return not_a_leaf(mn, "view");
  if (!(offset >= 0) || offset + (double)n > (double)leaf->n)
    return mn_fail(mn, "view: elements %.0f to %.0f of a tensor of %ld", offset, offset + (double)n, leaf->n);
  mn_record *r = mn_new_leaf(mn);
  if (!r) return -1;
  describe(r, leaf->dtype, ndim, shape, n);
  r->of = leaf->of ? leaf->of : leaf;
  r->of->pins++;
  r->data = (char *)leaf->data + (long)offset * mn_item(leaf->dtype);
  r->grad = leaf->grad ? leaf->grad + (long)offset : NULL;
  *out = (mn_tensor){ r->slot, r->gen };
  return 0;
}

int mn_leaf_time(mn_ctx *mn, const mn_tensor *t, bool timed) {
  mn_record *r = mn_find(mn, t, "time", "the tensor");
  if (!r) return -1;
  if (r->slot >= 0 || r->plan || r->ndim < 1) return mn_fail(mn, "time: only a leaf with an axis can be a sequence");
  r->timed = timed;
  return 0;
}

/* The tape may still need the numbers, so they go when it is empty. */
void mn_leaf_free(mn_ctx *mn, const mn_tensor *t) {
  mn_error_text keep = mn->work.error;
  mn_record *r = t && t->slot < 0 ? mn_find(mn, t, "free", "the tensor") : NULL;
  mn->work.error = keep;
  if (!r || r->plan) return;
  r->dead = true;
  r->pins++;
  if (mn->tape.newest && !mn_grow(mn, &mn->grave, &mn->cap_grave, mn->n_grave + 1, sizeof *mn->grave))
    mn->grave[mn->n_grave++] = r;
  else if (!mn->tape.newest) mn_unpin(mn, r);
}

int mn_tensor_info(mn_ctx *mn, const mn_tensor *t, int *dtype, int *shape) {
  mn_record *r = mn_find(mn, t, "tensor", "it");
  if (!r) return -1;
  *dtype = r->dtype;
  for (int i = 0; i < r->ndim; i++) shape[i] = r->shape[i];
  return r->ndim;
}

void *mn_tensor_data(mn_ctx *mn, const mn_tensor *t) {
  mn_record *r = mn_find(mn, t, "tensor", "it");
  if (r && r->late && r->plan && mn_plan_finish(r->plan, r->late)) return NULL;
  return r && !mn_wait(mn) ? r->data : NULL;
}

/* All that is written from outside of the engine is said here. */
int mn_tensor_changes(mn_ctx *mn, const mn_tensor *t, const char *what) {
  mn_record *r = mn_find(mn, t, what, "the tensor");
  if (!r) return -1;
  if (r->slot >= 0) return not_a_leaf(mn, what);
  if (r->plan) r->plan->began = ++mn->changes;     /* a plan's results are there until it runs again */
  else if (mn_note_change(mn, r)) return -1;
  return mn_wait(mn);
}

void *mn_tensor_write(mn_ctx *mn, const mn_tensor *t, const char *what) {
  return mn_tensor_changes(mn, t, what) ? NULL : mn_tensor_data(mn, t);
}

double mn_tensor_version(mn_ctx *mn, const mn_tensor *t) {
  const mn_record *r = mn_find(mn, t, "tensor", "it");
  return !r ? -1 : (double)(r->slot < 0 && r->plan ? r->plan->began : (r->of ? r->of : r)->changed);
}

/* A gradient that nothing has reached is zeros. */
int mn_settle_grad(mn_ctx *mn, mn_record *leaf) {
  if (!leaf->fresh) return 0;
  leaf->fresh = false;
  return mn_check_device(mn, mn->work.device->zero(leaf->grad, (size_t)leaf->n * sizeof(float)));
}

float *mn_tensor_grad(mn_ctx *mn, const mn_tensor *t) {
  mn_record *r = mn_find(mn, t, "gradient", "the tensor");
  if (!r) return NULL;
  mn_record *leaf = r->of ? r->of : r;
  if (r->slot >= 0 || r->plan || !leaf->grad)
    return mn_fail(mn, "gradient: expected a leaf with grad = true; a computed tensor keeps one after x:retain_grad()"), NULL;
  return mn_settle_grad(mn, leaf) || mn_wait(mn) ? NULL : r->grad;
}

bool mn_tensor_wants_grad(mn_ctx *mn, const mn_tensor *t) {
  mn_record *r = mn_find(mn, t, "tensor", "it");
  return r && r->wants_grad;
}

int mn_zero_grad(mn_ctx *mn, const mn_tensor *t) {
  mn_record *r = mn_find(mn, t, "zero_grad", "the tensor");
  if (!r) return -1;
  if (!r->of) r->fresh = true, r->emptied_in = mn->recording ? mn->recording->version : 0;
  else if (r->grad && !r->of->fresh) return mn_check_device(mn, mn->work.device->zero(r->grad, (size_t)r->n * sizeof(float)));
  return 0;
}

int mn_note_change(mn_ctx *mn, mn_record *leaf) {
  mn_record *owner = leaf->of ? leaf->of : leaf;
  mn_plan *p = mn->recording;
  owner->changed = ++mn->changes;
  return p ? mn_note_leaf(mn, &p->changes, &p->n_changes, &p->cap_changes, owner) : 0;
}

int mn_copy(mn_ctx *mn, const mn_tensor *from, const mn_tensor *to) {
  mn_record *a = mn_find(mn, from, "copy", "the source"), *b = a ? mn_find(mn, to, "copy", "the target") : NULL;
  if (!b) return -1;
  if (b->slot >= 0 || b->plan) return not_a_leaf(mn, "copy");
  if (mn->recording && mn->recording->body)
    return mn_fail(mn, "copy: in the body of a recurrence no leaf changes from row to row: return what changes as state");
  if (a->dtype != b->dtype || a->n != b->n)
    return mn_fail(mn, "copy: %ld elements into %ld, or another element type", a->n, b->n);
  if (a->late && a->plan && mn_plan_finish(a->plan, a->late)) return -1;
  long bytes = a->n * mn_item(a->dtype);
  if (mn_note_change(mn, b) || mn_check_device(mn, mn->work.device->copy(b->data, a->data, (size_t)bytes))) return -1;
  mn_plan *p = mn->recording;
  if (!p) return 0;
  if (mn_use(mn, a, "copy", "the source") || mn_use(mn, b, "copy", "the target")) return -1;
  mn_command *c = mn_record_command(p, MN_COPY);
  if (!c) return -1;
  c->from = a->data;
  c->to = b->data;
  c->bytes = bytes;
  return 0;
}
