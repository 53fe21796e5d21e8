/* gif.c -- writes GIF animations through giflib.  A GIF frame has 256 colours, chosen for each frame by
** median cut (Heckbert, SIGGRAPH 1982).  Only the rectangle that changed is stored, so the file of a scene
** that changes little stays small. */
#include "gif.h"
#include "op.h"
#include <gif_lib.h>
#include <stdlib.h>
#include <string.h>

enum { BINS = 1 << 15 };                     /* 5 bits per channel */

typedef struct bin { uint64_t sum[3]; uint32_t count; uint16_t key; } bin;
typedef struct box { int from, to, axis; double spread; } box;      /* bins from..to-1, widest along axis */

static int part(const bin *b, int axis) { return b->key >> (10 - 5 * axis) & 31; }

/* No two bins are equal: qsort keeps the order of equal ones where it has memory, and another where it has not. */
static int compare(const bin *a, const bin *b, int axis) {
  const int order = part(a, axis) - part(b, axis);
  return order ? order : a->key - b->key;
}

#define BY(axis) static int by_##axis(const void *a, const void *b) { return compare(a, b, axis); }
BY(0)
BY(1)
BY(2)
static int (*const by[3])(const void *, const void *) = { by_0, by_1, by_2 };

static box measure(const bin *bins, int from, int to) {
  box b = { from, to, 0, 0 };
  double count = 0;
  for (int i = from; i < to; i++) count += bins[i].count;
  for (int axis = 0; axis < 3; axis++) {
    int lo = 31, hi = 0;
    for (int i = from; i < to; i++) {
      int v = part(&bins[i], axis);
      if (v < lo) lo = v;
      if (v > hi) hi = v;
    }
    double spread = (hi - lo) * (hi - lo) * (1 + count);
    if (to - from > 1 && spread > b.spread) b.spread = spread, b.axis = axis;
  }
  return b;
}

/* Cut a box where half of its pixels lie on either side. */
static int middle(const bin *bins, const box *b) {
  double half = 0, seen = 0;
  for (int i = b->from; i < b->to; i++) half += bins[i].count / 2.0;
  int cut = b->from;
  while (cut < b->to - 1 && (seen += bins[cut].count) < half) cut++;
  return cut > b->from ? cut : b->from + 1;
}

/* Choose the colours of a picture: fills palette and index[width*height]; the number of colours, or -1. */
static int quantise(const uint8_t *rgba, int width, int height, uint8_t palette[256][3], uint8_t *index) {
  bin *bins = calloc(BINS, sizeof *bins);
  uint8_t *color_of = malloc(BINS);
  if (!bins || !color_of) { free(bins), free(color_of); return -1; }
  size_t pixels = (size_t)width * (size_t)height;
  for (size_t i = 0; i < pixels; i++) {
    const uint8_t *px = rgba + 4 * i;
    int key = px[0] >> 3 << 10 | px[1] >> 3 << 5 | px[2] >> 3;
    bins[key].count++, bins[key].key = (uint16_t)key;
    for (int k = 0; k < 3; k++) bins[key].sum[k] += px[k];
  }
  int used = 0, n = 1;
  for (int i = 0; i < BINS; i++)
    if (bins[i].count) bins[used++] = bins[i];
  box boxes[256] = { measure(bins, 0, used) };
  while (n < 256) {
    int widest = 0;
    for (int i = 1; i < n; i++)
      if (boxes[i].spread > boxes[widest].spread) widest = i;
    box b = boxes[widest];
    if (b.spread <= 0) break;
    qsort(bins + b.from, (size_t)(b.to - b.from), sizeof *bins, by[b.axis]);
    int cut = middle(bins, &b);
    boxes[widest] = measure(bins, b.from, cut);
    boxes[n++] = measure(bins, cut, b.to);
  }
  for (int i = 0; i < n; i++) {
    double count = 0, sum[3] = { 0 };
    for (int j = boxes[i].from; j < boxes[i].to; j++) {
      count += bins[j].count;
      for (int k = 0; k < 3; k++) sum[k] += bins[j].sum[k];
      color_of[bins[j].key] = (uint8_t)i;
    }
    for (int k = 0; k < 3; k++) palette[i][k] = (uint8_t)(sum[k] / count + 0.5);
  }
  for (size_t i = 0; i < pixels; i++) {
    const uint8_t *px = rgba + 4 * i;
    index[i] = color_of[px[0] >> 3 << 10 | px[1] >> 3 << 5 | px[2] >> 3];
  }
  free(bins), free(color_of);
  return n;
}

struct mn_gif {
  mn_ctx *ctx;
  GifFileType *gif;
  int width, height, delay;                  /* delay: 1/100 s a frame */
  bool begun;
  uint8_t *before, *crop, *index;            /* the last frame; the part that changed; its colours */
  uint8_t *file;                             /* what giflib has written */
  size_t bytes, room;
};

/* giflib's output. */
static int put(GifFileType *gif, const GifByteType *data, int n) {
  mn_gif *g = gif->UserData;
  size_t want = g->bytes + (size_t)n;
  if (want > g->room) {
    size_t room = want * 2 + 65536;
    uint8_t *file = realloc(g->file, room);
    if (!file) return 0;
    g->file = file, g->room = room;
  }
  memcpy(g->file + g->bytes, data, (size_t)n);
  g->bytes = want;
  return n;
}

