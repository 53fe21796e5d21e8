/* draw.h -- the picture: what the player sees, the whole map, what it has, and the wall of achievements.  A seen cell is 1 by 1. */
#ifndef MN_CRAFTAX_CLASSIC_DRAW_H
#define MN_CRAFTAX_CLASSIC_DRAW_H
#include "world.h"
#include <stdio.h>

enum { INK = 0x10161DFF };

/* 0xRRGGBB */
static uint32_t block_colour(int block) {
  static const uint32_t colour[BLOCKS] = { 0x10161D, 0x10161D, 0x5E9B45, 0x3D77C2, 0x7D8590, 0x2F6B35, 0x8A6238, 0xB9A78A, 0x7D8590,
                                           0x7D8590, 0x7D8590, 0x9A6A36, 0x59606B, 0xDCCB8C, 0xE2622B, 0x5E9B45, 0x5E9B45 };
  return colour[block];
}

static void draw_tree(mn_canvas *c, float x, float y) {
  mn_canvas_add(c, MN_RECT, 0x6B4A2AFF, x + 0.42f, y + 0.6f, 0.16f, 0.36f);
  mn_canvas_add(c, MN_DISC, 0x3F8A45FF, x + 0.5f, y + 0.4f, 0.34f, 0.34f);
}

static void draw_grains(mn_canvas *c, uint32_t colour, float x, float y) {
  mn_canvas_add(c, MN_DISC, colour, x + 0.3f, y + 0.35f, 0.13f, 0.13f);
  mn_canvas_add(c, MN_DISC, colour, x + 0.68f, y + 0.45f, 0.13f, 0.13f);
  mn_canvas_add(c, MN_DISC, colour, x + 0.42f, y + 0.72f, 0.13f, 0.13f);
}

static void draw_plant(mn_canvas *c, bool ripe, float x, float y) {
  mn_canvas_add(c, MN_RECT, 0x2F6B35FF, x + 0.46f, y + 0.4f, 0.08f, 0.5f);
  mn_canvas_add(c, MN_DISC, ripe ? 0xE05A8CFF : 0x8FD06BFF, x + 0.5f, y + 0.36f, ripe ? 0.22f : 0.16f, 0);
}

static void draw_block(mn_canvas *c, int block, float x, float y) {
  mn_canvas_add(c, MN_RECT, block_colour(block) << 8 | 0xFF, x, y, 1, 1);
  if (block == TREE) draw_tree(c, x, y);
  if (block == COAL) draw_grains(c, 0x1E242BFF, x, y);
  if (block == IRON) draw_grains(c, 0xE3A77DFF, x, y);
  if (block == DIAMOND) draw_grains(c, 0xB8F4FFFF, x, y);
  if (block == PLANT || block == RIPE) draw_plant(c, block == RIPE, x, y);
  if (block == TABLE) mn_canvas_add(c, MN_RECT, 0xC99A5BFF, x + 0.12f, y + 0.18f, 0.76f, 0.3f);
  if (block == FURNACE) mn_canvas_add(c, MN_RECT, 0xF0A030FF, x + 0.25f, y + 0.5f, 0.5f, 0.3f);
  if (block == WATER) mn_canvas_add(c, MN_RECT, 0x6FA3E0FF, x + 0.2f, y + 0.45f, 0.6f, 0.08f);
}

static bool in_view(const craftax_classic *w, int row, int col) {
  return absolute(row - w->row) <= ROWS / 2 && absolute(col - w->col) <= COLS / 2;
}

static void draw_mobs(const craftax_classic *w, mn_canvas *c, const mob *of, int n, uint32_t colour, const char *sign) {
  for (int i = 0; i < n; i++) {
    if (!of[i].alive || !in_view(w, of[i].row, of[i].col)) continue;
    const float x = (float)(of[i].col - w->col + COLS / 2), y = (float)(of[i].row - w->row + ROWS / 2);
    mn_canvas_add(c, MN_DISC, INK, x + 0.5f, y + 0.5f, 0.42f, 0);
    mn_canvas_add(c, MN_DISC, colour, x + 0.5f, y + 0.5f, 0.36f, 0);
    mn_canvas_text(c, INK, x + 0.36f, y + 0.66f, 0.46f, sign);
  }
}

/* angle of MN_TRIANGLE, which points right */
static float angle_of(int down, int right) { return right > 0 ? 0.0f : right < 0 ? 3.14159f : down > 0 ? 1.5708f : -1.5708f; }

