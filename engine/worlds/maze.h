/* maze.h -- random mazes of rooms and corridors, as Memory Maze draws them.
** The steps are those of DeepMind's labmaze (random_maze.cc, algorithm.cc): rooms, corridors, doors
** between all regions that touch, no dead ends, no needless bends; then spawns, objects and wall
** colours as in Pasukonis et al. (2022), "Evaluating Long-Term Memory in 3D Mazes".  The random
** numbers are other ones: mazes agree in distribution, and that to the letter.
** Where labmaze tries a thousand rooms that do not fit, we draw how many tries fail (see maze_room):
** a maze of 9x9 takes 1.4 microseconds, one of 15x15 5.6. */
#ifndef MN_MAZE_H
#define MN_MAZE_H
#include "env.h"
#include "numerics/fast_math.h"

enum { MAZE_LEAST = 7, MAZE_MOST = 31 };         /* sizes, without the border; odd */
enum { MAZE_WIDE = MAZE_MOST + 2, MAZE_NODES = (MAZE_MOST + 1) / 2, MAZE_ROOMS = 36 };
enum { MAZE_TARGETS = 6 };
enum { MAZE_WALL_COLOURS = 8, MAZE_RETRIES = 1000 };

/* What a cell is.  A door is one only while the maze is made. */
enum { MAZE_WALL, MAZE_CORRIDOR, MAZE_ROOM, MAZE_DOOR = 255 };   /* MAZE_ROOM + r: floor of room r */

/* A finished maze.  Cells are counted row by row: row * width + col. */
typedef struct mn_maze {
  int width;                     /* and height: size + 2, border included */
  int rooms, targets;
  int rejected;                  /* mazes that had fewer rooms than targets, and were thrown away */
  uint16_t target[MAZE_TARGETS]; /* cells, each in another room */
  uint16_t spawn[MAZE_ROOMS];    /* rooms of them: a cell of each room, no target */
  uint8_t block[9];              /* colour of the walls, 0..7, in each third of rows * 3 + third of columns */
  uint8_t cell[MAZE_WIDE * MAZE_WIDE];
} mn_maze;

/* How mazes of a size are drawn.  9 to 15 are Memory Maze's own.  Beyond, rooms are small and as many
** to the area as at 15; at 7 they must be small, or three would hardly ever fit. */
typedef struct maze_rule {
  int nodes;                     /* cells of odd row and column, along one side */
  int max_rooms;
  int oblong;                    /* 1: half of the rooms drawn are 3x5 or 5x3; 0: all are 3x3 */
  int targets;                   /* as published */
} maze_rule;

MN_FN maze_rule maze_rule_of(int size) {
  maze_rule rule;
  rule.nodes = (size + 1) / 2;
  rule.oblong = size >= 9 && size <= 13;
  rule.max_rooms = size <= 13 ? 6 : 9 * rule.nodes * rule.nodes / 64;
  rule.targets = size <= 9 ? 3 : size >= 15 ? 6 : (size - 3) / 2;
  return rule;
}

/* The most targets for which mazes are found: 9x9 never has a fifth room. */
MN_FN int maze_most_targets(int size) { return size <= 9 ? 4 : MAZE_TARGETS; }

/* Which third of the rows or columns: blocks end at width/3 and 2*width/3, rounded down. */
MN_FN int maze_third(int at, int width) { return (at >= width / 3) + (at >= 2 * width / 3); }

/* ---- while it is made ---- */

typedef struct maze_rect { uint8_t row, col, height, width; } maze_rect;   /* in nodes */

typedef struct maze_draft {
  maze_rule rule;
  mn_maze *m;
  mn_io *io;
  int regions;                   /* numbered from 1: rooms, then corridors */
  maze_rect room[MAZE_ROOMS];
  uint32_t vacant[MAZE_NODES];   /* bit c of row r: node without a room */
  uint8_t region[(MAZE_NODES + 2) * (MAZE_NODES + 2)];   /* of nodes, with a border of 255; 0: none */
} maze_draft;

MN_FN int maze_node(const maze_draft *d, int row, int col) {
  return (row + 1) * (d->rule.nodes + 2) + col + 1;
}

MN_FN int maze_cell_of(const maze_draft *d, int row, int col) {
  return (2 * row + 1) * d->m->width + 2 * col + 1;
}

/* ---- rooms ---- */

/* Bit c: a room of height x width nodes fits with its upper left corner at row, c. */
MN_FN uint32_t maze_fits(const maze_draft *d, int row, int height, int width) {
  uint32_t fits = ~0u;
  for (int i = 0; i < height; i++)
    for (int j = 0; j < width; j++) fits &= d->vacant[row + i] >> j;
  return fits;
}

