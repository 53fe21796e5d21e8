/* craft.h -- what the player makes, mines, opens, drinks, eats and places (the original's game_logic.py). */
#ifndef MN_CRAFTAX_CRAFT_H
#define MN_CRAFTAX_CRAFT_H
#include "fight.h"

/* ---- making ---- */

MN_FN bool near_block(const craftax *w, int block) {
  bool near = false;
  for (int row = w->row - 1; row <= w->row + 1; row++)
    for (int col = w->col - 1; col <= w->col + 1; col++)
      near |= (row != w->row || col != w->col) && inside(row, col) && w->at[w->floor].map[row][col] == block;
  return near;
}

typedef struct recipe { uint8_t wood, stone, coal, iron, diamond, furnace; } recipe;

/* False of an action that makes nothing. */
MN_FN bool recipe_of(int action, recipe *r) {
  const recipe of_wood = { 1, 0, 0, 0, 0, 0 }, of_stone = { 1, 1, 0, 0, 0, 0 }, of_iron = { 1, 1, 1, 1, 0, 1 }, pickaxe = { 1, 0, 0, 0, 3, 0 };
  const recipe sword = { 1, 0, 0, 0, 2, 0 }, iron_armour = { 0, 0, 3, 3, 0, 1 }, armour = { 0, 0, 0, 0, 3, 0 }, torch = { 1, 0, 1, 0, 0, 0 };
  switch (action) {
  case MAKE_WOOD_PICKAXE: case MAKE_WOOD_SWORD: *r = of_wood; return true;
  case MAKE_STONE_PICKAXE: case MAKE_STONE_SWORD: case MAKE_ARROW: *r = of_stone; return true;
  case MAKE_IRON_PICKAXE: case MAKE_IRON_SWORD: *r = of_iron; return true;
  case MAKE_DIAMOND_PICKAXE: *r = pickaxe; return true;
  case MAKE_DIAMOND_SWORD: *r = sword; return true;
  case MAKE_IRON_ARMOUR: *r = iron_armour; return true;
  case MAKE_DIAMOND_ARMOUR: *r = armour; return true;
  case MAKE_TORCH: *r = torch; return true;
  default: return false;
  }
}

/* The first piece of armour below a grade; ARMOURS: none. */
MN_FN int armour_below(const craftax *w, int grade) {
  int i = 0;
  while (i < ARMOURS && w->armour[i] >= grade) i++;
  return i;
}

/* A tool or a piece of armour is made only where it is better than what there is. */
MN_FN bool make(craftax *w, int action) {
  uint8_t *to = NULL;
  int grade = 0;
  switch (action) {
  case MAKE_WOOD_PICKAXE: case MAKE_STONE_PICKAXE: case MAKE_IRON_PICKAXE: to = &w->pickaxe, grade = action - MAKE_WOOD_PICKAXE + 1; break;
  case MAKE_WOOD_SWORD: case MAKE_STONE_SWORD: case MAKE_IRON_SWORD: to = &w->sword, grade = action - MAKE_WOOD_SWORD + 1; break;
  case MAKE_DIAMOND_PICKAXE: to = &w->pickaxe, grade = 4; break;
  case MAKE_DIAMOND_SWORD: to = &w->sword, grade = 4; break;
  case MAKE_IRON_ARMOUR: case MAKE_DIAMOND_ARMOUR: {
    grade = action == MAKE_IRON_ARMOUR ? 1 : 2;
    const int i = armour_below(w, grade);
    if (i == ARMOURS) return false;
    to = w->armour + i;
    achieve(w, action == MAKE_IRON_ARMOUR ? MADE_IRON_ARMOUR : MADE_DIAMOND_ARMOUR, true);
    break;
  }
  default: {
    uint8_t *some = w->has + (action == MAKE_ARROW ? HAS_ARROW : HAS_TORCH);
    if (*some >= 99) return false;
    *some = (uint8_t)(*some + (action == MAKE_ARROW ? 2 : 4));
    return true;
  }
  }
  if (*to >= grade) return false;
  *to = (uint8_t)grade;
  return true;
}

MN_FN void craft(craftax *w, int action) {
  recipe r;
  if (!recipe_of(action, &r)) return;
  uint8_t *has = w->has;
  if (has[HAS_WOOD] < r.wood || has[HAS_STONE] < r.stone || has[HAS_COAL] < r.coal || has[HAS_IRON] < r.iron ||
      has[HAS_DIAMOND] < r.diamond || !near_block(w, TABLE) || (r.furnace && !near_block(w, FURNACE)) || !make(w, action))
    return;
  has[HAS_WOOD] = (uint8_t)(has[HAS_WOOD] - r.wood);
  has[HAS_STONE] = (uint8_t)(has[HAS_STONE] - r.stone);
  has[HAS_COAL] = (uint8_t)(has[HAS_COAL] - r.coal);
  has[HAS_IRON] = (uint8_t)(has[HAS_IRON] - r.iron);
  has[HAS_DIAMOND] = (uint8_t)(has[HAS_DIAMOND] - r.diamond);
}

