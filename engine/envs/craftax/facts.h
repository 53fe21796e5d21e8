/* facts.h -- truth for probes, and which states can be. */
#ifndef MN_CRAFTAX_FACTS_H
#define MN_CRAFTAX_FACTS_H
#include "rules.h"

/* ---- facts ---- */

/* Steps down and right to the nearest of these blocks of the floor; 48, 48: there is none. */
static void find_block(const craftax *w, uint64_t blocks, float *to) {
  int best = 1000;
  to[0] = to[1] = SIDE;
  for (int row = 0; row < SIDE; row++)
    for (int col = 0; col < SIDE; col++)
      if (blocks >> w->at[w->floor].map[row][col] & 1 && distance(w, row, col) < best) {
        best = distance(w, row, col);
        to[0] = (float)(row - w->row);
        to[1] = (float)(col - w->col);
      }
}

static void find_mob(const craftax *w, const mob *of, int n, float *to) {
  int best = 1000;
  to[0] = to[1] = SIDE;
  for (int i = 0; i < n; i++)
    if (of[i].alive && distance(w, of[i].row, of[i].col) < best) {
      best = distance(w, of[i].row, of[i].col);
      to[0] = (float)(of[i].row - w->row);
      to[1] = (float)(of[i].col - w->col);
    }
}

static int earned(const craftax *w) { return mn_ones_in(w->achieved[0]) + mn_ones_in(w->achieved[1]); }

static int truth(const craftax *w, const mn_io *io, const char **names, float *values) {
  const int numbers[24] = { w->col, w->row, w->floor, w->direction - LEFT, w->sleeping, w->resting, w->food, w->drink, w->energy, w->mana, w->xp,
                            w->dexterity, w->strength, w->intelligence, w->steps, w->killed[w->floor], earned(w), w->pickaxe, w->sword, w->bow,
                            w->sword_magic, w->bow_magic, w->boss_progress, w->boss_timer };
  const uint64_t found[6] = { 1ull << WATER | 1ull << FOUNTAIN, 1ull << TREE | 1ull << FIRE_TREE | 1ull << ICE_SHRUB, 1ull << TABLE,
                              1ull << IRON, 1ull << DIAMOND, 1ull << CHEST };
  *names = "x y floor direction sleeping resting food drink energy mana xp dexterity strength intelligence day_step killed achieved pickaxe sword "
           "bow sword_magic bow_magic boss_progress boss_timer health light inventory[11] potions[6] effects[6] armour[4] armour_magic[4] "
           "spells[2] achievements[67] to_water[2] to_tree[2] to_table[2] to_iron[2] to_diamond[2] to_chest[2] to_ladder[2] "
           "to_melee[2] to_passive[2] to_ranged[2]";
  float *out = values;
  for (int i = 0; i < 24; i++) *out++ = (float)numbers[i];
  *out++ = w->health;
  *out++ = light_at(io, w->steps);
  for (int i = 0; i < ITEMS; i++) *out++ = w->has[i];
  for (int i = 0; i < POTIONS; i++) *out++ = w->potion[i];
  for (int i = 0; i < POTIONS; i++) *out++ = w->effect[i];
  for (int i = 0; i < ARMOURS; i++) *out++ = w->armour[i];
  for (int i = 0; i < ARMOURS; i++) *out++ = w->armour_magic[i];
  for (int i = 0; i < 2; i++) *out++ = w->learned[i];
  for (int i = 0; i < ACHIEVEMENTS; i++) *out++ = has_achieved(w, i);
  for (int i = 0; i < 6; i++, out += 2) find_block(w, found[i], out);
  *out++ = (float)(w->at[w->floor].down_ladder[0] - w->row);
  *out++ = (float)(w->at[w->floor].down_ladder[1] - w->col);
  find_mob(w, w->at[w->floor].melee, MELEES, out);
  find_mob(w, w->at[w->floor].passive, PASSIVES, out + 2);
  find_mob(w, w->at[w->floor].ranged, RANGEDS, out + 4);
  return (int)(out + 6 - values);
}

/* ---- which states can be ---- */

static bool within(int x, int lo, int hi) { return x >= lo && x <= hi; }
static bool between_f(float x, float lo, float hi) { return x >= lo && x <= hi; }

