/* rules.h -- what the player's actions do, plants, and the needs of the body (the original's game_logic.py, in its order). */
#ifndef MN_CRAFTAX_CLASSIC_RULES_H
#define MN_CRAFTAX_CLASSIC_RULES_H
#include "generate.h"

/* ---- crafting ---- */

MN_FN bool near_block(const craftax_classic *w, int block) {
  bool near = false;
  for (int row = w->row - 1; row <= w->row + 1; row++)
    for (int col = w->col - 1; col <= w->col + 1; col++) near |= inside(row, col) && w->map[row][col] == block;
  return near;
}

/* At a table, and what is of iron next to a furnace too: one of each material. */
MN_FN void craft(craftax_classic *w, int action) {
  const int made = action - MAKE_WOOD_PICKAXE, grade = made % 3, pickaxe = made < 3;
  const int earned[6] = { MADE_WOOD_PICKAXE, MADE_STONE_PICKAXE, MADE_IRON_PICKAXE, MADE_WOOD_SWORD, MADE_STONE_SWORD, MADE_IRON_SWORD };
  uint8_t *item = w->item;
  if (made < 0 || !item[HAS_WOOD] || (grade > 0 && !item[HAS_STONE]) || (grade > 1 && (!item[HAS_IRON] || !item[HAS_COAL]))) return;
  if (!near_block(w, TABLE) || (grade > 1 && !near_block(w, FURNACE))) return;
  item[HAS_WOOD]--;
  item[HAS_STONE] = (uint8_t)(item[HAS_STONE] - (grade > 0));
  item[HAS_IRON] = (uint8_t)(item[HAS_IRON] - (grade > 1));
  item[HAS_COAL] = (uint8_t)(item[HAS_COAL] - (grade > 1));
  item[(pickaxe ? WOOD_PICKAXE : WOOD_SWORD) + grade]++;
  achieve(w, earned[made], true);
}

/* ---- blows, mining, drinking, eating ---- */

MN_FN int strength(const craftax_classic *w) {
  return most(most(1, 2 * w->item[WOOD_SWORD]), most(3 * w->item[STONE_SWORD], 5 * w->item[IRON_SWORD]));
}

enum { MISSED, HIT, KILLED };

/* A blow at a place.  As in the original, it also wakes every mob of the kind that is gone but has health left. */
MN_FN int strike(mob *of, int n, int row, int col, int damage) {
  int result = MISSED;
  for (int i = 0; i < n && !result; i++) {
    if (!of[i].alive || of[i].row != row || of[i].col != col) continue;
    of[i].health = (int8_t)(of[i].health - damage);
    result = of[i].health > 0 ? HIT : KILLED;
  }
  for (int i = 0; i < n; i++) of[i].alive = of[i].health > 0;
  return result;
}

/* What is gained from a block, which becomes another. */
MN_FN void take(craftax_classic *w, int row, int col, int item, int achievement, int becomes) {
  w->item[item]++;
  achieve(w, achievement, true);
  set_block(w, row, col, becomes);
}

MN_FN void eat(craftax_classic *w, int food, int achievement) {
  w->food = (int8_t)least(9, w->food + food);
  w->hunger = 0;
  achieve(w, achievement, true);
}

MN_FN void use_block(craftax_classic *w, int row, int col, float luck) {
  const uint8_t *item = w->item;
  switch (w->map[row][col]) {
  case TREE: take(w, row, col, HAS_WOOD, COLLECT_WOOD, GRASS); break;
  case STONE: if (item[WOOD_PICKAXE]) take(w, row, col, HAS_STONE, COLLECT_STONE, PATH); break;
  case COAL: if (item[WOOD_PICKAXE]) take(w, row, col, HAS_COAL, COLLECT_COAL, PATH); break;
  case IRON: if (item[STONE_PICKAXE]) take(w, row, col, HAS_IRON, COLLECT_IRON, PATH); break;
  case DIAMOND: if (item[IRON_PICKAXE]) take(w, row, col, HAS_DIAMOND, COLLECT_DIAMOND, PATH); break;
  case GRASS: if (luck < 0.1f) take(w, row, col, HAS_SAPLING, COLLECT_SAPLING, GRASS); break;
  case WATER:
    w->drink = (int8_t)least(9, w->drink + 1);
    w->thirst = 0;
    achieve(w, COLLECT_DRINK, true);
    break;
  case RIPE: {
    int k = 0;                                   /* the first plant there, or the first of all */
    for (int i = PLANTS - 1; i >= 0; i--)
      if (w->garden[i].row == row && w->garden[i].col == col) k = i;
    w->garden[k].age = 0;
    set_block(w, row, col, PLANT);
    eat(w, 4, EAT_PLANT);
    break;
  }
  default: break;
  }
}

