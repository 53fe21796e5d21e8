/* walks.h -- in which order permute, transpose, flip and expand walk over what they copy: the same for every device. */
#ifndef MN_WALKS_H
#define MN_WALKS_H
#include "axis.h"
#include "numerics/strided.h"

/* Of permute: axis i of y is the axis of x that option i names; `back` walks over y. */
static inline mn_strides mn_permuted(const mn_call *c, bool back) {
  const mn_arg *x = &c->in[0];
  const mn_strides of = mn_strides_of(back ? &c->out[0] : x);
  mn_strides s = of;
  for (int i = 0; i < x->ndim; i++) {
    const int a = mn_axis_of(x, OPT(c, i)), to = back ? a : i, from = back ? i : a;
    s.size[to] = of.size[from], s.stride[to] = of.stride[from];
  }
  return s;
}

/* Of transpose: x, or y, with the two axes swapped. */
static inline mn_strides mn_swapped(const mn_call *c, const mn_arg *x) {
  const int a = mn_axis_of(x, OPT(c, 0)), b = mn_axis_of(x, OPT(c, 1));
  const mn_strides of = mn_strides_of(x);
  mn_strides s = of;
  s.size[a] = of.size[b], s.stride[a] = of.stride[b];
  s.size[b] = of.size[a], s.stride[b] = of.stride[a];
  return s;
}

/* Of flip: an axis from its end, both ways. */
static inline mn_strides mn_flipped(const mn_call *c) {
  const mn_arg *x = &c->in[0];
  const int axis = mn_axis_of(x, OPT(c, 0));
  mn_strides s = mn_strides_of(x);
  s.start = (s.size[axis] - 1) * s.stride[axis];
  s.stride[axis] = -s.stride[axis];
  return s;
}

/* Of expand: axes that are repeated stand still. */
static inline mn_strides mn_expanded(const mn_call *c) {
  const mn_arg *x = &c->in[0], *y = &c->out[0];
  const mn_strides of = mn_strides_of(x);
  mn_strides s = mn_strides_of(y);
  for (int i = 0; i < y->ndim; i++) {
    const int k = i - (y->ndim - x->ndim);
    s.stride[i] = k < 0 || x->shape[k] != y->shape[i] ? 0 : of.stride[k];
  }
  return s;
}

#endif
