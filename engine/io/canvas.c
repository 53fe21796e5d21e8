/* canvas.c -- a growing list of shapes, with the strings and values that they refer to.  Everything is
** copied in, so a canvas outlives what drew it.  Clearing keeps the memory: a window that
** draws sixty times a second allocates nothing after its first frames. */
#include "canvas.h"
#include "op.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct heat_slot { int rows, cols, map; float lo, hi; size_t at; } heat_slot;   /* at: where its values begin */
typedef struct image_slot { int rows, cols; size_t at; } image_slot;   /* at: where its bytes begin */

struct mn_canvas {
  mn_ctx *ctx;
  mn_shape *shapes;  size_t n_shapes, room_shapes;
  char *chars;       size_t n_chars, room_chars;
  heat_slot *heats;  size_t n_heats, room_heats;
  float *values;     size_t n_values, room_values;
  image_slot *images; size_t n_images, room_images;
  uint8_t *bytes;    size_t n_bytes, room_bytes;
  bool starved;      /* something is left out for want of memory */
};

/* Make room for `more` elements behind the n that `*list` holds; 0, or -1 with the error set. */
static int grow(mn_canvas *c, void *list, size_t size, size_t n, size_t *room, size_t more) {
  if (n + more <= *room) return 0;
  size_t want = *room ? *room : 64;
  while (want < n + more) want *= 2;
  void *old, *new_list;
  memcpy(&old, list, sizeof old);
  if (want > (size_t)1 << 28 || !(new_list = realloc(old, want * size)))
    return c->starved = true, mn_fail(c->ctx, "canvas: out of memory for %zu elements", want);
  memcpy(list, &new_list, sizeof new_list);
  *room = want;
  return 0;
}

static int add(mn_canvas *c, const mn_shape *shape) {
  if (!isfinite(shape->x) || !isfinite(shape->y) || !isfinite(shape->w) || !isfinite(shape->h))
    return mn_fail(c->ctx, "canvas: a shape at %g, %g, %g, %g is not finite", (double)shape->x,
                   (double)shape->y, (double)shape->w, (double)shape->h);
  if (grow(c, &c->shapes, sizeof *c->shapes, c->n_shapes, &c->room_shapes, 1)) return -1;
  c->shapes[c->n_shapes++] = *shape;
  return 0;
}

/* An empty canvas; errors go to `mn`, which must outlive it. */
mn_canvas *mn_canvas_new(mn_ctx *mn) {
  mn_canvas *c = calloc(1, sizeof *c);
  if (!c) { mn_fail(mn, "canvas: no memory"); return NULL; }
  c->ctx = mn;
  return c;
}

void mn_canvas_free(mn_canvas *c) {
  if (!c) return;
  free(c->shapes);
  free(c->chars);
  free(c->heats);
  free(c->values);
  free(c->images);
  free(c->bytes);
  free(c);
}

void mn_canvas_clear(mn_canvas *c) {
  c->n_shapes = c->n_chars = c->n_heats = c->n_values = c->n_images = c->n_bytes = 0;
  c->starved = false;
}

/* Append a rectangle, frame, disc, line or triangle: see canvas.h for what the numbers mean. */
int mn_canvas_add(mn_canvas *c, int kind, uint32_t color, float x, float y, float w, float h) {
  if (kind < MN_RECT || kind > MN_TRIANGLE)
    return mn_fail(c->ctx, "canvas: kind is %d, expected 0..%d", kind, MN_TRIANGLE);
  return add(c, &(mn_shape){ kind, color, x, y, w, h, -1, 0 });
}

/* Set the thickness (line, frame; in units) or turn (triangle; radians) of the shape added last. */
int mn_canvas_data(mn_canvas *c, float data) {
  if (!c->n_shapes) return mn_fail(c->ctx, "canvas: data before the first shape");
  if (!isfinite(data)) return mn_fail(c->ctx, "canvas: data is not finite");
  c->shapes[c->n_shapes - 1].data = data;
  return 0;
}

/* Append text: x, y is the left end of the baseline, `size` the font's size. */
int mn_canvas_text(mn_canvas *c, uint32_t color, float x, float y, float size, const char *utf8) {
  if (!utf8) return mn_fail(c->ctx, "canvas: no text");
  size_t length = strlen(utf8) + 1, at = c->n_chars;
  if (grow(c, &c->chars, 1, c->n_chars, &c->room_chars, length)) return -1;
  if (add(c, &(mn_shape){ MN_TEXT, color, x, y, 0, size, (int32_t)at, 0 })) return -1;
  memcpy(c->chars + at, utf8, length);
  c->n_chars += length;
  return 0;
}

