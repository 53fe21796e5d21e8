/* craftax_draw.h -- what the pictures of Craftax and Craftax Classic share: a dark ground, so that they read alike on a light and on a dark
** page; blocks, creatures, the player, the map, needs and the wall of achievements.  A cell is 1 by 1. */
#ifndef MN_WORLDS_CRAFTAX_DRAW_H
#define MN_WORLDS_CRAFTAX_DRAW_H
#include "worlds/craftax.h"
#include <stdio.h>

static const uint32_t INK = 0x10161DFF, PALE = 0xC5CFDAFF, DIM = 0x7C8896FF, BRIGHT = 0xFFFFFFFF, OFF = 0x2A3440FF;
enum { WIDEST_MAP = 64 };

/* Under all of a picture of that size. */
static void draw_ground(mn_canvas *c, float wide, float high) { mn_canvas_add(c, MN_RECT, 0x131920FF, -0.3f, -0.3f, wide + 0.6f, high + 0.6f); }

/* 0xRRGGBB, of a block that both have */
static uint32_t shared_colour(int block) {
  static const uint32_t colour[SHARED_BLOCKS] = { 0x10161D, 0x10161D, 0x5E9B45, 0x3D77C2, 0x7D8590, 0x2F6B35, 0x8A6238, 0xB9A78A, 0x7D8590,
                                                  0x7D8590, 0x7D8590, 0x9A6A36, 0x59606B, 0xDCCB8C, 0xE2622B, 0x5E9B45, 0x5E9B45 };
  return colour[block];
}

/* 0xRRGGBB of what lies in a block, for the map too; 0: nothing */
static uint32_t shared_grain(int block) { return block == COAL ? 0x1E242B : block == IRON ? 0xE3A77D : block == DIAMOND ? 0xB8F4FF : 0; }

static void draw_tree(mn_canvas *c, uint32_t leaves, float x, float y) {
  mn_canvas_add(c, MN_RECT, 0x6B4A2AFF, x + 0.42f, y + 0.6f, 0.16f, 0.36f);
  mn_canvas_add(c, MN_DISC, leaves, x + 0.5f, y + 0.4f, 0.34f, 0.34f);
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

/* Its colour and what stands on it, of a block that both have. */
static void draw_shared_block(mn_canvas *c, int block, float x, float y) {
  mn_canvas_add(c, MN_RECT, shared_colour(block) << 8 | 0xFF, x, y, 1, 1);
  if (shared_grain(block)) draw_grains(c, shared_grain(block) << 8 | 0xFF, x, y);
  if (block == TREE) draw_tree(c, 0x3F8A45FF, x, y);
  if (block == PLANT || block == RIPE) draw_plant(c, block == RIPE, x, y);
  if (block == TABLE) mn_canvas_add(c, MN_RECT, 0xC99A5BFF, x + 0.12f, y + 0.18f, 0.76f, 0.3f);
  if (block == FURNACE) mn_canvas_add(c, MN_RECT, 0xF0A030FF, x + 0.25f, y + 0.5f, 0.5f, 0.3f);
  if (block == WATER) mn_canvas_add(c, MN_RECT, 0x6FA3E0FF, x + 0.2f, y + 0.45f, 0.6f, 0.08f);
}

/* A letter on a disc. */
static void draw_creature(mn_canvas *c, uint32_t colour, char letter, float x, float y) {
  const char text[2] = { letter, 0 };
  mn_canvas_add(c, MN_DISC, INK, x + 0.5f, y + 0.5f, 0.42f, 0);
  mn_canvas_add(c, MN_DISC, colour, x + 0.5f, y + 0.5f, 0.36f, 0);
  mn_canvas_text(c, INK, x + 0.36f, y + 0.66f, 0.46f, text);
}

/* A triangle that points down or right by so much. */
static void draw_arrow(mn_canvas *c, uint32_t colour, int down, int right, float x, float y, float size) {
  mn_canvas_add(c, MN_TRIANGLE, colour, x + 0.5f - size / 2, y + 0.5f - size / 2, size, size);
  mn_canvas_data(c, right > 0 ? 0.0f : right < 0 ? 3.14159f : down > 0 ? 1.5708f : -1.5708f);
}

/* In the middle of a view of rows x cols, which daylight dims. */
static void draw_player(mn_canvas *c, int direction, bool asleep, int rows, int cols) {
  const float x = (float)(cols / 2), y = (float)(rows / 2);
  mn_canvas_add(c, MN_DISC, INK, x + 0.5f, y + 0.5f, 0.42f, 0);
  draw_arrow(c, asleep ? 0x9A86E8FF : 0xFFC857FF, down_of(direction), right_of(direction), x, y, 0.6f);
}
static void draw_dusk(mn_canvas *c, float light, int rows, int cols) {
  if (light < 1) mn_canvas_add(c, MN_RECT, (uint32_t)((1 - light) * 150), 0, 0, (float)cols, (float)rows);
}

/* A cell of a map's pixels, dimmed `shade` times by half. */
static void put_pixel(uint8_t *rgb, int cell, uint32_t colour, int shade) {
  for (int k = 0; k < 3; k++) rgb[3 * cell + k] = (uint8_t)((colour >> (16 - 8 * k) & 0xFF) >> shade);
}

/* side x side cells, with a frame around the view of rows x cols whose middle is at row, col. */
static void draw_pixels(mn_canvas *c, const uint8_t *rgb, int side, int row, int col, int rows, int cols, float x, float y, float size) {
  const float cell = size / (float)side;
  mn_canvas_image(c, x, y, size, size, side, side, rgb);
  mn_canvas_add(c, MN_FRAME, BRIGHT, x + (float)(col - cols / 2) * cell, y + (float)(row - rows / 2) * cell, (float)cols * cell, (float)rows * cell);
  mn_canvas_data(c, 0.06f);
}

/* A number as a row of lights, as many as it can be; its name in letters of that size. */
static void draw_need(mn_canvas *c, const char *name, int value, int whole, uint32_t colour, float x, float y, float size) {
  mn_canvas_text(c, PALE, x, y + 0.3f, size, name);
  for (int i = 0; i < whole; i++)
    mn_canvas_add(c, MN_RECT, i < value ? colour : OFF, x + 4.06f * size + 0.2f * (float)i, y + 0.05f, 0.15f, 0.27f);
}
enum { FOOD_COLOUR, DRINK_COLOUR, ENERGY_COLOUR, HEALTH_COLOUR, MANA_COLOUR };
static uint32_t need_colour(int need) {
  static const uint32_t colour[5] = { 0xE3A34FFF, 0x4F93E3FF, 0x9A86E8FF, 0xE0565BFF, 0x57C9C0FF };
  return colour[need];
}

static void draw_count(mn_canvas *c, int n, const char *name, float x, float y, float size) {
  char text[40];
  snprintf(text, sizeof text, "%d %s", n, name);
  mn_canvas_text(c, n ? BRIGHT : DIM, x, y, size, text);
}

/* A stone of the wall of achievements: lit once it is reached. */
static void draw_stone(mn_canvas *c, bool lit, uint32_t gold, const char *name, float x, float y, float wide, float high) {
  mn_canvas_add(c, MN_RECT, lit ? gold : 0x222B35FF, x, y, wide, high);
  mn_canvas_text(c, lit ? INK : 0x8995A2FF, x + 0.08f, y + 0.7f * high, 0.58f * high, name);
}
#endif
