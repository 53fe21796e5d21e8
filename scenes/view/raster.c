/* raster.c -- paints a canvas into RGBA8 pixels.  The window shows these pixels and the picture files
** hold them, so what a test or a paper's figure shows is what was on the screen.  Every edge is
** anti-aliased by how much of a pixel the shape covers; no library's rendering is involved but the
** glyphs', so the same canvas gives the same bytes on any screen, or none. */
#include "canvas.h"
#include "font.h"
#include "op.h"
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

struct mn_raster {
  mn_ctx *ctx;
  mn_font *font;
  uint8_t *pixels;
  size_t room;
  int width, height;
  bool light;                   /* the page: its green is more than half */
  struct stretch *columns;      /* of a grid of cells, those under each column of pixels; room for the width */
};

typedef struct span { int x0, y0, x1, y1; } span;      /* pixels x0 <= x < x1, y0 <= y < y1 */
typedef struct stretch { int from, to; } stretch;      /* cells from <= i < to */

mn_raster *mn_raster_new(mn_ctx *mn, const char *font) {
  mn_raster *r = calloc(1, sizeof *r);
  if (!r) { mn_fail(mn, "raster: no memory"); return NULL; }
  r->ctx = mn;
  if (!(r->font = mn_font_new(mn, font))) { free(r); return NULL; }
  return r;
}

void mn_raster_free(mn_raster *r) {
  if (!r) return;
  mn_font_free(r->font);
  free(r->pixels);
  free(r->columns);
  free(r);
}

const uint8_t *mn_raster_pixels(const mn_raster *r) { return r->pixels; }

static inline int clamp(float v, int lo, int hi) {
  return !(v > (float)lo) ? lo : v >= (float)hi ? hi : (int)v;      /* lo, too, where it is not a number */
}

/* The pixels that the box x0..x1, y0..y1 touches inside the picture. */
static span touched(const mn_raster *r, float x0, float y0, float x1, float y1) {
  return (span){ clamp(floorf(x0), 0, r->width), clamp(floorf(y0), 0, r->height),
                 clamp(ceilf(x1), 0, r->width), clamp(ceilf(y1), 0, r->height) };
}

/* Mix `color` into one pixel; `coverage` 0..255 says how much of the pixel is inside the shape. */
static inline void blend(uint8_t *px, uint32_t color, unsigned coverage) {
  unsigned a = (color & 255) * coverage;                 /* 0..65025 */
  if (a == 65025) {
    px[0] = (uint8_t)(color >> 24), px[1] = (uint8_t)(color >> 16), px[2] = (uint8_t)(color >> 8);
    return;
  }
  for (int i = 0; i < 3; i++)
    px[i] = (uint8_t)((px[i] * (65025 - a) + (color >> (24 - 8 * i) & 255) * a + 32512) / 65025);
}

static inline uint8_t *pixel(const mn_raster *r, int x, int y) {
  return r->pixels + ((size_t)y * (size_t)r->width + (size_t)x) * 4;
}

static inline unsigned inside(float distance) {          /* coverage from the distance beyond the edge */
  float c = 0.5f - distance;
  return !(c > 0) ? 0 : c >= 1 ? 255 : (unsigned)(c * 255 + 0.5f);      /* 0, too, where it is not a number */
}

/* Pixels x0..x1-1 of row y, all covered alike. */
static void run(mn_raster *r, uint32_t color, int x0, int x1, int y, unsigned coverage) {
  if (x0 >= x1) return;
  uint8_t *px = pixel(r, x0, y), *end = pixel(r, x1, y);
  if (coverage < 255 || (color & 255) < 255) {
    for (; px < end; px += 4) blend(px, color, coverage);
  } else {
    const uint8_t word[4] = { (uint8_t)(color >> 24), (uint8_t)(color >> 16), (uint8_t)(color >> 8), 255 };
    for (; px < end; px += 4) memcpy(px, word, 4);
  }
}

