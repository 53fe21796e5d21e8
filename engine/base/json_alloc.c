/* json_alloc.c -- an allocator that remembers failures, for libraries that do not report them.  When an allocation fails,
** jansson drops a byte of a token or calls the token invalid: its result is right only if no allocation failed. */
#include "mneme.h"
#include <stdlib.h>

static _Thread_local bool starved;

void *mn_memory_new(size_t bytes) {
  void *p = malloc(bytes);
  starved |= !p;
  return p;
}

void mn_memory_free(void *p) { free(p); }

bool mn_memory_starved(void) {
  bool was = starved;
  starved = false;
  return was;
}
