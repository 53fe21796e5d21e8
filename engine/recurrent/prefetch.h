/* prefetch.h -- loads memory into the cache before it is needed.
** The rows of one head are pages apart, so no hardware prefetcher follows them.  An op that runs along time prefetches the
** next sixteen rows of each array while it works on the current ones, a few lines at a time between its
** products: a core has a limited number of outstanding loads, and issuing more stalls it. */
#ifndef MN_PREFETCH_H
#define MN_PREFETCH_H

typedef struct mn_prefetch {
  int pace;                      /* parts that mn_prefetch_some asks for, of 64 */
  int part;                      /* parts asked for so far */
  int rows;                      /* of each array: sixteen, or fewer at the end of time, or none */
  int n;                         /* arrays with rows */
  struct { const float *at; long row; int width; } of[16];
  const float *block;            /* and one stretch of `size` values, or NULL */
  long size;
} mn_prefetch;

/* Starts with nothing; `pace` parts at a time. */
static inline void mn_prefetch_open(mn_prefetch *q, int pace) {
  q->pace = pace;
  q->part = q->rows = q->n = 0;
  q->block = 0;
  q->size = 0;
}

/* Rows `row` floats apart, of which `width` are wanted; NULL: nothing. */
void mn_prefetch_rows(mn_prefetch *q, const float *at, long row, int width);

/* The next `pace` parts; all that are left. */
void mn_prefetch_some(mn_prefetch *q);
void mn_prefetch_rest(mn_prefetch *q);

/* Products as in chunk.h, without gaps between rows of B and C, in slices; between slices of the product the next rows are prefetched. */
void mn_prefetch_gemm(mn_prefetch *q, int M, int N, int K, const float *A, long ra, long ca, const float *B,
                   const float *C0, const float *row, float *C);
void mn_prefetch_dots(mn_prefetch *q, int M, int N, int K, const float *A, const float *B, float *C);

#endif
