/* raycast.h -- a first-person image of a maze of square cells: walls, floor, sky and hemispheres on
** the floor, 64x64 RGB, flat colours.
**
** The camera is pitched down a little, yet walls need only one ray per column: each row of a pitched
** camera's image is one row of a level camera's image, stretched or shrunk.
** So rays are cast for a level camera, twice as dense as pixels,
** and bands of rows look up, for each pixel, the ray that it falls on.
** Rays step from cell to cell, as in Amanatides and Woo, A fast voxel traversal algorithm, 1987.
** All loops are over lanes without branches: the compiler makes vectors of them, and a picture has
** the same bits however it is called. */
#ifndef MN_RAYCAST_H
#define MN_RAYCAST_H
#include "numerics/fast_math.h"
#include "numerics/random.h"

enum {
  MN_RAY_SIZE = 64,              /* pixels along each side */
  MN_RAY_RAYS = 128,             /* of the level camera */
  MN_RAY_BAND = 4,               /* rows that share their rays */
  MN_RAY_BORDER = 2,             /* pixels of the frame around the picture */
  MN_RAY_BALLS = 8               /* most hemispheres */
};

/* Lengths in cells: Memory Maze's cells are 2 m wide. */
#define MN_RAY_EYE     0.45f     /* above the floor */
#define MN_RAY_WALL    0.75f     /* height of the walls */
#define MN_RAY_BALL    0.3f      /* radius of the hemispheres */
#define MN_RAY_TANGENT 0.8390996f                    /* of half the field of view, 40 degrees */
#define MN_RAY_COS     0.9950556f                    /* of the pitch, 5.7 degrees */
#define MN_RAY_SIN     0.0993198f
#define MN_RAY_SOLID   (-0x7FFFFFFF - 1)             /* the bit that makes a cell a wall */

typedef struct mn_ray_ball { float x, y; int32_t color; } mn_ray_ball;

typedef struct mn_ray_view {
  const int32_t *cells;          /* [height * width] 0xRRGGBB of floor, or of walls with MN_RAY_SOLID;
                                 ** those on the border are walls */
  int width, height;
  float x, y;                    /* of the camera, in an open cell; cell i spans i .. i + 1 */
  float forward_x, forward_y;    /* where it looks, of length 1; y grows to the right of x */
  int n_balls;
  const mn_ray_ball *balls;
  int32_t border;                /* 0xRRGGBB */
} mn_ray_view;

typedef struct mn_ray_hits {     /* by ray */
  float depth[MN_RAY_RAYS];      /* to the wall, along `forward` */
  int32_t color[MN_RAY_RAYS];
  int32_t top[MN_RAY_RAYS], bottom[MN_RAY_RAYS];     /* the wall's rows: top .. bottom - 1 */
} mn_ray_hits;

typedef struct mn_ray_row {      /* what a row of pixels is to the level camera */
  float slope;                   /* height above the eye at depth 1 */
  float wide;                    /* half its width at depth 1 */
} mn_ray_row;

/* 0xRRGGBB times `by`, 0..256, over 256. */
MN_MATH int32_t mn_ray_shade(int32_t color, int32_t by) {
  const uint32_t c = (uint32_t)color, part = (uint32_t)by;
  return (int32_t)(((c & 0xFF00FF) * part >> 8 & 0xFF00FF) | ((c & 0xFF00) * part >> 8 & 0xFF00));
}

/* Things darken with distance: by half at 8 cells. */
MN_MATH int32_t mn_ray_fade(float depth) { return (int32_t)(256 * 8 / (8 + depth)); }

MN_MATH mn_ray_row mn_ray_row_at(float y) {
  const float up = (1 - (2 * y + 1) / MN_RAY_SIZE) * MN_RAY_TANGENT;
  const float ahead = MN_RAY_COS + up * MN_RAY_SIN;
  mn_ray_row row;
  row.slope = (up * MN_RAY_COS - MN_RAY_SIN) / ahead;
  row.wide = MN_RAY_TANGENT / ahead;
  return row;
}

/* The first row whose middle lies below `slope`.  Slopes of 9 and more are above the picture, and from
** 10 on behind the camera. */
MN_MATH int32_t mn_ray_first_row(float slope) {
  slope = mn_at_most(slope, 9.0f);
  const float up = (slope * MN_RAY_COS + MN_RAY_SIN) / (MN_RAY_COS - slope * MN_RAY_SIN);
  float y = (1 - up / MN_RAY_TANGENT) * (MN_RAY_SIZE / 2) + 0.5f;
  y = mn_at_most(mn_at_least(y, 0.0f), (float)MN_RAY_SIZE);
  return (int32_t)y;
}

/* Half the width of the lowest row, the widest: rays cover this. */
MN_MATH float mn_ray_widest(void) { return mn_ray_row_at(MN_RAY_SIZE - 1).wide; }

/* How far to the right ray i is at depth 1. */
MN_MATH float mn_ray_aside(int i) {
  return ((float)i + 0.5f - MN_RAY_RAYS / 2) * (mn_ray_widest() * 2 / MN_RAY_RAYS);
}

