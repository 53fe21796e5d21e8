/* axis.h -- what ops over one axis share: reading the option, and the sizes around the axis. */
#ifndef MN_AXIS_H
#define MN_AXIS_H
#include "op.h"

/* The axis that an option names, counted from the end if negative; -1 with the error. */
static inline int mn_axis(mn_call *c, const char *op, const char *name, double option,
                          const mn_arg *x) {
  if (x->ndim == 0) return mn_fail(c->ctx, "%s: %s is %g, and x has no axis: it is one number", op, name, option);
  if (!(option >= -x->ndim && option < x->ndim) || option != (int)option)
    return mn_fail(c->ctx, "%s: %s is %g, expected a whole number from %d to %d", op, name, option,
                   -x->ndim, x->ndim - 1);
  return mn_axis_of(x, option);
}

/* y is shaped as x. */
static inline void mn_same_shape(const mn_arg *x, mn_arg *y) {
  y->ndim = x->ndim;
  for (int i = 0; i < x->ndim; i++) y->shape[i] = x->shape[i];
}

/* Does a type of whole numbers hold this one? */
static inline bool mn_fits(int dtype, double value) {
  const bool within = dtype == MN_U8 ? value >= 0 && value <= 255 : value >= INT32_MIN && value <= INT32_MAX;
  return within && value == (double)(int64_t)value;
}

/* A tensor seen from one axis: x[outer, size, inner]. */
typedef struct mn_span { long outer, size, inner; } mn_span;

static inline mn_span mn_span_of(const mn_arg *x, int axis) {
  mn_span s = { 1, x->shape[axis], 1 };
  for (int i = 0; i < axis; i++) s.outer *= x->shape[i];
  for (int i = axis + 1; i < x->ndim; i++) s.inner *= x->shape[i];
  return s;
}

/* Of an op that takes an axis away: one of its options names the axis, or all of them.  Where several are named: none. */
enum { MN_ALL_AXES = -100, MN_NO_AXIS = -100 };

static inline mn_span mn_span_by(const mn_call *c, int option) {
  const mn_arg *x = &c->in[0];
  if ((int)OPT(c, option) != MN_ALL_AXES) return mn_span_of(x, mn_axis_of(x, OPT(c, option)));
  mn_span all = { 1, x->n, 1 };
  return all;
}

#ifndef MN_AXIS_OPTION
#define MN_AXIS_OPTION 0
#endif
static inline mn_span mn_reduced_span(const mn_call *c) { return mn_span_by(c, MN_AXIS_OPTION); }

#endif
