/* draw.h -- the picture: what the player sees, the map of its floor, what it has, and the wall of achievements.  A seen cell is 1 by 1. */
#ifndef MN_CRAFTAX_DRAW_H
#define MN_CRAFTAX_DRAW_H
#include "worlds/craftax_draw.h"
#include "view_codes.h"
#include "tables.h"

/* 0xRRGGBB */
static uint32_t block_colour(int block) {
  static const uint32_t colour[BLOCKS - SHARED_BLOCKS] = {
    0x4A4F63, 0x05070A, 0x4A5F55, 0x8F8577, 0x7D8590, 0x7D8590, 0xB9A78A, 0xB9A78A, 0x9B5A3A, 0xBFD8E6, 0x8A8A8A, 0x9B5A3A, 0xBFD8E6, 0xB9A78A,
    0xB9A78A, 0xB9A78A, 0xB9A78A, 0xB9A78A, 0xB9A78A, 0xB9A78A };
  return block < SHARED_BLOCKS ? shared_colour(block) : colour[block - SHARED_BLOCKS];
}

static uint32_t grain_colour(int block) { return block == SAPPHIRE ? 0x3F6BFF : block == RUBY ? 0xE5294E : shared_grain(block); }

/* A block on the floor around it: a box with a mark. */
static void draw_box(mn_canvas *c, uint32_t colour, uint32_t mark, float x, float y) {
  mn_canvas_add(c, MN_RECT, colour, x + 0.14f, y + 0.16f, 0.72f, 0.7f);
  mn_canvas_add(c, MN_RECT, mark, x + 0.34f, y + 0.36f, 0.32f, 0.26f);
}

static void draw_grave(mn_canvas *c, float x, float y) {
  mn_canvas_add(c, MN_DISC, 0x8D94A0FF, x + 0.5f, y + 0.4f, 0.26f, 0);
  mn_canvas_add(c, MN_RECT, 0x8D94A0FF, x + 0.24f, y + 0.4f, 0.52f, 0.5f);
}

static void draw_boss(mn_canvas *c, bool open, float x, float y) {
  mn_canvas_add(c, MN_DISC, INK, x + 0.5f, y + 0.5f, 0.48f, 0);
  mn_canvas_add(c, MN_DISC, open ? 0xF7E06AFF : 0x8B3FC7FF, x + 0.5f, y + 0.5f, 0.4f, 0);
  mn_canvas_text(c, INK, x + 0.32f, y + 0.67f, 0.5f, "N");
}

static void draw_block(mn_canvas *c, int block, bool boss_is_open, float x, float y) {
  if (block < SHARED_BLOCKS) {
    draw_shared_block(c, block, x, y);
    return;
  }
  mn_canvas_add(c, MN_RECT, block_colour(block) << 8 | 0xFF, x, y, 1, 1);
  if (grain_colour(block)) draw_grains(c, grain_colour(block) << 8 | 0xFF, x, y);
  switch (block) {
  case FIRE_TREE: draw_tree(c, 0xE2622BFF, x, y); break;
  case ICE_SHRUB: draw_tree(c, 0x7FB6D6FF, x, y); break;
  case STALAGMITE: mn_canvas_add(c, MN_DISC, 0x5E564BFF, x + 0.5f, y + 0.55f, 0.3f, 0.3f); break;
  case CHEST: draw_box(c, 0xA9702CFF, 0xFFD870FF, x, y); break;
  case FOUNTAIN: draw_box(c, 0x8D94A0FF, 0x4F93E3FF, x, y); break;
  case FIRE_ALTAR: draw_box(c, 0x5B3A6BFF, 0xFF7A3CFF, x, y); break;
  case ICE_ALTAR: draw_box(c, 0x5B3A6BFF, 0x9CE3FFFF, x, y); break;
  case GRAVE: case GRAVE2: case GRAVE3: draw_grave(c, x, y); break;
  case NECROMANCER: draw_boss(c, boss_is_open, x, y); break;
  default: break;
  }
}

