/* craftax.c -- Craftax (Matthews et al. 2024, v1.6.1): nine floors of 48 x 48 blocks, from meadows through dungeons to a boss; gather,
** craft, fight, shoot, cast and dig.  Rules, observation, rewards and ends are the original's, oddities included; with random=jax so is
** chance.  Here: the contract.  world.h: state and names; tables.h: its numbers; generate.h: new floors; rules.h: the player; craft.h:
** what is made, mined and placed; fight.h: blows; magic.h: spells, potions, enchantments; mobs.h: all others; spawn.h: new ones;
** view.h: the observation; view_codes.h: the same without its zeros; facts.h: truth and which states can be; draw.h: the picture. */
#include "rules.h"
#include "view_codes.h"
#include "facts.h"
#include "draw.h"

static void spaces(const double *param, mn_space *out) {
  out->dtype = MN_F32;
  out->ndim = 1;
  out->shape[0] = param[CODES_OBSERVED] != 0 ? (int)CODED : (int)NUMBERS;
  out->n_actions = ACTIONS;
  out->bytes = sizeof(craftax);
  out->shared_bytes = sizeof(shared);
}

/* Floors that were entered: the first ones. */
static size_t used(const void *self) {
  const craftax *w = (const craftax *)self;
  return offsetof(craftax, at) + (size_t)mn_ones_in(w->made) * sizeof(level);
}

/* Of floors only where mobs are, on the one that the player is on. */
static void keep(const void *self, void *before) {
  const craftax *w = (const craftax *)self;
  const level *now = w->at + w->floor;
  level *was = ((craftax *)before)->at + w->floor;
  memcpy(before, self, offsetof(craftax, at));
  memcpy(was->occupied, now->occupied, sizeof now->occupied);
  memcpy(was->melee, now->melee, sizeof *now - offsetof(level, melee));
}

static int prepare(mn_ctx *mn, const double *param, const char *text, void *to) {
  (void)mn, (void)param, (void)text;
  for (int i = 0; i <= LONGEST; i++) ((shared *)to)->light[i] = daylight_at(i);
  return 0;
}

MN_FN void show(const craftax *w, mn_io *io, float light) {
  if (io->param[CODES_OBSERVED] != 0) observe_codes(w, light, io->obs);
  else observe(w, light, io->obs);
}

MN_FN void reset(craftax *w, mn_io *io) {
  dice d = dice_of(io, io->param[RANDOM] != 0, true);
  mn_jax_key key = mn_jax_split(&d.key);
  if (!d.jax)
    for (int i = 0; i < 2; i++) key.word[i] = dice_next_word(&d);
  generate(w, key);
  w->row = w->col = SIDE / 2;
  w->direction = UP;
  w->health = w->food = w->drink = w->energy = w->mana = 9;
  w->dexterity = w->strength = w->intelligence = 1;
  w->killed[0] = 10;                             /* the first ladder is open */
  w->boss_timer = BOSS_WAIT;
  show(w, io, light_at(io, 0));
}

/* What the achievements of a step pay. */
MN_FN int pay(const uint64_t *before, const uint64_t *after) {
  int sum = 0;
  for (int k = 0; k < 2; k++)
    for (uint64_t fresh = after[k] & ~before[k]; fresh; fresh &= fresh - 1) sum += pay_of(64 * k + mn_lowest_of(fresh));
  return sum;
}

MN_FN void step(craftax *w, mn_io *io) {
  dice d = dice_of(io, io->param[RANDOM] != 0, false);
  const int action = w->sleeping || w->resting ? NOOP : io->action;
  const uint64_t before[2] = { w->achieved[0], w->achieved[1] };
  const uint64_t none[2] = { 0, 0 };
  const int floor = w->floor;
  const float health = w->health;
  mn_jax_key key[5];                             /* of acts, reading, enchanting, mobs, new mobs */
  for (int i = 0; i < 5; i++) key[i] = dice_split(&d);
  change_floor(w, action);
  craft(w, action);
  d.key = key[0];
  if (action == DO) act(w, &d);
  place(w, action);
  shoot(w, action);
  cast(w, action);
  drink(w, action);
  d.key = key[1];
  if (action == READ_BOOK) read_book(w, &d);
  d.key = key[2];
  enchant(w, action, &d);
  boss_logic(w);
  level_up(w, action);
  walk(w, action);
  d.key = key[3];
  move_mobs(w, &d);
  d.key = key[4];
  spawn_mobs(w, &d, light_at(io, w->steps));
  grow(w);
  live(w, action);
  clip(w);
  tally(w);
  w->steps++;
  io->reward = MN_FMA(w->health - health, 0.1f, (float)pay(before, w->achieved));
  io->terminated = over(w);
  io->score = (float)pay(none, w->achieved) / 226;
  io->rare = w->floor != floor || w->at[floor].dug || w->at[0].dug;
  w->at[w->floor].dug = w->at[0].dug = 0;
  show(w, io, light_at(io, w->steps));
}

