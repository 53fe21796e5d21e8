/* view.h -- what the player sees: 9 x 11 cells of 37 blocks, 5 things, 5 classes of 8 mobs as one-hots and whether it is lit; what
** it carries, how it is (the original's renderer.py). */
#ifndef MN_CRAFTAX_VIEW_H
#define MN_CRAFTAX_VIEW_H
#include "world.h"

enum { CLASSES = 5, MOB_AT = BLOCKS + THINGS, LIT_AT = MOB_AT + CLASSES * 8, CELL = LIT_AT + 1, SEEN = ROWS * COLS * CELL,
       CARRIED = SEEN + 16 + POTIONS + 9 + 4 + 2 * ARMOURS, NUMBERS = CARRIED + 8 };

MN_FN bool lit_at(const craftax *w, int row, int col) { return inside(row, col) && (w->at[w->floor].lit[row] >> col & 1); }

/* As the original writes it: one that is not there writes 0, and places before the view count from its end.  In the dark: nothing. */
MN_FN void show_mob(const craftax *w, float *obs, int row, int col, bool there, int kind) {
  int i = row - w->row + ROWS / 2, j = col - w->col + COLS / 2;
  there = there && i >= 0 && i < ROWS && j >= 0 && j < COLS;
  i += i < 0 ? ROWS : 0;
  j += j < 0 ? COLS : 0;
  if (i < 0 || i >= ROWS || j < 0 || j >= COLS) return;
  float *cell = obs + (i * COLS + j) * CELL;
  cell[MOB_AT + kind] = there ? cell[LIT_AT] : 0.0f;
}
MN_FN void show_mobs(const craftax *w, float *obs, const mob *of, int n, int kind) {
  for (int i = 0; i < n; i++) show_mob(w, obs, of[i].row, of[i].col, of[i].alive, 8 * kind + of[i].type);
}
MN_FN void show_shots(const craftax *w, float *obs, const shot *of, int kind) {
  for (int i = 0; i < SHOTS; i++) show_mob(w, obs, of[i].row, of[i].col, of[i].flies, 8 * kind + of[i].type);
}

MN_FN void show_cells(const craftax *w, float *obs) {
  const int top = w->row - ROWS / 2, left = w->col - COLS / 2;
  for (int i = 0; i < ROWS; i++) {
    const int row = top + i;
    if (row < 0 || row >= SIDE) continue;
    const uint64_t lit = w->at[w->floor].lit[row];
    const uint8_t *block = w->at[w->floor].map[row], *item = w->at[w->floor].item[row];
    for (int col = most(left, 0); col < least(left + COLS, SIDE); col++) {
      if (!(lit >> col & 1)) continue;
      float *cell = obs + (i * COLS + col - left) * CELL;
      cell[block[col]] = 1;
      cell[BLOCKS + item[col]] = 1;
      cell[LIT_AT] = 1;
    }
  }
}

MN_FN float root_of(int n) { return __builtin_sqrtf((float)n) * 0.1f; }
/* x / 10: XLA multiplies, but folds the constants of the first observation. */
MN_FN float tenth(const craftax *w, float x) { return w->steps == 0 ? x / 10 : x * 0.1f; }

/* What the player has and how it is. */
MN_FN void observe_player(const craftax *w, float light, float *out) {
  memset(out, 0, (NUMBERS - SEEN) * sizeof *out);
  for (int i = 0; i < HAS_BOOK; i++) *out++ = root_of(w->has[i]);
  *out++ = (float)w->has[HAS_BOOK] * 0.5f;
  *out++ = (float)w->pickaxe * 0.25f;
  *out++ = (float)w->sword * 0.25f;
  *out++ = w->sword_magic;
  *out++ = w->bow_magic;
  *out++ = w->bow;
  for (int i = 0; i < POTIONS; i++) *out++ = root_of(w->potion[i]);
  *out++ = tenth(w, w->health);
  *out++ = tenth(w, w->food);
  *out++ = tenth(w, w->drink);
  *out++ = tenth(w, w->energy);
  *out++ = tenth(w, w->mana);
  *out++ = tenth(w, w->xp);
  *out++ = tenth(w, w->dexterity);
  *out++ = tenth(w, w->strength);
  *out++ = tenth(w, w->intelligence);
  out[w->direction - LEFT] = 1;
  out += 4;
  for (int i = 0; i < ARMOURS; i++) *out++ = (float)w->armour[i] * 0.5f;
  for (int i = 0; i < ARMOURS; i++) *out++ = w->armour_magic[i];
  *out++ = light;
  *out++ = w->sleeping;
  *out++ = w->resting;
  *out++ = w->learned[0];
  *out++ = w->learned[1];
  *out++ = tenth(w, w->floor);
  *out++ = w->killed[w->floor] >= CLEARED;
  *out++ = boss_open(w);
}

MN_FN void observe(const craftax *w, float light, float *obs) {
  memset(obs, 0, SEEN * sizeof *obs);
  show_cells(w, obs);
  show_mobs(w, obs, w->at[w->floor].melee, MELEES, 0);
  show_mobs(w, obs, w->at[w->floor].passive, PASSIVES, 1);
  show_mobs(w, obs, w->at[w->floor].ranged, RANGEDS, 2);
  show_shots(w, obs, w->at[w->floor].theirs, 3);
  show_shots(w, obs, w->at[w->floor].mine, 4);
  observe_player(w, light, obs + SEEN);
}
#endif