static void draw_item(mn_canvas *c, int item, float x, float y) {
  if (item == NOTHING) return;
  if (item == TORCH) {
    mn_canvas_add(c, MN_RECT, 0x8A6238FF, x + 0.45f, y + 0.4f, 0.1f, 0.45f);
    mn_canvas_add(c, MN_DISC, 0xFFC24BFF, x + 0.5f, y + 0.34f, 0.14f, 0);
    return;
  }
  mn_canvas_add(c, MN_RECT, item == LADDER_UP ? 0xF2E3D0FF : 0x3A2A1CFF, x + 0.2f, y + 0.15f, 0.6f, 0.7f);
  mn_canvas_text(c, item == LADDER_UP ? INK : 0xFFFFFFFF, x + 0.32f, y + 0.68f, 0.5f, item == LADDER_UP ? "<" : ">");
}

static bool in_view(const craftax *w, int row, int col) {
  return absolute(row - w->row) <= ROWS / 2 && absolute(col - w->col) <= COLS / 2 && lit_at(w, row, col);
}

static void draw_mobs(const craftax *w, mn_canvas *c, const mob *of, int n, uint32_t colour, const char *letters) {
  for (int i = 0; i < n; i++)
    if (of[i].alive && in_view(w, of[i].row, of[i].col))
      draw_creature(c, colour, letters[of[i].type], (float)(of[i].col - w->col + COLS / 2), (float)(of[i].row - w->row + ROWS / 2));
}

static uint32_t shot_colour(int type) {
  return type == FIREBALL || type == FIREBALL2 ? 0xFF7A3CFF : type == ICEBALL || type == ICEBALL2 ? 0x9CE3FFFF
         : type == SLIMEBALL ? 0x8FD06BFF : 0xFFFFFFFF;
}

static void draw_shots(const craftax *w, mn_canvas *c, const shot *of) {
  for (int i = 0; i < SHOTS; i++)
    if (of[i].flies && in_view(w, of[i].row, of[i].col))
      draw_arrow(c, shot_colour(of[i].type), of[i].down, of[i].right, (float)(of[i].col - w->col + COLS / 2),
                 (float)(of[i].row - w->row + ROWS / 2), 0.4f);
}

static void draw_view(const craftax *w, float light, bool open, mn_canvas *c) {
  mn_canvas_add(c, MN_RECT, 0x05070AFF, 0, 0, COLS, ROWS);
  for (int i = 0; i < ROWS; i++)
    for (int j = 0; j < COLS; j++) {
      const int row = w->row - ROWS / 2 + i, col = w->col - COLS / 2 + j;
      if (!lit_at(w, row, col)) continue;
      draw_block(c, w->at[w->floor].map[row][col], open, (float)j, (float)i);
      draw_item(c, w->at[w->floor].item[row][col], (float)j, (float)i);
    }
  draw_mobs(w, c, w->at[w->floor].melee, MELEES, 0x7BC47FFF, "ZGOLKTPF");
  draw_mobs(w, c, w->at[w->floor].passive, PASSIVES, 0xF2E3D0FF, "cbs");
  draw_mobs(w, c, w->at[w->floor].ranged, RANGEDS, 0xE0A0B8FF, "SAMKADFI");
  draw_shots(w, c, w->at[w->floor].theirs);
  draw_shots(w, c, w->at[w->floor].mine);
  draw_player(c, w->direction, w->sleeping || w->resting, ROWS, COLS);
  if (w->floor == 0) draw_dusk(c, light, ROWS, COLS);
}

/* All of the floor, a pixel a cell, darker where no light is, with a frame around the view. */
static void draw_map(const craftax *w, mn_canvas *c, float x, float y, float size) {
  uint8_t rgb[SIDE * SIDE * 3];
  for (int i = 0; i < SIDE * SIDE; i++) {
    const int row = i / SIDE, col = i % SIDE, block = w->at[w->floor].map[row][col], item = w->at[w->floor].item[row][col];
    const uint32_t seen = grain_colour(block) ? grain_colour(block) : block_colour(block);
    put_pixel(rgb, i, item == LADDER_DOWN ? 0xFF40FF : item == LADDER_UP ? 0xFFFFFF : seen, lit_at(w, row, col) ? 0 : 1);
  }
  draw_pixels(c, rgb, SIDE, w->row, w->col, ROWS, COLS, x, y, size);
}

