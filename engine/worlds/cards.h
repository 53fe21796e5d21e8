/* cards.h -- decks of 52 cards, of which a game uses the colour, the suit or the rank only.  A shuffled deck
** is stored as how many cards of each kind are left.  The next card is drawn from those counts, which
** gives every order the same probability as shuffling. */
#ifndef MN_CARDS_H
#define MN_CARDS_H
#include "qa_episode.h"

enum { CARDS_COLORS = 2, CARDS_SUITS = 4, CARDS_RANKS = 13, CARDS_DECK = 52, CARDS_MOST_DECKS = 16 };
#define CARDS_SUIT_NAMES "spades diamonds clubs hearts"    /* POPGym's order */

/* Full decks of cards of `kinds` kinds. */
MN_FN void cards_fill(uint16_t *left, int kinds, int decks) {
  for (int k = 0; k < kinds; k++) left[k] = (uint16_t)(CARDS_DECK / kinds * decks);
}

/* Draw one of n cards; it leaves the deck.  Its kind. */
MN_FN int cards_draw(uint16_t *left, int kinds, int n, uint32_t bits) {
  const int at = mn_below(bits, n);
  int kind = 0, below = 0;
  for (int k = 0; k + 1 < kinds; k++) {
    below += left[k];
    kind += at >= below;
  }
  left[kind]--;
  return kind;
}

/* Are n cards left, and of no kind more than full decks have? */
MN_FN bool cards_valid(const uint16_t *left, int kinds, int decks, int n) {
  bool most = true;
  for (int k = 0; k < kinds; k++) {
    most &= left[k] <= CARDS_DECK / kinds * decks;
    n -= left[k];
  }
  return most && n == 0;
}

/* Suits, four to a byte; bytes come zeroed and a place is written once. */
MN_FN void cards_put(uint8_t *row, int i, int suit) { row[i / 4] |= (uint8_t)(suit << i % 4 * 2); }
MN_FN int cards_get(const uint8_t *row, int i) { return row[i / 4] >> i % 4 * 2 & 3; }
MN_FN void cards_change(uint8_t *row, int i, int suit) { row[i / 4] = (uint8_t)((row[i / 4] & ~(3 << i % 4 * 2)) | suit << i % 4 * 2); }

/* A card that was dealt changes places with one of another kind of the deck; returns false if none is left. */
MN_FN bool cards_exchange(uint16_t *left, int from, int to) {
  if (left[to] == 0) return false;
  left[to]--;
  left[from]++;
  return true;
}

/* ---- the picture ---- */

static inline void cards_show(mn_canvas *c, float x, float y, int suit) {
  static const char *const signs[] = { "\xE2\x99\xA0", "\xE2\x99\xA6", "\xE2\x99\xA3", "\xE2\x99\xA5" };
  quiz_tile(c, x, y, 0xE8EDF4FF, suit & 1 ? 0xC8321EFF : 0x14181FFF, signs[suit]);
}
#endif
