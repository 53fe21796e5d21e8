/* magic.h -- arrows and spells, potions, books, enchantments, the boss's clock and the player's attributes. */
#ifndef MN_CRAFTAX_MAGIC_H
#define MN_CRAFTAX_MAGIC_H
#include "craft.h"

MN_FN bool let_fly(craftax *w, int type) {
  return launch(w->at[w->floor].mine, w->row, w->col, down_of(w->direction), right_of(w->direction), type);
}

MN_FN void shoot(craftax *w, int action) {
  if (action != SHOOT_ARROW || !w->bow || !w->has[HAS_ARROW] || !let_fly(w, ARROW2)) return;
  w->has[HAS_ARROW]--;
  achieve(w, FIRED_BOW, true);
}

MN_FN void cast(craftax *w, int action) {
  const int spell = action - CAST_FIREBALL;
  if (spell < 0 || spell > 1 || w->mana < 2 || !w->learned[spell] || !let_fly(w, spell ? ICEBALL : FIREBALL)) return;
  w->mana = (int8_t)(w->mana - 2);
  achieve(w, spell ? THREW_ICEBALL : THREW_FIREBALL, true);
}

MN_FN void drink(craftax *w, int action) {
  const int colour = action - DRINK_RED;
  if (colour < 0 || colour >= POTIONS || !w->potion[colour]) return;
  const int effect = w->effect[colour], by = effect % 2 ? -3 : 8;
  w->potion[colour]--;
  achieve(w, DRINK_POTION, true);
  if (effect < 2) w->health += (float)by;
  else if (effect < 4) w->mana = (int8_t)(w->mana + by);
  else w->energy = (int8_t)(w->energy + by);
}

/* It teaches a spell that is not known yet. */
MN_FN void read_book(craftax *w, dice *d) {
  if (!w->has[HAS_BOOK]) return;
  const float u = dice_uniform(d, dice_split(d));
  const int spell = w->learned[0] == w->learned[1] ? !w->learned[0] && u < 0.5f : w->learned[0];
  w->has[HAS_BOOK]--;
  w->learned[spell] = 1;
  achieve(w, spell ? LEARNED_ICEBALL : LEARNED_FIREBALL, true);
}

/* A piece of armour that has no magic, else one that has the other; else the first. */
MN_FN int armour_to_enchant(const craftax *w, dice *d, int magic) {
  float plain[ARMOURS], other[ARMOURS];
  for (int i = 0; i < ARMOURS; i++) {
    plain[i] = (i ? plain[i - 1] : 0.0f) + (w->armour_magic[i] == PLAIN);
    other[i] = (i ? other[i - 1] : 0.0f) + (w->armour_magic[i] != PLAIN && w->armour_magic[i] != magic);
  }
  return pick(d, dice_split(d), plain[ARMOURS - 1] > 0 ? plain : other, ARMOURS);
}

MN_FN void enchant(craftax *w, int action, dice *d) {
  if (action != ENCHANT_SWORD && action != ENCHANT_ARMOUR && action != ENCHANT_BOW) return;
  const int altar = block_at(w, w->row + down_of(w->direction), w->col + right_of(w->direction));
  if (altar != FIRE_ALTAR && altar != ICE_ALTAR) return;
  const uint8_t magic = altar == FIRE_ALTAR ? FIRE : ICE;
  uint8_t *gems = w->has + (magic == FIRE ? HAS_RUBY : HAS_SAPPHIRE);
  const bool wears = w->armour[0] || w->armour[1] || w->armour[2] || w->armour[3];
  if (w->mana < 9 || !*gems || !(action == ENCHANT_SWORD ? w->sword : action == ENCHANT_BOW ? w->bow : wears)) return;
  (*gems)--;
  w->mana = (int8_t)(w->mana - 9);
  if (action == ENCHANT_BOW) w->bow_magic = magic;
  if (action == ENCHANT_SWORD) w->sword_magic = magic;
  if (action == ENCHANT_ARMOUR) w->armour_magic[armour_to_enchant(w, d, magic)] = magic;
  achieve(w, ENCHANTED_SWORD, action == ENCHANT_SWORD);
  achieve(w, ENCHANTED_ARMOUR, action == ENCHANT_ARMOUR);
}

MN_FN void boss_logic(craftax *w) {
  achieve(w, DEFEAT_NECROMANCER, boss_beaten(w));
  w->boss_timer -= at_boss(w);
}

MN_FN void level_up(craftax *w, int action) {
  uint8_t *which = action == LEVEL_UP_DEXTERITY ? &w->dexterity : action == LEVEL_UP_STRENGTH ? &w->strength : &w->intelligence;
  if (action < LEVEL_UP_DEXTERITY || action > LEVEL_UP_INTELLIGENCE || !w->xp || *which >= 5) return;
  w->xp--;
  (*which)++;
}
#endif
