/* arena.c -- the memory of computed tensors: allocated from the start on, and rewound instead of freed.  With malloc and
** free, page faults alone would cost more than the arithmetic of a small agent.
** An arena is a list of stretches with one address range: a place in it is a byte offset from the first one's start.  What
** does not fit into the rest of a stretch begins the next.  A device adds a stretch when the last one is full; the CPU
** reserves address space for everything in the first. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "internal.h"

static void enter(mn_arena *a, int i) {
  const mn_stretch *s = &a->stretch[a->at = i];
  a->base = s->base, a->start = s->start, a->end = s->start + s->bytes;
}

/* The next stretch with that many bytes, or another one. */
static int go_on(mn_arena *a, size_t bytes) {
  int i = a->n ? a->at + 1 : 0;
  while (i < a->n && a->stretch[i].bytes < bytes) i++;
  if (i == a->n) {
    mn_stretch s = { .start = i ? a->stretch[i - 1].start + a->stretch[i - 1].bytes : 0, .bytes = bytes };
    mn_stretch *more = realloc(a->stretch, (size_t)(i + 1) * sizeof *more);
    if (!more) return -1;
    a->stretch = more;
    if (!(s.base = a->on->reserve(s.start, &s.bytes))) return -1;
    a->stretch[a->n++] = s;
  }
  enter(a, i);
  a->used = a->start;
  return 0;
}

/* After a large array a little is left free: sizes are powers of two more often than not, and rows of several arrays that
** begin at the same place of a cache push each other out. */
enum { LARGE = 1 << 14, SPACE = 13 * MN_ALIGN };

size_t mn_room_of(size_t bytes) {
  bytes = (bytes + MN_ALIGN - 1) & ~(size_t)(MN_ALIGN - 1);
  return bytes >= LARGE ? bytes + SPACE : bytes;
}

/* Why there is no more, with what has the rest. */
static int no_room(mn_ctx *mn, const mn_arena *a, const char *what, double bytes) {
  char had[160];
  double plans = 0;
  for (int i = 0; i < mn->n_plans; i++) if (mn->plan[i]) plans += (double)mn->plan[i]->memory.numbers.used;
  snprintf(had, sizeof had, " more on top of %.3g MB (all plans have %.3g MB, computed tensors %.3g MB, leaves %.3g MB)", (double)a->used / 1e6,
           plans / 1e6, (double)mn->memory.numbers.used / 1e6, mn->leaf_bytes / 1e6);
  return mn_out_of_memory(mn, a->on, what, bytes, had);
}

void *mn_take(mn_ctx *mn, mn_arena *a, size_t bytes, const char *what) {
  bytes = mn_room_of(bytes);
  if (bytes > a->end - a->used && go_on(a, bytes)) return no_room(mn, a, what, (double)bytes), NULL;
  void *p = a->base + (a->used - a->start);
  a->used += bytes;
  if (a->used > a->peak) a->peak = a->used;
  mn_poison(a->on, p, bytes);
  return p;
}

void mn_rewind(mn_arena *a, size_t to) {
  a->used = to;
  while (a->at > 0 && to < a->start) enter(a, a->at - 1);
}

bool mn_place_of(const mn_arena *a, const void *p, size_t *place) {
  for (int i = 0; i < a->n; i++) {
    const mn_stretch *s = &a->stretch[i];
    if ((const char *)p < s->base || (const char *)p >= s->base + s->bytes) continue;
    *place = s->start + (size_t)((const char *)p - s->base);
    return true;
  }
  return false;
}

bool mn_taken_before(const mn_arena *a, const void *p, size_t place) {
  size_t at;
  return mn_place_of(a, p, &at) && at < place;
}

void mn_arena_close(mn_arena *a) {
  for (int i = 0; i < a->n; i++) a->on->give_back(a->stretch[i].base, a->stretch[i].bytes);
  free(a->stretch);
  *a = (mn_arena){ .on = a->on };
}

/* ---- memory of a context or plan ---- */

void mn_memory_open(mn_ctx *mn, mn_memory *m) {
  m->numbers.on = mn->work.device;
  m->records.on = &mn_cpu;
}

void mn_memory_close(mn_memory *m) {
  mn_arena_close(&m->numbers);
  mn_arena_close(&m->records);
  free(m->pool);
}

