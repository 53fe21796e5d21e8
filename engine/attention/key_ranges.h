/* key_ranges.h -- softmax attention of a few rows of one head over runs of keys.
** Sparse patterns share it: a row of queries sees some runs of keys, and only those are read.
** Scores are recomputed in the backward pass, so nothing of size rows x keys is stored.
** A row's result does not depend on neighbouring rows, to the bit: its sums go over its own
** keys in their order, and keys that it does not see may hold anything, NaN included. */
#ifndef MN_KEY_RANGES_H
#define MN_KEY_RANGES_H
#include <stdbool.h>

enum { MN_TILE = 4 };          /* rows that go through the keys together */

typedef struct mn_run {        /* keys and values that lie `step` floats apart */
  const float *k, *v;
  float *dk, *dv;              /* backward: gradients are added here, `dstep` apart; NULL: not wanted */
  const float *kt, *vt;        /* the same turned (mn_turn), from the first key on; NULL: slower */
  long step, dstep, turned;    /* turned: mn_turned_row of kt and vt */
  int n;
  int lo[MN_TILE], hi[MN_TILE];            /* row r sees keys lo[r] .. hi[r]-1 */
} mn_run;

typedef struct mn_tile {
  int rows, D, n_runs;
  float scale;                             /* of q.k */
  const float *q[MN_TILE], *dy[MN_TILE];
  float *y[MN_TILE], *dq[MN_TILE];         /* dq may be NULL */
  const mn_run *run;
  float *work;                             /* mn_tile_work(keys of all runs, ...) floats */
} mn_tile;

/* Keys as columns, so that sixteen of them meet a row at once: kt[d*row + j] = k[j*step + d], with
** row = mn_turned_row(n) floats, of which up to 16 behind the last key may be read. */
static inline long mn_turned_row(long n) { return ((n + 31) & ~15L) | 16; }
long mn_turned_size(int D, long n);
void mn_turn(int D, long n, const float *k, long step, float *kt);

typedef struct mn_range { int from, n, step; } mn_range;        /* keys from, from+step, ...; n of them */

/* The range from the first to the last key that some row sees, a[row], and each row's part of it, lo .. hi-1;
** false where the rows are not in step.  Those that see nothing (n = 0) are in step with all. */
bool mn_unite(int rows, const mn_range *a, mn_range *all, int *lo, int *hi);

/* Floats of work for a tile whose runs have that many keys. */
long mn_tile_work(long keys, int n_runs, int D);

/* y = sum of softmax(scale q.k) v over the keys that a row sees; 0 where it sees none. */
void mn_tile_forward(const mn_tile *t);

/* Stores dq, adds to dk and dv of the runs. */
void mn_tile_backward(const mn_tile *t);

#endif
