/* view_codes.h -- the same observation without its zeros: which of the first SEEN of the 8,268 numbers are 1, three to a lit cell (block,
** thing, light) and one to each mob, -1 where there is none; then the numbers of what the player has and how it is. */
#ifndef MN_CRAFTAX_VIEW_CODES_H
#define MN_CRAFTAX_VIEW_CODES_H
#include "view.h"

enum { SLOTS = MELEES + PASSIVES + RANGEDS + 2 * SHOTS, MOB_CODES = 3 * ROWS * COLS, CODES = MOB_CODES + SLOTS, CODED = CODES + NUMBERS - SEEN };

typedef struct seen_mobs { int n, at[SLOTS]; } seen_mobs;

/* As show_mob: one that is not there takes its kind away from the place where it was. */
MN_FN void code_mob(const craftax *w, seen_mobs *seen, int row, int col, bool there, int kind) {
  int i = row - w->row + ROWS / 2, j = col - w->col + COLS / 2;
  there = there && i >= 0 && i < ROWS && j >= 0 && j < COLS && lit_at(w, row, col);
  i += i < 0 ? ROWS : 0;
  j += j < 0 ? COLS : 0;
  if (i < 0 || i >= ROWS || j < 0 || j >= COLS) return;
  const int at = (i * COLS + j) * CELL + MOB_AT + kind;
  int k = 0;
  while (k < seen->n && seen->at[k] != at) k++;
  if (there && k == seen->n) seen->at[seen->n++] = at;
  if (!there && k < seen->n) seen->at[k] = seen->at[--seen->n];
}
MN_FN void code_mobs(const craftax *w, seen_mobs *seen, const mob *of, int n, int kind) {
  for (int i = 0; i < n; i++) code_mob(w, seen, of[i].row, of[i].col, of[i].alive, 8 * kind + of[i].type);
}
MN_FN void code_shots(const craftax *w, seen_mobs *seen, const shot *of, int kind) {
  for (int i = 0; i < SHOTS; i++) code_mob(w, seen, of[i].row, of[i].col, of[i].flies, 8 * kind + of[i].type);
}

MN_FN void observe_codes(const craftax *w, float light, float *obs) {
  const level *l = &w->at[w->floor];
  for (int i = 0; i < ROWS * COLS; i++) {
    const int row = w->row - ROWS / 2 + i / COLS, col = w->col - COLS / 2 + i % COLS;
    const bool lit = lit_at(w, row, col);
    obs[3 * i] = (float)(lit ? i * CELL + l->map[row][col] : -1);
    obs[3 * i + 1] = (float)(lit ? i * CELL + BLOCKS + l->item[row][col] : -1);
    obs[3 * i + 2] = (float)(lit ? i * CELL + LIT_AT : -1);
  }
  seen_mobs seen = { 0 };
  code_mobs(w, &seen, l->melee, MELEES, 0);
  code_mobs(w, &seen, l->passive, PASSIVES, 1);
  code_mobs(w, &seen, l->ranged, RANGEDS, 2);
  code_shots(w, &seen, l->theirs, 3);
  code_shots(w, &seen, l->mine, 4);
  for (int i = 0; i < SLOTS; i++) obs[MOB_CODES + i] = (float)(i < seen.n ? seen.at[i] : -1);
  observe_player(w, light, obs + CODES);
}

/* All 8,268 numbers of an observation of codes. */
static void decode(const float *codes, float *obs) {
  memset(obs, 0, SEEN * sizeof *obs);
  for (int i = 0; i < CODES; i++)
    if (codes[i] >= 0 && codes[i] < SEEN) obs[(int)codes[i]] = 1;
  memcpy(obs + SEEN, codes + CODES, (NUMBERS - SEEN) * sizeof *obs);
}
#endif