/* Colour maps, as points to interpolate between, for a dark and for a light page.  Nothing is the colour of the cards that
** heat maps lie on (lua/mneme/base/canvas.lua), and what there is stands out: sequential in one hue, on a light page more is
** darker; diverging in blue and orange.  Lightness is monotone from nothing on, for every kind of colour vision. */
enum { POINTS = 9 };
static const uint32_t sequential[2][POINTS] = {
  { 0x181E28, 0x1A3247, 0x1C4A6E, 0x216496, 0x2E80BD, 0x56A3DC, 0x86C3EC, 0xB8DDF6, 0xEAF6FF },
  { 0xFFFFFF, 0xDCEBF6, 0xB4D5EC, 0x86BBDF, 0x559CCB, 0x2A7CB2, 0x0F5D92, 0x05416C, 0x032846 } };
static const uint32_t diverging[2][POINTS] = {
  { 0xC9E6FF, 0x6DB8F2, 0x2E7FC4, 0x1E4A75, 0x181E28, 0x7A3B12, 0xC9691C, 0xF5A245, 0xFFE1B0 },
  { 0x032846, 0x0F5D92, 0x3D8BC0, 0xA5CDE8, 0xFFFFFF, 0xF7CB97, 0xDD8434, 0xA95208, 0x552400 } };

/* The colour (0xRRGGBBAA) of a share, 0 .. 1, of a map's range: the window, figures and pages of episodes all use it.
** `light`: of the page; not a number: grey. */
uint32_t mn_map_color(int map, bool light, float share) {
  if (isnan(share)) return 0x808080FF;
  const uint32_t *points = map == MN_MAP_DIVERGING ? diverging[light] : sequential[light];
  int last = POINTS - 1;
  float at = fminf(fmaxf(share, 0), 1) * (float)last;
  int i = at >= (float)last ? last - 1 : (int)at;
  float part = at - (float)i;
  uint32_t color = 255;
  for (int shift = 0; shift < 24; shift += 8) {
    float a = (float)(points[i] >> shift & 255), b = (float)(points[i + 1] >> shift & 255);
    color |= (uint32_t)(a + (b - a) * part + 0.5f) << (shift + 8);
  }
  return color;
}

/* Append a heat map of values[rows, cols] (copied; row 0 on top): `lo` and `hi` are the ends of the map. */
int mn_canvas_heat(mn_canvas *c, float x, float y, float w, float h, int rows, int cols,
                   const float *values, float lo, float hi, int map) {
  if (rows < 1 || cols < 1 || (double)rows * cols > 1 << 24)
    return mn_fail(c->ctx, "canvas: a heat map of %d x %d, expected 1 x 1 .. 16M values", rows, cols);
  if (map != MN_MAP_SEQUENTIAL && map != MN_MAP_DIVERGING)
    return mn_fail(c->ctx, "canvas: map is %d, expected 0 (sequential) or 1 (diverging)", map);
  if (!isfinite(lo) || !isfinite(hi))
    return mn_fail(c->ctx, "canvas: the ends of a heat map are not finite");
  size_t n = (size_t)rows * (size_t)cols;
  if (grow(c, &c->values, sizeof(float), c->n_values, &c->room_values, n) ||
      grow(c, &c->heats, sizeof *c->heats, c->n_heats, &c->room_heats, 1) ||
      add(c, &(mn_shape){ MN_HEAT, 0xFFFFFFFF, x, y, w, h, (int32_t)c->n_heats, 0 })) return -1;
  memcpy(c->values + c->n_values, values, n * sizeof(float));
  c->heats[c->n_heats++] = (heat_slot){ rows, cols, map, lo, hi, c->n_values };
  c->n_values += n;
  return 0;
}

/* Append a picture, rgb[rows, cols, 3] (copied; row 0 on top), stretched over the box x, y, w, h. */
int mn_canvas_image(mn_canvas *c, float x, float y, float w, float h, int rows, int cols,
                    const uint8_t *rgb) {
  if (rows < 1 || cols < 1 || (double)rows * cols > 1 << 24)
    return mn_fail(c->ctx, "canvas: a picture of %d x %d, expected 1 x 1 .. 16M pixels", rows, cols);
  size_t n = (size_t)rows * (size_t)cols * 3;
  if (grow(c, &c->bytes, 1, c->n_bytes, &c->room_bytes, n) ||
      grow(c, &c->images, sizeof *c->images, c->n_images, &c->room_images, 1) ||
      add(c, &(mn_shape){ MN_IMAGE, 0xFFFFFFFF, x, y, w, h, (int32_t)c->n_images, 0 })) return -1;
  memcpy(c->bytes + c->n_bytes, rgb, n);
  c->images[c->n_images++] = (image_slot){ rows, cols, c->n_bytes };
  c->n_bytes += n;
  return 0;
}

