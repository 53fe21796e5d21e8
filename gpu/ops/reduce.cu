/* reduce.cu -- ops that reduce an axis, or all of them (engine/ops/axis.h): sum mean var std norm prod, max min argmax argmin,
** all any count_nonzero. */
#include "lib/repeat.cuh"
#include "lib/sums.cuh"
extern "C" {
#include "numerics/fast_math.h"
#include "ops/axis.h"
}

static cu_fold fold_of(const mn_span &s) { return cu_fold_of(s.outer, s.size, s.inner); }

static void add_up(const mn_call *c, float *to, double scale) {
  cu_sum(c, fold_of(mn_reduced_span(c)), cu_number{ c->in[0].data }, to, scale);
}

static void spread(const mn_call *c, double scale) {
  const mn_span s = mn_reduced_span(c);
  cu_spread(c->in[0].grad, c->out[0].grad, s.outer, s.size, s.inner, (float)scale);
}

static double part_of(const mn_call *c) { return 1.0 / (double)mn_reduced_span(c).size; }

static void sum_forward(mn_call *c) { add_up(c, c->out[0].data, 1); }
static void sum_backward(mn_call *c) { spread(c, 1); }
MN_KERNEL(sum, sum_forward, sum_backward)

static void mean_forward(mn_call *c) { add_up(c, c->out[0].data, part_of(c)); }
static void mean_backward(mn_call *c) { spread(c, part_of(c)); }
MN_KERNEL(mean, mean_forward, mean_backward)

/* ---- var and std ---- */

namespace {
struct Square {                                     /* from the mean of its sum */
  const float *x, *mean;
  __device__ __forceinline__ double operator()(const long *at) const {
    const double d = (double)x[at[0]] - (double)mean[at[1]];
    return d * d;
  }
};

struct Share {
  double of;
  bool root;
  __device__ __forceinline__ float operator()(double sum) const { return (float)(root ? sqrt(sum / of) : sum / of); }
};
}

static double freedom(const mn_call *c) { return cu_max(0.0, (double)mn_reduced_span(c).size - OPT(c, 2)); }

static float *means(const mn_call *c) {
  const mn_span s = mn_reduced_span(c);
  float *mean = mn_scratch(c->ctx, 0, s.outer * s.inner);
  add_up(c, mean, part_of(c));
  return mean;
}

static void variance(const mn_call *c, bool root) {
  const float *mean = means(c);
  cu_sum_to(c, fold_of(mn_reduced_span(c)), Square{ c->in[0].data, mean }, c->out[0].data, Share{ freedom(c), root }, false);
}

CU_KERNEL variance_slope(const float *x, const float *mean, const float *y, const float *dy, float *dx, long n, cu_divisor size,
                         cu_divisor inner, double of, bool root) {
  CU_LOOP(at, n) {
    long i, r;
    const long o = size.divide(inner.divide(at, &i), &r), k = o * inner.by + i;
    const double d = (double)dy[k], g = !root ? 2 * d / of : y[k] == 0 ? 0 : d / ((double)y[k] * of);
    dx[at] = (float)g * (x[at] - mean[k]);
  }
}

static void variance_backward(const mn_call *c, bool root) {
  const mn_span s = mn_reduced_span(c);
  const long n = c->in[0].n;
  CU_LAUNCH(variance_slope, cu_blocks(n), CU_THREADS, 0, c->in[0].data, means(c), c->out[0].data, c->out[0].grad, c->in[0].grad, n,
            cu_divisor(s.size), cu_divisor(s.inner), freedom(c), root);
}

static void var_forward(mn_call *c) { variance(c, false); }
static void var_backward(mn_call *c) { variance_backward(c, false); }
MN_KERNEL(var, var_forward, var_backward)

static void std_forward(mn_call *c) { variance(c, true); }
static void std_backward(mn_call *c) { variance_backward(c, true); }
MN_KERNEL(std, std_forward, std_backward)

/* ---- norm ---- */

enum { NORM_AXIS = 1 };                             /* the option */

