/* strided.h -- copies from strided to contiguous memory: for ops that move axes, or repeat along them. */
#ifndef MN_STRIDED_H
#define MN_STRIDED_H
#include "op.h"

/* An element of four bytes, of which only the bits count. */
typedef uint32_t __attribute__((may_alias)) mn_bits;

/* Where the elements of a contiguous tensor come from: element [i, j, ...] from `start` + i stride[0] + j stride[1] ..., in elements.
** A stride may be 0 or negative. */
typedef struct mn_strides {
  int  axes;
  long size[MN_AXES], stride[MN_AXES], start;
} mn_strides;

/* The strides of a contiguous tensor's own axes. */
mn_strides mn_strides_of(const mn_arg *x);

/* The same walk with as few axes as possible, at least one. */
mn_strides mn_merged_strides(const mn_strides *s);

/* to = the elements of `from`, which have `item` bytes each. */
void mn_strided_copy(mn_ctx *mn, const mn_strides *s, long item, void *to, const void *from);

/* `rows` pieces of as many bytes, from anywhere to anywhere; steps from piece to piece are in bytes. */
void mn_copy_rows(mn_ctx *mn, void *to, long to_step, const void *from, long from_step, long rows, long bytes);

#endif
