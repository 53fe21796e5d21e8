/* mobs.h -- zombies, cows, skeletons and arrows move, strike and appear (the original's game_logic.py, in its order). */
#ifndef MN_CRAFTAX_CLASSIC_MOBS_H
#define MN_CRAFTAX_CLASSIC_MOBS_H
#include "rules.h"

enum { DESPAWN = 14 };           /* steps from the player */

/* What chance gives a mob in one step: a direction, which of two equal axes, and a number in 0 .. 1. */
typedef struct whim { int way; bool by_row; float u; } whim;

MN_FN whim whim_of(dice *d, int ways) {
  whim m;
  if (d->jax) {
    m.way = mn_jax_below(dice_split(d), ways);
    m.by_row = mn_jax_uniform(dice_split(d), 1, 0) >= 0.5f;
    m.u = mn_jax_uniform(dice_split(d), 1, 0);
  } else {
    const uint32_t word = dice_next_word(d);
    m.way = (int)(word & 3);
    m.by_row = word >> 2 & 1;
    m.u = (float)(word >> 9) * 0x1p-23f;
  }
  return m;
}

/* One step toward the player along the longer way. */
MN_FN void toward(const craftax_classic *w, const mob *m, bool by_row, int *down, int *right) {
  const int rows = w->row - m->row, cols = w->col - m->col, tall = absolute(rows), wide = absolute(cols);
  const bool vertical = tall == wide ? by_row : tall > wide;
  *down = vertical ? sign(rows) : 0;
  *right = vertical ? 0 : sign(cols);
}

/* It goes there if it can, and is gone if the player is far. */
MN_FN void move_mob(craftax_classic *w, mob *m, int row, int col) {
  const bool goes = walkable(w, row, col);
  const bool stays = distance(w, m->row, m->col) < DESPAWN;
  const int to_row = goes ? row : m->row, to_col = goes ? col : m->col;
  vacate(w, m->row, m->col, m->alive);
  m->row = (int16_t)to_row;
  m->col = (int16_t)to_col;
  m->alive &= stays;
  occupy(w, to_row, to_col, m->alive);
}

MN_FN void move_zombie(craftax_classic *w, mob *m, whim chance) {
  const int way = chance.way + LEFT, far = distance(w, m->row, m->col);
  const bool hunts = (far < 10) & (chance.u < 0.75f);
  int down, right;
  toward(w, m, chance.by_row, &down, &right);
  down = hunts ? down : down_of(way);
  right = hunts ? right : right_of(way);
  const bool strikes = far == 1 && m->cooldown <= 0 && m->alive;
  if (strikes) {
    w->health = (int8_t)(w->health - (w->sleeping ? 7 : 2));
    achieve(w, WAKE_UP, w->sleeping);
    w->sleeping = 0;
    down = right = 0;
  }
  m->cooldown = (int16_t)(strikes ? 5 : m->cooldown - 1);
  move_mob(w, m, m->row + down, m->col + right);
}

MN_FN void shoot(craftax_classic *w, const mob *m, int down, int right) {
  for (int i = 0; i < ARROWS; i++) {
    arrow *a = w->shot + i;
    if (a->flies) continue;
    a->row = m->row;
    a->col = m->col;
    a->down = (int8_t)down;
    a->right = (int8_t)right;
    a->flies = 1;
    return;
  }
}

MN_FN void move_skeleton(craftax_classic *w, mob *m, whim chance) {
  const int way = chance.way + LEFT, far = distance(w, m->row, m->col);
  int down = down_of(way), right = right_of(way), ahead, aside;
  toward(w, m, chance.by_row, &ahead, &aside);
  const bool comes = (chance.u > 0.85f) & (far >= 10), flees = (chance.u > 0.85f) & (far <= 3);
  down = comes ? ahead : flees ? -ahead : down;
  right = comes ? aside : flees ? -aside : right;
  const bool aims = far == 4 || far == 5 || (far <= 3 && !walkable(w, m->row + down, m->col + right));
  const bool shoots = aims && m->cooldown <= 0 && m->alive;
  if (shoots) {
    shoot(w, m, ahead, aside);
    down = right = 0;
  }
  m->cooldown = (int16_t)(shoots ? 4 : m->cooldown - 1);
  move_mob(w, m, m->row + down, m->col + right);
}

