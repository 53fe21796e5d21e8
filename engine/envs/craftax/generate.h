/* generate.h -- nine floors: six grow from noise, three are dungeons of rooms (the original's world_gen.py and its configs).
** A floor depends on its key alone, so it is made when the player comes there. */
#ifndef MN_CRAFTAX_GENERATE_H
#define MN_CRAFTAX_GENERATE_H
#include "worlds/craftax_noise.h"
#include "tables.h"

/* ---- keys ---- */

/* jax.random.split(key, n)[i] */
MN_FN mn_jax_key key_of(mn_jax_key key, int n, int i) {
  mn_jax_key out;
  out.word[0] = mn_jax_bits(key, 2 * n, 2 * i);
  out.word[1] = mn_jax_bits(key, 2 * n, 2 * i + 1);
  return out;
}

/* Element i of jax.random.randint(key, (n,), 0, span). */
MN_FN int below_of(mn_jax_key key, int n, int i, int span) {
  const mn_jax_key lower = mn_jax_split(&key);
  const uint32_t s = (uint32_t)span, carry = 65536 % s;
  return (int)((mn_jax_bits(key, n, i) % s * (carry * carry % s) + mn_jax_bits(lower, n, i) % s) % s);
}

/* jax.random.choice(key, arange(n), p=places), of places given as bits of rows of `side`, n of them: 0 where there is none. */
MN_FN int choose_of(mn_jax_key key, const uint64_t *place, int side, int n) {
  const float r = (float)n * (1 - mn_jax_uniform(key, 1, 0));
  const int before = (int)r + (r > (float)(int)r) - 1;          /* bits before the one that is meant */
  return n ? dice_place_after(place, side, before) : 0;
}

/* Where on a floor this block is: bits, and how many. */
MN_FN int places_of(const craftax *w, int floor, int block, uint64_t *place) {
  int n = 0;
  for (int row = 0; row < SIDE; row++) {
    place[row] = 0;
    for (int col = 0; col < SIDE; col++) place[row] |= (uint64_t)(w->at[floor].map[row][col] == block) << col;
    n += mn_ones_in(place[row]);
  }
  return n;
}

MN_FN void set_place(uint8_t *to, int at) {
  to[0] = (uint8_t)(at / SIDE);
  to[1] = (uint8_t)(at % SIDE);
}

/* ---- floors of noise ---- */

enum { ORES = 5 };
typedef struct terrain {
  uint8_t open, sea, coast, mountain, path, cave, tree_on, tree, lava, start, ladder_on;
  uint8_t has_up, has_down, bright;
  uint8_t ore_in[ORES], ore[ORES];
  float ore_share[ORES];
  float near_rise, near_most;                    /* mountains keep away from the middle: distance / near_rise, at most near_most */
  float sea_above, coast_above, tree_share, tree_above;
} terrain;