static void draw_needs(const craftax *w, mn_canvas *c, float x, float y) {
  draw_need(c, "health", (int)(w->health + 0.99f), most_health(w), need_colour(HEALTH_COLOUR), x, y, 0.32f);
  draw_need(c, "food", w->food, most_food(w), need_colour(FOOD_COLOUR), x, y + 0.4f, 0.32f);
  draw_need(c, "drink", w->drink, most_food(w), need_colour(DRINK_COLOUR), x, y + 0.8f, 0.32f);
  draw_need(c, "energy", w->energy, most_food(w), need_colour(ENERGY_COLOUR), x, y + 1.2f, 0.32f);
  draw_need(c, "mana", w->mana, most_mana(w), need_colour(MANA_COLOUR), x, y + 1.6f, 0.32f);
}

static void draw_grade(mn_canvas *c, const char *grade, int magic, const char *name, float x, float y) {
  static const char *const spell[3] = { "", " of fire", " of ice" };
  char text[60];
  snprintf(text, sizeof text, "%s%s%s", grade, name, spell[magic]);
  mn_canvas_text(c, grade[0] ? BRIGHT : DIM, x, y, 0.32f, text);
}

static void draw_armour(const craftax *w, mn_canvas *c, float x, float y) {
  static const uint32_t plate[3] = { 0x2A3440FF, 0xC9CFD6FF, 0xB8F4FFFF }, glow[3] = { 0, 0xFF7A3CFF, 0x3F6BFFFF };
  mn_canvas_text(c, PALE, x, y + 0.3f, 0.32f, "armour");
  for (int i = 0; i < ARMOURS; i++) {
    mn_canvas_add(c, MN_RECT, plate[w->armour[i]], x + 1.3f + 0.5f * (float)i, y + 0.02f, 0.4f, 0.32f);
    if (w->armour_magic[i]) mn_canvas_add(c, MN_RECT, glow[w->armour_magic[i]], x + 1.4f + 0.5f * (float)i, y + 0.1f, 0.2f, 0.16f);
  }
}

/* What the player has, beside the picture (tall) or below it. */
static void draw_items(const craftax *w, mn_canvas *c, bool tall, float x, float y) {
  static const char *const name[ITEMS] = { "wood", "stone", "coal", "iron", "diamond", "sapphire", "ruby", "sapling", "torch", "arrow", "book" };
  static const char *const potion[POTIONS] = { "red", "green", "blue", "pink", "cyan", "yellow" };
  static const char *const tool[5] = { "", "wood ", "stone ", "iron ", "diamond " };
  const int column = tall ? 6 : 4;
  const float flask = tall ? x : x + 5.7f, flasks = tall ? y + 2.8f : y, tools = tall ? x : x + 9, at_tools = tall ? y + 4.2f : y;
  for (int i = 0; i < ITEMS; i++)
    draw_count(c, w->has[i], name[i], x + (tall ? 2.2f : 1.9f) * (float)(i / column), y + 0.3f + 0.4f * (float)(i % column), 0.32f);
  for (int i = 0; i < POTIONS; i++)
    draw_count(c, w->potion[i], potion[i], flask + (tall ? 2.2f : 1.5f) * (float)(i / 3), flasks + 0.3f + 0.4f * (float)(i % 3), 0.32f);
  draw_grade(c, tool[w->pickaxe], 0, "pickaxe", tools, at_tools + 0.3f);
  draw_grade(c, tool[w->sword], w->sword_magic, "sword", tools, at_tools + 0.7f);
  draw_grade(c, w->bow ? "a " : "", w->bow_magic, "bow", tools, at_tools + 1.1f);
  draw_armour(w, c, x, y + (tall ? 5.6f : 1.6f));
  char text[80];
  snprintf(text, sizeof text, "spells: %s%s%s", w->learned[0] ? "fire " : "", w->learned[1] ? "ice" : "", w->learned[0] || w->learned[1] ? "" : "none");
  mn_canvas_text(c, PALE, tall ? x : x + 3.7f, y + (tall ? 6.3f : 1.9f), 0.32f, text);
  snprintf(text, sizeof text, "xp %d, dexterity %d, strength %d, intelligence %d", w->xp, w->dexterity, w->strength, w->intelligence);
  mn_canvas_text(c, PALE, tall ? x : x + 6.3f, y + (tall ? 6.7f : 1.9f), tall ? 0.25f : 0.32f, text);
}

