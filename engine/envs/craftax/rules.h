/* rules.h -- the player changes floors, walks, lives and ends (the original's game_logic.py); includes all other rules. */
#ifndef MN_CRAFTAX_RULES_H
#define MN_CRAFTAX_RULES_H
#include "generate.h"
#include "spawn.h"

/* ---- floors ---- */

MN_FN void arrive(craftax *w, int floor, const uint8_t *at) {
  w->floor = (uint8_t)floor;
  w->row = at[0];
  w->col = at[1];
}

/* A ladder down opens when enough monsters of its floor are killed.  The first arrival on a floor gives a point of experience. */
MN_FN void change_floor(craftax *w, int action) {
  const int on = w->at[w->floor].item[w->row][w->col], floor = w->floor;
  if (action == DESCEND && on == LADDER_DOWN && w->killed[floor] >= CLEARED && floor < BOSS) {
    make_floor(w, floor + 1);
    arrive(w, floor + 1, w->at[floor + 1].up_ladder);
  } else if (action == ASCEND && on == LADDER_UP && floor > 0) {
    arrive(w, floor - 1, w->at[floor - 1].down_ladder);
  }
  if (w->floor == 0) return;
  w->xp = (uint8_t)(w->xp + !has_achieved(w, floor_earns(w->floor)));
  achieve(w, floor_earns(w->floor), true);
}

/* ---- walking ---- */

MN_FN void walk(craftax *w, int action) {
  if (action < LEFT || action > DOWN) return;
  const int row = w->row + down_of(action), col = w->col + right_of(action);
  w->direction = (uint8_t)action;
  if (!free_for(w, row, col, WALKER)) return;
  w->row = (int16_t)row;
  w->col = (int16_t)col;
}

/* ---- the body ---- */

/* It sleeps and rests until it is well; want ends a rest too. */
MN_FN void slumber(craftax *w, int action) {
  w->sleeping |= action == SLEEP && w->energy < most_food(w);
  const bool wakes = w->sleeping && w->energy >= most_food(w);
  w->sleeping &= !wakes;
  achieve(w, WAKE_UP, wakes);
  const float whole = (float)most_health(w);
  w->resting |= action == REST && w->health < whole;
  w->resting &= !(w->health >= whole || w->food <= 0 || w->drink <= 0);
}

/* Dexterity slows hunger, thirst and fatigue; at the boss they take nothing. */
MN_FN void need(craftax *w) {
  const int takes = !at_boss(w);
  const float pace = 1 - 0.125f * (float)(w->dexterity - 1), half = w->sleeping ? 0.5f * pace : pace;
  w->hunger += half;
  if (w->hunger > 25) w->hunger = 0, w->food = (int8_t)most(w->food - takes, 0);
  w->thirst += half;
  if (w->thirst > 20) w->thirst = 0, w->drink = (int8_t)most(w->drink - takes, 0);
  w->fatigue = !w->sleeping ? w->fatigue + pace : w->fatigue < 1 ? w->fatigue - 1 : 0;
  if (w->fatigue > 30) w->fatigue = 0, w->energy = (int8_t)most(w->energy - takes, 0);
  if (w->fatigue < -10) w->fatigue = 0, w->energy = (int8_t)least(w->energy + 1, most_food(w));
}

MN_FN void heal(craftax *w) {
  const bool well = w->food > 0 && w->drink > 0 && (w->energy > 0 || w->sleeping);
  w->recover += well ? (w->sleeping ? 2.0f : 1.0f) : at_boss(w) ? 0.0f : w->sleeping ? -0.5f : -1.0f;
  const float whole = (float)most_health(w);
  if (w->recover > 25) w->recover = 0, w->health = w->health + 1 < whole ? w->health + 1 : whole;
  if (w->recover < -15) w->recover = 0, w->health -= 1;
  w->recover_mana = (w->recover_mana + (w->sleeping ? 2.0f : 1.0f)) * (1 + 0.25f * (float)(w->intelligence - 1));
  if (w->recover_mana > 30) w->recover_mana = 0, w->mana++;
}

MN_FN void live(craftax *w, int action) {
  slumber(w, action);
  need(w);
  heal(w);
}

/* ---- limits and achievements at the end of a step ---- */

MN_FN int within_0(int x, int high) { return least(most(x, 0), high); }

MN_FN void clip(craftax *w) {
  const float whole = (float)most_health(w), health = w->health > 0 ? w->health : 0;
  for (int i = 0; i < ITEMS; i++) w->has[i] = (uint8_t)least(w->has[i], 99);
  for (int i = 0; i < POTIONS; i++) w->potion[i] = (uint8_t)least(w->potion[i], 99);
  w->health = health < whole ? health : whole;
  w->food = (int8_t)within_0(w->food, most_food(w));
  w->drink = (int8_t)within_0(w->drink, most_food(w));
  w->energy = (int8_t)within_0(w->energy, most_food(w));
  w->mana = (int8_t)within_0(w->mana, most_mana(w));
}

/* What is owned was achieved, however it came. */
MN_FN void tally(craftax *w) {
  const uint8_t earned[ITEMS] = { COLLECT_WOOD, COLLECT_STONE, COLLECT_COAL, COLLECT_IRON, COLLECT_DIAMOND, COLLECT_SAPPHIRE, COLLECT_RUBY,
                                  COLLECT_SAPLING, MADE_TORCH, MADE_ARROW, 0 };
  const uint8_t pickaxes[4] = { MADE_WOOD_PICKAXE, MADE_STONE_PICKAXE, MADE_IRON_PICKAXE, MADE_DIAMOND_PICKAXE };
  const uint8_t swords[4] = { MADE_WOOD_SWORD, MADE_STONE_SWORD, MADE_IRON_SWORD, MADE_DIAMOND_SWORD };
  for (int i = 0; i < HAS_BOOK; i++) achieve(w, earned[i], w->has[i] > 0);
  achieve(w, FIND_BOW, w->bow > 0);
  for (int i = 0; i < 4; i++) {
    achieve(w, pickaxes[i], w->pickaxe > i);
    achieve(w, swords[i], w->sword > i);
  }
}

MN_FN bool over(const craftax *w) { return w->steps >= LONGEST || w->health <= 0 || boss_beaten(w); }
#endif
