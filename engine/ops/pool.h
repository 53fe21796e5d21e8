/* pool.h -- windows of an image [Y,X,C], for ops that pool pixels: their sizes, and what of a window lies inside. */
#ifndef MN_POOL_H
#define MN_POOL_H
#include "op.h"

enum { MN_POOL_KERNEL, MN_POOL_STRIDE, MN_POOL_PADDING };        /* options of all of them, in this order */

/* The sizes of one call. */
typedef struct pool { int Y, X, C, out_y, out_x, kernel, stride, padding; } pool;

static inline pool mn_pool_of(const mn_call *c) {
  const mn_arg *y = &c->out[0];
  const double stride = OPT(c, MN_POOL_STRIDE);
  return (pool){ DIM(c, 'Y'), DIM(c, 'X'), DIM(c, 'C'), y->shape[2], y->shape[3], (int)OPT(c, MN_POOL_KERNEL),
                 (int)(stride > 0 ? stride : OPT(c, MN_POOL_KERNEL)), (int)OPT(c, MN_POOL_PADDING) };
}

/* How many windows lie along n pixels; the last may hang over where wanted, but begins inside. */
static inline int mn_pool_windows(const pool *p, int n, bool hangs_over) {
  int room = n + 2 * p->padding - p->kernel;
  if (room < 0) return 0;
  int count = (room + (hangs_over ? p->stride - 1 : 0)) / p->stride + 1;
  return (count - 1) * p->stride >= n + p->padding ? count - 1 : count;
}

/* Checks the options and sets the outputs' numbers of windows; most: of a kernel's side. */
static inline int mn_pool_shape(mn_call *c, int most, bool hangs_over) {
  static const char *const name[] = { "kernel", "stride", "padding" };
  for (int i = 0; i < 3; i++) {
    double v = OPT(c, i);
    if (!(v >= (i == MN_POOL_KERNEL) && v <= most) || v != (int)v)
      return mn_fail(c->ctx, "%s: %s is %g, expected a whole number from %d to %d", mn_call_name(c), name[i], v, i == MN_POOL_KERNEL, most);
  }
  pool p = mn_pool_of(c);
  if (2 * p.padding > p.kernel)
    return mn_fail(c->ctx, "%s: padding is %d, expected at most half of the kernel, %d", mn_call_name(c), p.padding, p.kernel);
  for (int axis = 2; axis < 4; axis++) {
    int size = c->in[0].shape[axis], n = mn_pool_windows(&p, size, hangs_over);
    if (n < 1)
      return mn_fail(c->ctx, "%s: kernel is %d, but axis %d of x has %d pixels, padding included", mn_call_name(c), p.kernel, axis,
                     size + 2 * p.padding);
    for (int i = 0; i < c->n_out; i++) c->out[i].shape[axis] = n;
  }
  return 0;
}

/* What of a window lies inside, along one axis: places from .. end-1 of its kernel, which begins at pixel `start`. */
typedef struct span { int start, from, end; } span;

static inline span mn_pool_inside(const pool *p, int window, int n) {
  span s = { .start = window * p->stride - p->padding, .from = 0, .end = p->kernel };
  if (s.start < 0) s.from = -s.start;
  if (s.start + p->kernel > n) s.end = n - s.start;
  return s;
}

#endif