/* The box a shape covers; a text's width is a guess, because fonts are not known here. */
static void bounds_of(const mn_canvas *c, const mn_shape *s, float box[4]) {
  float x0 = s->x, y0 = s->y, x1 = s->x + s->w, y1 = s->y + s->h;
  if (s->kind == MN_DISC) {
    x0 = s->x - s->w, y0 = s->y - s->w, x1 = s->x + s->w, y1 = s->y + s->w;
  } else if (s->kind == MN_LINE) {
    x0 = fminf(s->x, s->w), y0 = fminf(s->y, s->h), x1 = fmaxf(s->x, s->w), y1 = fmaxf(s->y, s->h);
  } else if (s->kind == MN_TEXT) {
    x1 = s->x + 0.6f * s->h * (float)strlen(mn_canvas_string(c, s->text));
    y0 = s->y - s->h, y1 = s->y + 0.25f * s->h;
  }
  box[0] = fminf(box[0], x0), box[1] = fminf(box[1], y0);
  box[2] = fmaxf(box[2], x1), box[3] = fmaxf(box[3], y1);
}

/* The box that all shapes together cover: x0, y0, x1, y1; zeros if there is none. */
void mn_canvas_bounds(const mn_canvas *c, float *box) {
  box[0] = box[1] = INFINITY, box[2] = box[3] = -INFINITY;
  for (size_t i = 0; i < c->n_shapes; i++) bounds_of(c, &c->shapes[i], box);
  if (!c->n_shapes) box[0] = box[1] = box[2] = box[3] = 0;
}

/* A shape scaled about the origin, then moved. */
static mn_shape placed(mn_shape s, float scale, float dx, float dy) {
  s.x = s.x * scale + dx, s.y = s.y * scale + dy;
  if (s.kind == MN_LINE) s.w = s.w * scale + dx, s.h = s.h * scale + dy;
  else s.w *= scale, s.h *= scale;
  if (s.kind == MN_LINE || s.kind == MN_FRAME) s.data *= scale;
  return s;
}

/* Append all of `from`, scaled by one factor and centred so that its bounds fit the box x, y, w, h; without texts that nobody could read. */
int mn_canvas_append(mn_canvas *c, const mn_canvas *from, float x, float y, float w, float h, float least) {
  if (c == from) return mn_fail(c->ctx, "canvas: appending a canvas to itself");
  if (!(w > 0 && h > 0))
    return mn_fail(c->ctx, "canvas: appending into a box of %g x %g", (double)w, (double)h);
  if (from->starved) return c->starved = true, mn_fail(c->ctx, "canvas: out of memory for the drawing");
  if (!from->n_shapes) return 0;
  float box[4];
  mn_canvas_bounds(from, box);
  float bw = fmaxf(box[2] - box[0], 1e-6f), bh = fmaxf(box[3] - box[1], 1e-6f);
  float scale = fminf(w / bw, h / bh);
  float dx = x + (w - bw * scale) / 2 - box[0] * scale, dy = y + (h - bh * scale) / 2 - box[1] * scale;
  for (size_t i = 0; i < from->n_shapes; i++) {
    mn_shape s = placed(from->shapes[i], scale, dx, dy);
    int bad;
    if (s.kind == MN_TEXT) {
      bad = s.h < least ? 0 : mn_canvas_text(c, s.color, s.x, s.y, s.h, mn_canvas_string(from, s.text));
    } else if (s.kind == MN_HEAT) {
      const mn_heat heat = mn_canvas_heat_at(from, s.text);
      bad = mn_canvas_heat(c, s.x, s.y, s.w, s.h, heat.rows, heat.cols, heat.values, heat.lo, heat.hi, heat.map);
    } else if (s.kind == MN_IMAGE) {
      const mn_image image = mn_canvas_image_at(from, s.text);
      bad = mn_canvas_image(c, s.x, s.y, s.w, s.h, image.rows, image.cols, image.rgb);
    } else {
      bad = add(c, &s);
    }
    if (bad) return -1;
  }
  return 0;
}

int mn_canvas_count(const mn_canvas *c) { return (int)c->n_shapes; }
bool mn_canvas_starved(const mn_canvas *c) { return c->starved; }

/* All shapes, in the order drawn; borrowed until the canvas changes. */
const mn_shape *mn_canvas_shapes(const mn_canvas *c) { return c->shapes; }

/* The string of a text shape; "" where there is none. */
const char *mn_canvas_string(const mn_canvas *c, int text) {
  return text >= 0 && (size_t)text < c->n_chars ? c->chars + text : "";
}

mn_heat mn_canvas_heat_at(const mn_canvas *c, int text) {
  if (text < 0 || (size_t)text >= c->n_heats) return (mn_heat){ 0 };
  const heat_slot *slot = &c->heats[text];
  return (mn_heat){ slot->rows, slot->cols, slot->map, slot->lo, slot->hi, c->values + slot->at };
}

mn_image mn_canvas_image_at(const mn_canvas *c, int text) {
  if (text < 0 || (size_t)text >= c->n_images) return (mn_image){ 0, 0, NULL };
  const image_slot *slot = &c->images[text];
  return (mn_image){ slot->rows, slot->cols, c->bytes + slot->at };
}

/* The same for callers that take no structs. */
const uint8_t *mn_canvas_pixels(const mn_canvas *c, int text, int *rows, int *cols) {
  const mn_image image = mn_canvas_image_at(c, text);
  *rows = image.rows;
  *cols = image.cols;
  return image.rgb;
}