MN_FN int maze_count(const maze_draft *d, int height, int width) {
  int n = 0;
  for (int row = 0; row + height <= d->rule.nodes; row++)
    for (uint32_t fits = maze_fits(d, row, height, width); fits; fits &= fits - 1) n++;
  return n;
}

/* The place number k of those that maze_count counts. */
MN_FN maze_rect maze_place(const maze_draft *d, int k, int height, int width) {
  for (int row = 0; row + height <= d->rule.nodes; row++) {
    int col = 0;
    for (uint32_t fits = maze_fits(d, row, height, width); fits; fits >>= 1, col++) {
      if (!(fits & 1) || k--) continue;
      maze_rect r = { (uint8_t)row, (uint8_t)col, (uint8_t)height, (uint8_t)width };
      return r;
    }
  }
  maze_rect none = { 0, 0, 0, 0 };
  return none;
}

MN_FN void maze_carve(maze_draft *d, maze_rect r) {
  mn_maze *m = d->m;
  const uint8_t floor = (uint8_t)(MAZE_ROOM + m->rooms);
  for (int i = 0; i < 2 * r.height - 1; i++)
    for (int j = 0; j < 2 * r.width - 1; j++) m->cell[maze_cell_of(d, r.row, r.col) + i * m->width + j] = floor;
  for (int i = 0; i < r.height; i++) {
    d->vacant[r.row + i] &= ~(((1u << r.width) - 1) << r.col);
    for (int j = 0; j < r.width; j++)
      d->region[maze_node(d, r.row + i, r.col + j)] = (uint8_t)(m->rooms + 1);
  }
  d->room[m->rooms++] = r;
}

/* Place one more room, or say that there will be none.  labmaze draws rooms until one touches no
** other, and gives up at the thousandth that does.  All those draws are alike and independent, so the
** number that fails before one fits is geometric: we draw that number, then one of the rooms that fit,
** each with its own probability.  Places are weighted so that whole numbers serve: of the rooms drawn,
** half are 2x2 nodes, a quarter 3x2, a quarter 2x3, anywhere. */
MN_FN bool maze_room(maze_draft *d, int *retries) {
  const int n = d->rule.nodes, small = d->rule.oblong ? 2 * (n - 2) : 1, large = n - 1;
  const int all = d->rule.oblong ? 4 * (n - 1) * (n - 1) * (n - 2) : (n - 1) * (n - 1);
  const int square = small * maze_count(d, 2, 2);
  const int tall = d->rule.oblong ? large * maze_count(d, 3, 2) : 0;
  const int broad = d->rule.oblong ? large * maze_count(d, 2, 3) : 0;
  const int fit = square + tall + broad;
  if (!fit) return false;
  if (fit < all) {
    const float u = ((float)mn_rand(d->io) + 0.5f) * 0x1p-32f;
    const float failures = mn_logf(u) / mn_logf((float)(all - fit) / (float)all);
    if (failures >= (float)(MAZE_RETRIES - *retries)) return false;
    *retries += (int)failures;
  }
  int k = mn_rand_below(d->io, fit);
  if (k < square) maze_carve(d, maze_place(d, k / small, 2, 2));
  else if (k < square + tall) maze_carve(d, maze_place(d, (k - square) / large, 3, 2));
  else maze_carve(d, maze_place(d, (k - square - tall) / large, 2, 3));
  return true;
}

/* ---- corridors and doors ---- */

/* What is not room is filled with corridors that fork but never meet: from a node on to any neighbour
** not yet reached, and back where there is none. */
MN_FN void maze_corridors(maze_draft *d, int row, int col) {
  const int step[4] = { d->rule.nodes + 2, -d->rule.nodes - 2, 1, -1 };
  const int width = d->m->width, over[4] = { width, -width, 1, -1 };
  uint16_t node[MAZE_NODES * MAZE_NODES], cell[MAZE_NODES * MAZE_NODES];
  int depth = 0;
  const uint8_t region = (uint8_t)++d->regions;
  node[0] = (uint16_t)maze_node(d, row, col);
  cell[0] = (uint16_t)maze_cell_of(d, row, col);
  d->region[node[0]] = region;
  d->m->cell[cell[0]] = MAZE_CORRIDOR;
  while (depth >= 0) {
    int ways = 0, way[4];
    for (int i = 0; i < 4; i++)
      if (!d->region[node[depth] + step[i]]) way[ways++] = i;
    if (!ways) {
      depth--;
      continue;
    }
    const int to = way[ways == 1 ? 0 : mn_rand_below(d->io, ways)];
    const int at = cell[depth], next = node[depth] + step[to];
    depth++;
    node[depth] = (uint16_t)next;
    cell[depth] = (uint16_t)(at + 2 * over[to]);
    d->region[next] = region;
    d->m->cell[at + over[to]] = MAZE_CORRIDOR;
    d->m->cell[cell[depth]] = MAZE_CORRIDOR;
  }
}