static void rect(mn_raster *r, uint32_t color, float x, float y, float w, float h) {
  span s = touched(r, x, y, x + w, y + h);
  int whole0 = clamp(ceilf(x), s.x0, s.x1), whole1 = clamp(floorf(x + w), s.x0, s.x1);
  for (int py = s.y0; py < s.y1; py++) {
    float cy = fminf(y + h, (float)py + 1) - fmaxf(y, (float)py);
    if (s.x0 < whole0) {                                 /* the column that the left edge cuts */
      float cx = fminf(x + w, (float)s.x0 + 1) - fmaxf(x, (float)s.x0);
      blend(pixel(r, s.x0, py), color, (unsigned)(cx * cy * 255 + 0.5f));
    }
    run(r, color, whole0, whole1, py, (unsigned)(cy * 255 + 0.5f));
    if (whole0 <= whole1 && whole1 < s.x1)               /* and the right edge */
      blend(pixel(r, whole1, py), color, (unsigned)((x + w - (float)whole1) * cy * 255 + 0.5f));
  }
}

static void frame(mn_raster *r, uint32_t color, float x, float y, float w, float h, float thick) {
  float t = fminf(thick > 0 ? thick : 1, fminf(w, h) / 2);
  rect(r, color, x, y, w, t);
  rect(r, color, x, y + h - t, w, t);
  rect(r, color, x, y + t, t, h - 2 * t);
  rect(r, color, x + w - t, y + t, t, h - 2 * t);
}

static void disc(mn_raster *r, uint32_t color, float x, float y, float radius) {
  span s = touched(r, x - radius - 1, y - radius - 1, x + radius + 1, y + radius + 1);
  for (int py = s.y0; py < s.y1; py++)
    for (int px = s.x0; px < s.x1; px++) {
      float dx = (float)px + 0.5f - x, dy = (float)py + 0.5f - y;
      blend(pixel(r, px, py), color, inside(sqrtf(dx * dx + dy * dy) - radius));
    }
}

static void line(mn_raster *r, uint32_t color, float x0, float y0, float x1, float y1, float thick) {
  float half = (thick > 0 ? thick : 1) / 2, dx = x1 - x0, dy = y1 - y0;
  float length2 = fmaxf(dx * dx + dy * dy, 1e-12f);
  span s = touched(r, fminf(x0, x1) - half - 1, fminf(y0, y1) - half - 1, fmaxf(x0, x1) + half + 1,
                   fmaxf(y0, y1) + half + 1);
  bool level = fabsf(dy) < 1e-3f;
  float slope = level ? 0 : dx / dy, reach = level ? 0 : (half + 1) * sqrtf(1 + slope * slope) + 1;
  for (int py = s.y0; py < s.y1; py++) {
    int from = s.x0, to = s.x1;
    if (!level) {                                        /* of a slanted line's box only what is near the line */
      float middle = x0 + ((float)py + 0.5f - y0) * slope;
      from = clamp(middle - reach, s.x0, s.x1), to = clamp(middle + reach, s.x0, s.x1);
    }
    for (int px = from; px < to; px++) {
      float ax = (float)px + 0.5f - x0, ay = (float)py + 0.5f - y0;
      float along = fminf(fmaxf((ax * dx + ay * dy) / length2, 0), 1);
      float ox = ax - along * dx, oy = ay - along * dy;
      blend(pixel(r, px, py), color, inside(sqrtf(ox * ox + oy * oy) - half));
    }
  }
}

/* A triangle that points right, turned about the centre of its box: the pixel is turned back instead. */
static void triangle(mn_raster *r, uint32_t color, float x, float y, float w, float h, float turn) {
  float cx = x + w / 2, cy = y + h / 2, reach = sqrtf(w * w + h * h) / 2 + 1;
  float cosine = cosf(turn), sine = sinf(turn);
  float slant = sqrtf(w * w + h * h / 4);
  span s = touched(r, cx - reach, cy - reach, cx + reach, cy + reach);
  for (int py = s.y0; py < s.y1; py++)
    for (int px = s.x0; px < s.x1; px++) {
      float dx = (float)px + 0.5f - cx, dy = (float)py + 0.5f - cy;
      float along = dx * cosine + dy * sine, across = fabsf(dy * cosine - dx * sine);
      float back = -w / 2 - along;                                    /* beyond the back edge */
      float side = ((along - w / 2) * h / 2 + across * w) / fmaxf(slant, 1e-6f);   /* beyond a slanted edge */
      blend(pixel(r, px, py), color, inside(fmaxf(back, side)));
    }
}