/* Walk sixteen rays together, from cell to cell, until all have met a wall. */
MN_LARGE void mn_ray_walk(const mn_ray_view *v, int from, mn_ray_hits *hits) {
  enum { LANES = 16 };
  float near_x[LANES], near_y[LANES], per_x[LANES], per_y[LANES], depth[LANES];
  int32_t at[LANES], step_x[LANES], step_y[LANES], cell[LANES], along_x[LANES];
  const int32_t column = (int32_t)v->x, row = (int32_t)v->y;
  const float part_x = v->x - (float)column, part_y = v->y - (float)row;
  const int32_t start = row * v->width + column;
  const int32_t *cells = v->cells;
#pragma omp simd
  for (int i = 0; i < LANES; i++) {
    const float side = mn_ray_aside(from + i);
    const float dx = v->forward_x - side * v->forward_y, dy = v->forward_y + side * v->forward_x;
    per_x[i] = 1 / mn_at_least(__builtin_fabsf(dx), 1e-6f);
    per_y[i] = 1 / mn_at_least(__builtin_fabsf(dy), 1e-6f);
    near_x[i] = (dx < 0 ? part_x : 1 - part_x) * per_x[i];
    near_y[i] = (dy < 0 ? part_y : 1 - part_y) * per_y[i];
    step_x[i] = dx < 0 ? -1 : 1;
    step_y[i] = dy < 0 ? -v->width : v->width;
    at[i] = start;
    cell[i] = cells[start];
    depth[i] = 0;
    along_x[i] = 0;
  }
  for (int n = v->width + v->height, open = 1; open && n > 0; n--) {
    open = 0;
#pragma omp simd reduction(| : open)
    for (int i = 0; i < LANES; i++) {
      const int32_t moves = cell[i] >= 0, x = near_x[i] < near_y[i];
      const float t = x ? near_x[i] : near_y[i];
      at[i] += moves ? (x ? step_x[i] : step_y[i]) : 0;
      depth[i] = moves ? t : depth[i];
      along_x[i] = moves ? x : along_x[i];
      near_x[i] += x ? per_x[i] : 0;
      near_y[i] += x ? 0 : per_y[i];
      cell[i] = cells[at[i]];
      open |= cell[i] >= 0;
    }
  }
#pragma omp simd
  for (int i = 0; i < LANES; i++) {
    const float t = mn_at_least(depth[i], 1e-3f);
    const int32_t fade = mn_ray_fade(t);
    hits->depth[from + i] = t;
    hits->color[from + i] = mn_ray_shade(cell[i], along_x[i] ? fade : fade * 13 >> 4);
    hits->top[from + i] = mn_ray_first_row((MN_RAY_WALL - MN_RAY_EYE) / t);
    hits->bottom[from + i] = mn_ray_first_row(-MN_RAY_EYE / t);
  }
}

typedef struct mn_ray_seen {     /* a ball as the camera sees it */
  float ahead, aside;            /* of its centre */
  int32_t color, top, bottom;    /* the rows it may touch: top .. bottom - 1 */
} mn_ray_seen;

/* The balls before the camera, and in which rows to look for them; their number. */
MN_FN int mn_ray_balls(const mn_ray_view *v, mn_ray_seen *seen) {
  int n = 0;
  for (int i = 0; i < v->n_balls; i++) {
    const float dx = v->balls[i].x - v->x, dy = v->balls[i].y - v->y;
    const float ahead = dx * v->forward_x + dy * v->forward_y;
    const float aside = dy * v->forward_x - dx * v->forward_y;
    const float back = ahead + MN_RAY_BALL, front = ahead - MN_RAY_BALL;
    if (back <= 0 || __builtin_fabsf(aside) > back + 2 * MN_RAY_BALL) continue;
    seen[n].ahead = ahead;
    seen[n].aside = aside;
    seen[n].color = v->balls[i].color;
    seen[n].top = mn_ray_first_row((MN_RAY_BALL - MN_RAY_EYE) / back);
    seen[n].bottom = front > 0.05f ? mn_ray_first_row(-MN_RAY_EYE / front) : MN_RAY_SIZE;
    n++;
  }
  return n;
}

/* Paint the pixels of one row that a ball covers: those whose ray meets the sphere above the floor and
** before what else is there.  It is lit from above. */
MN_LARGE void mn_ray_ball_row(const mn_ray_seen *ball, mn_ray_row row, float *depth, int32_t *color) {
  const float eye = MN_RAY_EYE, slope = row.slope, per_pixel = row.wide * 2 / MN_RAY_SIZE;
  const float ahead = ball->ahead, aside = ball->aside;
  const float beyond = ahead * ahead + aside * aside + eye * eye - MN_RAY_BALL * MN_RAY_BALL;
  const int32_t paint = ball->color;
#pragma omp simd
  for (int x = 0; x < MN_RAY_SIZE; x++) {
    const float side = ((float)x + 0.5f - MN_RAY_SIZE / 2) * per_pixel;
    const float length = 1 + side * side + slope * slope;
    const float along = ahead + side * aside - slope * eye;
    const float inside = along * along - length * beyond;
    const float t = (along - __builtin_sqrtf(__builtin_fabsf(inside))) / length;
    const float high = eye + t * slope;
    const int32_t hit = -((inside > 0) & (t > 0) & (t < depth[x]) & (high >= 0));
    const float light = (0.55f + 0.45f / MN_RAY_BALL * high) * (float)mn_ray_fade(t);
    color[x] = (color[x] & ~hit) | (mn_ray_shade(paint, (int32_t)light) & hit);
    depth[x] = hit ? t : depth[x];
  }
}

