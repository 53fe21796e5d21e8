/* attention_weights.h -- what one row of an attention gives to each key, for people to look at: ops of the kind MN_ON_DEMAND.
** Their output is a list of entries [...,N,3]: the `steps` steps that end `back` steps before the row's own have this
** weight together.  An entry of 0 steps is no step but a part of the memory; unused ones, last, are all 0. */
#ifndef MN_WEIGHTS_H
#define MN_WEIGHTS_H
#include "op.h"

typedef struct mn_weight { float back, steps, weight; } mn_weight;

/* q.k over the root of D. */
float mn_weight_score(int D, const float *q, const float *k);

/* From n scores, left in `weight`, to their softmax; entries n .. N-1 become 0. */
void mn_weights_finish(mn_weight *w, int n, int N);

#endif