namespace {
struct Power {
  const float *x;
  double p;
  __device__ __forceinline__ double operator()(const long *at) const {
    const double v = fabs((double)x[at[0]]);
    return p == 2 ? v * v : p == 1 ? v : pow(v, p);
  }
};

struct Root {
  double p;
  __device__ __forceinline__ float operator()(double sum) const {
    return (float)(p == 2 ? sqrt(sum) : p == 1 ? sum : pow(sum, 1 / p));
  }
};

struct Equal {                                      /* to the largest of its row */
  const float *x, *y;
  __device__ __forceinline__ float operator()(const long *at) const { return fabsf(x[at[0]]) == y[at[1]] ? 1.0f : 0.0f; }
};
}

/* y[outer, inner] = the largest |x|, or NaN. */
CU_KERNEL largest_size(const float *x, float *y, long rows, long size, cu_divisor inner, int width) {
  const cu_team team(width);
  for (long row = team.first(); team.any(row, rows); row = team.next(row)) {
    float top = 0;
    if (row < rows) {
      long i;
      const long o = inner.divide(row, &i);
      for (long r = team.lane; r < size; r += width) {
        const float v = fabsf(x[(o * size + r) * inner.by + i]);
        if (v > top || v != v) top = v;
      }
    }
    top = team.all(top, [](float a, float b) { return a != a || a > b ? a : b; });
    if (row < rows && team.lane == 0) y[row] = top;
  }
}

static void norm_forward(mn_call *c) {
  const mn_span s = mn_span_by(c, NORM_AXIS);
  const double p = OPT(c, 0);
  const long rows = s.outer * s.inner;
  const int width = cu_team_width(s.size);
  if (p < INFINITY) cu_sum_to(c, fold_of(s), Power{ c->in[0].data, p }, c->out[0].data, Root{ p }, false);
  else CU_LAUNCH(largest_size, cu_team_blocks(rows, width), CU_THREADS, CU_TEAM_SHARED, c->in[0].data, c->out[0].data, rows, s.size,
                 cu_divisor(s.inner), width);
}

/* equals: how many of a row are as large as its largest, for p = inf */
CU_KERNEL norm_slope(const float *x, const float *y, const float *dy, const float *equals, float *dx, long n, cu_divisor size,
                     cu_divisor inner, double p) {
  CU_LOOP(at, n) {
    long i, r;
    const long o = size.divide(inner.divide(at, &i), &r), k = o * inner.by + i;
    const float v = x[at], sign = v > 0 ? 1.0f : v < 0 ? -1.0f : v;
    dx[at] = y[k] == 0 ? 0.0f
      : p == 2 ? dy[k] * v / y[k]
      : p == 1 ? dy[k] * sign
      : equals ? (fabsf(v) == y[k] ? dy[k] * sign / equals[k] : 0.0f)
      : v == 0 ? 0.0f : dy[k] * sign * powf(fabsf(v) / y[k], (float)(p - 1));
  }
}

static void norm_backward(mn_call *c) {
  const mn_span s = mn_span_by(c, NORM_AXIS);
  const long n = c->in[0].n;
  float *equals = OPT(c, 0) == INFINITY ? mn_scratch(c->ctx, 0, s.outer * s.inner) : NULL;
  if (equals) cu_sum(c, fold_of(s), Equal{ c->in[0].data, c->out[0].data }, equals);
  CU_LAUNCH(norm_slope, cu_blocks(n), CU_THREADS, 0, c->in[0].data, c->out[0].data, c->out[0].grad, equals, c->in[0].grad, n,
            cu_divisor(s.size), cu_divisor(s.inner), OPT(c, 0));
}

MN_KERNEL(norm, norm_forward, norm_backward)

/* ---- prod: a team to a row; with dx, its gradient, and without, its value ---- */

