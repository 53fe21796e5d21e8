/* font.h -- glyphs as coverage, for raster.c alone. */
#ifndef MN_FONT_H
#define MN_FONT_H
#include "view.h"

typedef struct mn_font mn_font;
typedef struct mn_glyph {
  uint64_t key;                /* 0: an empty slot of the cache */
  int left, top, width, height;/* where the coverage lies, from the pen: x right, y up */
  float advance;               /* pixels to the next pen position, not rounded */
  uint8_t *coverage;           /* [height, width], 0..255 */
} mn_glyph;

mn_font *mn_font_new(mn_ctx *mn, const char *path);
void     mn_font_free(mn_font *f);

/* The glyph at a size in pixels, its pen moved right by phase quarters of a pixel; NULL: cannot be drawn. */
const mn_glyph *mn_font_glyph(mn_font *f, uint32_t codepoint, float size, int phase);

/* Has something found no memory?  Glyphs may be missing or differ from then on. */
bool mn_font_starved(const mn_font *f);

/* Decode one UTF-8 character and move on; U+FFFD where the bytes are not UTF-8; 0 at the end. */
uint32_t mn_utf8_next(const char **text);
#endif