MN_FN terrain terrain_of(int floor) {
  const uint8_t s = STONE, ores[ORES] = { COAL, IRON, DIAMOND, SAPPHIRE, RUBY };
  terrain g = { PATH, WATER, PATH, STONE, STONE, STONE, PATH, STALAGMITE, LAVA, PATH, PATH, 1, 1, 0, { s, s, s, s, s }, { 0 }, { 0 },
               17, 1.5f, 0.7f, 0.6f, 0.8f, 0.5f };
  const float share[FLOORS][ORES] = { { 0.03f, 0.02f, 0.001f, 0, 0 }, { 0 }, { 0.04f, 0.02f, 0.005f, 0.0025f, 0.0025f }, { 0 }, { 0 },
                                      { 0.04f, 0.03f, 0.01f, 0.01f, 0.01f }, { 0.05f, 0, 0, 0, 0.025f }, { 0, 0, 0.005f, 0.02f, 0 },
                                      { 0.1f, 0.333f, 0.5f, 0, 0 } };
  for (int i = 0; i < ORES; i++) {
    g.ore[i] = ores[i];
    g.ore_share[i] = share[floor][i];
  }
  if (floor == 0) {
    g.open = g.tree_on = g.start = GRASS;
    g.coast = SAND;
    g.path = g.cave = PATH;
    g.tree = TREE;
    g.has_up = 0;
    g.near_rise = 5;
    g.near_most = 1;
    g.bright = 1;
  } else if (floor == 6) {
    g.open = g.tree_on = g.start = g.ladder_on = FIRE_GRASS;
    g.sea = LAVA;
    g.coast = SAND;
    g.tree = FIRE_TREE;
    g.near_rise = 5;
    g.near_most = 1;
    g.bright = 1;
    g.sea_above = 0.5f;
  } else if (floor == 7) {
    g.open = g.coast = g.tree_on = g.start = g.ladder_on = ICE_GRASS;
    g.tree = ICE_SHRUB;
    g.lava = WATER;
    g.sea_above = 0.5f;
    g.tree_share = 0.4f;
  } else if (floor == BOSS) {
    const uint8_t in[ORES] = { WALL, GRAVE, GRAVE, WALL, WALL }, become[ORES] = { WALL_MOSS, GRAVE2, GRAVE3, SAPPHIRE, RUBY };
    for (int i = 0; i < ORES; i++) {
      g.ore_in[i] = in[i];
      g.ore[i] = become[i];
    }
    g.sea = PATH;
    g.mountain = g.path = g.cave = g.lava = WALL;
    g.tree = GRAVE;
    g.start = NECROMANCER;
    g.has_up = g.has_down = 0;
    g.near_rise = g.near_most = 10;
    g.tree_share = 0.95f;
    g.tree_above = -1;
  }
  return g;
}

enum { DAMP = 128 };                             /* wet enough for a cave: until there are mountains */

/* Places of mountains, a bit a column.  deep: lava may be here. */
typedef struct rocks { uint64_t solid[SIDE], deep[SIDE]; } rocks;

/* A row of the distance to the middle of the map, so that the player begins on open ground. */
MN_FN void add_apart(float *to, int row, float rise, float top) {
  for (int col = 0; col < SIDE; col++) {
    const int rows = row - SIDE / 2, cols = col - SIDE / 2;
    const float near = __builtin_sqrtf((float)(rows * rows + cols * cols)) / rise;
    to[col] = (to[col] + (near < top ? near : top)) - 1;
  }
}

MN_FN void lay_water(craftax *w, int floor, const terrain *g, float *f) {
  for (int row = 0; row < SIDE; row++) {
    float *wet = f + row * SIDE;
    add_apart(wet, row, 5, 1);
    for (int col = 0; col < SIDE; col++) {
      const int is = wet[col] > g->sea_above ? g->sea : g->open;
      w->at[floor].map[row][col] = (uint8_t)((wet[col] > g->coast_above && is != g->sea ? g->coast : is) | (wet[col] > 0.4f ? DAMP : 0));
    }
  }
}

MN_FN void raise_mountains(craftax *w, int floor, const terrain *g, float *f, rocks *r) {
  uint8_t solid_is[SIDE], deep[SIDE];
  for (int row = 0; row < SIDE; row++) {
    uint8_t *map = w->at[floor].map[row];
    float *high = f + row * SIDE;
    for (int col = 0; col < SIDE; col++) high[col] += 0.05f;
    add_apart(high, row, g->near_rise, g->near_most);
    for (int col = 0; col < SIDE; col++) {
      const int cave = high[col] > 0.85f && map[col] & DAMP;
      solid_is[col] = high[col] > 0.7f && !cave;
      deep[col] = high[col] > 0.85f;
      map[col] = (uint8_t)(high[col] > 0.7f ? (cave ? g->cave : g->mountain) : map[col] & ~DAMP);
    }
    r->solid[row] = bits_of_flags(solid_is, SIDE);
    r->deep[row] = bits_of_flags(deep, SIDE);
  }
}

MN_FN void dig_veins(craftax *w, int floor, const terrain *g, const float *f, const rocks *r) {
  uint64_t path[SIDE];
  along_and_across(f, SIDE, 0.8f, path);
  for (int row = 0; row < SIDE; row++)
    for (uint64_t left = path[row] & r->solid[row]; left; left &= left - 1) w->at[floor].map[row][mn_lowest_of(left)] = g->path;
}