/* A place for a door: a wall between the regions a < b. */
typedef struct maze_edge { uint8_t a, b; uint16_t cell; } maze_edge;

/* One door, anywhere along their common wall, between each two regions that touch. */
MN_FN void maze_doors(maze_draft *d) {
  const int n = d->rule.nodes, width = d->m->width;
  maze_edge edge[2 * MAZE_NODES * (MAZE_NODES - 1)];
  uint16_t seen[256], door[256];
  int edges = 0;
  for (int row = 0; row < n; row++)
    for (int col = 0; col < n; col++)
      for (int down = 0; down < 2; down++) {
        const uint8_t a = d->region[maze_node(d, row, col)];
        const uint8_t b = d->region[maze_node(d, row + down, col + 1 - down)];
        if (a == b || b == 255) continue;
        edge[edges].a = a < b ? a : b;
        edge[edges].b = a < b ? b : a;
        edge[edges++].cell = (uint16_t)(maze_cell_of(d, row, col) + (down ? width : 1));
      }
  for (int a = 1; a <= d->regions; a++) {
    for (int b = a + 1; b <= d->regions; b++) seen[b] = 0;
    for (int i = 0; i < edges; i++) {            /* the k-th place takes over with chance 1/k */
      const maze_edge *e = &edge[i];
      if (e->a == a && (!seen[e->b]++ || !mn_rand_below(d->io, seen[e->b]))) door[e->b] = e->cell;
    }
    for (int b = a + 1; b <= d->regions; b++)
      if (seen[b]) d->m->cell[door[b]] = MAZE_DOOR;
  }
}

/* A door that leads nowhere, since its corridor is gone, becomes wall; the others are corridor. */
MN_FN void maze_close_doors(mn_maze *m) {
  const int w = m->width;
  for (int row = 1; row < w - 1; row++)
    for (int at = row * w + 1 + row % 2; at < row * w + w - 1; at += 2) {
      if (m->cell[at] != MAZE_DOOR) continue;
      const int across = row % 2 ? 1 : w;        /* doors stand where one of row and column is odd */
      const bool through = m->cell[at - across] && m->cell[at + across];
      m->cell[at] = through ? MAZE_CORRIDOR : MAZE_WALL;
    }
}

/* ---- simplifying ---- */

MN_FN bool maze_is_wall(const mn_maze *m, int at) { return m->cell[at] == MAZE_WALL; }
MN_FN bool maze_is_floor(const mn_maze *m, int at) { return (uint8_t)(m->cell[at] - 1) < MAZE_DOOR - 1; }

/* Fill every cell with at most one way out; a door is a way out.  The order does not matter. */
MN_FN void maze_remove_dead_ends(mn_maze *m) {
  const int w = m->width, over[4] = { w, -w, 1, -1 };
  for (int from = w + 1; from < w * w - w - 1; from++) {
    int at = from;
    while (m->cell[at] == MAZE_CORRIDOR) {
      int walls = 0, next = at;
      for (int i = 0; i < 4; i++) {
        walls += maze_is_wall(m, at + over[i]);
        if (maze_is_floor(m, at + over[i])) next = at + over[i];
      }
      if (walls < 3) break;
      m->cell[at] = MAZE_WALL;
      at = next;
    }
  }
}

/* A horseshoe: a corridor that runs along v away from the cell before `at`, then b + 2 cells along u,
** and back along -v, around the b wall cells at, at + u, ... (v up, u to the right, b = 3):
**      ?*****?
**      *     *
**      ? *** ?        the bar sinks by one where all of * is wall, all blanks are corridor
**       ?***?
** Its size b, or 0: no bend.  `at` must lie within the border. */
MN_FN int maze_bend(const mn_maze *m, int at, int v, int u) {
  if (!maze_is_floor(m, at + v) || !maze_is_floor(m, at - u) || !maze_is_floor(m, at - u + v)) return 0;
  if (!maze_is_wall(m, at - u + 2 * v) || !maze_is_wall(m, at - 2 * u + v)) return 0;
  int b = 0;
  while (maze_is_wall(m, at) && maze_is_wall(m, at - v) && maze_is_floor(m, at + v) && maze_is_wall(m, at + 2 * v))
    at += u, b++;
  if (!b || !maze_is_floor(m, at) || !maze_is_floor(m, at + v)) return 0;
  return maze_is_wall(m, at + 2 * v) && maze_is_wall(m, at + u + v) ? b : 0;
}

MN_FN void maze_pull(mn_maze *m, int at, int v, int u, int b) {
  for (int i = 0; i < b; i++) m->cell[at + i * u] = MAZE_CORRIDOR;
  for (int i = -1; i <= b; i++) m->cell[at + i * u + v] = MAZE_WALL;
}