static void draw_view(const craftax_classic *w, float light, mn_canvas *c) {
  for (int i = 0; i < ROWS; i++)
    for (int j = 0; j < COLS; j++)
      draw_block(c, seen_at(w, w->row - ROWS / 2 + i, w->col - COLS / 2 + j), (float)j, (float)i);
  draw_mobs(w, c, w->zombie, ZOMBIES, 0x7BC47FFF, "Z");
  draw_mobs(w, c, w->cow, COWS, 0xF2E3D0FF, "C");
  draw_mobs(w, c, w->skeleton, SKELETONS, 0xE8ECF2FF, "S");
  for (int i = 0; i < ARROWS; i++) {
    const arrow *a = w->shot + i;
    if (!a->flies || !in_view(w, a->row, a->col)) continue;
    mn_canvas_add(c, MN_TRIANGLE, 0xFFFFFFFF, (float)(a->col - w->col + COLS / 2) + 0.3f, (float)(a->row - w->row + ROWS / 2) + 0.3f, 0.4f, 0.4f);
    mn_canvas_data(c, angle_of(a->down, a->right));
  }
  const float x = COLS / 2, y = ROWS / 2;
  mn_canvas_add(c, MN_DISC, INK, x + 0.5f, y + 0.5f, 0.42f, 0);
  mn_canvas_add(c, MN_TRIANGLE, w->sleeping ? 0x9A86E8FF : 0xFFC857FF, x + 0.2f, y + 0.2f, 0.6f, 0.6f);
  mn_canvas_data(c, angle_of(down_of(w->direction), right_of(w->direction)));
  if (light < 1) mn_canvas_add(c, MN_RECT, (uint32_t)((1 - light) * 150), 0, 0, COLS, ROWS);
}

/* All of it, a pixel a cell, with a frame around the view. */
static void draw_map(const craftax_classic *w, mn_canvas *c, float x, float y, float size) {
  uint8_t rgb[SIDE * SIDE * 3];
  const float cell = size / SIDE;
  for (int i = 0; i < SIDE * SIDE; i++) {
    const int block = w->map[i / SIDE][i % SIDE];
    const uint32_t colour = block == COAL ? 0x1E242B : block == IRON ? 0xE3A77D : block == DIAMOND ? 0xB8F4FF : block_colour(block);
    for (int k = 0; k < 3; k++) rgb[3 * i + k] = (uint8_t)(colour >> (16 - 8 * k));
  }
  mn_canvas_image(c, x, y, size, size, SIDE, SIDE, rgb);
  mn_canvas_add(c, MN_FRAME, 0xFFFFFFFF, x + (float)(w->col - COLS / 2) * cell, y + (float)(w->row - ROWS / 2) * cell, COLS * cell, ROWS * cell);
  mn_canvas_data(c, 0.06f);
}

/* A number from 0 to 9 as a row of lights. */
static void draw_need(mn_canvas *c, const char *name, int value, uint32_t colour, float x, float y) {
  mn_canvas_text(c, 0xC5CFDAFF, x, y + 0.34f, 0.34f, name);
  for (int i = 0; i < 9; i++) mn_canvas_add(c, MN_RECT, i < value ? colour : 0x2A3440FF, x + 1.4f + 0.3f * (float)i, y + 0.06f, 0.24f, 0.3f);
}

static void draw_items(const craftax_classic *w, mn_canvas *c, float x, float y) {
  static const char *const name[ITEMS] = { "wood", "stone", "coal", "iron", "diamond", "sapling", "wood pickaxe", "stone pickaxe",
                                           "iron pickaxe", "wood sword", "stone sword", "iron sword" };
  for (int i = 0; i < ITEMS; i++) {
    char text[32];
    const float left = x + (i < 6 ? 0 : 2.1f), top = y + 0.42f * (float)(i % 6);
    snprintf(text, sizeof text, "%d  %s", w->item[i], name[i]);
    mn_canvas_text(c, w->item[i] ? 0xFFFFFFFF : 0x5C6875FF, left, top + 0.32f, 0.34f, text);
  }
}

