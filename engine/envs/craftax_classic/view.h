/* view.h -- what the player sees: 7 x 9 cells of 17 blocks and 4 kinds of mobs as one-hots, what it carries, how it is. */
#ifndef MN_CRAFTAX_CLASSIC_VIEW_H
#define MN_CRAFTAX_CLASSIC_VIEW_H
#include "world.h"

enum { SEEN = ROWS * COLS * CELL, NUMBERS = SEEN + ITEMS + 4 + 4 + 2 };

/* As the original writes it: one that is not there writes 0, and places before the view count from its end. */
MN_FN void show_mob(const craftax_classic *w, float *obs, int row, int col, bool there, int kind) {
  int i = row - w->row + ROWS / 2, j = col - w->col + COLS / 2;
  there = there && i >= 0 && i < ROWS && j >= 0 && j < COLS;
  i += i < 0 ? ROWS : 0;
  j += j < 0 ? COLS : 0;
  if (i >= 0 && i < ROWS && j >= 0 && j < COLS) obs[(i * COLS + j) * CELL + BLOCKS + kind] = there ? 1.0f : 0.0f;
}

MN_FN void observe(const craftax_classic *w, float light, float *obs) {
  /* n / 10 as the original has it: n times 0.1, in float16. */
  const float tenth[10] = { 0, 0x1.998p-4f, 0x1.998p-3f, 0x1.33p-2f, 0x1.998p-2f, 0.5f, 0x1.33p-1f, 0x1.664p-1f, 0x1.998p-1f, 0x1.cccp-1f };
  const int top = w->row - ROWS / 2, left = w->col - COLS / 2;
  memset(obs, 0, NUMBERS * sizeof *obs);
  for (int i = 0; i < ROWS; i++)
    for (int j = 0; j < COLS; j++) obs[(i * COLS + j) * CELL + seen_at(w, top + i, left + j)] = 1;
  for (int i = 0; i < ZOMBIES; i++) show_mob(w, obs, w->zombie[i].row, w->zombie[i].col, w->zombie[i].alive, 0);
  for (int i = 0; i < COWS; i++) show_mob(w, obs, w->cow[i].row, w->cow[i].col, w->cow[i].alive, 1);
  for (int i = 0; i < SKELETONS; i++) show_mob(w, obs, w->skeleton[i].row, w->skeleton[i].col, w->skeleton[i].alive, 2);
  for (int i = 0; i < ARROWS; i++) show_mob(w, obs, w->shot[i].row, w->shot[i].col, w->shot[i].flies, 3);
  float *out = obs + SEEN;
  for (int i = 0; i < ITEMS; i++) *out++ = tenth[w->item[i]];
  *out++ = tenth[w->health];
  *out++ = tenth[w->food];
  *out++ = tenth[w->drink];
  *out++ = tenth[w->energy];
  out[w->direction - LEFT] = 1;
  out[4] = light;
  out[5] = w->sleeping;
}
#endif