static bool all_at_most(const uint8_t *x, int n, int high) {
  for (int i = 0; i < n; i++)
    if (x[i] > high) return false;
  return true;
}

/* Ladders lie where the state says, and nowhere else. */
static bool ladders_valid(const craftax *w, int f) {
  const uint8_t *down = w->at[f].down_ladder, *up = w->at[f].up_ladder;
  if (down[0] >= SIDE || down[1] >= SIDE || up[0] >= SIDE || up[1] >= SIDE) return false;
  const bool same = down[0] == up[0] && down[1] == up[1], has_up = f > 0 && f < BOSS;
  for (int row = 0; row < SIDE; row++)
    for (int col = 0; col < SIDE; col++) {
      const bool at_up = has_up && up[0] == row && up[1] == col, at_down = f < BOSS && down[0] == row && down[1] == col;
      const int item = w->at[f].item[row][col];
      if (item > LADDER_UP || (item == LADDER_UP) != at_up || (item == LADDER_DOWN) != (at_down && !(has_up && same))) return false;
    }
  return true;
}

static bool map_valid(const craftax *w, int f) {
  const uint64_t none = 1ull << INVALID | 1ull << OUT_OF_BOUNDS | 1ull << WOOD | 1ull << GRAVEL | 1ull << NECROMANCER_OPEN;
  const uint8_t *block = (const uint8_t *)w->at[f].map;
  for (int i = 0; i < SIDE * SIDE; i++)
    if (block[i] >= BLOCKS || none >> block[i] & 1) return false;
  for (int row = 0; row < SIDE; row++)
    if ((w->at[f].lit[row] | w->at[f].occupied[row]) >> SIDE) return false;
  return ladders_valid(w, f);
}

static bool empty(const void *bytes, size_t n) {
  const uint8_t *b = (const uint8_t *)bytes;
  for (size_t i = 0; i < n; i++)
    if (b[i]) return false;
  return true;
}

static bool mobs_valid(int f, const mob *of, int n, int of_class) {
  for (int i = 0; i < n; i++) {
    const mob *m = of + i;
    if (m->row >= SIDE || m->col >= SIDE || m->alive > 1 || m->type >= (of_class == PASSIVE ? 3 : TYPES)) return false;
    if (!within(m->cooldown, of_class == PASSIVE ? 0 : -LONGEST, of_class == PASSIVE ? 0 : 5) || !between_f(m->health, -100, 24)) return false;
    if (m->alive && (m->health <= 0 || (f != BOSS && m->type != type_on(f, of_class)))) return false;
  }
  return true;
}

static bool shots_valid(const shot *of) {
  const int far = LONGEST + SIDE;
  for (int i = 0; i < SHOTS; i++) {
    const shot *a = of + i;
    if (!within(a->row, -far, far) || !within(a->col, -far, far) || !within(a->down, -1, 1) || !within(a->right, -1, 1)) return false;
    if (a->flies > 1 || a->type >= TYPES || (a->flies && (!inside(a->row, a->col) || (a->down && a->right)))) return false;
  }
  return true;
}

/* Every bit of occupied is a living mob's. */
static bool occupied_valid(const craftax *w, int f) {
  uint64_t left[SIDE];
  memcpy(left, w->at[f].occupied, sizeof left);
  const mob *of[3] = { w->at[f].passive, w->at[f].melee, w->at[f].ranged };
  const int n[3] = { PASSIVES, MELEES, RANGEDS };
  for (int k = 0; k < 3; k++)
    for (int i = 0; i < n[k]; i++)
      if (of[k][i].alive) left[of[k][i].row] &= ~(1ull << of[k][i].col);
  return empty(left, sizeof left);
}

/* A floor is made when it is entered, and entering it is an achievement. */
static bool floor_valid(const craftax *w, int f) {
  const bool made = w->made >> f & 1;
  if (f > 0 && made != has_achieved(w, floor_earns(f))) return false;
  if (w->opened[f] > made || !within(w->killed[f], 0, made ? 8 * LONGEST + 10 : 10)) return false;
  if (!made) return empty(w->at + f, sizeof w->at[f]);
  const level *l = w->at + f;
  return mobs_valid(f, l->melee, MELEES, MELEE) && mobs_valid(f, l->passive, PASSIVES, PASSIVE) && mobs_valid(f, l->ranged, RANGEDS, RANGED) &&
         shots_valid(l->theirs) && shots_valid(l->mine) && map_valid(w, f) && occupied_valid(w, f) && !l->dug &&
         empty(l->unused, sizeof l->unused);
}

