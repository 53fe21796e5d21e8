/* craftax_classic.c -- Craftax Classic (Matthews et al. 2024, v1.6.1): gather, craft, fight, sleep and dig in a world of 64 x 64 blocks
** that is new in each episode.  Rules, observation, rewards and ends are the original's, oddities included; with random=jax so is chance.
** Here: the contract.  world.h: state and names; generate.h: a new world; rules.h: the player; mobs.h: all others; view.h: the
** observation; draw.h: the picture. */
#include "mobs.h"
#include "view.h"
#include "draw.h"

static void spaces(const double *param, mn_space *out) {
  (void)param;
  out->dtype = MN_F32;
  out->ndim = 1;
  out->shape[0] = NUMBERS;
  out->n_actions = ACTIONS;
  out->bytes = sizeof(craftax_classic);
  out->shared_bytes = sizeof(shared);
}

static int prepare(mn_ctx *mn, const double *param, const char *text, void *to) {
  (void)mn, (void)param, (void)text;
  for (int i = 0; i <= LONGEST; i++) ((shared *)to)->light[i] = daylight_at(i);
  return 0;
}

/* All but the map. */
static void keep(const void *self, void *before) {
  const size_t from = offsetof(craftax_classic, map) + sizeof ((const craftax_classic *)self)->map;
  memcpy(before, self, offsetof(craftax_classic, map));
  memcpy((char *)before + from, (const char *)self + from, sizeof(craftax_classic) - from);
}

MN_FN float light_at(const mn_io *io, int step) { return ((const shared *)io->shared)->light[step]; }

MN_FN void reset(craftax_classic *w, mn_io *io) {
  dice d = dice_of(io, io->param[RANDOM] != 0, true);
  generate(w, &d);
  w->row = w->col = SIDE / 2;
  w->direction = UP;
  w->health = w->food = w->drink = w->energy = 9;
  for (int i = 0; i < ZOMBIES; i++) w->zombie[i].health = 1;
  for (int i = 0; i < COWS; i++) w->cow[i].health = 3;
  for (int i = 0; i < ARROWS; i++) w->shot[i].down = w->shot[i].right = 1;
  observe(w, light_at(io, 0), io->obs);
}

MN_FN void step(craftax_classic *w, mn_io *io) {
  dice d = dice_of(io, io->param[RANDOM] != 0, false);
  const int action = w->sleeping ? NOOP : io->action, health = w->health;
  const uint32_t before = w->achievements;
  craft(w, action);
  dice acts = d, moves = d, spawns = d;
  if (d.jax) {
    acts.key = dice_split(&d);
    moves.key = dice_split(&d);
    spawns.key = dice_split(&d);
  }
  if (action == DO) act(w, acts);
  place(w, action);
  walk(w, action);
  moves.used = 1;                                /* Philox: act has the first word */
  move_mobs(w, &moves);
  spawns.used = moves.used;
  spawn_mobs(w, &spawns, light_at(io, w->steps));
  grow(w);
  live(w, action);
  for (int i = 0; i < ITEMS; i++) w->item[i] = w->item[i] > 9 ? 9 : w->item[i];
  const bool burns = block_at(w, w->row, w->col) == LAVA;
  w->health = (int8_t)(burns ? 0 : most(w->health, 0));
  w->steps++;
  io->reward = MN_FMA((float)(w->health - health), 0.1f, (float)mn_ones_in(w->achievements & ~before));
  io->terminated = w->health <= 0 || w->steps >= LONGEST;
  io->score = (float)mn_ones_in(w->achievements) / (float)ACHIEVEMENTS;
  io->rare = w->dug;
  w->dug = 0;
  observe(w, light_at(io, w->steps), io->obs);
}

/* ---- facts ---- */

/* Steps down and right to the nearest of these blocks; 64, 64: there is none. */
static void find_block(const craftax_classic *w, uint32_t blocks, float *to) {
  int best = 1000;
  to[0] = to[1] = SIDE;
  for (int row = 0; row < SIDE; row++)
    for (int col = 0; col < SIDE; col++)
      if (blocks >> w->map[row][col] & 1 && distance(w, row, col) < best) {
        best = distance(w, row, col);
        to[0] = (float)(row - w->row);
        to[1] = (float)(col - w->col);
      }
}

