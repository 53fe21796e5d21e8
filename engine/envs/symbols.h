/* symbols.h -- tasks that deal in symbols which mean nothing: the copy family.  A symbol is seen as its
** code, and named by the action of the same number. */
#ifndef MN_SYMBOLS_H
#define MN_SYMBOLS_H
#include "quiz.h"

enum { SYMBOLS_MOST = 62 };      /* as many as have a letter or digit, and fewer than a word has bits */

/* Which of the symbols in a set, each with the same chance; the set is not empty. */
MN_FN int symbols_draw(uint64_t set, uint32_t bits) {
  int skip = (int)((uint64_t)bits * (uint64_t)__builtin_popcountll(set) >> 32);
  while (skip-- > 0) set &= set - 1;
  return __builtin_ctzll(set);
}

MN_FN uint64_t symbols_first(int n) { return ((uint64_t)1 << n) - 1; }

/* ---- the picture ---- */

static inline void symbols_show(mn_canvas *c, float x, float y, int symbol) {
  static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
  static const uint32_t papers[] = { 0x56B4E9FF, 0xE69F00FF, 0x009E73FF, 0xF0E442FF, 0xCC79A7FF,
                                     0xD55E00FF, 0x8FA3BFFF };
  const char text[2] = { letters[symbol], 0 };
  quiz_tile(c, x, y, papers[symbol % 7], 0x14181FFF, text);
}
#endif