/* A light for each achievement, and the name of each that is reached, as large as there is room; what pays more is brighter. */
static void draw_wall(const craftax *w, mn_canvas *c, float x, float y) {
  static const char *const name[ACHIEVEMENTS] = {
    "wood", "place table", "eat cow", "sapling", "drink", "wood pickaxe", "wood sword", "place plant", "zombie", "stone", "place stone",
    "eat plant", "skeleton", "stone pickaxe", "stone sword", "wake up", "furnace", "coal", "iron", "diamond", "iron pickaxe", "iron sword",
    "arrow", "torch", "place torch", "diamond sword", "iron armour", "diamond armour", "gnomish mines", "dungeon", "sewers", "vault",
    "troll mines", "fire realm", "ice realm", "graveyard", "gnome warrior", "gnome archer", "orc soldier", "orc mage", "lizard", "kobold",
    "troll", "deep thing", "pigman", "fire elemental", "frost troll", "ice elemental", "hurt the boss", "necromancer", "eat bat",
    "eat snail", "find bow", "fire bow", "sapphire", "learn fireball", "fireball", "learn iceball", "iceball", "ruby", "diamond pickaxe",
    "open chest", "drink potion", "enchant sword", "enchant armour", "knight", "knight archer" };
  const float all = 9 * 2.29f, step = all / ACHIEVEMENTS;
  int lit = 0, rows = 3, at = 0;
  for (int i = 0; i < ACHIEVEMENTS; i++) lit += has_achieved(w, i);
  while ((rows + rows / 6) * rows < lit) rows++;                   /* stones at least 5.4 times as wide as high */
  const int columns = rows + rows / 6;
  const float wide = all / (float)columns, high = 3.17f / (float)rows;
  for (int i = 0; i < ACHIEVEMENTS; i++) {
    const int pay = pay_of(i), has = has_achieved(w, i);
    const uint32_t gold = pay == 1 ? 0xD9B45AFF : pay == 3 ? 0xFFC857FF : pay == 5 ? 0xFFE08AFF : 0xFFF6D0FF;
    mn_canvas_add(c, MN_RECT, has ? gold : 0x222B35FF, x + step * (float)i, y, 0.8f * step, 0.36f);
    if (has) draw_stone(c, true, gold, name[i], x + wide * (float)(at % columns), y + 0.48f + high * (float)(at / columns), 0.97f * wide, 0.9f * high);
    at += has;
  }
}

static const char *floor_name(int floor) {
  static const char *const name[FLOORS] = { "overworld", "dungeon", "gnomish mines", "sewers", "vaults", "troll mines", "fire realm",
                                            "ice realm", "graveyard" };
  return name[floor];
}

static void draw(const craftax *w, const mn_io *io, mn_canvas *c) {
  const float light = light_at(io, w->steps);
  draw_ground(c, 9 * 2.29f, ROWS + 2.9f + 8 * 0.46f);
  draw_view(w, light, boss_open(w), c);
  draw_map(w, c, COLS + 0.3f, 0, ROWS);
  draw_needs(w, c, 0, ROWS + 0.7f);
  char text[128];
  snprintf(text, sizeof text, "floor %d: %s, %s, step %d%s; %d killed, ladder %s", w->floor, floor_name(w->floor), light < 0.4f ? "night" : "day",
           w->steps, w->sleeping ? ", asleep" : w->resting ? ", resting" : "", w->killed[w->floor],
           w->killed[w->floor] >= CLEARED ? "open" : "shut");
  mn_canvas_text(c, PALE, 0, ROWS + 0.5f, 0.36f, text);
  draw_items(w, c, false, 5.9f, ROWS + 0.7f);
  draw_wall(w, c, 0, ROWS + 2.9f);
}

/* A mob of an observation, in the next slot. */
static void put_mob(mob *of, int *n, int most_of_them, int row, int col, int type) {
  if (*n < most_of_them) of[(*n)++] = (mob){ .row = (uint8_t)row, .col = (uint8_t)col, .alive = 1, .type = (uint8_t)type };
}

