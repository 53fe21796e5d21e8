/* spawn.h -- new mobs appear (the original's spawn_mobs, in its order). */
#ifndef MN_CRAFTAX_SPAWN_H
#define MN_CRAFTAX_SPAWN_H
#include "mobs.h"
#include "generate.h"

/* Where a class of mobs may appear: on these blocks, nearest <= squared distance from the player <= farthest. */
typedef struct habitat { uint64_t blocks; int nearest, farthest; } habitat;

/* The columns low .. high that are on the map, as bits. */
MN_FN uint64_t columns(int low, int high) {
  low = most(low, 0);
  high = least(high, SIDE - 1);
  return low > high ? 0 : (2ull << high) - (1ull << low);
}

/* The places of a row. */
MN_FN uint64_t places_in(const craftax *w, const habitat *h, int row, int wide, int gap) {
  if (row < 0 || row >= SIDE) return 0;
  const uint8_t *block = w->map[w->floor][row];
  const int from = most(w->col - wide, 0), to = least(w->col + wide, SIDE - 1);
  uint64_t bits = 0;
  for (int col = from; col <= to; col++) bits |= (h->blocks >> block[col] & 1) << col;
  return bits & ~columns(w->col - gap, w->col + gap) & ~w->occupied[w->floor][row];
}

/* All of them; returns how many. */
MN_FN int candidates(const craftax *w, const habitat *h, uint64_t *place) {
  int n = 0, wide = DESPAWN - 1, gap = DESPAWN - 1;      /* what is near: gap columns each way, -1 none */
  for (int row = 0; row < SIDE; row++) place[row] = 0;
  for (int off = 0; off < DESPAWN; off++) {
    while (wide >= 0 && wide * wide + off * off > h->farthest) wide--;
    while (gap >= 0 && gap * gap + off * off >= h->nearest) gap--;
    for (int row = w->row - off; row <= w->row + off; row += most(2 * off, 1)) {
      const uint64_t bits = places_in(w, h, row, wide, gap);
      if (bits == 0) continue;
      place[row] = bits;
      n += ones_in(bits);
    }
  }
  return n;
}

/* One of the n > 0 places. */
MN_FN int choose(dice *d, mn_jax_key key, const uint64_t *place, int n) {
  if (d->jax) return mn_jax_choice(key, place, SIDE, 1.0f / (float)n);
  int left = mn_below(next_word(d), n), row = 0;
  for (; left >= ones_in(place[row]); row++) left -= ones_in(place[row]);
  uint64_t bits = place[row];
  for (; left > 0; left--) bits &= bits - 1;
  return row * SIDE + lowest_of(bits);
}

MN_LARGE void appear(craftax *w, dice *d, mn_jax_key key, mob *m, float health, const habitat *h) {
  uint64_t place[SIDE];
  const int n = candidates(w, h, place);
  if (n == 0) return;
  const int at = choose(d, key, place, n);
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
  const mn_jax_key luck = split(d), key = split(d);
  if (!has_place) m = mobs;
  else if (uniform(d, luck) < chance) appear(w, d, key, m, health_of(of, type), &h);
  m->type = (uint8_t)type;
  if (m->alive) occupy(w, m->row, m->col);
}

/* Monsters come three times as often to a floor that is not cleared, and to the boss in waves, out of graves. */
MN_FN void spawn_mobs(craftax *w, dice *d, float light) {
  const int floor = w->floor, from = at_boss(w) ? w->boss_progress : floor;
  const uint64_t ground = 1ull << GRASS | 1ull << PATH | 1ull << FIRE_GRASS | 1ull << ICE_GRASS;
  const uint64_t graves = 1ull << GRAVE | 1ull << GRAVE2 | 1ull << GRAVE3;
  const habitat anywhere = { ground, 10, 195 }, far = { ground, 82, 195 }, deep = { 1ull << WATER, 82, 195 }, near = { graves, 0, 36 };
  const int melee = type_on(from, MELEE), ranged = type_on(from, RANGED);
  const int times = (w->killed[floor] < CLEARED ? 3 : 1) * (!at_boss(w) ? 1 : boss_wave(w) ? 1000 : 0);
  const float dark = 1 - light, often = chance_on(floor, MELEE) + chance_by_night(floor) * (dark * dark);
  spawn(w, d, PASSIVE, w->passive[floor], PASSIVES, type_on(floor, PASSIVE), at_boss(w) ? 0 : chance_on(floor, PASSIVE), anywhere);
  spawn(w, d, MELEE, w->melee[floor], MELEES, melee, often * (float)times, at_boss(w) ? near : far);
  spawn(w, d, RANGED, w->ranged[floor], RANGEDS, ranged, chance_on(floor, RANGED) * (float)times, at_boss(w) ? near : ranged == 5 ? deep : far);
}
#endif