/* One that does not fly goes on all the same: it may hide others from view. */
MN_FN void move_arrow(craftax_classic *w, arrow *a) {
  const int row = a->row + a->down, col = a->col + a->right, block = block_at(w, row, col);
  a->row = (int16_t)row;
  a->col = (int16_t)col;
  if (!a->flies) return;
  if (row == w->row && col == w->col) {
    w->health = (int8_t)(w->health - 2);
    w->sleeping = 0;
  }
  if ((block == FURNACE || block == TABLE) && row < SIDE && col < SIDE) set_block(w, clamped(row), clamped(col), PATH);
  a->flies = inside(row, col) && (!solid(block) || block == WATER) && !taken(w, row, col);
}

MN_FN void move_mobs(craftax_classic *w, dice *d) {
  dice_split(d);
  for (int i = 0; i < ZOMBIES; i++) {
    move_zombie(w, w->zombie + i, whim_of(d, 4));
    if (d->jax) d->key = dice_split(d);               /* the original goes on with the other key here */
  }
  dice_split(d);
  for (int i = 0; i < COWS; i++) {
    mob *m = w->cow + i;
    const int way = (d->jax ? mn_jax_below(dice_split(d), 8) : (int)(dice_next_word(d) >> 29)) + LEFT;     /* half of the time nowhere */
    move_mob(w, m, m->row + down_of(way), m->col + right_of(way));
  }
  dice_split(d);
  for (int i = 0; i < SKELETONS; i++) move_skeleton(w, w->skeleton + i, whim_of(d, 4));
  for (int i = 0; i < ARROWS; i++) move_arrow(w, w->shot + i);
}

/* ---- new ones ---- */

/* Where one may appear: on one of two blocks, nearest to DESPAWN - 1 steps from the player, on no mob. */
MN_FN int candidates(const craftax_classic *w, const uint8_t *blocks, int nearest, uint64_t *place) {
  int n = 0;
  for (int row = 0; row < SIDE; row++) {
    place[row] = 0;
    const int rows = absolute(row - w->row), reach = DESPAWN - 1 - rows, gap = nearest - 1 - rows;
    if (reach < 0) continue;
    const uint64_t ring = columns(w->col - reach, w->col + reach, SIDE) & ~columns(w->col - gap, w->col + gap, SIDE);
    place[row] = bits_of_blocks(w->map[row], SIDE, blocks, 2) & ring & ~w->occupied[row];
    n += mn_ones_in(place[row]);
  }
  return n;
}

MN_LARGE bool appear(craftax_classic *w, dice *d, mn_jax_key key, mob *m, int health, const uint8_t *blocks, int nearest) {
  uint64_t place[SIDE];
  const int n = candidates(w, blocks, nearest, place);
  if (n == 0) return false;
  const int at = dice_choose(d, key, place, SIDE, n);
  m->row = (int16_t)(at / SIDE);
  m->col = (int16_t)(at % SIDE);
  m->health = (int8_t)health;
  m->alive = 1;
  return true;
}

MN_FN void spawn(craftax_classic *w, dice *d, mob *of, int n, float chance, int health, const uint8_t *blocks, int nearest) {
  mob *m = of;
  while (m < of + n && m->alive) m++;
  const bool has_place = m < of + n;
  const float u = dice_uniform(d, dice_split(d));
  const mn_jax_key key = dice_split(d);
  if (!has_place) m = of;
  else if (u < chance) appear(w, d, key, m, health, blocks, nearest);
  occupy(w, m->row, m->col, m->alive);
}

MN_FN void spawn_mobs(craftax_classic *w, dice *d, float light) {
  const uint8_t grass[2] = { GRASS, GRASS }, path[2] = { PATH, PATH }, both[2] = { GRASS, PATH };
  spawn(w, d, w->cow, COWS, 0.1f, 3, grass, 4);
  spawn(w, d, w->zombie, ZOMBIES, 0.02f + 0.1f * ((1 - light) * (1 - light)), 5, both, 10);
  spawn(w, d, w->skeleton, SKELETONS, 0.05f, 3, path, 10);
}
#endif