static void find_mob(const craftax_classic *w, const mob *of, int n, float *to) {
  int best = 1000;
  to[0] = to[1] = SIDE;
  for (int i = 0; i < n; i++)
    if (of[i].alive && distance(w, of[i].row, of[i].col) < best) {
      best = distance(w, of[i].row, of[i].col);
      to[0] = (float)(of[i].row - w->row);
      to[1] = (float)(of[i].col - w->col);
    }
}

static int truth(const craftax_classic *w, const mn_io *io, const char **names, float *values) {
  const int numbers[10] = { w->col, w->row, w->direction - LEFT, w->sleeping, w->health, w->food, w->drink, w->energy, w->steps,
                            mn_ones_in(w->achievements) };
  const uint32_t found[6] = { 1u << WATER, 1u << TREE, 1u << TABLE, 1u << COAL, 1u << IRON, 1u << DIAMOND };
  *names = "x y direction sleeping health food drink energy day_step achieved light inventory[12] achievements[22] "
           "to_water[2] to_tree[2] to_table[2] to_coal[2] to_iron[2] to_diamond[2] to_zombie[2] to_cow[2] to_skeleton[2]";
  float *out = values;
  for (int i = 0; i < 10; i++) *out++ = (float)numbers[i];
  *out++ = light_at(io, w->steps);
  for (int i = 0; i < ITEMS; i++) *out++ = w->item[i];
  for (int i = 0; i < ACHIEVEMENTS; i++) *out++ = (float)(w->achievements >> i & 1);
  for (int i = 0; i < 6; i++, out += 2) find_block(w, found[i], out);
  find_mob(w, w->zombie, ZOMBIES, out);
  find_mob(w, w->cow, COWS, out + 2);
  find_mob(w, w->skeleton, SKELETONS, out + 4);
  return (int)(out + 6 - values);
}

static void outcome(const craftax_classic *w, uint8_t *reached) {
  for (int i = 0; i < ACHIEVEMENTS; i++) reached[i] = w->achievements >> i & 1;
}

/* ---- which states can be ---- */

static bool within(int x, int lo, int hi) { return x >= lo && x <= hi; }

static bool mobs_valid(const mob *of, int n, int health) {
  for (int i = 0; i < n; i++) {
    const mob *m = of + i;
    if (!inside(m->row, m->col) || !within(m->cooldown, -LONGEST, 5) || !within(m->health, -45, health)) return false;
    if (m->alive > 1 || (m->alive && m->health <= 0)) return false;
  }
  return true;
}

static bool arrows_valid(const craftax_classic *w) {
  const int far = LONGEST + SIDE;
  for (int i = 0; i < ARROWS; i++) {
    const arrow *a = w->shot + i;
    if (!within(a->row, -far, far) || !within(a->col, -far, far) || !within(a->down, -1, 1) || !within(a->right, -1, 1)) return false;
    if (a->flies > 1 || a->unused || (a->flies && (!inside(a->row, a->col) || (a->down && a->right)))) return false;
  }
  return true;
}

/* Slots fill in order.  A plant has its block, which is ripe when its time has come; others grow only where no slot was left. */
static bool plants_valid(const craftax_classic *w) {
  int ripe = 0, young = 0, slots = 0;
  for (int i = 0; i < SIDE * SIDE; i++) {
    ripe += w->map[i / SIDE][i % SIDE] == RIPE;
    young += w->map[i / SIDE][i % SIDE] == PLANT;
  }
  for (int i = 0; i < PLANTS; i++) {
    const plant *p = w->garden + i;
    if (p->grows > 1 || p->unused || (p->grows && slots < i)) return false;
    if (!p->grows && (p->age || p->row || p->col)) return false;
    if (!p->grows) continue;
    if (p->row >= SIDE || p->col >= SIDE || !within(p->age, 1, w->steps)) return false;
    if (w->map[p->row][p->col] != (p->age >= 600 ? RIPE : PLANT)) return false;
    for (int k = 0; k < i; k++)
      if (w->garden[k].row == p->row && w->garden[k].col == p->col) return false;
    slots++;
    ripe -= p->age >= 600;
    young -= p->age < 600;
  }
  return ripe == 0 && (young == 0 || (young > 0 && slots == PLANTS));
}

