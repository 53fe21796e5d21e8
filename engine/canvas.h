/* canvas.h -- a list of shapes to draw.  Environments and scenes append to it; scenes/view/raster.c
** paints it into pixels, and scenes/view/window.c shows those pixels with SDL2.
** Units: an environment draws in its own (one cell = 1); a scene in pixels of its page.  x grows right,
** y down.  Colours are 0xRRGGBBAA.
**
** An environment's draw function calls mn_canvas_add, _text, _heat, _image and, right after a shape that needs
** it, mn_canvas_data.  It need not check what they return: if memory runs out, the canvas leaves shapes out. */
#ifndef MN_CANVAS_H
#define MN_CANVAS_H
#include "mneme.h"

enum {                           /* mn_shape.kind, and what x, y, w, h mean */
  MN_RECT,                       /* filled: corner x, y and size w, h */
  MN_FRAME,                      /* outline of it, drawn inside; data = thickness in units (0: one pixel) */
  MN_DISC,                       /* filled circle: centre x, y, radius w */
  MN_LINE,                       /* from x, y to w, h, round ends; data = thickness in units (0: one pixel) */
  MN_TRIANGLE,                   /* points right in the box x, y, w, h, turned by data radians about its centre */
  MN_TEXT,                       /* baseline-left corner x, y; font size h; string `text` */
  MN_HEAT,                       /* values in the box x, y, w, h: see mn_canvas_heat; `text` = index of the heat */
  MN_IMAGE                       /* an image in the box x, y, w, h; `text` = its index: see mn_canvas_image_at */
};
enum { MN_MAP_SEQUENTIAL, MN_MAP_DIVERGING };      /* dark to light; blue, dark, orange (colour-blind-safe) */

/* row 0 on top; lo and hi are the values at the ends of the colour map; a NaN is painted grey */
typedef struct mn_heat { int rows, cols, map; float lo, hi; const float *values; } mn_heat;
mn_heat mn_canvas_heat_at(const mn_canvas *c, int text);           /* values borrowed; no such heat: values NULL */

typedef struct mn_image { int rows, cols; const uint8_t *rgb; } mn_image;    /* rgb[rows, cols, 3], row 0 on top */
mn_image mn_canvas_image_at(const mn_canvas *c, int text);         /* rgb borrowed; no such image: rgb NULL */
bool mn_canvas_starved(const mn_canvas *c);                        /* was a shape left out because memory ran out? */

#endif
