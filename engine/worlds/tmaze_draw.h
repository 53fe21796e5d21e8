/* tmaze_draw.h -- draws both T-Mazes: cell i of the corridor spans x = i .. i+1 about y = 0. */
#ifndef MN_TMAZE_DRAW_H
#define MN_TMAZE_DRAW_H
#include "canvas.h"
#include "tmaze.h"

/* The end of one arm, and what waits there: +4 or -1. */
static inline void tmaze_arm(mn_canvas *c, float x, float y, float tall, int cue, int arm) {
  const bool known = cue != TMAZE_UNKNOWN, pays = cue == arm;
  mn_canvas_add(c, MN_RECT, !known ? 0x35425AFF : pays ? 0x009E73FF : 0x9A4A12FF, x, y, tall, 0.9f * tall);
  mn_canvas_text(c, 0xFFFFFFFF, x + (known ? 0.18f : 0.36f) * tall, y + 0.63f * tall, 0.5f * tall,
                 !known ? "?" : pays ? "+4" : "\xE2\x88\x92" "1");
}

/* A corridor is drawn lower than its cells are wide, so that it fills a wide panel; a long one taller, or it would be a thread. */
static inline void tmaze_draw(const tmaze *m, const mn_io *io, mn_canvas *c) {
  (void)io;
  const float n = m->corridor, tall = 0.7f * (1 + n / 48);
  const float half = tall / 2, wall = 0.07f * tall, arm = 0.9f * tall;
  const float left = 0.5f - half, end = n - 0.5f - half, here = (float)m->position + 0.5f;
  const uint32_t walls = 0x6B7A90FF, floor = 0x2C3645FF, tile = 0x35425AFF;
  mn_canvas_add(c, MN_RECT, walls, left - wall, -half - wall, end - left, tall + 2 * wall);
  mn_canvas_add(c, MN_RECT, walls, end - wall, -half - arm - wall, tall + 2 * wall,
                tall + 2 * (arm + wall));
  mn_canvas_add(c, MN_RECT, floor, left, -half, end + tall - left, tall);
  const int wide = 1 + m->corridor / 257;          /* cells of a tile */
  for (int i = wide; (float)(i + wide) <= end; i += 2 * wide)
    mn_canvas_add(c, MN_RECT, tile, (float)i, -half, (float)wide, tall);
  tmaze_arm(c, end, -half - arm, tall, m->cue, TMAZE_UP);
  tmaze_arm(c, end, half, tall, m->cue, TMAZE_DOWN);
  if (m->cue == TMAZE_UNKNOWN) {
    mn_canvas_add(c, MN_RECT, 0x2C3645FF, left - 1.2f * tall, -half, tall, tall);
  } else {
    mn_canvas_add(c, MN_TRIANGLE, m->shown ? 0xF0E442FF : 0x6B6A3CFF, left - 1.2f * tall, -half, tall,
                  tall);
    mn_canvas_data(c, m->cue == TMAZE_UP ? -1.5707964f : 1.5707964f);
  }
  mn_canvas_add(c, MN_DISC, 0x0F131AFF, here, 0, 0.38f * tall, 0.38f * tall);
  mn_canvas_add(c, MN_DISC, 0x56B4E9FF, here, 0, 0.31f * tall, 0.31f * tall);
}

#endif