/* Each achievement is a stone that lights up. */
static void draw_wall(const craftax_classic *w, mn_canvas *c, float x, float y) {
  static const char *const name[ACHIEVEMENTS] = {
    "collect wood", "place table", "eat cow", "collect sapling", "drink", "wood pickaxe", "wood sword", "place plant", "defeat zombie",
    "collect stone", "place stone", "eat plant", "defeat skeleton", "stone pickaxe", "stone sword", "wake up", "place furnace",
    "collect coal", "collect iron", "collect diamond", "iron pickaxe", "iron sword" };
  for (int i = 0; i < ACHIEVEMENTS; i++) {
    const bool lit = w->achievements >> i & 1;
    const float left = x + 2.75f * (float)(i % 6), top = y + 0.62f * (float)(i / 6);
    mn_canvas_add(c, MN_RECT, lit ? 0xFFC857FF : 0x222B35FF, left, top, 2.65f, 0.54f);
    mn_canvas_text(c, lit ? INK : 0x77838FFF, left + 0.12f, top + 0.37f, 0.29f, name[i]);
  }
}

static void draw_needs(const craftax_classic *w, mn_canvas *c) {
  draw_need(c, "health", w->health, 0xE0565BFF, 0, 7.3f);
  draw_need(c, "food", w->food, 0xE3A34FFF, 0, 7.8f);
  draw_need(c, "drink", w->drink, 0x4F93E3FF, 0, 8.3f);
  draw_need(c, "energy", w->energy, 0x9A86E8FF, 0, 8.8f);
}

static void draw(const craftax_classic *w, const mn_io *io, mn_canvas *c) {
  const float light = ((const shared *)io->shared)->light[w->steps];
  draw_view(w, light, c);
  draw_map(w, c, 9.3f, 0, 7);
  draw_needs(w, c);
  char text[64];
  snprintf(text, sizeof text, "%s, step %d%s", light < 0.4f ? "night" : "day", w->steps, w->sleeping ? ", asleep" : "");
  mn_canvas_text(c, 0xC5CFDAFF, 0, 9.64f, 0.34f, text);
  draw_items(w, c, 4.9f, 7.25f);
  draw_wall(w, c, 0, 10.1f);
}

/* A mob of an observation, in the next slot. */
static void put_mob(mob *of, int *n, int most_of_them, int row, int col) {
  if (*n < most_of_them) of[(*n)++] = (mob){ .row = (int16_t)row, .col = (int16_t)col, .alive = 1 };
}

/* What an observation says, and nothing else: the seen cells as a world around the player, what it carries, and how it is.  Arrows have no direction. */
static void see(const mn_io *io, mn_canvas *c) {
  craftax_classic w = { .row = SIDE / 2, .col = SIDE / 2 };
  const float *obs = io->obs, *at = obs + ROWS * COLS * CELL;
  int count[3] = { 0 };
  for (int i = 0; i < ROWS * COLS; i++) {
    const float *cell = obs + i * CELL;
    const int row = w.row - ROWS / 2 + i / COLS, col = w.col - COLS / 2 + i % COLS;
    for (int block = 0; block < BLOCKS; block++)
      if (cell[block] > 0) w.map[row][col] = (uint8_t)block;
    if (cell[BLOCKS] > 0) put_mob(w.zombie, &count[0], ZOMBIES, row, col);
    if (cell[BLOCKS + 1] > 0) put_mob(w.cow, &count[1], COWS, row, col);
    if (cell[BLOCKS + 2] > 0) put_mob(w.skeleton, &count[2], SKELETONS, row, col);
  }
  for (int i = 0; i < ITEMS; i++) w.item[i] = (uint8_t)(10 * at[i] + 0.5f);
  at += ITEMS;
  w.health = (int8_t)(10 * at[0] + 0.5f), w.food = (int8_t)(10 * at[1] + 0.5f), w.drink = (int8_t)(10 * at[2] + 0.5f);
  w.energy = (int8_t)(10 * at[3] + 0.5f);
  w.direction = LEFT;
  for (int i = 0; i < 4; i++)
    if (at[4 + i] > 0) w.direction = (uint8_t)(LEFT + i);
  w.sleeping = at[9] > 0;
  draw_view(&w, at[8], c);
  for (int i = 0; i < ROWS * COLS; i++)
    if (obs[i * CELL + BLOCKS + 3] > 0) mn_canvas_add(c, MN_DISC, 0xFFFFFFFF, (float)(i % COLS) + 0.5f, (float)(i / COLS) + 0.5f, 0.15f, 0);
  draw_needs(&w, c);
  draw_items(&w, c, 4.9f, 7.25f);
}
#endif