MN_FN void flow(craftax *w, int floor, int lava, int row, int col) {
  w->at[floor].map[row][col] = (uint8_t)lava;
  if (lava != LAVA) return;
  for (int r = most(0, row - 1); r <= least(SIDE - 1, row + 1); r++)
    for (int c = most(0, col - 1); c <= least(SIDE - 1, col + 1); c++) w->at[floor].lit[r] |= 1ull << c;
}

/* Trees, then ores, then lava, which gives light.  Rows are taken in pairs, as their random numbers come. */
MN_FN void strew(craftax *w, int floor, const terrain *g, const float *f, const rocks *r, mn_jax_key trees, mn_jax_key ores) {
  const int all = SIDE * SIDE;
  float u[1 + ORES][2][WIDEST];
  uint8_t lava[SIDE];
  mn_jax_key key[ORES];
  for (int k = 0; k < ORES; k++) key[k] = mn_jax_split(&ores);
  for (int i = 0; i < SIDE / 2; i++) {
    uniforms_of(trees, all, i * SIDE, SIDE, u[ORES][0], u[ORES][1]);
    for (int k = 0; k < ORES; k++)
      if (g->ore_share[k] > 0) uniforms_of(key[k], all, i * SIDE, SIDE, u[k][0], u[k][1]);
    for (int half = 0; half < 2; half++) {
      const int row = i + half * SIDE / 2;
      const float *wood = f + row * SIDE;
      uint8_t *map = w->at[floor].map[row];
      for (int col = 0; col < SIDE; col++) {
        const int grows = map[col] == g->tree_on && wood[col] > g->tree_above && u[ORES][half][col] > g->tree_share;
        map[col] = grows ? g->tree : map[col];
        lava[col] = wood[col] > 0.7f;
      }
      for (int k = 0; k < ORES; k++)
        for (int col = 0; col < SIDE && g->ore_share[k] > 0; col++)
          map[col] = map[col] == g->ore_in[k] && u[k][half][col] < g->ore_share[k] ? g->ore[k] : map[col];
      for (uint64_t left = bits_of_flags(lava, SIDE) & r->deep[row]; left; left &= left - 1) flow(w, floor, g->lava, row, mn_lowest_of(left));
    }
  }
}

/* The light of a torch whose square of 9 x 9 begins there: nearer than five steps. */
MN_FN void shine(craftax *w, int floor, int top, int left) {
  for (int r = 0; r < 9; r++)
    for (int c = 0; c < 9; c++)
      if ((r - 4) * (r - 4) + (c - 4) * (c - 4) < 25 && inside(top + r, left + c)) w->at[floor].lit[top + r] |= 1ull << (left + c);
}

MN_LARGE void make_ground(craftax *w, int floor, mn_jax_key key) {
  const terrain g = terrain_of(floor);
  float f[SIDE * SIDE];
  rocks r;
  dice d;
  d.io = NULL;
  d.used = 0;
  d.jax = true;
  d.key = key;
  make_noise(f, &d, dice_split(&d), SIDE, 3, 3);
  lay_water(w, floor, &g, f);
  dice_split(&d);
  make_noise(f, &d, dice_split(&d), SIDE, 3, 3);
  raise_mountains(w, floor, &g, f, &r);
  make_noise(f, &d, dice_split(&d), SIDE, 6, 24);
  dig_veins(w, floor, &g, f, &r);
  dice_split(&d);
  make_noise(f, &d, dice_split(&d), SIDE, 12, 12);
  const mn_jax_key trees = d.key;
  strew(w, floor, &g, f, &r, trees, dice_split(&d));
  dice_split(&d);                                     /* a diamond that must be: never in these settings, but see floor 8 */
  if (floor == BOSS) w->at[floor].map[0][0] = STONE;
  w->at[floor].map[SIDE / 2][SIDE / 2] = g.start;
  uint64_t place[SIDE];
  const int n = places_of(w, floor, g.ladder_on, place);
  const int down = choose_of(dice_split(&d), place, SIDE, n), up = choose_of(dice_split(&d), place, SIDE, n);
  set_place(w->at[floor].down_ladder, down);
  set_place(w->at[floor].up_ladder, up);
  if (g.has_down) ((uint8_t *)w->at[floor].item)[down] = LADDER_DOWN;
  if (g.has_up) ((uint8_t *)w->at[floor].item)[up] = LADDER_UP;
  for (int row = 0; row < SIDE && g.bright; row++) w->at[floor].lit[row] = (1ull << SIDE) - 1;
  shine(w, floor, least(clamped(up / SIDE - 4), SIDE - 9), least(clamped(up % SIDE - 4), SIDE - 9));    /* kept on the map as JAX does */
}