static void put_seen(craftax *w, const float *cell, int row, int col, int *count) {
  if (cell[LIT_AT] == 0) return;
  w->at[0].lit[row] |= 1ull << col;
  for (int block = 0; block < BLOCKS; block++)
    if (cell[block] > 0) w->at[0].map[row][col] = (uint8_t)block;
  for (int item = 0; item < THINGS; item++)
    if (cell[BLOCKS + item] > 0) w->at[0].item[row][col] = (uint8_t)item;
  for (int type = 0; type < TYPES; type++) {
    if (cell[MOB_AT + type] > 0) put_mob(w->at[0].melee, &count[0], MELEES, row, col, type);
    if (cell[MOB_AT + 8 + type] > 0 && type < 3) put_mob(w->at[0].passive, &count[1], PASSIVES, row, col, type);
    if (cell[MOB_AT + 16 + type] > 0) put_mob(w->at[0].ranged, &count[2], RANGEDS, row, col, type);
  }
}

static int squared(float root_by_10) { return (int)(100 * root_by_10 * root_by_10 + 0.5f); }
static int times_10(float x) { return (int)(10 * x + 0.5f); }

/* What the player carries and how it is, of an observation. */
static void put_carried(craftax *w, const float *at) {
  for (int i = 0; i < HAS_BOOK; i++) w->has[i] = (uint8_t)squared(at[i]);
  at += HAS_BOOK;
  w->has[HAS_BOOK] = (uint8_t)(2 * at[0] + 0.5f);
  w->pickaxe = (uint8_t)(4 * at[1] + 0.5f), w->sword = (uint8_t)(4 * at[2] + 0.5f);
  w->sword_magic = (uint8_t)at[3], w->bow_magic = (uint8_t)at[4], w->bow = (uint8_t)at[5];
  at += 6;
  for (int i = 0; i < POTIONS; i++) w->potion[i] = (uint8_t)squared(at[i]);
  at += POTIONS;
  w->health = 10 * at[0];
  w->food = (int8_t)times_10(at[1]), w->drink = (int8_t)times_10(at[2]), w->energy = (int8_t)times_10(at[3]), w->mana = (int8_t)times_10(at[4]);
  w->xp = (uint8_t)times_10(at[5]), w->dexterity = (uint8_t)times_10(at[6]), w->strength = (uint8_t)times_10(at[7]);
  w->intelligence = (uint8_t)times_10(at[8]);
  at += 9;
  w->direction = LEFT;
  for (int i = 0; i < 4; i++)
    if (at[i] > 0) w->direction = (uint8_t)(LEFT + i);
  at += 4;
  for (int i = 0; i < ARMOURS; i++) w->armour[i] = (uint8_t)(2 * at[i] + 0.5f), w->armour_magic[i] = (uint8_t)at[ARMOURS + i];
}

/* What an observation says, and nothing else: the seen cells as a world around the player, what it carries, and how it is.  Projectiles
** have no direction. */
static void see(const mn_io *io, mn_canvas *c) {
  craftax w = { .row = SIDE / 2, .col = SIDE / 2 };
  float all[NUMBERS];
  const bool coded = io->param[CODES_OBSERVED] != 0;
  const float *obs = coded ? all : io->obs, *rest = obs + CARRIED;
  if (coded) decode(io->obs, all);
  int count[3] = { 0 };
  for (int i = 0; i < ROWS * COLS; i++)
    put_seen(&w, obs + i * CELL, w.row - ROWS / 2 + i / COLS, w.col - COLS / 2 + i % COLS, count);
  put_carried(&w, obs + SEEN);
  w.sleeping = rest[1] > 0, w.resting = rest[2] > 0, w.learned[0] = rest[3] > 0, w.learned[1] = rest[4] > 0;
  draw_ground(c, COLS + 6.8f, ROWS + 0.5f);
  draw_view(&w, times_10(rest[5]) ? 1 : rest[0], rest[7] > 0, c);
  for (int i = 0; i < ROWS * COLS; i++)
    for (int k = 0; k < 2 * TYPES; k++)
      if (obs[i * CELL + MOB_AT + 24 + k] > 0)
        mn_canvas_add(c, MN_DISC, shot_colour(k % TYPES), (float)(i % COLS) + 0.5f, (float)(i / COLS) + 0.5f, 0.15f, 0);
  draw_needs(&w, c, COLS + 0.4f, 0);
  char text[80];
  snprintf(text, sizeof text, "floor %d: %s, ladder %s", times_10(rest[5]), floor_name(least(times_10(rest[5]), BOSS)), rest[6] > 0 ? "open" : "shut");
  mn_canvas_text(c, PALE, 0, ROWS + 0.5f, 0.36f, text);
  draw_items(&w, c, true, COLS + 0.4f, 2.2f);
}
#endif