CU_KERNEL multiplied(const float *x, float *y, const float *dy, float *dx, long rows, long size, cu_divisor inner, int width) {
  const cu_team team(width);
  for (long row = team.first(); team.any(row, rows); row = team.next(row)) {
    double rest = 1;                                /* the product of those that are not 0 */
    int zeros = 0;
    long i = 0;
    const long base = row < rows ? inner.divide(row, &i) * size * inner.by + i : 0;
    for (long r = team.lane; row < rows && r < size; r += width) {
      const float v = x[base + r * inner.by];
      if (v == 0) zeros++;
      else rest *= (double)v;
    }
    rest = team.all(rest, [](double a, double b) { return a * b; });
    zeros = team.sum(zeros);
    if (y && row < rows && team.lane == 0) y[row] = zeros ? (float)(0 * rest) : (float)rest;
    for (long r = team.lane; dx && row < rows && r < size; r += width) {
      const float v = x[base + r * inner.by];
      const double d = (double)dy[row];
      dx[base + r * inner.by] = zeros - (v == 0) ? 0.0f : (float)(d * (v == 0 ? rest : rest / (double)v));
    }
  }
}

static void multiply(const mn_call *c, float *y, const float *dy, float *dx) {
  const mn_span s = mn_reduced_span(c);
  const long rows = s.outer * s.inner;
  const int width = cu_team_width(s.size);
  CU_LAUNCH(multiplied, cu_team_blocks(rows, width), CU_THREADS, CU_TEAM_SHARED, c->in[0].data, y, dy, dx, rows, s.size,
            cu_divisor(s.inner), width);
}

static void prod_forward(mn_call *c) { multiply(c, c->out[0].data, NULL, NULL); }
static void prod_backward(mn_call *c) { multiply(c, NULL, c->out[0].grad, c->in[0].grad); }
MN_KERNEL(prod, prod_forward, prod_backward)

/* ---- masks: how many of a row are set ---- */

CU_KERNEL counted(const uint8_t *x, long rows, long size, cu_divisor inner, int width, bool all, uint8_t *bit, int32_t *count) {
  const cu_team team(width);
  for (long row = team.first(); team.any(row, rows); row = team.next(row)) {
    int n = 0;
    long i = 0;
    const long base = row < rows ? inner.divide(row, &i) * size * inner.by + i : 0;
    for (long r = team.lane; row < rows && r < size; r += width) n += x[base + r * inner.by] != 0;
    n = team.sum(n);
    if (row >= rows || team.lane) continue;
    if (count) count[row] = n;
    else bit[row] = all ? n == size : n > 0;
  }
}

static void count(const mn_call *c, bool all, uint8_t *bit, int32_t *number) {
  const mn_span s = mn_reduced_span(c);
  const long rows = s.outer * s.inner;
  const int width = cu_team_width(s.size);
  CU_LAUNCH(counted, cu_team_blocks(rows, width), CU_THREADS, CU_TEAM_SHARED, c->in[0].u8, rows, s.size, cu_divisor(s.inner), width, all,
            bit, number);
}

static void all_forward(mn_call *c) { count(c, true, c->out[0].u8, NULL); }
MN_KERNEL(all, all_forward, NULL)
static void any_forward(mn_call *c) { count(c, false, c->out[0].u8, NULL); }
MN_KERNEL(any, any_forward, NULL)
static void count_forward(mn_call *c) { count(c, false, NULL, c->out[0].i32); }
MN_KERNEL(count_nonzero, count_forward, NULL)

/* ---- max, min: a number and its place; of equals the first wins, and a NaN over any number ---- */

static __device__ bool wins(float x, int i, float over, int j) {
  if (x != x || over != over) return x != x && (over == over || i < j);
  return x > over || (x == over && i < j);
}

static __device__ uint64_t pack(float x, int i) { return (uint64_t)mn_bits_of(x) << 32 | (uint32_t)i; }
static __device__ float number_of(uint64_t word) { return mn_float_of((uint32_t)(word >> 32)); }
static __device__ int place_of(uint64_t word) { return (int)(uint32_t)word; }

