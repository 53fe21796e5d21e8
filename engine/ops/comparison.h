/* comparison.h -- comparisons of two tensors of one type, with broadcasting: masks of 0 and 1, for `where`.
** MN_COMPARISON(true where): in a and b. */
#ifndef MN_COMPARISON_H
#define MN_COMPARISON_H
#include "numerics/broadcast.h"

/* Chunk from .. end-1 of the mask, of elements of one type. */
#define MN_COMPARE_CHUNK(name, type, field, where) \
  static void name(mn_call *c, float *unused, long from, long end) { \
    (void)unused; \
    const mn_layout l = mn_layout_of(c); \
    const long ka = l.stride[0][l.axes - 1], kb = l.stride[1][l.axes - 1]; \
    long start[MN_OPERANDS]; \
    for (long at = from, n; at < end; at += n) { \
      n = mn_run(&l, at, end, start); \
      const type *as = c->in[0].field + start[0], *bs = c->in[1].field + start[1]; \
      uint8_t *mask = c->out[0].u8 + at; \
      for (long i = 0; i < n; i++) { \
        const type a = as[i * ka], b = bs[i * kb]; \
        mask[i] = where; \
      } \
    } \
  }

#define MN_COMPARISON(where) \
  MN_COMPARE_CHUNK(compare_floats, float, data, where) \
  MN_COMPARE_CHUNK(compare_integers, int32_t, i32, where) \
  MN_COMPARE_CHUNK(compare_bytes, uint8_t, u8, where) \
  static void forward(mn_call *c) { \
    const int type = c->in[0].dtype; \
    mn_in_parts(c, NULL, c->out[0].n, type == MN_F32 ? compare_floats : type == MN_I32 ? compare_integers : compare_bytes); \
  }

#endif
