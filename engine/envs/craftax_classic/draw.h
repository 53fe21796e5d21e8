/* draw.h -- the picture: what the player sees, the whole map, what it has, and the wall of achievements.  A seen cell is 1 by 1. */
#ifndef MN_CRAFTAX_CLASSIC_DRAW_H
#define MN_CRAFTAX_CLASSIC_DRAW_H
#include "worlds/craftax_draw.h"
#include "world.h"

#define SMALL 0.435f           /* letters of the page: 9 pixels in a window of 640 x 480 */

static bool in_view(const craftax_classic *w, int row, int col) {
  return absolute(row - w->row) <= ROWS / 2 && absolute(col - w->col) <= COLS / 2;
}

static void draw_mobs(const craftax_classic *w, mn_canvas *c, const mob *of, int n, uint32_t colour, char letter) {
  for (int i = 0; i < n; i++)
    if (of[i].alive && in_view(w, of[i].row, of[i].col))
      draw_creature(c, colour, letter, (float)(of[i].col - w->col + COLS / 2), (float)(of[i].row - w->row + ROWS / 2));
}

static void draw_view(const craftax_classic *w, float light, mn_canvas *c) {
  for (int i = 0; i < ROWS; i++)
    for (int j = 0; j < COLS; j++)
      draw_shared_block(c, seen_at(w, w->row - ROWS / 2 + i, w->col - COLS / 2 + j), (float)j, (float)i);
  draw_mobs(w, c, w->zombie, ZOMBIES, 0x7BC47FFF, 'Z');
  draw_mobs(w, c, w->cow, COWS, 0xF2E3D0FF, 'C');
  draw_mobs(w, c, w->skeleton, SKELETONS, 0xE8ECF2FF, 'S');
  for (int i = 0; i < ARROWS; i++) {
    const arrow *a = w->shot + i;
    if (a->flies && in_view(w, a->row, a->col))
      draw_arrow(c, BRIGHT, a->down, a->right, (float)(a->col - w->col + COLS / 2), (float)(a->row - w->row + ROWS / 2), 0.4f);
  }
  draw_player(c, w->direction, w->sleeping, ROWS, COLS);
  draw_dusk(c, light, ROWS, COLS);
}

/* All of it, a pixel a cell, with a frame around the view. */
static void draw_map(const craftax_classic *w, mn_canvas *c, float x, float y, float size) {
  uint8_t rgb[SIDE * SIDE * 3];
  for (int i = 0; i < SIDE * SIDE; i++) {
    const int block = w->map[i / SIDE][i % SIDE];
    put_pixel(rgb, i, shared_grain(block) ? shared_grain(block) : shared_colour(block), 0);
  }
  draw_pixels(c, rgb, SIDE, w->row, w->col, ROWS, COLS, x, y, size);
}

static void draw_items(const craftax_classic *w, mn_canvas *c, float x, float y, float size) {
  static const char *const name[ITEMS] = { "wood", "stone", "coal", "iron", "diamond", "sapling", "wood pickaxe", "stone pickaxe",
                                           "iron pickaxe", "wood sword", "stone sword", "iron sword" };
  for (int i = 0; i < ITEMS; i++) draw_count(c, w->item[i], name[i], x + (i < 6 ? 0 : 6.56f * size), y + 0.32f + (0.1f + size) * (float)(i % 6), size);
}

/* Each achievement is a stone that lights up; its name can be read in a window of 640 x 480. */
static void draw_wall(const craftax_classic *w, mn_canvas *c, float x, float y) {
  static const char *const name[ACHIEVEMENTS] = {
    "wood", "table", "eat cow", "sapling", "drink", "wood pickaxe", "wood sword", "place plant", "zombie", "stone", "place stone",
    "eat plant", "skeleton", "stone pickaxe", "stone sword", "wake up", "furnace", "coal", "iron", "diamond", "iron pickaxe", "iron sword" };
  for (int i = 0; i < ACHIEVEMENTS; i++)
    draw_stone(c, w->achievements >> i & 1, 0xFFC857FF, name[i], x + 3.3f * (float)(i % 5), y + 0.83f * (float)(i / 5), 3.2f, 0.75f);
}

static void draw_needs(const craftax_classic *w, mn_canvas *c, float size) {
  draw_need(c, "health", w->health, 9, need_colour(HEALTH_COLOUR), 0, 7.3f, size);
  draw_need(c, "food", w->food, 9, need_colour(FOOD_COLOUR), 0, 7.8f, size);
  draw_need(c, "drink", w->drink, 9, need_colour(DRINK_COLOUR), 0, 8.3f, size);
  draw_need(c, "energy", w->energy, 9, need_colour(ENERGY_COLOUR), 0, 8.8f, size);
}

static void draw(const craftax_classic *w, const mn_io *io, mn_canvas *c) {
  const float light = ((const shared *)io->shared)->light[w->steps];
  draw_ground(c, 16.4f, 14.7f);
  draw_view(w, light, c);
  draw_map(w, c, 9.3f, 0, 7);
  draw_needs(w, c, SMALL);
  char text[64];
  snprintf(text, sizeof text, "%s, step %d%s", light < 0.4f ? "night" : "day", w->steps, w->sleeping ? ", asleep" : "");
  mn_canvas_text(c, PALE, 0, 9.64f, SMALL, text);
  draw_items(w, c, 5.9f, 7.25f, SMALL);
  draw_wall(w, c, 0, 10.5f);
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
  draw_ground(c, COLS, 9.7f);
  draw_view(&w, at[8], c);
  for (int i = 0; i < ROWS * COLS; i++)
    if (obs[i * CELL + BLOCKS + 3] > 0) mn_canvas_add(c, MN_DISC, 0xFFFFFFFF, (float)(i % COLS) + 0.5f, (float)(i / COLS) + 0.5f, 0.15f, 0);
  draw_needs(&w, c, 0.32f);
  draw_items(&w, c, 3.9f, 7.25f, 0.32f);
}
#endif