/* Walk the glyphs of a text from the pen position x; paints if `color` is not NULL.  Returns the new x, or
** less where what follows is beyond the picture. */
static float text(mn_raster *r, const uint32_t *color, float x, float y, float size, const char *utf8) {
  uint32_t code;
  /* no letter is two sizes wide or high: what lies outside is spared its glyphs */
  if (color && (y < -size || y - 2 * size > (float)r->height || x + 2 * size * (float)strlen(utf8) < 0)) return x;
  int base = clamp(floorf(y + 0.5f), -65536, 65536);
  while ((code = mn_utf8_next(&utf8))) {
    if (color && x - size > (float)r->width) break;
    float whole = floorf(x);
    const mn_glyph *g = mn_font_glyph(r->font, code, size, (int)((x - whole) * 4));
    if (!g) continue;
    int left = clamp(whole, -65536, 65536) + g->left, top = base - g->top;
    for (int row = 0; color && row < g->height; row++) {
      int py = top + row;
      if (py < 0 || py >= r->height) continue;
      for (int col = 0; col < g->width; col++) {
        int px = left + col;
        if (px >= 0 && px < r->width) blend(pixel(r, px, py), *color, g->coverage[row * g->width + col]);
      }
    }
    x += g->advance;
  }
  return x;
}

double mn_raster_text_width(mn_raster *r, const char *utf8, float size) {
  return (double)text(r, NULL, 0, 0, size, utf8);
}

/* `light`: of the page */
static uint32_t map_color(const mn_heat *heat, bool light, float value) {
  float range = heat->hi - heat->lo;
  return mn_map_color(heat->map, light, isnan(value) ? NAN : range != 0 ? (value - heat->lo) / range : 0.5f);
}

/* What a grid of cells shows under one pixel: the mean of cells r0..r1-1, c0..c1-1, where cells are
** smaller than pixels; else the one cell. */
typedef uint32_t under_pixel(const void *grid, bool light, int r0, int r1, int c0, int c1);

static uint32_t heat_under(const void *grid, bool light, int r0, int r1, int c0, int c1) {
  const mn_heat *heat = grid;
  float sum = 0;
  for (int row = r0; row < r1; row++)
    for (int col = c0; col < c1; col++) sum += heat->values[(size_t)row * (size_t)heat->cols + (size_t)col];
  return map_color(heat, light, sum / (float)((r1 - r0) * (c1 - c0)));
}

static uint32_t image_under(const void *grid, bool light, int r0, int r1, int c0, int c1) {
  (void)light;
  const mn_image *image = grid;
  uint64_t sum[3] = { 0, 0, 0 }, n = (uint64_t)(r1 - r0) * (uint64_t)(c1 - c0);
  for (int row = r0; row < r1; row++)
    for (int col = c0; col < c1; col++)
      for (int i = 0; i < 3; i++)
        sum[i] += image->rgb[((size_t)row * (size_t)image->cols + (size_t)col) * 3 + (size_t)i];
  uint32_t color = 255;
  for (int i = 0; i < 3; i++) color |= (uint32_t)((sum[i] + n / 2) / n) << (24 - 8 * i);
  return color;
}

/* The cells of n under pixel i of `size`: the one below its middle, or all that it covers. */
static stretch cells(int n, int size, int i) {
  if (n > size) return (stretch){ (int)((long)i * n / size), (int)(((long)i + 1) * n / size) };
  int one = (int)(((long)2 * i + 1) * n / (2 * (long)size));
  return (stretch){ one, one + 1 };
}

