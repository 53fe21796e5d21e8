/* indexed.h -- gather, scatter, scatter_add and index_select: elements of one axis by their indices.
** x is seen as x[outer, size, inner], and what its elements go to or come from as z[outer, K, inner]: z[o, k, i] belongs to
** x[o, index, i].  The index has the shape of z, or is a vector [K] for all.  A replayed plan does not check its indices: for one
** out of range z is NaN, and so is the first element of x[o, :, i]; whole numbers are 0. */
#ifndef MN_INDEXED_H
#define MN_INDEXED_H
#include <string.h>
#include "axis.h"

enum { INDEX = 1 };              /* the input */

typedef struct mn_indexed {
  const int32_t *index;
  long outer, size, K, inner;
  long of_outer, of_k, of_inner; /* how far the index moves along these */
  uint8_t *taken;                /* scatter: elements of x that something was put to */
} mn_indexed;

static inline mn_indexed mn_indexed_of(const mn_call *c, bool vector) {
  const mn_arg *x = &c->in[0];
  const int axis = mn_axis_of(x, OPT(c, 0));
  const mn_span s = mn_span_of(x, axis);
  const long K = c->in[INDEX].shape[vector ? 0 : axis];
  const mn_indexed by = { c->in[INDEX].i32, s.outer, s.size, K, s.inner, vector ? 0 : K * s.inner, vector ? 1 : s.inner, !vector, NULL };
  return by;
}

/* An index as large as x off the axis, and a tensor as large as the index (which: its number; 0: none). */
static inline int mn_indexed_shape(mn_call *c, int which) {
  const mn_arg *x = &c->in[0], *index = &c->in[INDEX];
  const char *op = mn_call_name(c);
  const int axis = mn_axis(c, op, "axis", OPT(c, 0), x);
  if (axis < 0) return -1;
  if (index->ndim != x->ndim) return mn_fail(c->ctx, "%s: index has %d axes, expected %d as x", op, index->ndim, x->ndim);
  for (int i = 0; i < x->ndim; i++)
    if (i != axis && index->shape[i] != x->shape[i])
      return mn_fail(c->ctx, "%s: axis %d of index is %d, expected %d as in x", op, i, index->shape[i], x->shape[i]);
  if (axis == 0 || index->timed != x->timed) c->time = MN_WHOLE;
  if (!which) return 0;
  const mn_arg *z = &c->in[which];
  const char *name = mn_input_name(c, which);
  if (z->ndim != x->ndim) return mn_fail(c->ctx, "%s: %s has %d axes, expected %d as x", op, name, z->ndim, x->ndim);
  for (int i = 0; i < x->ndim; i++)
    if (z->shape[i] != index->shape[i])
      return mn_fail(c->ctx, "%s: axis %d of %s is %d, expected %d as in index", op, i, name, z->shape[i], index->shape[i]);
  if (z->timed != x->timed) c->time = MN_WHOLE;
  return 0;
}

/* z = x at the indices, in the rows r = (o, k) from .. end-1. */
#define MN_TAKE(T, missing) do { \
    const T *x_ = (const T *)x; \
    long o = from / s->K, k = from % s->K; \
    for (long r = from; r < end; r++) { \
      const int32_t *index = s->index + o * s->of_outer + k * s->of_k; \
      const T *row = x_ + o * s->size * s->inner; \
      T *to = (T *)z + r * s->inner; \
      if (++k == s->K) k = 0, o++; \
      for (long i = 0; i < s->inner; i++) { \
        const int32_t at = index[i * s->of_inner]; \
        to[i] = at >= 0 && at < s->size ? row[at * s->inner + i] : missing; \
      } \
    } \
  } while (0)

static inline void mn_take_rows(const mn_indexed *s, int dtype, void *z, const void *x, long from, long end) {
  if (dtype == MN_F32) MN_TAKE(float, __builtin_nanf(""));
  else if (dtype == MN_I32) MN_TAKE(int32_t, 0);
  else MN_TAKE(uint8_t, 0);
}

static inline void mn_take_indexed(mn_call *c, const mn_indexed *s, int dtype, void *z, const void *x) {
  const long rows = s->outer * s->K, each = mn_rows_at_a_time(rows * s->inner, rows);
  MN_FOR(c->ctx, rows * s->inner, r, 0, rows, each, mn_take_rows(s, dtype, z, x, r, r + each < rows ? r + each : rows));
}

/* Work on x at indices is divided by columns, of which no two touch the same elements: f(c, s, o, from, end) has x[o, :, from .. end-1]. */
typedef void (*mn_indexed_part)(mn_call *c, const mn_indexed *s, long o, long from, long end);

static inline void mn_in_columns(mn_call *c, const mn_indexed *s, mn_indexed_part f) {
  enum { COLUMNS = 64 };
  const long parts = (s->inner + COLUMNS - 1) / COLUMNS;
  MN_FOR(c->ctx, s->outer * s->K * s->inner, p, 0, s->outer * parts, 1,
         f(c, s, p / parts, p % parts * COLUMNS, p % parts * COLUMNS + COLUMNS < s->inner ? p % parts * COLUMNS + COLUMNS : s->inner));
}

/* x += z at the indices. */
static inline void mn_add_indexed(const mn_indexed *s, float *x, const float *z, long o, long from, long end) {
  x += o * s->size * s->inner;
  for (long k = 0; k < s->K; k++) {
    const int32_t *index = s->index + o * s->of_outer + k * s->of_k;
    const float *row = z + (o * s->K + k) * s->inner;
    for (long i = from; i < end; i++) {
      const int32_t at = index[i * s->of_inner];
      if (at >= 0 && at < s->size) x[at * s->inner + i] += row[i];
      else x[i] = __builtin_nanf("");
    }
  }
}

/* The gradient of x where z = x at the indices. */
static inline void mn_taken_part(mn_call *c, const mn_indexed *s, long o, long from, long end) {
  mn_add_indexed(s, c->in[0].grad, c->out[0].grad, o, from, end);
}

static inline void mn_taken_backward(mn_call *c, const mn_indexed *s) {
  if (!mn_accumulates(c, 0)) memset(c->in[0].grad, 0, (size_t)c->in[0].n * sizeof(float));
  mn_in_columns(c, s, mn_taken_part);
}

#endif
