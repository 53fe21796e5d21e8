/* triangle.h -- tril and triu: the part of each matrix on one side of a diagonal, zeros on the other. */
#ifndef MN_TRIANGLE_H
#define MN_TRIANGLE_H
#include <string.h>
#include "axis.h"

static inline int mn_triangle_shape(mn_call *c) {
  const mn_arg *x = &c->in[0];
  const double d = OPT(c, 0);
  if (x->ndim < 2) return mn_fail(c->ctx, "%s: x has %d axes, expected at least 2", mn_call_name(c), x->ndim);
  if (!(d >= -1e9 && d <= 1e9) || d != (int)d) return mn_fail(c->ctx, "%s: diagonal is %g, expected a whole number", mn_call_name(c), d);
  mn_same_shape(x, &c->out[0]);
  if (x->ndim == 2) c->time = MN_WHOLE;
  return 0;
}

/* Row r of all matrices: columns up to the diagonal, or from it on. */
static inline void mn_triangle_row(const mn_call *c, bool upper, long r, char *to, const char *from) {
  const mn_arg *x = &c->in[0];
  const long N = x->shape[x->ndim - 1], M = x->shape[x->ndim - 2], item = mn_item(x->dtype);
  long cut = r % M + (long)OPT(c, 0) + !upper;         /* columns left of it */
  cut = cut < 0 ? 0 : cut > N ? N : cut;
  const long begin = upper ? cut : 0, end = upper ? N : cut;
  to += r * N * item, from += r * N * item;
  memset(to, 0, (size_t)(N * item));
  memcpy(to + begin * item, from + begin * item, (size_t)((end - begin) * item));
}

static inline void mn_triangle(mn_call *c, bool upper, void *to, const void *from) {
  const mn_arg *x = &c->in[0];
  const long rows = x->n / x->shape[x->ndim - 1];
  const int each = mn_rows_at_a_time(x->n, rows);
  MN_FOR(c->ctx, x->n, r, 0, rows, each, for (long k = r; k < rows && k < r + each; k++) mn_triangle_row(c, upper, k, to, from));
}

#endif