/* Nothing is owned that was not earned. */
static bool items_valid(const craftax_classic *w) {
  const int earned[ITEMS] = { COLLECT_WOOD, COLLECT_STONE, COLLECT_COAL, COLLECT_IRON, COLLECT_DIAMOND, COLLECT_SAPLING, MADE_WOOD_PICKAXE,
                              MADE_STONE_PICKAXE, MADE_IRON_PICKAXE, MADE_WOOD_SWORD, MADE_STONE_SWORD, MADE_IRON_SWORD };
  for (int i = 0; i < ITEMS; i++)
    if (w->item[i] > 9 || (w->item[i] && !(w->achievements >> earned[i] & 1))) return false;
  return w->achievements < 1u << ACHIEVEMENTS;
}

/* Every bit of occupied is a living mob's; one that a blow brought back may lack its bit. */
static bool occupied_valid(const craftax_classic *w) {
  uint64_t left[SIDE];
  memcpy(left, w->occupied, sizeof left);
  const mob *of[3] = { w->zombie, w->cow, w->skeleton };
  const int n[3] = { ZOMBIES, COWS, SKELETONS };
  for (int k = 0; k < 3; k++)
    for (int i = 0; i < n[k]; i++)
      if (of[k][i].alive) left[of[k][i].row] &= ~(1ull << of[k][i].col);
  for (int row = 0; row < SIDE; row++)
    if (left[row]) return false;
  return true;
}

static bool valid(const craftax_classic *w, const mn_io *io) {
  (void)io;
  for (int i = 0; i < SIDE * SIDE; i++) {
    const int block = w->map[i / SIDE][i % SIDE];
    if (block < GRASS || block >= BLOCKS || block == WOOD) return false;
  }
  if (!inside(w->row, w->col) || solid(w->map[w->row][w->col]) || w->map[w->row][w->col] == LAVA) return false;
  return within(w->steps, 0, LONGEST - 1) && within(w->direction, LEFT, DOWN) && w->sleeping <= 1 && within(w->health, 1, 9) &&
         within(w->food, 0, 9) && within(w->drink, 0, 9) && within(w->energy, 0, 9) && within(w->hunger, 0, 50) &&
         within(w->thirst, 0, 40) && within(w->fatigue, -20, 60) && within(w->recover, -30, 50) && items_valid(w) &&
         mobs_valid(w->zombie, ZOMBIES, 5) && mobs_valid(w->cow, COWS, 3) && mobs_valid(w->skeleton, SKELETONS, 3) &&
         arrows_valid(w) && plants_valid(w) && occupied_valid(w) && !w->dug;
}

/* Of random actions; what the best memory gets is not known. */
static inline void reference(const double *param, const void *made, mn_reference *out) {
  (void)param, (void)made;
  out->chance = 0.107;
  out->episodes = 10000;
}

MN_ENV(craftax_classic, .rules = "Gather, craft and fight in a world of which you see 7 by 9 blocks: each of 22 achievements pays 1 once, each point of "
                                 "health a tenth; eat, drink and sleep, and stay out of lava.", .see = see, .reference = reference, .keep = keep,
       .version = 1,
       .doc = "Craftax Classic: gather, craft, fight and survive in a new world; 22 achievements",
       .about = "random   philox: the engine's random numbers\n"
                "         jax: those of JAX 0.4: seed 7 is the original's world of PRNGKey(7), and step s\n"
                "         uses the key fold_in(PRNGKey(7), s)\n"
                "Reward: 1 for each new achievement, 0.1 for each point of health gained or lost.\n"
                "An episode ends without health, in lava, and after 10,000 steps.\n"
                "Observation: the original's 1,345 numbers: 7 x 9 cells of 17 blocks and 4 kinds of mobs,\n"
                "12 items, 4 needs, 4 directions, daylight, asleep.",
       .params = "random=philox|jax",
       .actions = "noop left right up down do sleep place_stone place_table place_furnace place_plant make_wood_pickaxe "
                  "make_stone_pickaxe make_iron_pickaxe make_wood_sword make_stone_sword make_iron_sword",
       .settable = NULL, .to_know = "to_water=number to_tree=number to_cow=number",
       .observes = "view[1323] inventory[12] needs=health,food,drink,energy facing=left,right,up,down light sleeping",
       .outcomes = SHARED_OUTCOMES,
       .spaces = spaces, .prepare = prepare, .reset = reset, .step = step, .draw = draw, .truth = truth, .valid = valid,
       .outcome = outcome)
