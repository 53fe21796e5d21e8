/* broadcast.c -- iterates over tensors whose shapes are matched from the right, as in numpy.
** Neighbouring axes that all operands traverse alike are merged first, so that most calls become one
** or two loops over long runs. */
#include <string.h>
#include "broadcast.h"
#include "op.h"

/* Size of operand `a` along axis i of an output with `ndim` axes. */
static int size_at(const mn_arg *a, int ndim, int i) {
  int k = i - (ndim - a->ndim);
  return k < 0 ? 1 : a->shape[k];
}

/* Rows of time stand alone only if time is the first axis of the output, and of every operand that
** is not repeated along it. */
static void find_time(mn_call *c) {
  bool timed = false, whole = false;
  for (int k = 0; k < c->n_in; k++) {
    const mn_arg *a = &c->in[k];
    bool leads = a->ndim == c->out[0].ndim && a->shape[0] == c->out[0].shape[0];
    timed |= a->timed;
    whole |= a->timed ? !leads : leads && a->shape[0] > 1;
  }
  if (timed && whole) c->time = MN_WHOLE;
}

int mn_broadcast_shape(mn_call *c) {
  mn_arg *y = &c->out[0];
  y->ndim = 0;
  for (int k = 0; k < c->n_in; k++) if (c->in[k].ndim > y->ndim) y->ndim = c->in[k].ndim;
  for (int i = 0; i < y->ndim; i++) {
    int by = 0;
    y->shape[i] = 1;
    for (int k = 0; k < c->n_in; k++) {
      int n = size_at(&c->in[k], y->ndim, i);
      if (n == 1) continue;
      if (y->shape[i] == 1) y->shape[i] = n, by = k;
      else if (y->shape[i] != n)
        return mn_fail(c->ctx, "%s: axis %d of %s is %d, expected %d as in %s (or 1)", mn_call_name(c),
                       i - (y->ndim - c->in[k].ndim), mn_input_name(c, k), n, y->shape[i],
                       mn_input_name(c, by));
    }
  }
  find_time(c);
  return 0;
}

/* Every operand is as large as the output, or one element: one axis. */
static bool one_axis(const mn_call *c, mn_layout *l) {
  const long n = c->out[0].n;
  for (int k = 0; k < c->n_in; k++) if (c->in[k].n != n && c->in[k].n != 1) return false;
  l->axes = 1;
  l->size[0] = n;
  for (int k = 0; k < c->n_in; k++) l->stride[k][0] = n > 1 && c->in[k].n == n;
  return true;
}

mn_layout mn_layout_of(const mn_call *c) {
  const mn_arg *y = &c->out[0];
  mn_layout l = { .axes = 0 };
  if (one_axis(c, &l)) return l;
  for (int i = 0; i < y->ndim; i++) {
    if (y->shape[i] == 1) continue;
    long stride[MN_OPERANDS] = { 0 };
    bool merge = l.axes > 0;
    for (int k = 0; k < c->n_in; k++) {
      if (size_at(&c->in[k], y->ndim, i) > 1) {
        stride[k] = 1;
        for (int j = i + 1; j < y->ndim; j++) stride[k] *= size_at(&c->in[k], y->ndim, j);
      }
      if (merge) merge = l.stride[k][l.axes - 1] == stride[k] * y->shape[i];
    }
    if (!merge) l.size[l.axes++] = 1;
    l.size[l.axes - 1] *= y->shape[i];
    for (int k = 0; k < c->n_in; k++) l.stride[k][l.axes - 1] = stride[k];
  }
  if (!l.axes) l.size[l.axes++] = 1;
  return l;
}

long mn_run(const mn_layout *l, long i, long end, long *start) {
  if (l->axes == 1) {
    for (int k = 0; k < MN_OPERANDS; k++) start[k] = i * l->stride[k][0];
    return end - i;
  }
  long left = i, length = 0;
  for (int k = 0; k < MN_OPERANDS; k++) start[k] = 0;
  for (int a = l->axes - 1; a >= 0; a--) {
    long at = left % l->size[a];
    left /= l->size[a];
    if (a == l->axes - 1) length = l->size[a] - at;
    for (int k = 0; k < MN_OPERANDS; k++) start[k] += at * l->stride[k][a];
  }
  return length < end - i ? length : end - i;
}

/* Adds elements from .. end-1 of `full` to sums[in.n]. */
static void sum_part(const mn_layout *l, int k, const float *full, long from, long end,
                     double *sums) {
  for (long i = from, n; i < end; i += n) {
    long start[MN_OPERANDS];
    n = mn_run(l, i, end, start);
    double *to = sums + start[k];
    const float *x = full + i;
    if (l->stride[k][l->axes - 1]) {
      for (long j = 0; j < n; j++) to[j] += (double)x[j];
    } else {
      double sum = 0;
      _Pragma("omp simd reduction(+:sum)")
      for (long j = 0; j < n; j++) sum += (double)x[j];
      *to += sum;
    }
  }
}

/* Sums full[out.n] down to the shape of operand k.  Fixed parts, summed in order in double: the
** same bits for any number of threads. */
static void sum_down(mn_call *c, const mn_layout *l, int k, const float *full, float *to) {
  long n = c->out[0].n, m = c->in[k].n;
  int parts = m <= n / 64 && n > 4 * MN_GRAIN ? 16 : 1;      /* small compared with the work */
  double *sums = (double *)mn_scratch(c->ctx, 3, 2 * m * parts);
  memset(sums, 0, (size_t)(m * parts) * sizeof *sums);
  long each = (n + parts - 1) / parts;
  MN_FOR(c->ctx, n, p, 0, parts, 1, sum_part(l, k, full, p * each, (p + 1) * each < n ? (p + 1) * each : n, sums + p * m));
  for (int p = 1; p < parts; p++)
    for (long j = 0; j < m; j++) sums[j] += sums[p * m + j];
  for (long j = 0; j < m; j++) to[j] = (float)sums[j];
}

void mn_in_parts(mn_call *c, float *to, long n, mn_part part) {
  MN_FOR(c->ctx, n, i, 0, n, MN_GRAIN, part(c, to, i, n - i < MN_GRAIN ? n : i + MN_GRAIN));
}

void mn_sum_to_operand(mn_call *c, int k, const float *full) {
  const mn_layout l = mn_layout_of(c);
  sum_down(c, &l, k, full, c->in[k].grad);
}

void mn_operand_backward(mn_call *c, int k, mn_part part) {
  long n = c->out[0].n;
  if (!c->in[k].grad) return;
  if (c->in[k].n == n) { mn_in_parts(c, c->in[k].grad, n, part); return; }
  float *full = mn_scratch(c->ctx, 0, n);
  mn_in_parts(c, full, n, part);
  mn_sum_to_operand(c, k, full);
}
