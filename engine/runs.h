/* runs.h -- softmax attention of a few rows of one head over runs of keys.
** What sparse patterns share: a row of queries sees some runs of keys, and only those are touched.
** Scores are recomputed in the backward pass, so nothing of the size rows x keys is ever kept.
** What a row computes does not depend on the rows beside it, to the bit: its sums go over its own
** keys in their order, and keys that it does not see may hold anything, NaN included. */
#ifndef MN_RUNS_H
#define MN_RUNS_H
#include <stdbool.h>

enum { MN_TILE = 4 };          /* rows that go through the keys together */

typedef struct mn_run {        /* keys and values that lie `step` floats apart */
  const float *k, *v;
  float *dk, *dv;              /* backward: gradients are added here, `dstep` apart; NULL: not wanted */
  long step, dstep;
  int n;
  int lo[MN_TILE], hi[MN_TILE];            /* row r sees keys lo[r] .. hi[r]-1 */
} mn_run;

typedef struct mn_tile {
  int rows, D, n_runs;
  float scale;                             /* of q.k */
  const float *q[MN_TILE], *dy[MN_TILE];
  float *y[MN_TILE], *dq[MN_TILE];         /* dq may be NULL */
  const mn_run *run;
  float *work;                             /* mn_tile_work(keys of all runs) floats */
} mn_tile;

/* Floats of work for a tile whose runs have so many keys. */
long mn_tile_work(long keys, int n_runs);

/* y = sum of softmax(scale q.k) v over the keys that a row sees; 0 where it sees none. */
void mn_tile_forward(const mn_tile *t);

/* Stores dq, adds to dk and dv of the runs. */
void mn_tile_backward(const mn_tile *t);

#endif