/* ---- chests ---- */

/* One of lo .. hi - 1. */
MN_FN int between(dice *d, mn_jax_key key, int lo, int hi) {
  return lo + (d->jax ? mn_jax_below(key, hi - lo) : mn_below(dice_next_word(d), hi - lo));
}

/* One of 0 .. n - 1, of the sums of their chances. */
MN_FN int pick(dice *d, mn_jax_key key, const float *sums, int n) {
  const float r = sums[n - 1] * (1 - dice_uniform(d, key));
  int i = 0;
  while (i < n - 1 && sums[i] < r) i++;
  return i;
}

MN_FN void gain(uint8_t *some, int more) { *some = (uint8_t)(*some + more); }

MN_LARGE void loot(craftax *w, dice *d) {
  const float ores[5] = { 0.3f, 0.6f, 0.75f, 0.875f, 1 }, grades[4] = { 0.4f, 0x1.666668p-1f, 0x1.cccccep-1f, 1 };
  const int ore_of[5] = { HAS_COAL, HAS_IRON, HAS_DIAMOND, HAS_SAPPHIRE, HAS_RUBY };
  const bool torches = dice_uniform(d, dice_split(d)) < 0.6f;
  const int torch = between(d, dice_split(d), 4, 8);
  if (torches) gain(w->has + HAS_TORCH, torch);
  const bool finds_ore = dice_uniform(d, dice_split(d)) < 0.6f;
  const int ore = pick(d, dice_split(d), ores, 5), lumps = between(d, dice_split(d), 1, ore == 0 ? 4 : ore == 1 ? 3 : 2);
  if (finds_ore) gain(w->has + ore_of[ore], lumps);
  const bool potions = dice_uniform(d, dice_split(d)) < 0.5f;
  const int colour = between(d, dice_split(d), 0, POTIONS), flasks = between(d, dice_split(d), 1, 3);
  if (potions) gain(w->potion + colour, flasks);
  const bool arrows = dice_uniform(d, dice_split(d)) < 0.25f;
  const int arrow = between(d, dice_split(d), 1, 5);
  if (arrows) gain(w->has + HAS_ARROW, arrow);
  const bool tools = dice_uniform(d, dice_split(d)) < 0.2f;
  const bool is_sword = between(d, dice_split(d), 0, 2) == 1;
  const int pickaxe = pick(d, dice_split(d), grades, 4) + 1, sword = pick(d, dice_split(d), grades, 4) + 1;
  if (tools && is_sword) w->sword = (uint8_t)most(w->sword, sword);
  if (tools && !is_sword) w->pickaxe = (uint8_t)most(w->pickaxe, pickaxe);
  const bool first = !w->opened[w->floor];
  if (first && w->floor == 1) w->bow = 1;
  if (first && (w->floor == 3 || w->floor == 4)) gain(w->has + HAS_BOOK, 1);
}

/* ---- doing something to the block ahead ---- */

MN_FN void take(craftax *w, int row, int col, int item, int becomes) {
  w->has[item]++;
  put_block(w, row, col, becomes);
}

MN_FN void reap(craftax *w, int row, int col) {
  int k = 0;                                     /* the first plant there, or the first of all */
  for (int i = PLANTS - 1; i >= 0; i--)
    if (w->garden[i].row == row && w->garden[i].col == col) k = i;
  w->garden[k].age = 0;
  put_block(w, row, col, PLANT);
  eat(w, 4);
  achieve(w, EAT_PLANT, true);
}