/* ---- dungeons ---- */

enum { ROOMS = 8, MARGIN = 10, YARD = SIDE + 2 * MARGIN, CHUNK = 16, CHUNKS = SIDE / CHUNK, SMALLEST = 5 };

typedef struct yard { uint8_t map[YARD][YARD], item[YARD][YARD]; int16_t room[ROOMS][2]; } yard;       /* a map with a margin */

MN_FN void dig_room(yard *y, int *at, int tall, int wide, mn_jax_key *key, int fountain) {
  for (int r = 0; r < tall; r++)
    for (int c = 0; c < wide; c++) y->map[at[0] + r][at[1] + c] = PATH;
  for (int corner = 0; corner < 4; corner++)
    y->item[at[0] + (corner & 1 ? tall - 1 : 0)][at[1] + (corner & 2 ? wide - 1 : 0)] = TORCH;
  const mn_jax_key chest = mn_jax_split(key);
  y->map[at[0] + 1 + below_of(chest, 2, 0, tall - 2)][at[1] + 1 + below_of(chest, 2, 1, wide - 2)] = CHEST;
  const mn_jax_key spring = key_of(*key, 3, 1), has = key_of(*key, 3, 2);
  *key = key_of(*key, 3, 0);
  if (mn_jax_uniform(has, 1, 0) > 0.5f)
    y->map[at[0] + 1 + below_of(spring, 2, 0, tall - 2)][at[1] + 1 + below_of(spring, 2, 1, wide - 2)] = (uint8_t)fountain;
}

MN_FN void dig_rooms(yard *y, mn_jax_key sizes, mn_jax_key key, int fountain) {
  uint64_t empty = (1 << CHUNKS * CHUNKS) - 1;   /* chunks of the map without a room */
  for (int i = 0; i < ROOMS; i++) {
    const int chunk = choose_of(mn_jax_split(&key), &empty, CHUNKS * CHUNKS, CHUNKS * CHUNKS - i);
    empty &= ~(1ull << chunk);
    const mn_jax_key where = mn_jax_split(&key);
    int at[2] = { chunk % CHUNKS * CHUNK + MARGIN, chunk / CHUNKS * CHUNK + MARGIN };
    for (int k = 0; k < 2; k++) at[k] += below_of(where, 2, k, CHUNK - SMALLEST);
    for (int k = 0; k < 2; k++) y->room[i][k] = (int16_t)at[k];
    dig_room(y, at, SMALLEST + below_of(sizes, 2 * ROOMS, 2 * i, SMALLEST), SMALLEST + below_of(sizes, 2 * ROOMS, 2 * i + 1, SMALLEST), &key,
             fountain);
  }
}

/* From each room along its row and then along the other's column, through walls alone. */
MN_FN void dig_paths(yard *y, mn_jax_key key) {
  uint64_t joined = 1 << (ROOMS - 1);
  for (int i = 0; i < ROOMS; i++) {
    const int16_t *from = y->room[i], *to = y->room[choose_of(mn_jax_split(&key), &joined, ROOMS, mn_ones_in(joined))];
    for (int c = least(from[1], to[1]); c <= most(from[1], to[1]) && from[1] != to[1]; c++)
      if (y->map[from[0]][c] == WALL) y->map[from[0]][c] = PATH;
    for (int r = least(from[0], to[0]); r <= most(from[0], to[0]) && from[0] != to[0]; r++)
      if (y->map[r][to[1]] == WALL) y->map[r][to[1]] = PATH;
    key = mn_jax_split(&key);
    joined |= 1ull << i;
  }
}

MN_FN bool open_at(const yard *y, int row, int col) { return inside(row, col) && y->map[row + MARGIN][col + MARGIN] != WALL; }