MN_FN void act(craftax_classic *w, dice d) {
  const int row = w->row + down_of(w->direction), col = w->col + right_of(w->direction), damage = strength(w);
  const float luck = dice_uniform(&d, dice_split(&d));
  const int zombie = strike(w->zombie, ZOMBIES, row, col, damage), cow = strike(w->cow, COWS, row, col, damage);
  const int skeleton = strike(w->skeleton, SKELETONS, row, col, damage);
  achieve(w, DEFEAT_ZOMBIE, zombie == KILLED);
  achieve(w, DEFEAT_SKELETON, skeleton == KILLED);
  if (cow == KILLED) eat(w, 6, EAT_COW);
  if (zombie == KILLED || cow == KILLED || skeleton == KILLED) vacate(w, row, col, true);
  if (inside(row, col) && !(zombie | cow | skeleton)) use_block(w, row, col, luck);
}

/* ---- placing ---- */

MN_FN void put(craftax_classic *w, int row, int col, int block, int item, int cost, int achievement) {
  w->item[item] = (uint8_t)(w->item[item] - cost);
  set_block(w, row, col, block);
  achieve(w, achievement, true);
}

MN_FN void put_plant(craftax_classic *w, int row, int col) {
  put(w, row, col, PLANT, HAS_SAPLING, 1, PLACED_PLANT);
  for (int i = 0; i < PLANTS; i++)
    if (!w->garden[i].grows) {
      w->garden[i].row = (uint8_t)row;
      w->garden[i].col = (uint8_t)col;
      w->garden[i].age = 0;
      w->garden[i].grows = 1;
      return;
    }
}

MN_FN void place(craftax_classic *w, int action) {
  const int row = w->row + down_of(w->direction), col = w->col + right_of(w->direction);
  if (action < PLACE_STONE || action > PLACE_PLANT || !inside(row, col) || taken(w, row, col)) return;
  const int block = w->map[row][col];
  const uint8_t *item = w->item;
  if (action == PLACE_TABLE && !solid(block) && item[HAS_WOOD] >= 2) put(w, row, col, TABLE, HAS_WOOD, 2, PLACED_TABLE);
  if (action == PLACE_FURNACE && !solid(block) && item[HAS_STONE]) put(w, row, col, FURNACE, HAS_STONE, 1, PLACED_FURNACE);
  if (action == PLACE_STONE && (!solid(block) || block == WATER) && item[HAS_STONE]) put(w, row, col, STONE, HAS_STONE, 1, PLACED_STONE);
  if (action == PLACE_PLANT && block == GRASS && item[HAS_SAPLING]) put_plant(w, row, col);
}

/* ---- walking ---- */

MN_FN void walk(craftax_classic *w, int action) {
  if (action < LEFT || action > DOWN) return;
  const int row = w->row + down_of(action), col = w->col + right_of(action);
  w->direction = (uint8_t)action;
  if (!walkable(w, row, col) && block_at(w, row, col) != LAVA) return;
  w->row = (int16_t)row;
  w->col = (int16_t)col;
}

/* ---- plants and the body ---- */

MN_FN void grow(craftax_classic *w) {
  for (int i = 0; i < PLANTS; i++) {
    plant *p = w->garden + i;
    if (!p->grows) {
      p->age = 0;
      continue;
    }
    p->age++;
    if (p->age >= 600 && w->map[p->row][p->col] != RIPE) set_block(w, p->row, p->col, RIPE);
  }
}

MN_FN void live(craftax_classic *w, int action) {
  w->sleeping |= action == SLEEP && w->energy < 9;
  const bool wakes = w->energy >= 9 && w->sleeping;
  w->sleeping &= !wakes;
  achieve(w, WAKE_UP, wakes);
  const int half = w->sleeping ? 1 : 2;          /* asleep one needs half as much */
  w->hunger = (int8_t)(w->hunger + half);
  if (w->hunger > 50) w->hunger = 0, w->food = (int8_t)most(w->food - 1, 0);
  w->thirst = (int8_t)(w->thirst + half);
  if (w->thirst > 40) w->thirst = 0, w->drink = (int8_t)most(w->drink - 1, 0);
  w->fatigue = (int8_t)(w->sleeping ? least(w->fatigue - 2, 0) : w->fatigue + 2);
  if (w->fatigue > 60) w->fatigue = 0, w->energy = (int8_t)most(w->energy - 1, 0);
  if (w->fatigue < -20) w->fatigue = 0, w->energy = (int8_t)least(w->energy + 1, 9);
  const bool well = w->food > 0 && w->drink > 0 && (w->energy > 0 || w->sleeping);
  w->recover = (int8_t)(w->recover + (well ? 4 / half : -half));
  if (w->recover > 50) w->recover = 0, w->health = (int8_t)least(w->health + 1, 9);
  if (w->recover < -30) w->recover = 0, w->health--;
}
#endif
