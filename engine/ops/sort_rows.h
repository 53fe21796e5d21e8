/* sort_rows.h -- sort and topk on the CPU: each row by itself, few elements by insertion, many by radix sort. */
#ifndef MN_SORT_ROWS_H
#define MN_SORT_ROWS_H
#include "indexed.h"
#include "sorting.h"

typedef struct mn_entry { uint32_t key; int32_t index; } mn_entry;

/* Each of n entries to its place among the first K of those before it; e has room for K. */
static inline void mn_insert(mn_entry *e, long *n, long K, mn_entry new) {
  long i = *n < K ? (*n)++ : K - 1;
  for (; i > 0 && e[i - 1].key > new.key; i--) e[i] = e[i - 1];
  e[i] = new;
}

/* By their lowest eight bits, then the next: four passes, of which those are left out where all keys are alike. */
static inline mn_entry *mn_radix_sort(mn_entry *e, mn_entry *room, long n) {
  enum { DIGITS = 256 };
  for (int shift = 0; shift < 32; shift += 8) {
    long count[DIGITS] = { 0 }, at = 0;
    for (long i = 0; i < n; i++) count[e[i].key >> shift & (DIGITS - 1)]++;
    if (count[e[0].key >> shift & (DIGITS - 1)] == n) continue;
    for (int d = 0; d < DIGITS; d++) {
      const long here = count[d];
      count[d] = at;
      at += here;
    }
    for (long i = 0; i < n; i++) room[count[e[i].key >> shift & (DIGITS - 1)]++] = e[i];
    mn_entry *sorted = room;
    room = e, e = sorted;
  }
  return e;
}

/* The first K of row r = (o, i), sorted; `room` holds 2 * size entries. */
static inline const mn_entry *mn_sort_row(const mn_call *c, const mn_sorting *s, long r, mn_entry *room) {
  enum { FEW = 32 };
  const mn_arg *x = &c->in[0];
  const long first = r / s->inner * s->size * s->inner + r % s->inner;
  const bool few = s->size <= FEW || (s->K <= FEW && s->K * 4 <= s->size);
  long n = 0;
  for (long k = 0; k < s->size; k++) {
    const mn_entry new = { mn_key_of(x->dtype, x->data, first + k * s->inner) ^ s->flip, (int32_t)k };
    if (!few) room[n++] = new;
    else if (n < s->K || new.key < room[n - 1].key) mn_insert(room, &n, s->K, new);
  }
  return few ? room : mn_radix_sort(room, room + n, n);
}

typedef struct mn_sort_job { const mn_call *c; mn_sorting s; mn_entry *room; long rows, each; } mn_sort_job;

static inline void mn_sort_rows(void *arg, int part, int worker) {
  const mn_sort_job *j = arg;
  const mn_sorting *s = &j->s;
  const mn_arg *x = &j->c->in[0], *y = &j->c->out[0];
  const long end = (part + 1) * j->each < j->rows ? (part + 1) * j->each : j->rows;
  for (long r = part * j->each; r < end; r++) {
    const mn_entry *e = mn_sort_row(j->c, s, r, j->room + worker * 2 * s->size);
    const long o = r / s->inner, i = r % s->inner;
    for (long k = 0; k < s->K; k++) {
      const long to = (o * s->K + k) * s->inner + i, from = (o * s->size + e[k].index) * s->inner + i;
      if (mn_item(x->dtype) == 1) y->u8[to] = x->u8[from];
      else y->i32[to] = x->i32[from];
      j->c->out[1].i32[to] = e[k].index;
    }
  }
}

static inline void mn_sorting_forward(mn_call *c, const mn_sorting *s) {
  const long rows = s->outer * s->inner, each = 1 + 2048 / s->size;
  mn_sort_job job = { c, *s, NULL, rows, each };
  job.room = (mn_entry *)mn_scratch(c->ctx, 0, 4 * s->size * mn_threads(c->ctx));
  mn_parallel_for(c->ctx, (int)((rows + each - 1) / each), mn_sort_rows, &job);
}

/* The gradient of x, by the indices that came out. */
static inline void mn_sorting_backward(mn_call *c, const mn_sorting *s) {
  const mn_indexed by = { c->out[1].i32, s->outer, s->size, s->K, s->inner, s->K * s->inner, s->inner, 1, NULL };
  mn_taken_backward(c, &by);
}

#endif