/* Needs can be changed from outside, within what each player has at least. */
MN_FN bool set(craftax *w, const mn_io *io, int fact, double value) {
  (void)io;
  if (fact == 0) w->health = (float)value;
  if (fact == 1) w->food = (int8_t)value;
  if (fact == 2) w->drink = (int8_t)value;
  if (fact == 3) w->energy = (int8_t)value;
  if (fact == 4) w->mana = (int8_t)value;
  return true;
}

static void outcome(const craftax *w, uint8_t *reached) {
  for (int i = 0; i < ACHIEVEMENTS; i++) reached[i] = has_achieved(w, i);
}

MN_FN void observe_again(craftax *w, mn_io *io) { show(w, io, light_at(io, w->steps)); }

/* Of random actions; what the best memory gets is not known. */
static inline void reference(const double *param, const void *made, mn_reference *out) {
  (void)param, (void)made;
  out->chance = 0.00906;
  out->episodes = 4000;
}

MN_ENV(craftax, .rules = "Gather, craft, fight and cast through nine floors of which you see 9 by 11 blocks: 67 achievements pay 226 in all, each "
                         "point of health a tenth; eat, drink and sleep; ladders open when eight monsters of a floor are dead.",
       .see = see, .reference = reference, .used = used, .keep = keep, .version = 1,
       .doc = "Craftax: gather, craft, fight and cast through nine floors down to a boss; 67 achievements",
       .about = "random   philox: the engine's random numbers\n"
                "         jax: those of JAX 0.4: seed 7 is the original's world of PRNGKey(7), and step s\n"
                "         uses the key fold_in(PRNGKey(7), s)\n"
                "observation   dense: all 8,268 numbers; codes: the same as 362, namely which\n"
                "         of the first 8,217 are 1 (-1: none), then the other 51\n"
                "Reward: 1, 3, 5 or 8 for each new achievement, 226 in all; 0.1 for each point of health gained\n"
                "or lost.  An episode ends without health, with the boss beaten, and after 100,000 steps.\n"
                "Observation: the original's 8,268 numbers: 9 x 11 cells of 37 blocks, 5 things on them, 5 classes\n"
                "of 8 mobs and whether it is lit, then 51 of what the player has and how it is.",
       .params = "random=philox|jax observation=dense|codes",
       .actions = "noop left right up down do sleep place_stone place_table place_furnace place_plant make_wood_pickaxe "
                  "make_stone_pickaxe make_iron_pickaxe make_wood_sword make_stone_sword make_iron_sword rest descend ascend "
                  "make_diamond_pickaxe make_diamond_sword make_iron_armour make_diamond_armour shoot_arrow make_arrow cast_fireball "
                  "cast_iceball place_torch drink_potion_red drink_potion_green drink_potion_blue drink_potion_pink drink_potion_cyan "
                  "drink_potion_yellow read_book enchant_sword enchant_armour make_torch level_up_dexterity level_up_strength "
                  "level_up_intelligence enchant_bow",
       .settable = "health=9.0[0.5..9] food=9[0..9] drink=9[0..9] energy=9[0..9] mana=9[0..9]", .to_know = "to_water=number to_tree=number to_ladder=number",
       .observes = "view[*-51] inventory[16] potions[6] needs=health,food,drink,energy,mana skills=xp,dexterity,strength,intelligence "
                   "facing=left,right,up,down armour[4] armour_magic[4] light sleeping resting spells=fireball,iceball floor ladder_open "
                   "boss_open",
       .outcomes = SHARED_OUTCOMES " make_arrow make_torch place_torch make_diamond_sword make_iron_armour make_diamond_armour "
                   "enter_gnomish_mines enter_dungeon enter_sewers enter_vault enter_troll_mines enter_fire_realm enter_ice_realm "
                   "enter_graveyard defeat_gnome_warrior defeat_gnome_archer defeat_orc_soldier defeat_orc_mage defeat_lizard "
                   "defeat_kobold defeat_troll defeat_deep_thing defeat_pigman defeat_fire_elemental defeat_frost_troll "
                   "defeat_ice_elemental damage_necromancer defeat_necromancer eat_bat eat_snail find_bow fire_bow collect_sapphire "
                   "learn_fireball cast_fireball learn_iceball cast_iceball collect_ruby make_diamond_pickaxe open_chest drink_potion "
                   "enchant_sword enchant_armour defeat_knight defeat_archer",
       .spaces = spaces, .prepare = prepare, .reset = reset, .step = step, .draw = draw, .truth = truth, .valid = valid,
       .set = set, .observe = observe_again, .outcome = outcome)
