/* font.c -- glyphs of one font, drawn by FreeType once and kept.  Text sits on quarters of a pixel and
** advances without rounding, so that it looks alike at every size and its width scales with the size. */
#include "font.h"
#include "op.h"
#include <ft2build.h>
#include FT_FREETYPE_H
#include FT_MODULE_H
#include FT_OUTLINE_H
#include FT_SYSTEM_H
#include <stdlib.h>
#include <string.h>

enum { SLOTS = 4096, FULL = 3072, FULL_BYTES = 32 << 20 };      /* of the cache; it starts afresh when full */

struct mn_font {
  struct FT_MemoryRec_ memory;                 /* FreeType's: ours, to know of refusals */
  FT_Library library;
  FT_Face face;
  uint32_t size64;                             /* the size FreeType is set to, in 1/64 pixel */
  int n;
  size_t bytes;                                /* of all coverage kept */
  bool starved;                                /* something found no memory */
  mn_glyph slot[SLOTS];
};

static const char *places[] = {
  "/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf",      /* Debian, Ubuntu */
  "/usr/share/fonts/dejavu-sans-fonts/DejaVuSans.ttf",    /* Fedora */
  "/usr/share/fonts/dejavu/DejaVuSans.ttf",               /* older Fedora, Alpine */
  "/usr/share/fonts/TTF/DejaVuSans.ttf",                  /* Arch */
  "/usr/local/share/fonts/dejavu/DejaVuSans.ttf",         /* BSD */
};

/* FreeType does not report every failed allocation: without a module it continues unhinted, and where it cannot measure
** a script's letters, hints differ for as long as the face is open.  So its memory comes from here. */
static void *get(FT_Memory m, long bytes) {
  mn_font *f = m->user;
  void *p = malloc((size_t)bytes);
  f->starved |= !p;
  return p;
}

static void *resize(FT_Memory m, long had, long bytes, void *old) {
  mn_font *f = m->user;
  (void)had;
  void *p = realloc(old, (size_t)bytes);
  f->starved |= !p;
  return p;
}

static void release(FT_Memory m, void *p) { (void)m; free(p); }

/* Open `path`, or if it is empty $MNEME_FONT, or else the first font found. */
mn_font *mn_font_new(mn_ctx *mn, const char *path) {
  const char *asked = path && *path ? path : getenv("MNEME_FONT");
  mn_font *f = calloc(1, sizeof *f);
  if (!f) return mn_fail(mn, "font: no memory"), NULL;
  f->memory = (struct FT_MemoryRec_){ f, get, release, resize };
  bool found = false;
  if (!FT_New_Library(&f->memory, &f->library)) {
    FT_Add_Default_Modules(f->library);
    FT_Set_Default_Properties(f->library);
    if (asked && *asked) {
      found = !FT_New_Face(f->library, asked, 0, &f->face);
    } else {
      for (size_t i = 0; !found && i < sizeof places / sizeof *places; i++)
        found = !FT_New_Face(f->library, places[i], 0, &f->face);
    }
  }
  if (f->starved) mn_fail(mn, "font: no memory");
  else if (!f->library) mn_fail(mn, "font: FreeType does not start");
  else if (found && FT_IS_SCALABLE(f->face)) return f;
  else if (asked && *asked)
    mn_fail(mn, "font: %s is not a font that FreeType can scale (MNEME_FONT names another)", asked);
  else mn_fail(mn, "font: DejaVu Sans not found; install fonts-dejavu-core, or set MNEME_FONT=FILE.ttf");
  mn_font_free(f);
  return NULL;
}

static void forget(mn_font *f) {
  for (int i = 0; i < SLOTS; i++) free(f->slot[i].coverage);
  memset(f->slot, 0, sizeof f->slot);
  f->n = 0, f->bytes = 0;
}

void mn_font_free(mn_font *f) {
  if (!f) return;
  forget(f);
  if (f->face) FT_Done_Face(f->face);
  if (f->library) FT_Done_Library(f->library);
  free(f);
}

/* Let FreeType draw one glyph into g; false if it cannot. */
static bool draw(mn_font *f, mn_glyph *g, uint32_t codepoint, uint32_t size64, int phase) {
  if (f->size64 != size64) {
    if (FT_Set_Char_Size(f->face, 0, (FT_F26Dot6)size64, 72, 72)) return false;
    f->size64 = size64;
  }
  if (FT_Load_Char(f->face, codepoint, FT_LOAD_TARGET_LIGHT | FT_LOAD_NO_BITMAP)) return false;
  FT_GlyphSlot slot = f->face->glyph;
  g->advance = (float)slot->linearHoriAdvance / 65536.0f;
  FT_Outline_Translate(&slot->outline, phase * 16, 0);
  if (FT_Render_Glyph(slot, FT_RENDER_MODE_NORMAL)) return false;
  g->left = slot->bitmap_left, g->top = slot->bitmap_top;
  g->width = (int)slot->bitmap.width, g->height = (int)slot->bitmap.rows;
  size_t w = (size_t)g->width, h = (size_t)g->height;
  if (!(g->coverage = malloc(w * h + 1))) return f->starved = true, false;
  for (size_t y = 0; y < h; y++)
    memcpy(g->coverage + y * w, slot->bitmap.buffer + (ptrdiff_t)y * slot->bitmap.pitch, w);
  return true;
}

const mn_glyph *mn_font_glyph(mn_font *f, uint32_t codepoint, float size, int phase) {
  uint32_t size64 = (uint32_t)(size * 4 + 0.5f) * 16;      /* quarters of a pixel bound the cache */
  if (size64 < 64 || size64 > 512 * 64) return NULL;
  uint64_t key = (uint64_t)codepoint << 32 | (uint64_t)size64 << 2 | (uint64_t)phase;
  uint64_t at = key * 0x9E3779B97F4A7C15u >> 52;           /* 12 bits: SLOTS */
  while (f->slot[at].key && f->slot[at].key != key) at = (at + 1) % SLOTS;
  if (f->slot[at].key) return &f->slot[at];
  if (f->n >= FULL || f->bytes >= FULL_BYTES) {
    forget(f);
    at = key * 0x9E3779B97F4A7C15u >> 52;
  }
  mn_glyph *g = &f->slot[at];
  if (!draw(f, g, codepoint, size64, phase)) return NULL;
  g->key = key;
  f->n++, f->bytes += (size_t)g->width * (size_t)g->height;
  return g;
}

bool mn_font_starved(const mn_font *f) { return f->starved; }

uint32_t mn_utf8_next(const char **text) {
  const unsigned char *s = (const unsigned char *)*text;
  if (!*s) return 0;
  int more = *s < 0x80 ? 0 : *s >> 5 == 6 ? 1 : *s >> 4 == 14 ? 2 : *s >> 3 == 30 ? 3 : -1;
  uint32_t code = more <= 0 ? *s : *s & (0x3Fu >> more);
  for (int i = 1; i <= more; i++) {
    if (s[i] >> 6 != 2) more = -1;                         /* also the end of the string */
    else code = code << 6 | (s[i] & 0x3F);
  }
  *text += more < 0 ? 1 : more + 1;
  return more < 0 || code > 0x10FFFF ? 0xFFFD : code;
}