/* Paint a grid of rows x cols cells over a box. */
static void cell_map(mn_raster *r, under_pixel *color_of, const void *grid, int rows, int cols,
                     const mn_shape *s) {
  const float x = s->x, y = s->y, w = s->w, h = s->h;
  const int far = 1 << 29;
  int x0 = clamp(floorf(x + 0.5f), -far, far), x1 = clamp(floorf(x + w + 0.5f), -far, far);
  int y0 = clamp(floorf(y + 0.5f), -far, far), y1 = clamp(floorf(y + h + 0.5f), -far, far);
  int left = x0 < 0 ? 0 : x0, right = x1 < r->width ? x1 : r->width, before = -1;
  for (int px = left; px < right; px++) r->columns[px] = cells(cols, x1 - x0, px - x0);
  for (int py = y0 < 0 ? 0 : y0; left < right && py < y1 && py < r->height; py++) {
    stretch row = cells(rows, y1 - y0, py - y0);
    if (row.to - row.from == 1 && row.from == before) {  /* a row of cells spans many rows of pixels */
      memcpy(pixel(r, left, py), pixel(r, left, py - 1), (size_t)(right - left) * 4);
      continue;
    }
    before = row.from;
    for (int px = left, end; px < right; px = end) {     /* pixels of the same cells are alike */
      stretch column = r->columns[px];
      for (end = px + 1; end < right && r->columns[end].from == column.from; end++) ;
      run(r, color_of(grid, r->light, row.from, row.to, column.from, column.to), px, end, py, 255);
    }
  }
}

static void paint(mn_raster *r, const mn_canvas *c, const mn_shape *s) {
  switch (s->kind) {
  case MN_RECT: rect(r, s->color, s->x, s->y, s->w, s->h); break;
  case MN_FRAME: frame(r, s->color, s->x, s->y, s->w, s->h, s->data); break;
  case MN_DISC: disc(r, s->color, s->x, s->y, s->w); break;
  case MN_LINE: line(r, s->color, s->x, s->y, s->w, s->h, s->data); break;
  case MN_TRIANGLE: triangle(r, s->color, s->x, s->y, s->w, s->h, s->data); break;
  case MN_TEXT: text(r, &s->color, s->x, s->y, s->h, mn_canvas_string(c, s->text)); break;
  case MN_HEAT: {
    const mn_heat heat = mn_canvas_heat_at(c, s->text);
    cell_map(r, heat_under, &heat, heat.rows, heat.cols, s);
    break;
  }
  case MN_IMAGE: {
    const mn_image image = mn_canvas_image_at(c, s->text);
    cell_map(r, image_under, &image, image.rows, image.cols, s);
    break;
  }
  }
}

/* Paint all shapes of `c`, in pixels, over `background` (0xRRGGBBAA) on a picture of width x height. */
int mn_raster_paint(mn_raster *r, const mn_canvas *c, uint32_t background, int width, int height) {
  if (width < 1 || height < 1 || width > 16384 || height > 16384)
    return mn_fail(r->ctx, "raster: size is %dx%d, expected 1x1 .. 16384x16384", width, height);
  size_t bytes = (size_t)width * (size_t)height * 4;
  if (bytes > r->room) {
    uint8_t *pixels = realloc(r->pixels, bytes);
    if (!pixels) return mn_fail(r->ctx, "raster: out of memory for %dx%d pixels", width, height);
    r->pixels = pixels, r->room = bytes;
  }
  stretch *columns = width > r->width ? realloc(r->columns, (size_t)width * sizeof *columns) : r->columns;
  if (!columns) return mn_fail(r->ctx, "raster: out of memory for %dx%d pixels", width, height);
  r->columns = columns;
  r->width = width, r->height = height, r->light = (background >> 16 & 255) > 127;
  for (int y = 0; y < height; y++) run(r, background | 255, 0, width, y, 255);
  const mn_shape *shapes = mn_canvas_shapes(c);
  for (int i = 0, n = mn_canvas_count(c); i < n; i++) paint(r, c, &shapes[i]);
  if (mn_font_starved(r->font) || mn_canvas_starved(c)) return mn_fail(r->ctx, "raster: out of memory for the picture");
  return 0;
}