/* Slots fill in order.  A plant has its block, which is ripe when its time has come; others grow only where no slot was left. */
static bool plants_valid(const craftax *w) {
  const uint8_t *block = (const uint8_t *)w->at[0].map;
  int ripe = 0, young = 0, slots = 0;
  for (int i = 0; i < SIDE * SIDE; i++) {
    ripe += block[i] == RIPE;
    young += block[i] == PLANT;
  }
  for (int i = 0; i < PLANTS; i++) {
    const plant *p = w->garden + i;
    if (p->grows > 1 || p->unused || (p->grows && slots < i)) return false;
    if (!p->grows && (p->age || p->row || p->col)) return false;
    if (!p->grows) continue;
    if (p->row >= SIDE || p->col >= SIDE || !within(p->age, 1, w->steps)) return false;
    if (w->at[0].map[p->row][p->col] != (p->age >= 600 ? RIPE : PLANT)) return false;
    for (int k = 0; k < i; k++)
      if (w->garden[k].row == p->row && w->garden[k].col == p->col) return false;
    slots++;
    ripe -= p->age >= 600;
    young -= p->age < 600;
  }
  return ripe == 0 && (young == 0 || (young > 0 && slots == PLANTS));
}

/* Nothing is owned that was not earned, and nothing twice that is there once. */
static bool items_valid(const craftax *w) {
  craftax after = *w;
  int effects = 0;
  tally(&after);
  for (int i = 0; i < POTIONS; i++) effects |= 1 << w->effect[i] % 8;
  return after.achieved[0] == w->achieved[0] && after.achieved[1] == w->achieved[1] && w->achieved[1] < 1ull << (ACHIEVEMENTS - 64) &&
         all_at_most(w->has, ITEMS, 99) && all_at_most(w->potion, POTIONS, 99) && all_at_most(w->effect, POTIONS, POTIONS - 1) &&
         effects == (1 << POTIONS) - 1 && all_at_most(w->armour, ARMOURS, 2) && all_at_most(w->armour_magic, ARMOURS, 2) &&
         all_at_most(w->learned, 2, 1) && w->pickaxe <= 4 && w->sword <= 4 && w->bow <= 1 && w->sword_magic <= 2 && w->bow_magic <= 2;
}

static bool body_valid(const craftax *w) {
  const int d = w->dexterity, s = w->strength, i = w->intelligence;
  return within(d, 1, 5) && within(s, 1, 5) && within(i, 1, 5) && w->xp <= FLOORS && w->sleeping <= 1 && w->resting <= 1 &&
         w->health > 0 && w->health <= (float)most_health(w) && within(w->food, 0, most_food(w)) && within(w->drink, 0, most_food(w)) &&
         within(w->energy, 0, most_food(w)) && within(w->mana, 0, most_mana(w)) && between_f(w->hunger, 0, 25) &&
         between_f(w->thirst, 0, 20) && between_f(w->fatigue, -10, 30) && between_f(w->recover, -15, 25) &&
         between_f(w->recover_mana, 0, 30);
}

static bool valid(const craftax *w, const mn_io *io) {
  (void)io;
  if (w->floor >= FLOORS || !(w->made & 1) || !(w->made >> w->floor & 1) || w->made & (w->made + 1) || w->made >> FLOORS) return false;
  if (!within(w->steps, 0, LONGEST - 1) || !within(w->direction, LEFT, DOWN) || !inside(w->row, w->col)) return false;
  if (!within(w->boss_timer, -LONGEST, BOSS_WAIT) || w->boss_progress >= BOSS || !body_valid(w) || !items_valid(w)) return false;
  for (int f = 0; f < FLOORS; f++)
    if (!floor_valid(w, f)) return false;
  const int block = w->at[w->floor].map[w->row][w->col];
  return !solid(block) && block != LAVA && block != WATER && plants_valid(w);
}
#endif
