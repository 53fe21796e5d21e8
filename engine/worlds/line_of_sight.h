/* line_of_sight.h -- what an agent sees of a grid of cells: a square window ahead of it, less what walls hide.
** The window is view x view cells, turned to the agent's heading, the agent in the middle of its last
** row.  A cell is seen if the straight line to it from the agent's cell, centre to centre, runs through
** open cells only; a line that just touches corners of cells may give way to either side of all of
** them.  So of two open cells each sees the other or neither does.  A wall is seen if one of the eight
** cells around it is open, seen and in the window.
** All lines are laid once, in a table: then 49 cells cost as many masks against one 64-bit word. */
#ifndef MN_LINE_OF_SIGHT_H
#define MN_LINE_OF_SIGHT_H
#include "env.h"

enum { MN_NORTH, MN_EAST, MN_SOUTH, MN_WEST };   /* headings: rows grow to the south, columns to the east */
enum { SIGHT_MOST = 7, SIGHT_CELLS = SIGHT_MOST * SIGHT_MOST };

/* A window lies in a word row by row, not turned: bit 8 * row + col, from its north-western corner.
** Entry k of the lists is the k-th cell as the agent sees it: far to near, left to right. */
typedef struct mn_sight {
  int view;
  int row[4], col[4];            /* of the window's north-western corner, from the agent, by heading */
  uint64_t left[4][SIGHT_CELLS], right[4][SIGHT_CELLS];    /* cells that may hide it on either way */
  uint64_t bit[4][SIGHT_CELLS];  /* the cell itself */
  uint8_t at[4][SIGHT_CELLS];    /* its place in the word */
  int16_t over[4][SIGHT_CELLS];  /* its place in a grid that is stored row by row, from the agent's */
} mn_sight;

MN_FN int mn_south_of(int heading) { return (heading == MN_SOUTH) - (heading == MN_NORTH); }
MN_FN int mn_east_of(int heading) { return (heading == MN_EAST) - (heading == MN_WEST); }

/* Rows or columns around the grid that a window may reach over, for an agent that is never at the
** grid's border. */
MN_FN int mn_sight_margin(int view) { return view - 2; }

MN_FN int mn_sight_abs(int x) { return x < 0 ? -x : x; }

/* Which cells between the agent's and the one (south, east) of it the line cuts, and which it only
** touches, to the left and to the right of its way.  In halves of a cell: a cell around (y, x) reaches
** from y - 1 to y + 1; its distance from the line is a cross product. */
MN_FN void mn_sight_line(int south, int east, const int corner[2], uint64_t *left, uint64_t *right) {
  const int reach = 2 * (mn_sight_abs(south) + mn_sight_abs(east));
  *left = *right = 0;
  for (int r = south < 0 ? south : 0; r <= (south > 0 ? south : 0); r++)
    for (int c = east < 0 ? east : 0; c <= (east > 0 ? east : 0); c++) {
      const int cross = 4 * (east * r - south * c);
      if ((!r && !c) || (r == south && c == east) || mn_sight_abs(cross) > reach) continue;
      const uint64_t bit = 1ull << (8 * (r - corner[0]) + c - corner[1]);
      if (cross > -reach) *right |= bit;
      if (cross < reach) *left |= bit;
    }
}

/* view: odd, up to SIGHT_MOST; width: columns of the grid as it is stored. */
MN_FN void mn_sight_prepare(mn_sight *s, int view, int width) {
  const int half = view / 2;
  s->view = view;
  for (int h = 0; h < 4; h++) {
    const int south = mn_south_of(h), east = mn_east_of(h);
    s->row[h] = south ? (south < 0 ? 1 - view : 0) : -half;
    s->col[h] = east ? (east < 0 ? 1 - view : 0) : -half;
    const int corner[2] = { s->row[h], s->col[h] };
    for (int k = 0; k < view * view; k++) {
      const int ahead = view - 1 - k / view, right = k % view - half;
      const int r = ahead * south + right * east, c = ahead * east - right * south;
      s->over[h][k] = (int16_t)(r * width + c);
      s->at[h][k] = (uint8_t)(8 * (r - corner[0]) + c - corner[1]);
      s->bit[h][k] = 1ull << s->at[h][k];
      mn_sight_line(r, c, corner, &s->left[h][k], &s->right[h][k]);
    }
  }
}

/* The walls in the window of an agent at row, col.  wall: a word for each row, bit c for column c, of
** a grid with a margin on all sides that counts as wall; row and col are those of the grid without. */
MN_FN uint64_t mn_sight_walls(const mn_sight *s, const uint64_t *wall, int row, int col, int heading) {
  const int margin = mn_sight_margin(s->view), from = row + s->row[heading] + margin;
  const int shift = col + s->col[heading] + margin;
  const uint64_t mask = (1u << s->view) - 1;
  uint64_t walls = 0;
  for (int i = 0; i < s->view; i++) walls |= (wall[from + i] >> shift & mask) << 8 * i;
  return walls;
}

/* The cells that are seen, as a word. */
MN_FN uint64_t mn_sight_seen(const mn_sight *s, uint64_t walls, int heading) {
  const uint64_t *left = s->left[heading], *right = s->right[heading], *bit = s->bit[heading];
  const int n = s->view * s->view;
  uint64_t seen = 0;
  for (int k = 0; k < n; k++) seen |= (walls & left[k]) && (walls & right[k]) ? 0 : bit[k];
  seen &= ~walls;
  uint64_t near = seen | seen << 1 | seen >> 1;
  near |= near << 8 | near >> 8;
  return seen | (near & walls);
}

/* Whether the cell (south, east) of the agent is among them. */
MN_FN bool mn_sight_sees(const mn_sight *s, uint64_t seen, int heading, int south, int east) {
  const int r = south - s->row[heading], c = east - s->col[heading];
  return r >= 0 && c >= 0 && r < s->view && c < s->view && (seen >> (8 * r + c) & 1);
}
#endif