/* Walls beside what is open, some with moss; what lies behind is dark. */
MN_FN void face_walls(craftax *w, int floor, const yard *y, mn_jax_key key, int rare_path) {
  for (int row = 0; row < SIDE; row++)
    for (int col = 0; col < SIDE; col++) {
      int is = y->map[row + MARGIN][col + MARGIN];
      const int item = y->item[row + MARGIN][col + MARGIN];
      const bool rare = 1 - mn_jax_uniform(key, SIDE * SIDE, row * SIDE + col) > 0.9f;
      const bool edge = open_at(y, row, col) || open_at(y, row - 1, col) || open_at(y, row + 1, col) || open_at(y, row, col - 1) ||
                        open_at(y, row, col + 1);
      if (!edge) is = DARKNESS;
      else if (is == WALL && rare) is = WALL_MOSS;
      else if (is == PATH && rare && item == NOTHING) is = rare_path;
      w->at[floor].map[row][col] = (uint8_t)is;
      w->at[floor].item[row][col] = (uint8_t)item;
    }
}

MN_LARGE void make_dungeon(craftax *w, int floor, mn_jax_key key) {
  const bool sewers = floor == 3;
  yard y;
  memset(&y, 0, sizeof y);
  for (int row = 0; row < SIDE; row++) memset(&y.map[row + MARGIN][MARGIN], WALL, SIDE);
  const mn_jax_key sizes = key_of(key, 3, 2);
  key = key_of(key, 3, 0);
  dig_rooms(&y, sizes, mn_jax_split(&key), sewers ? (int)WATER : (int)FOUNTAIN);
  dig_paths(&y, mn_jax_split(&key));
  y.map[y.room[0][0] + 2][y.room[0][1] + 2] = (uint8_t)(floor == 1 ? PATH : sewers ? (int)ICE_ALTAR : (int)FIRE_ALTAR);
  face_walls(w, floor, &y, mn_jax_split(&key), sewers ? WATER : PATH);
  uint64_t place[SIDE];
  const int n = places_of(w, floor, PATH, place);
  const int down = mn_jax_choice(mn_jax_split(&key), place, SIDE, 1.0f / (float)n), up = choose_of(mn_jax_split(&key), place, SIDE, n);
  set_place(w->at[floor].down_ladder, down);
  set_place(w->at[floor].up_ladder, up);
  ((uint8_t *)w->at[floor].item)[down] = LADDER_DOWN;
  ((uint8_t *)w->at[floor].item)[up] = LADDER_UP;
  for (int row = 0; row < SIDE; row++) w->at[floor].lit[row] = (1ull << SIDE) - 1;
}

/* ---- the world ---- */

MN_LARGE void make_floor(craftax *w, int floor) {
  const uint8_t smooth[FLOORS] = { 1, 0, 2, 0, 0, 3, 4, 5, 6 };
  if (w->made >> floor & 1) return;
  w->made |= 1u << floor;
  level *at = w->at + floor;
  for (int i = 0; i < MELEES; i++) at->melee[i].health = 1;
  for (int i = 0; i < PASSIVES; i++) at->passive[i].health = 1;
  for (int i = 0; i < RANGEDS; i++) at->ranged[i].health = 1;
  for (int i = 0; i < SHOTS; i++) at->mine[i].down = at->mine[i].right = at->theirs[i].down = at->theirs[i].right = 1;
  if (smooth[floor]) make_ground(w, floor, key_of(w->world, 7, smooth[floor]));
  else make_dungeon(w, floor, key_of(key_of(w->world, 7, 0), 4, floor == 1 ? 1 : floor - 1));
}

/* Floor 0, and what the potions of each colour do. */
MN_FN void generate(craftax *w, mn_jax_key key) {
  w->world = key;
  make_floor(w, 0);
  mn_jax_key rest = key_of(key_of(key, 7, 0), 4, 0), order = mn_jax_split(&rest);
  order = mn_jax_split(&order);
  for (int i = 0; i < POTIONS; i++) {            /* jax.random.permutation: sorted by random words */
    int before = 0;
    const uint32_t word = mn_jax_bits(order, POTIONS, i);
    for (int k = 0; k < POTIONS; k++) {
      const uint32_t other = mn_jax_bits(order, POTIONS, k);
      before += other < word || (other == word && k < i);
    }
    w->effect[before] = (uint8_t)i;
  }
}
#endif
