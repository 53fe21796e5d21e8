/* mobs.h -- mobs move and strike, projectiles fly (the original's update_mobs, in its order). */
#ifndef MN_CRAFTAX_MOBS_H
#define MN_CRAFTAX_MOBS_H
#include "magic.h"

enum { DESPAWN = 14 };                           /* steps from the player */

/* What chance gives a mob in one step: a direction, which of two equal axes, and a number in 0 .. 1. */
typedef struct whim { int way; bool by_row; float u; } whim;

MN_FN whim whim_of(dice *d) {
  whim m;
  if (d->jax) {
    m.way = LEFT + mn_jax_below(dice_split(d), 4);
    m.by_row = mn_jax_uniform(dice_split(d), 1, 0) >= 0.5f;
    m.u = mn_jax_uniform(dice_split(d), 1, 0);
  } else {
    const uint32_t word = dice_next_word(d);
    m.way = LEFT + (int)(word & 3);
    m.by_row = word >> 2 & 1;
    m.u = (float)(word >> 9) * 0x1p-23f;
  }
  return m;
}

/* One step toward the player along the longer way. */
MN_FN void toward(const craftax *w, const mob *m, bool by_row, int *down, int *right) {
  const int rows = w->row - m->row, cols = w->col - m->col, tall = absolute(rows), wide = absolute(cols);
  const bool vertical = tall == wide ? by_row : tall > wide;
  *down = vertical ? sign(rows) : 0;
  *right = vertical ? 0 : sign(cols);
}

/* It goes there if it can, and is gone if the player is far; monsters of the boss stay. */
MN_FN void move_mob(craftax *w, mob *m, int of, int row, int col) {
  const bool goes = free_for(w, row, col, stops(of, m->type));
  const bool stays = distance(w, m->row, m->col) < DESPAWN || (of != PASSIVE && at_boss(w));
  if (m->alive) vacate(w, m->row, m->col);
  if (goes) {
    m->row = (uint8_t)row;
    m->col = (uint8_t)col;
  }
  m->alive &= stays;
  if (m->alive) occupy(w, m->row, m->col);
}

/* A blow wakes the player. */
MN_FN void move_melee(craftax *w, mob *m, whim chance) {
  const int far = distance(w, m->row, m->col);
  int down = down_of(chance.way), right = right_of(chance.way);
  if ((far < 10 || at_boss(w)) && chance.u < 0.75f) toward(w, m, chance.by_row, &down, &right);
  const bool strikes = far == 1 && m->cooldown <= 0 && m->alive;
  if (strikes) {
    hurt(w, MELEE, m->type, w->sleeping ? 3.5f : 1.0f);
    achieve(w, WAKE_UP, w->sleeping);
    w->sleeping = w->resting = 0;
    down = right = 0;
  }
  m->cooldown = strikes ? 5 : m->cooldown - 1;
  move_mob(w, m, MELEE, m->row + down, m->col + right);
}

MN_FN void move_ranged(craftax *w, mob *m, whim chance) {
  const int far = distance(w, m->row, m->col);
  int down = down_of(chance.way), right = right_of(chance.way), ahead, aside;
  toward(w, m, chance.by_row, &ahead, &aside);
  if (chance.u > 0.85f && far >= 6) down = ahead, right = aside;
  if (chance.u > 0.85f && far <= 3) down = -ahead, right = -aside;
  const bool aims = far == 4 || far == 5 || (far <= 3 && !free_for(w, m->row + down, m->col + right, stops(RANGED, m->type)));
  const bool shoots = aims && m->cooldown <= 0 && m->alive;
  if (shoots) {
    launch(w->at[w->floor].theirs, m->row, m->col, ahead, aside, shot_of(m->type));
    down = right = 0;
  }
  m->cooldown = shoots ? 4 : m->cooldown - 1;
  move_mob(w, m, RANGED, m->row + down, m->col + right);
}

/* One that does not fly goes on all the same: it may hide others from view. */
MN_FN void move_theirs(craftax *w, shot *s) {
  const int row = s->row + s->down, col = s->col + s->right;
  const bool hits = distance(w, s->row, s->col) == 0 || distance(w, row, col) == 0;
  s->row = row;
  s->col = col;
  if (!s->flies) return;
  const int block = block_at(w, row, col);
  if (hits) {
    hurt(w, PROJECTILE, s->type, 1);
    w->sleeping = w->resting = 0;
  }
  s->flies = inside(row, col) && !solid(block) && !hits && !mob_at(w, row, col);
  if (block == FURNACE || block == TABLE) put_block(w, row, col, PATH);
}

MN_FN void move_mine(craftax *w, shot *s) {
  const int row = s->row + s->down, col = s->col + s->right;
  if (s->flies) {
    float damage[KINDS];
    impact(w, s->type, damage);
    const bool hits = attack(w, s->row, s->col, damage, false) || attack(w, row, col, damage, false);
    s->flies = inside(row, col) && !solid(block_at(w, row, col)) && !hits;
  }
  s->row = row;
  s->col = col;
}

MN_FN void move_mobs(craftax *w, dice *d) {
  const int floor = w->floor;
  dice_split(d);
  for (int i = 0; i < MELEES; i++) {
    move_melee(w, w->at[floor].melee + i, whim_of(d));
    if (d->jax) d->key = dice_split(d);               /* the original goes on with the other key here */
  }
  dice_split(d);
  for (int i = 0; i < PASSIVES; i++) {
    mob *m = w->at[floor].passive + i;
    const int way = LEFT + (d->jax ? mn_jax_below(dice_split(d), 8) : (int)(dice_next_word(d) >> 29));     /* half of the time nowhere */
    move_mob(w, m, PASSIVE, m->row + down_of(way), m->col + right_of(way));
  }
  dice_split(d);
  for (int i = 0; i < RANGEDS; i++) move_ranged(w, w->at[floor].ranged + i, whim_of(d));
  for (int i = 0; i < SHOTS; i++) move_theirs(w, w->at[floor].theirs + i);
  for (int i = 0; i < SHOTS; i++) move_mine(w, w->at[floor].mine + i);
}
#endif
