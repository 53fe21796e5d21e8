/* prefetch.h -- memory asked for before it is needed.
** The rows of one head lie pages apart, where no hardware prefetcher follows: an op that walks time asks for the next
** sixteen rows of each array itself, while it works on those before.  It asks between its products, some lines at a
** time, again and again: memory takes only so many questions at once, and who asks more waits. */
#ifndef MN_AHEAD_H
#define MN_AHEAD_H

typedef struct mn_ahead {
  int pace, part;                /* parts asked for at a time, of which there are 64; those that were */
  int rows, n;                   /* sixteen, or fewer at the end of time, or none; arrays with rows */
  struct { const float *at; long row; int width; } of[16];
  const float *block;            /* and one stretch of numbers, or NULL */
  long size;
} mn_ahead;

/* Nothing yet; so many parts at a time. */
static inline void mn_ahead_open(mn_ahead *q, int pace) {
  q->pace = pace;
  q->part = q->rows = q->n = 0;
  q->block = 0;
  q->size = 0;
}

/* Rows `row` floats apart, of which `width` are wanted; NULL: nothing. */
void mn_ahead_rows(mn_ahead *q, const float *at, long row, int width);

void mn_ahead_some(mn_ahead *q);
void mn_ahead_rest(mn_ahead *q);

/* Products as in chunk.h, without gaps between rows of B and C, in slices with questions between them. */
void mn_ahead_gemm(mn_ahead *q, int M, int N, int K, const float *A, long ra, long ca, const float *B,
                   const float *C0, const float *row, float *C);
void mn_ahead_dots(mn_ahead *q, int M, int N, int K, const float *A, const float *B, float *C);

#endif