/* One row of sky, wall and floor. */
MN_LARGE void mn_ray_plain_row(const mn_ray_view *v, int y, mn_ray_row row, int bare, const int32_t *top,
                            const int32_t *bottom, const int32_t *wall, int32_t *color) {
  const float per_pixel = row.wide * 2 / MN_RAY_SIZE;
  if (bare) {          /* the sky: lighter as it rises */
    const int32_t sky = mn_ray_shade(0x6699CC, (int32_t)(128 + 120 * row.slope));
#pragma omp simd
    for (int x = 0; x < MN_RAY_SIZE; x++) color[x] = y < top[x] ? sky : wall[x];
    return;
  }
  const float t = MN_RAY_EYE / mn_at_least(-row.slope, 1e-3f);
  const int32_t fade = mn_ray_fade(t), width = v->width, *cells = v->cells;
  const float right = (float)(width - 1), low = (float)(v->height - 1);
  const float mid_x = v->x + t * v->forward_x, mid_y = v->y + t * v->forward_y;
  const float go_x = -t * v->forward_y, go_y = t * v->forward_x;
#pragma omp simd
  for (int x = 0; x < MN_RAY_SIZE; x++) {
    const float side = ((float)x + 0.5f - MN_RAY_SIZE / 2) * per_pixel;
    const float at_x = mn_at_most(mn_at_least(mid_x + side * go_x, 0.0f), right);
    const float at_y = mn_at_most(mn_at_least(mid_y + side * go_y, 0.0f), low);
    const int32_t floor = mn_ray_shade(cells[(int32_t)at_y * width + (int32_t)at_x], fade);
    color[x] = y < bottom[x] ? wall[x] : floor;
  }
}

/* Paint the picture: pixels[MN_RAY_SIZE, MN_RAY_SIZE, 3], rows from the top. */
MN_LARGE void mn_raycast(const mn_ray_view *v, uint8_t *pixels) {
  enum { SIZE = MN_RAY_SIZE, BORDER = MN_RAY_BORDER };
  mn_ray_hits hits;
  mn_ray_seen balls[MN_RAY_BALLS];
  int32_t top[SIZE], bottom[SIZE], wall[SIZE], color[SIZE];
  float depth[SIZE], nearest[SIZE];
  const float widest = mn_ray_widest();
  for (int i = 0; i < MN_RAY_RAYS; i += 16) mn_ray_walk(v, i, &hits);
  const int n_balls = mn_ray_balls(v, balls);
  for (int band = 0; band < SIZE; band += MN_RAY_BAND) {
    const float dense = mn_ray_row_at((float)band + (MN_RAY_BAND - 1) * 0.5f).wide / widest;
    int32_t floor_from = SIZE;
#pragma omp simd reduction(min : floor_from)
    for (int x = 0; x < SIZE; x++) {
      const float ray = ((float)x + 0.5f - SIZE / 2) * dense * ((float)MN_RAY_RAYS / SIZE);
      const int32_t k = (int32_t)(ray + MN_RAY_RAYS / 2);
      top[x] = hits.top[k];
      bottom[x] = hits.bottom[k];
      wall[x] = hits.color[k];
      depth[x] = hits.depth[k];
      floor_from = bottom[x] < floor_from ? bottom[x] : floor_from;
    }
    for (int y = band; y < band + MN_RAY_BAND; y++) {
      uint8_t *out = pixels + y * SIZE * 3;
      if (y < BORDER || y >= SIZE - BORDER) {
        for (int x = 0; x < SIZE; x++) color[x] = v->border;
      } else {
        const mn_ray_row row = mn_ray_row_at((float)y);
        mn_ray_plain_row(v, y, row, y < floor_from, top, bottom, wall, color);
        int first = 1;
        for (int i = 0; i < n_balls; i++) {
          if (y < balls[i].top || y >= balls[i].bottom) continue;
          if (first) memcpy(nearest, depth, sizeof depth);
          first = 0;
          mn_ray_ball_row(&balls[i], row, nearest, color);
        }
        for (int x = 0; x < BORDER; x++) color[x] = color[SIZE - 1 - x] = v->border;
      }
      for (int x = 0; x < SIZE; x++) {
        out[3 * x] = (uint8_t)(color[x] >> 16);
        out[3 * x + 1] = (uint8_t)(color[x] >> 8);
        out[3 * x + 2] = (uint8_t)color[x];
      }
    }
  }
}
#endif
