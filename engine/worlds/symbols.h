/* symbols.h -- environments of meaningless symbols: the copy family.  A symbol is observed as its
** code, and named by the action of the same number. */
#ifndef MN_SYMBOLS_H
#define MN_SYMBOLS_H
#include "qa_episode.h"

enum { SYMBOLS_MOST = 62 };      /* as many as have a letter or digit, and fewer than a word has bits */
#define SYMBOLS_NAMES "A B C D E F G H I J K L M N O P Q R S T U V W X Y Z a b c d e f g h i j k l m " \
  "n o p q r s t u v w x y z 0 1 2 3 4 5 6 7 8 9"

/* How many bits are set: in pairs, in fours, in bytes, and then all bytes into the top one. */
MN_FN int symbols_count(uint64_t set) {
  set -= set >> 1 & 0x5555555555555555u;
  set = (set & 0x3333333333333333u) + (set >> 2 & 0x3333333333333333u);
  set = (set + (set >> 4)) & 0x0f0f0f0f0f0f0f0fu;
  return (int)(set * 0x0101010101010101u >> 56);
}

/* One of the symbols in a set, each with the same chance; the set is not empty. */
MN_FN int symbols_draw(uint64_t set, uint32_t bits) {
  int skip = mn_below(bits, symbols_count(set));
  while (skip-- > 0) set &= set - 1;
  return symbols_count((set & (~set + 1)) - 1);
}

MN_FN uint64_t symbols_first(int n) { return ((uint64_t)1 << n) - 1; }

/* ---- the picture ---- */

static inline void symbols_show(mn_canvas *c, float x, float y, int symbol) {
  static const uint32_t papers[] = { 0x56B4E9FF, 0xE69F00FF, 0x009E73FF, 0xF0E442FF, 0xCC79A7FF,
                                     0xD55E00FF, 0x8FA3BFFF };
  const char text[2] = { SYMBOLS_NAMES[2 * symbol], 0 };
  quiz_tile(c, x, y, papers[symbol % 7], 0x14181FFF, text);
}
#endif