/* Directions in the order in which labmaze looks along them. */
MN_FN int maze_v(int way, int w) { return way == 0 ? w : way == 1 ? -w : way == 2 ? 1 : -1; }
MN_FN int maze_u(int way, int w) { return way == 0 ? -1 : way == 1 ? 1 : way == 2 ? w : -w; }

/* The first cell with the smallest bend of at least `least`; 0 if there is none.  *size: the bend's. */
MN_FN int maze_find_bend(const mn_maze *m, int least, int *size) {
  const int w = m->width;
  int first = 0;
  *size = w - 3;                 /* no bend is as long */
  for (int row = 1; row < w - 1; row++)
    for (int at = row * w + 1; at < row * w + w - 1; at++) {
      if (!maze_is_wall(m, at)) continue;
      for (int way = 0; way < 4; way++) {
        const int b = maze_bend(m, at, maze_v(way, w), maze_u(way, w));
        if (b >= least && b < *size) first = at, *size = b;
      }
    }
  return first;
}

/* Pull bends straight as labmaze does: the smallest first, as far as it goes, then all over again;
** except that after a bend of one cell the next to go must be larger. */
MN_FN void maze_remove_bends(mn_maze *m) {
  const int w = m->width;
  int size, least = 1;
  for (int at = maze_find_bend(m, least, &size); at; at = maze_find_bend(m, least, &size)) {
    for (int way = 0; way < 4; way++) {
      if (!maze_is_wall(m, at) || maze_bend(m, at, maze_v(way, w), maze_u(way, w)) != size) continue;
      maze_pull(m, at, maze_v(way, w), maze_u(way, w), size);
      at -= maze_v(way, w);
      if (at < w || at >= w * w - w || at % w == 0 || at % w == w - 1) break;      /* the border */
      way = -1;                  /* from there, in any direction */
    }
    least = size == 1 ? 2 : 1;
  }
}

/* ---- the whole ---- */

/* A spawn and an object in each room, not in the same cell. */
MN_FN void maze_furnish(maze_draft *d, uint16_t *object) {
  for (int r = 0; r < d->m->rooms; r++) {
    const maze_rect *room = &d->room[r];
    const int high = 2 * room->height - 1, wide = 2 * room->width - 1;
    const int spawn = mn_rand_below(d->io, high * wide);
    int other = mn_rand_below(d->io, high * wide - 1);
    other += other >= spawn;
    const int corner = maze_cell_of(d, room->row, room->col);
    d->m->spawn[r] = (uint16_t)(corner + spawn / wide * d->m->width + spawn % wide);
    object[r] = (uint16_t)(corner + other / wide * d->m->width + other % wide);
  }
}

MN_FN void maze_begin(maze_draft *d) {
  const int n = d->rule.nodes, side = n + 2;
  for (int i = 0; i < d->m->width * d->m->width; i++) d->m->cell[i] = MAZE_WALL;
  for (int i = 0; i < side * side; i++) d->region[i] = 255;
  for (int row = 0; row < n; row++) {
    d->vacant[row] = (1u << n) - 1;
    for (int col = 0; col < n; col++) d->region[maze_node(d, row, col)] = 0;
  }
  d->m->rooms = 0;
}

/* Draw a maze.  size: odd, MAZE_LEAST..MAZE_MOST; targets: up to maze_most_targets(size).  All of m is
** filled, but for cells beyond width * width. */
MN_LARGE void maze_draw(mn_maze *m, int size, int targets, mn_io *io) {
  maze_draft d;
  d.rule = maze_rule_of(size);
  d.m = m;
  d.io = io;
  m->width = size + 2;
  m->targets = targets;
  m->rejected = -1;
  do {
    int retries = 0;
    maze_begin(&d);
    while (m->rooms < d.rule.max_rooms && maze_room(&d, &retries)) continue;
    m->rejected++;
  } while (m->rooms < targets);

  d.regions = m->rooms;
  for (int row = 0; row < d.rule.nodes; row++)
    for (int col = 0; col < d.rule.nodes; col++)
      if (!d.region[maze_node(&d, row, col)]) maze_corridors(&d, row, col);
  maze_doors(&d);
  maze_remove_dead_ends(m);
  maze_remove_bends(m);
  maze_close_doors(m);

  uint16_t object[MAZE_ROOMS];
  maze_furnish(&d, object);
  for (int i = 0; i < targets; i++) {            /* any of the objects, in any order */
    const int other = i + mn_rand_below(io, m->rooms - i);
    m->target[i] = object[other];
    object[other] = object[i];
  }
  for (int i = 0; i < 9; i++) m->block[i] = (uint8_t)mn_rand_below(io, MAZE_WALL_COLOURS);
}
#endif
