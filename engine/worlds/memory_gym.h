/* memory_gym.h -- what the pictures of Memory Gym's tasks have in common: 84 x 84 pixels, [row, column, RGB] (memory-gym's arrays are
** [column, row, RGB]), an agent with two hands, a red cross. */
#ifndef MN_MEMORY_GYM_H
#define MN_MEMORY_GYM_H
#include "env.h"

enum { GYM_PIXELS = 84 };

/* Fill columns x0..x1-1 of row y, as far as they are in the picture. */
MN_FN void gym_span(uint8_t *pixels, int x0, int x1, int y, uint32_t rgb) {
  if (y < 0 || y >= GYM_PIXELS) return;
  x0 = x0 < 0 ? 0 : x0;
  x1 = x1 > GYM_PIXELS ? GYM_PIXELS : x1;
  uint8_t *p = pixels + 3 * (y * GYM_PIXELS + x0);
  for (int x = x0; x < x1; x++, p += 3) {
    p[0] = (uint8_t)(rgb >> 16);
    p[1] = (uint8_t)(rgb >> 8);
    p[2] = (uint8_t)rgb;
  }
}

/* A hand: a disc of radius 2. */
MN_FN void gym_paint_hand(uint8_t *pixels, int x, int y) {
  for (int i = -2; i < 2; i++) {
    const int half = i == -2 || i == 1 ? 1 : 2;
    gym_span(pixels, x - half, x + half, y + i, 0x323232);
  }
}

/* A disc of radius 6 with two hands ahead.  The slanting ones are where memory-gym's rounding puts
** them. */
MN_FN void gym_paint_agent(uint8_t *pixels, int x, int y, int heading) {
  const int8_t body[12] = { 2, 3, 4, 5, 6, 6, 6, 6, 5, 4, 3, 2 };
  const int8_t hands[8][4] = { { -4, -4, 4, -4 }, { -1, -6, -6, 0 }, { -4, -4, -4, 4 },
                               { -6, 0, 0, 5 },   { -4, 4, 4, 4 },   { 5, 0, 0, 5 },
                               { 4, -4, 4, 4 },   { 0, -6, 5, 0 } };
  const int8_t *hand = hands[heading];
  for (int i = 0; i < 12; i++)
    gym_span(pixels, x - body[i], x + body[i], y - 6 + i, 0xFACC99);
  gym_paint_hand(pixels, x + hand[0], y + hand[1]);
  gym_paint_hand(pixels, x + hand[2], y + hand[3]);
}

/* A red cross of 10 by 10, its bars three wide. */
MN_FN void gym_paint_cross(uint8_t *pixels, int x, int y) {
  for (int i = 0; i < 10; i++) {
    const int a = i - 1 < 0 ? 0 : i - 1, b = i + 2 > 10 ? 10 : i + 2;
    gym_span(pixels, x - 5 + a, x - 5 + b, y - 5 + i, 0xFF0000);
    gym_span(pixels, x + 5 - b, x + 5 - a, y - 5 + i, 0xFF0000);
  }
}

/* The picture itself, for people: 7 x 7 units. */
static inline void gym_see_pixels(const mn_io *io, mn_canvas *c) {
  mn_canvas_image(c, 0, 0, 7, 7, GYM_PIXELS, GYM_PIXELS, io->pixels);
}
#endif
