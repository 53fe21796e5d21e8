/* columns.c -- one copy's part of a [rows, copies, ...] block, moved into another block: how a learner
** puts sequences of some copies together, whatever they are made of. */
#include <string.h>
#include "mneme.h"

void mn_copy_column(void *to, int to_copies, int to_copy, const void *from, int from_copies, int from_copy, double rows,
                    double bytes) {
  size_t n = (size_t)bytes;
  char *d = (char *)to + n * (size_t)to_copy;
  const char *s = (const char *)from + n * (size_t)from_copy;
  for (long r = 0; r < (long)rows; r++, d += n * (size_t)to_copies, s += n * (size_t)from_copies) memcpy(d, s, n);
}
