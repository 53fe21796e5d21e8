/* broadcast.h -- iterates over tensors whose shapes are matched from the right, as in numpy.
** An axis of size 1, or one that is missing on the left, is repeated.  Ops with the signature
** "a[*] b[*] -> y[*]" use this for their shape, their loops and the sums in their backward. */
#ifndef MN_BROADCAST_H
#define MN_BROADCAST_H
#include "op.h"

enum { MN_OPERANDS = 3, MN_GRAIN = 16384 };      /* elements of one chunk */

typedef struct mn_layout {
  int  axes;                                      /* after merging what can be walked in one go */
  long size[MN_AXES];
  long stride[MN_OPERANDS][MN_AXES];              /* 0 where an operand is repeated */
} mn_layout;

/* `shape` of such an op: every input is an operand, out[0] is their common shape. */
int mn_broadcast_shape(mn_call *c);

/* How inputs 0..n_in-1 lie under out[0]. */
mn_layout mn_layout_of(const mn_call *c);

/* The straight run of elements that starts at element i of the output and ends before `end`: its
** length, and where each operand starts.  Within it operand k moves by stride[k][axes-1], which is
** 0 or 1. */
long mn_run(const mn_layout *l, long i, long end, long *start);

/* part(c, to, from, end) for every chunk from .. end-1 of the elements 0 .. n-1 of `to`, in
** parallel. */
typedef void (*mn_part)(mn_call *c, float *to, long from, long end);
void mn_in_parts(mn_call *c, float *to, long n, mn_part part);

/* backward of operand k, given `part`, which writes dy * dy/dk for every element of the output:
** where the operand was repeated, its gradient is the sum over the repeats. */
void mn_operand_backward(mn_call *c, int k, mn_part part);

/* The gradient of operand k where dy/dk is 1: the sum of full[out.n] over the repeats. */
void mn_sum_to_operand(mn_call *c, int k, const float *full);

#endif
