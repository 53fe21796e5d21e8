/* fight.h -- damage, blows at mobs, and projectiles that are let fly (the original's game_logic_utils.py). */
#ifndef MN_CRAFTAX_FIGHT_H
#define MN_CRAFTAX_FIGHT_H
#include "tables.h"

enum { KINDS = 3 };                              /* of damage: PLAIN, FIRE, ICE */
enum { MISSED, HIT, KILLED };

/* What passes a defense, summed in XLA's order. */
MN_FN float harm(const float *damage, const float *defense) {
  const float plain = (1 - defense[PLAIN]) * damage[PLAIN], ice = (1 - defense[ICE]) * damage[ICE];
  return (plain + ice) + (1 - defense[FIRE]) * damage[FIRE];
}

MN_FN float steel_of(int grade) { return (float)grade * 0.1f; }

/* A mob's blow or projectile meets the player's armour, a tenth a grade, and its magic, a fifth a piece. */
MN_FN void hurt(craftax *w, int of, int type, float times) {
  const uint8_t *armour = w->armour;
  int fire = 0, ice = 0;
  for (int i = 0; i < ARMOURS; i++) {
    fire += w->armour_magic[i] == FIRE;
    ice += w->armour_magic[i] == ICE;
  }
  const float steel = (steel_of(armour[0]) + steel_of(armour[1])) + (steel_of(armour[2]) + steel_of(armour[3]));
  const float defense[KINDS] = { steel, (float)fire * 0.2f, (float)ice * 0.2f };
  float damage[KINDS];
  for (int k = 0; k < KINDS; k++) damage[k] = damage_of(of, type, k) * times * (at_boss(w) ? 1.5f : 1.0f);
  w->health -= harm(damage, defense);
}

/* At mobs of one class. */
MN_FN int strike(craftax *w, int of, mob *mobs, int n, int row, int col, const float *damage, bool eats) {
  for (int i = 0; i < n; i++) {
    mob *m = mobs + i;
    if (!m->alive || m->row != row || m->col != col) continue;
    float defense[KINDS];
    for (int k = 0; k < KINDS; k++) defense[k] = defense_of(of, m->type, k);
    m->health -= harm(damage, defense);
    if (m->health > 0) return HIT;
    m->alive = 0;
    achieve(w, kill_earns(of, m->type), of != PASSIVE || eats);
    return KILLED;
  }
  return MISSED;
}

MN_FN void eat(craftax *w, int food) {
  w->food = (int8_t)least(most_food(w), w->food + food);
  w->hunger = 0;
}

/* At all mobs of a place; returns whether there was one.  A projectile kills cows that nobody eats. */
MN_FN bool attack(craftax *w, int row, int col, const float *damage, bool eats) {
  const int floor = w->floor;
  if (!inside(row, col)) return false;
  const int melee = strike(w, MELEE, w->at[floor].melee, MELEES, row, col, damage, eats);
  const int passive = strike(w, PASSIVE, w->at[floor].passive, PASSIVES, row, col, damage, eats);
  const int ranged = strike(w, RANGED, w->at[floor].ranged, RANGEDS, row, col, damage, eats);
  if (passive == KILLED && eats) eat(w, 6);
  if (melee == KILLED || passive == KILLED || ranged == KILLED) vacate(w, row, col);
  w->killed[floor] += melee == KILLED || ranged == KILLED;
  return melee || passive || ranged;
}

/* The damage of the player's sword. */
MN_FN void blow(const craftax *w, float *damage) {
  const uint8_t swords[5] = { 1, 2, 3, 5, 8 };
  const float base = swords[w->sword], magic = 1 + 0.05f * (float)(w->intelligence - 1);
  damage[PLAIN] = base * (1 + 0.25f * (float)(w->strength - 1));
  damage[FIRE] = w->sword_magic == FIRE ? base * 0.5f * magic : 0.0f;
  damage[ICE] = w->sword_magic == ICE ? base * 0.5f * magic : 0.0f;
}

/* The damage of a projectile of the player. */
MN_FN void impact(const craftax *w, int type, float *damage) {
  for (int k = 0; k < KINDS; k++) damage[k] = damage_of(PROJECTILE, type, k);
  if (type == ARROW || type == ARROW2) {
    if (w->bow_magic != PLAIN) damage[w->bow_magic] += damage[PLAIN] / 2;
    for (int k = 0; k < KINDS; k++) damage[k] *= 1 + 0.2f * (float)(w->dexterity - 1);
  } else if (type == FIREBALL || type == ICEBALL) {
    for (int k = 0; k < KINDS; k++) damage[k] *= 1 + 0.5f * (float)(w->intelligence - 1);
  }
}

/* Into the first place that is free; false where none is. */
MN_FN bool launch(shot *shots, int row, int col, int down, int right, int type) {
  for (int i = 0; i < SHOTS; i++) {
    shot *s = shots + i;
    if (s->flies) continue;
    s->row = row;
    s->col = col;
    s->down = (int8_t)down;
    s->right = (int8_t)right;
    s->flies = 1;
    s->type = (uint8_t)type;
    return true;
  }
  return false;
}
#endif
