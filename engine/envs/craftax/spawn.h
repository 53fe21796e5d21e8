/* spawn.h -- new mobs appear (the original's spawn_mobs, in its order). */
#ifndef MN_CRAFTAX_SPAWN_H
#define MN_CRAFTAX_SPAWN_H
#include "mobs.h"

/* Where a class of mobs may appear: on these blocks, nearest <= squared distance from the player <= farthest. */
typedef struct habitat { uint8_t block[4]; int nearest, farthest; } habitat;

/* The places of a row within wide columns of the player, and not within gap; -1: none. */
MN_FN uint64_t places_in(const craftax *w, const habitat *h, int row, int wide, int gap) {
  const level *at = w->at + w->floor;
  const uint64_t near = columns(w->col - gap, w->col + gap, SIDE);
  return bits_of_blocks(at->map[row], SIDE, h->block, 4) & columns(w->col - wide, w->col + wide, SIDE) & ~near & ~at->occupied[row];
}

/* The largest x with x * x <= n, -1 where n < 0. */
MN_FN int root(int n) { return n < 0 ? -1 : (int)__builtin_sqrtf((float)n); }

/* All of them; returns how many. */
MN_FN int candidates(const craftax *w, const habitat *h, uint64_t *place) {
  const int top = most(w->row - DESPAWN + 1, 0), bottom = least(w->row + DESPAWN - 1, SIDE - 1);
  int n = 0;
  for (int row = 0; row < SIDE; row++) place[row] = 0;
  for (int row = top; row <= bottom; row++) {
    const int off = (row - w->row) * (row - w->row);
    place[row] = places_in(w, h, row, root(h->farthest - off), root(h->nearest - 1 - off));
    n += mn_ones_in(place[row]);
  }
  return n;
}

MN_LARGE void appear(craftax *w, dice *d, mn_jax_key key, mob *m, float health, const habitat *h) {
  uint64_t place[SIDE];
  const int n = candidates(w, h, place);
  if (n == 0) return;
  const int at = dice_choose(d, key, place, SIDE, n);
  m->row = (uint8_t)(at / SIDE);
  m->col = (uint8_t)(at % SIDE);
  m->health = health;
  m->alive = 1;
}

/* Into the first free place.  As in the original, that place, or the first of all where none is free, gets the type of the floor
** in any case. */
MN_FN void spawn(craftax *w, dice *d, int of, mob *mobs, int n, int type, float chance, habitat h) {
  mob *m = mobs;
  while (m < mobs + n && m->alive) m++;
  const bool has_place = m < mobs + n;
  const mn_jax_key luck = dice_split(d), key = dice_split(d);
  if (!has_place) m = mobs;
  else if (dice_uniform(d, luck) < chance) appear(w, d, key, m, health_of(of, type), &h);
  m->type = (uint8_t)type;
  if (m->alive) occupy(w, m->row, m->col);
}

/* Monsters come three times as often to a floor that is not cleared, and to the boss in waves, out of graves. */
MN_FN void spawn_mobs(craftax *w, dice *d, float light) {
  const int floor = w->floor, from = at_boss(w) ? w->boss_progress : floor;
  const habitat ground = { { GRASS, PATH, FIRE_GRASS, ICE_GRASS }, 82, 195 }, graves = { { GRAVE, GRAVE2, GRAVE3, GRAVE3 }, 0, 36 };
  const habitat deep = { { WATER, WATER, WATER, WATER }, 82, 195 }, home = at_boss(w) ? graves : ground;
  habitat near = home;
  near.nearest = 10;
  const int melee = type_on(from, MELEE), ranged = type_on(from, RANGED);
  const int times = (w->killed[floor] < CLEARED ? 3 : 1) * (!at_boss(w) ? 1 : boss_wave(w) ? 1000 : 0);
  const float dark = 1 - light, often = chance_on(floor, MELEE) + chance_by_night(floor) * (dark * dark);
  spawn(w, d, PASSIVE, w->at[floor].passive, PASSIVES, type_on(floor, PASSIVE), at_boss(w) ? 0 : chance_on(floor, PASSIVE), near);
  spawn(w, d, MELEE, w->at[floor].melee, MELEES, melee, often * (float)times, home);
  spawn(w, d, RANGED, w->at[floor].ranged, RANGEDS, ranged, chance_on(floor, RANGED) * (float)times, ranged == 5 && !at_boss(w) ? deep : home);
}
#endif
