/* draw.h -- ops that draw a random number for each element: element i of the whole tensor has word i of its key's stream, however
** the work is divided and whichever rows are computed. */
#ifndef MN_DRAW_H
#define MN_DRAW_H
#include "numerics/broadcast.h"
#include "numerics/random.h"

enum { MN_DRAWN = 1024 };        /* words drawn together */

/* Where the call's first element is in the whole tensor: a call for some rows of time begins at row t0. */
static inline uint64_t mn_first_drawn(const mn_call *c, const mn_arg *a) {
  return c->t0 && a->ndim ? (uint64_t)c->t0 * (uint64_t)(a->n / a->shape[0]) : 0;
}

#endif
