/* chunk.h -- arithmetic of sixteen tokens at once, for the chunked form of gated linear attention.
** A token-major array is [16][n], n a multiple of 16, its rows ld apart (or n).  "Running" rows are x_s times every later
** decay, made by multiplication only: gates of exactly 0 stay exact, nothing overflows or is divided. */
#ifndef MN_CHUNK_H
#define MN_CHUNK_H
#include "chunk_length.h"
#include "numerics/tile_products.h"

/* out_t = x_t.y_t + S_t.R_t of the sixteen tokens: rows of n numbers, ldx and ldy apart, and of sixteen.  R NULL: the sum of
** S_t; S NULL: nothing. */
void mn_chunk_row_dots(int n, const float *x, long ldx, const float *y, long ldy, const float *S, const float *R, float *out);

/* P_t = decay_0 ... decay_t; and unless x is NULL, Px_t = P_t * x_t. */
void mn_chunk_prefix(int n, long ld, const float *decay, const float *x, float *P, float *Px);

/* x becomes the running rows at the end of the chunk; kept: the product of all decays, [n]. */
void mn_chunk_run(int n, long ld, const float *decay, float *x, float *kept);

/* S[t][s] = r_t . (x_s decay_{s+1} ... decay_t) for s <= t, else 0; run: the running rows at the
** end. */
void mn_chunk_scores(int n, long ld, const float *x, const float *decay, const float *r, float *run,
                     float *S);

/* y_t = P_t * y0_t + sum over s <= t of S[t][s] (x_s decay_{s+1} ... decay_t); run as above. */
void mn_chunk_mix(int n, const float *x, const float *decay, const float *S, const float *P,
                  const float *y0, float *y, float *run);

/* Backward of what made the running rows R and used them as sum_s coef[t][s] R_ts . r_t.
** G: in, gradient of the rows at the end of the chunk; out, gradient of x.  ddecay: stored.
** dr: stored, unless NULL. */
void mn_chunk_back(int n, long ld, const float *x, const float *decay, const float *r, const float *coef,
                   float *G, float *ddecay, float *dr);

/* Backward of the prefix: ddecay is added to; dP is used up. */
void mn_chunk_prefix_back(int n, long ld, const float *decay, const float *P, float *dP, float *ddecay);

#endif
