/* attention_weights.h -- the attention weights of one row, for display: ops of kind MN_ON_DEMAND.
** The output is a list of entries [...,N,3] of (back, steps, weight): the `steps` steps that end `back` steps before the
** row have this weight together.  An entry of 0 steps stands for a part of the memory; unused entries, last, are all 0. */
#ifndef MN_ATTENTION_WEIGHTS_H
#define MN_ATTENTION_WEIGHTS_H
#include "op.h"

typedef struct mn_weight { float back, steps, weight; } mn_weight;

/* q.k over the root of D. */
float mn_weight_score(int D, const float *q, const float *k);

/* From n scores, left in `weight`, to their softmax; entries n .. N-1 become 0. */
void mn_weights_finish(mn_weight *w, int n, int N);

#endif
