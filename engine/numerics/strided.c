/* strided.c -- copies from strided to contiguous memory, row by row of the last axis.
** Neighbouring axes that are walked in one go are merged first, so that most copies are a few long rows. */
#include <string.h>
#include "strided.h"

enum { TILE = 16, GRAIN = 65536 };      /* rows and columns of a tile; bytes of one stretch that a thread takes at a time */

mn_strides mn_strides_of(const mn_arg *x) {
  mn_strides s = { .axes = x->ndim };
  long step = 1;
  for (int i = x->ndim - 1; i >= 0; i--) {
    s.size[i] = x->shape[i];
    s.stride[i] = step;
    step *= x->shape[i];
  }
  return s;
}

mn_strides mn_merged_strides(const mn_strides *s) {
  mn_strides m = { .start = s->start };
  for (int i = 0; i < s->axes; i++) {
    if (s->size[i] == 1) continue;
    if (m.axes && m.stride[m.axes - 1] == s->stride[i] * s->size[i]) m.size[m.axes - 1] *= s->size[i];
    else m.size[m.axes++] = s->size[i];
    m.stride[m.axes - 1] = s->stride[i];
  }
  if (!m.axes) m.size[m.axes++] = 1;
  return m;
}

/* n pieces of as many bytes; steps are in bytes. */
static void copy_each(char *to, long to_step, const char *from, long from_step, long n, long bytes) {
#define COPY_EACH(size) for (long i = 0; i < n; i++) memcpy(to + i * to_step, from + i * from_step, size)
  switch (bytes) {                                               /* a fixed size takes no call */
  case 4:  COPY_EACH(4); break;
  case 8:  COPY_EACH(8); break;
  case 12: COPY_EACH(12); break;
  case 16: COPY_EACH(16); break;
  case 32: COPY_EACH(32); break;
  case 64: COPY_EACH(64); break;
  default: COPY_EACH((size_t)bytes);
  }
}

void mn_copy_rows(mn_ctx *mn, void *to, long to_step, const void *from, long from_step, long rows, long bytes) {
  if (rows == 1 || (to_step == bytes && from_step == bytes)) {
    const long n = rows * bytes;
    MN_FOR(mn, n / 4, i, 0, n, GRAIN, memcpy((char *)to + i, (const char *)from + i, (size_t)(n - i < GRAIN ? n - i : GRAIN)));
    return;
  }
  const long each = mn_rows_at_a_time(rows * bytes / 4, rows);
  MN_FOR(mn, rows * bytes / 4, r, 0, rows, each,
         copy_each((char *)to + r * to_step, to_step, (const char *)from + r * from_step, from_step, r + each < rows ? each : rows - r, bytes));
}

/* n rows of m elements, `next` elements apart, whose own are `step` apart; in tiles, where reading and writing go across each other. */
#define COPY_TILES(T, to, from) do { \
    T *y_ = (T *)(to); \
    const T *x_ = (const T *)(from); \
    for (long i0 = 0; i0 < n; i0 += TILE) \
      for (long j0 = 0; j0 < m; j0 += TILE) \
        for (long i = i0; i < n && i < i0 + TILE; i++) \
          for (long j = j0; j < m && j < j0 + TILE; j++) y_[i * m + j] = x_[i * next + j * step]; \
  } while (0)

static void copy_block(char *to, const char *from, long n, long next, long m, long step, long item) {
  if (step == 1) copy_each(to, m * item, from, next * item, n, m * item);
  else if (item == 1) COPY_TILES(char, to, from);
  else COPY_TILES(mn_bits, to, from);
}

/* Rows from .. end-1, those of the second axis from the right in one go.  Like a counter, the last of the outer axes moves first. */
static void copy_rows(const mn_strides *s, long item, char *to, const char *from, long row, long end) {
  const int last = s->axes - 1;
  const long m = s->size[last];
  long at[MN_AXES], offset = s->start, left = row;
  for (int k = last - 1; k >= 0; k--) {
    at[k] = left % s->size[k];
    left /= s->size[k];
    offset += at[k] * s->stride[k];
  }
  for (long n; row < end; row += n) {
    n = last ? s->size[last - 1] - at[last - 1] : 1;
    if (n > end - row) n = end - row;
    copy_block(to + row * m * item, from + offset * item, n, last ? s->stride[last - 1] : 0, m, s->stride[last], item);
    for (int k = last - 1, by = (int)n; k >= 0; k--, by = 1) {
      offset += by * s->stride[k];
      if ((at[k] += by) < s->size[k]) break;
      offset -= at[k] * s->stride[k];
      at[k] = 0;
    }
  }
}

void mn_strided_copy(mn_ctx *mn, const mn_strides *strides, long item, void *to, const void *from) {
  const mn_strides s = mn_merged_strides(strides);
  long rows = 1;
  for (int i = 0; i < s.axes - 1; i++) rows *= s.size[i];
  const long work = rows * s.size[s.axes - 1], each = (mn_rows_at_a_time(work, rows) + TILE - 1) / TILE * TILE;
  MN_FOR(mn, work, r, 0, rows, each, copy_rows(&s, item, to, from, r, r + each < rows ? r + each : rows));
}
