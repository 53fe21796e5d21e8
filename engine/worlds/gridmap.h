/* gridmap.h -- the map of a gridworld, read from a drawing in characters.  What a cell holds is also
** what the agent sees of it: one code a cell. */
#ifndef MN_GRIDMAP_H
#define MN_GRIDMAP_H
#include "mneme.h"

enum { GRID_SIDE = 64, GRID_KEYS = 4, GRID_CHOICES = 6 };  /* most cells a side, colours, digits */

enum {                           /* what a cell is, and how it is seen */
  GRID_UNSEEN,                   /* beyond the map, or hidden */
  GRID_WALL, GRID_FLOOR, GRID_GOAL, GRID_TRAP,
  GRID_CUE,                      /* says which choice is right; seen as GRID_SAYS + choice while shown */
  GRID_KEY,                      /* a .. d */
  GRID_DOOR = GRID_KEY + GRID_KEYS,              /* A .. D, closed without the key of that letter */
  GRID_CHOICE = GRID_DOOR + GRID_KEYS,           /* 1 .. 6 */
  GRID_SAYS = GRID_CHOICE + GRID_CHOICES,
  GRID_CODES = GRID_SAYS + GRID_CHOICES
};

typedef struct grid_map {
  int32_t width, height, starts, choices;
  int32_t example;               /* 1: no map was given */
  uint16_t start[GRID_SIDE * GRID_SIDE];         /* places: y * width + x */
  uint8_t choice[GRID_CHOICES];                  /* the digits that occur, from 0 */
  uint8_t cell[GRID_SIDE * GRID_SIDE];           /* [height, width] */
} grid_map;

/* Read a drawing: lines of
**   #  wall    .  floor    blank  nothing, as beyond the map    S  a start (one of them is drawn)
**   G  goal: +1 and over     !  trap: -1 and over               a-d  key    A-D  its door
**   1-6  a choice: one of those drawn is right, +1, the others -1, and over     ?  says which
** Lines may differ in length; empty ones before and after the map do not count.
** Refused, naming line and column: other characters, sides beyond GRID_SIDE, no start, nothing to
** reach, a choice of one, and a goal or choice that some start cannot reach. */
int mn_gridmap_read(mn_ctx *mn, const char *text, grid_map *m);

#endif
