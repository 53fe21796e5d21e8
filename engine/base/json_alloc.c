/* json_alloc.c -- memory for libraries that do not say when there was none.  jansson leaves a byte of a token out and goes on,
** or calls the token invalid: what it read is right only where nothing was refused. */
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