/* The largest of sign * x of each piece of each row k of x[outer, size, inner]: y, which may be NULL, and index are
** [outer * inner, pieces].  `places` says where x's numbers once stood; NULL: where they stand now. */
CU_KERNEL largest(const float *x, const int32_t *places, long rows, long size, cu_divisor inner,
                  cu_divisor pieces, long piece, int width, float sign, float *y, int32_t *index) {
  const cu_team team(width);
  for (long row = team.first(); team.any(row, rows); row = team.next(row)) {
    float best = -INFINITY;
    int where = INT32_MAX;
    if (row < rows) {
      long p, i;
      const long k = pieces.divide(row, &p), o = inner.divide(k, &i), end = cu_min((p + 1) * piece, size);
      for (long r = p * piece + team.lane; r < end; r += width) {
        const long at = (o * size + r) * inner.by + i;
        const int place = places ? places[at] : (int)r;
        const float v = sign * x[at];
        if (wins(v, place, best, where)) best = v, where = place;
      }
    }
    const uint64_t word = team.all(pack(best, where), [](uint64_t a, uint64_t b) {
      return wins(number_of(b), place_of(b), number_of(a), place_of(a)) ? b : a;
    });
    if (row >= rows || team.lane) continue;
    if (y) y[row] = sign * number_of(word);
    index[row] = place_of(word);
  }
}

enum { PIECE = 1 << 14 };

static void extreme(const mn_call *c, float sign, float *y, int32_t *index) {
  const mn_span s = mn_reduced_span(c);
  const long sums = s.outer * s.inner, pieces = sums < 256 ? cu_parts(s.size, PIECE) : 1;
  const int width = s.inner > 1 && sums >= 1 << 14 ? 1 : cu_team_width(cu_min(s.size, (long)PIECE));
  const bool once = pieces == 1;
  float *part = once ? y : mn_scratch(c->ctx, 0, sums * pieces);
  int32_t *place = once ? index : (int32_t *)mn_scratch(c->ctx, 1, sums * pieces);
  CU_LAUNCH(largest, cu_team_blocks(sums * pieces, width), CU_THREADS, CU_TEAM_SHARED, c->in[0].data,
            nullptr, sums * pieces, s.size, cu_divisor(s.inner), cu_divisor(pieces), once ? s.size : (long)PIECE, width, sign,
            part, place);
  if (once) return;
  const int few = cu_team_width(pieces);
  CU_LAUNCH(largest, cu_team_blocks(sums, few), CU_THREADS, CU_TEAM_SHARED, part, place, sums, pieces,
            cu_divisor(1), cu_divisor(1), pieces, few, sign, y, index);
}

CU_KERNEL max_slope(const float *dy, const int32_t *index, float *dx, long n, cu_divisor size,
                    cu_divisor inner) {
  CU_LOOP(at, n) {
    long i, r;
    const long o = size.divide(inner.divide(at, &i), &r), k = o * inner.by + i;
    dx[at] = index[k] == r ? dy[k] : 0.0f;
  }
}

static void extreme_backward(mn_call *c) {
  const mn_span s = mn_reduced_span(c);
  const long n = c->in[0].n;
  CU_LAUNCH(max_slope, cu_blocks(n), CU_THREADS, 0, c->out[0].grad, c->out[1].i32, c->in[0].grad, n,
            cu_divisor(s.size), cu_divisor(s.inner));
}

static void max_forward(mn_call *c) { extreme(c, 1, c->out[0].data, c->out[1].i32); }
MN_KERNEL(max, max_forward, extreme_backward)
static void min_forward(mn_call *c) { extreme(c, -1, c->out[0].data, c->out[1].i32); }
MN_KERNEL(min, min_forward, extreme_backward)
static void argmax_forward(mn_call *c) { extreme(c, 1, NULL, c->out[0].i32); }
MN_KERNEL(argmax, argmax_forward, NULL)
static void argmin_forward(mn_call *c) { extreme(c, -1, NULL, c->out[0].i32); }
MN_KERNEL(argmin, argmin_forward, NULL)