/* Close the encoder; false if it could not write its last bytes. */
static bool finish(mn_gif *g) {
  int code;
  bool good = !g->gif || EGifCloseFile(g->gif, &code) == GIF_OK;
  g->gif = NULL;
  return good;
}

void mn_gif_free(mn_gif *g) {
  if (!g) return;
  finish(g);
  free(g->before), free(g->crop), free(g->index), free(g->file);
  free(g);
}

/* Begin a GIF that repeats for ever. */
mn_gif *mn_gif_new(mn_ctx *mn, int width, int height, int fps) {
  const GifByteType loop[3] = { 1, 0, 0 };
  size_t n = (size_t)width * (size_t)height;
  mn_gif *g = calloc(1, sizeof *g);
  if (g) {
    g->ctx = mn, g->width = width, g->height = height, g->delay = fps < 50 ? 100 / fps : 2;
    g->before = malloc(n * 4), g->crop = malloc(n * 4), g->index = malloc(n);
    g->gif = EGifOpen(g, put, &(int){ 0 });
    if (g->gif) EGifSetGifVersion(g->gif, true);
    if (g->before && g->crop && g->index && g->gif &&
        EGifPutScreenDesc(g->gif, width, height, 8, 0, NULL) == GIF_OK &&
        EGifPutExtensionLeader(g->gif, APPLICATION_EXT_FUNC_CODE) == GIF_OK &&
        EGifPutExtensionBlock(g->gif, 11, "NETSCAPE2.0") == GIF_OK &&
        EGifPutExtensionBlock(g->gif, 3, loop) == GIF_OK && EGifPutExtensionTrailer(g->gif) == GIF_OK) return g;
    mn_gif_free(g);
  }
  mn_fail(mn, "gif: out of memory for %dx%d pixels", width, height);
  return NULL;
}

/* The smallest rectangle outside of which the frame is the one before. */
static void changed(const mn_gif *g, const uint8_t *rgba, int *x0, int *y0, int *x1, int *y1) {
  *x0 = g->width, *y0 = g->height, *x1 = *y1 = 0;
  size_t row = (size_t)g->width * 4;
  for (int y = 0; y < g->height; y++) {
    const uint8_t *a = rgba + (size_t)y * row, *b = g->before + (size_t)y * row;
    if (!memcmp(a, b, row)) continue;
    if (y < *y0) *y0 = y;
    *y1 = y + 1;
    for (int x = 0; x < *x0; x++)
      if (memcmp(a + 4 * x, b + 4 * x, 4)) { *x0 = x; break; }
    for (int x = g->width; x > *x1; x--)
      if (memcmp(a + 4 * x - 4, b + 4 * x - 4, 4)) { *x1 = x; break; }
  }
  if (!*y1) *x0 = *y0 = 0, *x1 = *y1 = 1;    /* nothing moved: one pixel carries the delay */
}

int mn_gif_add(mn_gif *g, const uint8_t *rgba) {
  int x0 = 0, y0 = 0, x1 = g->width, y1 = g->height;
  if (g->begun) changed(g, rgba, &x0, &y0, &x1, &y1);
  int w = x1 - x0, h = y1 - y0;
  for (int y = 0; y < h; y++)
    memcpy(g->crop + (size_t)y * (size_t)w * 4,
           rgba + ((size_t)(y0 + y) * (size_t)g->width + (size_t)x0) * 4, (size_t)w * 4);
  uint8_t palette[256][3] = { { 0 } };
  if (quantise(g->crop, w, h, palette, g->index) < 0) return mn_fail(g->ctx, "gif: no memory");
  ColorMapObject *colors = GifMakeMapObject(256, NULL);
  if (!colors) return mn_fail(g->ctx, "gif: no memory");
  for (int i = 0; i < 256; i++)
    colors->Colors[i] = (GifColorType){ palette[i][0], palette[i][1], palette[i][2] };
  GraphicsControlBlock control = { DISPOSE_DO_NOT, false, g->delay, NO_TRANSPARENT_COLOR };
  GifByteType extension[4];
  EGifGCBToExtension(&control, extension);
  bool good = EGifPutExtension(g->gif, GRAPHICS_EXT_FUNC_CODE, 4, extension) == GIF_OK &&
              EGifPutImageDesc(g->gif, x0, y0, w, h, false, colors) == GIF_OK;
  for (int y = 0; good && y < h; y++)
    good = EGifPutLine(g->gif, g->index + (size_t)y * (size_t)w, w) == GIF_OK;
  GifFreeMapObject(colors);
  if (!good) return mn_fail(g->ctx, "gif: no memory");
  memcpy(g->before, rgba, (size_t)g->width * (size_t)g->height * 4);
  g->begun = true;
  return 0;
}

int mn_gif_end(mn_gif *g, const char *path) {
  if (!finish(g)) return mn_fail(g->ctx, "%s: no memory", path);
  return mn_file_write(g->ctx, path, 1, (const void *const[]){ g->file }, &(double){ (double)g->bytes });
}