MN_FN void use_block(craftax *w, dice *d, int row, int col) {
  const int pickaxe = w->pickaxe;
  const mn_jax_key luck = dice_split(d), chest = dice_split(d);
  switch (block_at(w, row, col)) {
  case TREE: take(w, row, col, HAS_WOOD, GRASS); break;
  case FIRE_TREE: take(w, row, col, HAS_WOOD, FIRE_GRASS); break;
  case ICE_SHRUB: take(w, row, col, HAS_WOOD, ICE_GRASS); break;
  case STONE: case STALAGMITE: if (pickaxe >= 1) take(w, row, col, HAS_STONE, PATH); break;
  case COAL: if (pickaxe >= 1) take(w, row, col, HAS_COAL, PATH); break;
  case IRON: if (pickaxe >= 2) take(w, row, col, HAS_IRON, PATH); break;
  case DIAMOND: if (pickaxe >= 3) take(w, row, col, HAS_DIAMOND, PATH); break;
  case SAPPHIRE: if (pickaxe >= 4) take(w, row, col, HAS_SAPPHIRE, PATH); break;
  case RUBY: if (pickaxe >= 4) take(w, row, col, HAS_RUBY, PATH); break;
  case TABLE: case FURNACE: put_block(w, row, col, PATH); break;
  case GRASS: if (dice_uniform(d, luck) < 0.1f) w->has[HAS_SAPLING]++; break;
  case WATER: case FOUNTAIN:
    w->drink = (int8_t)least(most_food(w), w->drink + 1);
    w->thirst = 0;
    achieve(w, COLLECT_DRINK, true);
    break;
  case RIPE: reap(w, row, col); break;
  case CHEST:
    put_block(w, row, col, PATH);
    achieve(w, OPEN_CHEST, true);
    d->key = chest;
    loot(w, d);
    break;
  default: break;
  }
}

/* The boss and the first chest of a floor are also met across the edge of the map, as what the original reads there. */
MN_FN void act(craftax *w, dice *d) {
  const int row = w->row + down_of(w->direction), col = w->col + right_of(w->direction), block = block_at(w, row, col);
  float damage[KINDS];
  blow(w, damage);
  const bool uses = !attack(w, row, col, damage, true) && inside(row, col);
  if (block == NECROMANCER && at_boss(w) && boss_open(w)) {
    w->boss_progress++;
    w->boss_timer = BOSS_WAIT;
    achieve(w, DAMAGE_NECROMANCER, uses);
  }
  if (uses) use_block(w, d, row, col);
  if (block == CHEST) w->opened[w->floor] = 1;
}

/* ---- placing ---- */

MN_FN void put(craftax *w, int row, int col, int block, int item, int cost, int achievement) {
  w->has[item] = (uint8_t)(w->has[item] - cost);
  put_block(w, row, col, block);
  achieve(w, achievement, true);
}

MN_FN void put_plant(craftax *w, int row, int col) {
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

/* It lights what is less than 5 away. */
MN_FN void put_torch(craftax *w, int row, int col) {
  const uint8_t reach[5] = { 4, 4, 4, 3, 2 };
  w->has[HAS_TORCH]--;
  w->at[w->floor].item[row][col] = TORCH;
  w->at[w->floor].dug = 1;
  achieve(w, PLACED_TORCH, true);
  for (int r = most(0, row - 4); r <= least(SIDE - 1, row + 4); r++) {
    const int wide = reach[absolute(r - row)], from = most(0, col - wide), to = least(SIDE - 1, col + wide);
    w->at[w->floor].lit[r] |= ((2ull << to) - 1) & ~((1ull << from) - 1);
  }
}

MN_FN void place(craftax *w, int action) {
  const int row = w->row + down_of(w->direction), col = w->col + right_of(w->direction);
  const bool places = (action >= PLACE_STONE && action <= PLACE_PLANT) || action == PLACE_TORCH;
  if (!places || !inside(row, col) || taken(w, row, col)) return;
  const int block = w->at[w->floor].map[row][col];
  const bool bare = w->at[w->floor].item[row][col] == NOTHING, open = bare && !solid(block);
  const uint64_t carries = 1ull << GRASS | 1ull << SAND | 1ull << PATH | 1ull << FIRE_GRASS | 1ull << ICE_GRASS;       /* a torch */
  const uint8_t *has = w->has;
  if (action == PLACE_TABLE && open && has[HAS_WOOD] >= 2) put(w, row, col, TABLE, HAS_WOOD, 2, PLACED_TABLE);
  if (action == PLACE_FURNACE && open && has[HAS_STONE]) put(w, row, col, FURNACE, HAS_STONE, 1, PLACED_FURNACE);
  if (action == PLACE_STONE && (open || block == WATER) && has[HAS_STONE]) put(w, row, col, STONE, HAS_STONE, 1, PLACED_STONE);
  if (action == PLACE_TORCH && bare && (carries >> block & 1) && has[HAS_TORCH]) put_torch(w, row, col);
  if (action == PLACE_PLANT && bare && block == GRASS && has[HAS_SAPLING]) put_plant(w, row, col);
}

/* Plants ripen on floor 0, wherever they were planted. */
MN_FN void grow(craftax *w) {
  for (int i = 0; i < PLANTS; i++) {
    plant *p = w->garden + i;
    p->age = p->grows ? p->age + 1 : 0;
    if (p->age < 600 || w->at[0].map[p->row][p->col] == RIPE) continue;
    w->at[0].map[p->row][p->col] = RIPE;
    w->at[0].dug = 1;
  }
}
#endif
